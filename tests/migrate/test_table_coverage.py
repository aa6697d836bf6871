"""The table of old names and the rules: each row of the dialect is moved, or left with a reason."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

pytest.importorskip("libcst", reason="needs libcst (extra migrate)")

from cudnn_compat.legacy.table import TABLE, LegacyName
from cudnn_compat.migrate import migrate_program, rules
from cudnn_compat.migrate.rule import LeftRule
from cudnn_compat.migrate.rules import RULES

OURS = [row for row in TABLE if row.module == "cudnn_compat.legacy"]
LEFT = {"CC023", "CC024"}
"""What v2 has nothing for."""

each_row = pytest.mark.parametrize("row", OURS, ids=lambda row: row.code)


def findings(program: str) -> list[tuple[str, str, str]]:
    (done,) = migrate_program({"program.py": program.encode()}).values()
    return [(each.what, each.code, each.reason) for each in done.findings]


@each_row
def test_a_row_has_a_rule_that_moves_it_or_says_why_not(row: LegacyName) -> None:
    rule = RULES[row.old]
    assert row.code in rule.codes
    if row.code in LEFT:
        assert isinstance(rule, LeftRule)
        assert len(rule.reason) > 20
    else:
        assert not isinstance(rule, LeftRule)


@each_row
def test_the_example_of_a_row_is_moved_or_left_with_a_reason(row: LegacyName) -> None:
    """The examples are programs that use the name as the table says it was used."""
    found = findings(row.prelude + row.before)
    mine = [(what, reason) for what, code, reason in found if code == row.code]
    assert mine
    for what, reason in mine:
        assert what == ("left" if row.code in LEFT else "moved")
        assert bool(reason) == (row.code in LEFT)


@each_row
def test_a_row_that_is_used_as_a_value_is_never_lost(row: LegacyName) -> None:
    found = findings(f"from cudnn_compat.legacy import {row.name} as it\nkept = [it]\n")
    assert [code for _, code, _ in found] == [row.code]


def test_every_name_of_a_rule_is_a_row_or_says_what_it_is_for() -> None:
    codes = {row.code for row in TABLE}
    for info in pkgutil.iter_modules(rules.__path__):
        rule = getattr(importlib.import_module(f"{rules.__name__}.{info.name}"), "rule", None)
        if rule is not None:
            assert rule.codes or rule.names, info.name
            assert set(rule.codes) <= codes
