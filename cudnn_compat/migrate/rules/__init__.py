"""The rules, one a file: its ``rule``. :mod:`cudnn_compat.migrate.rule` says what that is.

A file without a ``rule`` holds what several rules share.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from cudnn_compat.legacy.table import TABLE
from cudnn_compat.migrate.rule import Rule

__all__ = ["RULES"]


def _load() -> Iterator[Rule]:
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda each: each.name):
        module = importlib.import_module(f"{__name__}.{info.name}")
        if hasattr(module, "rule"):
            yield module.rule


def _by_qualified_name() -> dict[str, Rule]:
    old = {row.code: row.old for row in TABLE}
    rules: dict[str, Rule] = {}
    for rule in _load():
        for qualified in (*(old[code] for code in rule.codes), *rule.names):
            assert qualified not in rules, f"{qualified} has two rules"
            rules[qualified] = rule
    return rules


RULES: dict[str, Rule] = _by_qualified_name()
"""The rule of each qualified old name."""
