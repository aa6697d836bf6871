"""The old names that the rewriter knows: their modules, their rows, and what a place may be."""

from __future__ import annotations

import dataclasses
import functools
import importlib

from cudnn_compat.legacy.names import MODULES, LegacyName
from cudnn_compat.legacy.table import TABLE

__all__ = ["OLD_MODULES", "ROWS", "Use", "canonical", "public_names"]

_CUPY = "cudnn_compat.legacy.cupy"

OLD_MODULES = {
    "cudnn_compat.legacy": "cudnn_compat.legacy",
    _CUPY: _CUPY,
    f"{_CUPY}.constants": f"{_CUPY}.libcudnn",
    **{theirs: ours for ours, all_theirs in MODULES.items() for theirs in all_theirs},
    **{ours: ours for ours in MODULES},
}
"""Each module that old names are imported from, and the module of their rows."""

ROWS = {row.old: row for row in TABLE}


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    """An expression that is an old name, or may be one.

    Attributes:
        qualified: the old name in full, as the table has it; or a module of old names.
        row: its row; None where the table has none.
        doubt: why it is not certain; empty where it is.
    """

    qualified: str
    row: LegacyName | None
    doubt: str = ""

    @property
    def name(self) -> str:
        """The last part."""
        return self.row.name if self.row else self.qualified.rpartition(".")[2]

    @property
    def is_module(self) -> bool:
        """Whether this is a whole module of old names."""
        return self.qualified in OLD_MODULES


def canonical(qualified: str) -> str | None:
    """An imported name as the table has it; None where it is no old name or module of such."""
    if qualified in OLD_MODULES:
        return OLD_MODULES[qualified]
    module = qualified
    while "." in module:
        module = module.rpartition(".")[0]
        if module in OLD_MODULES:
            rest = qualified.removeprefix(module)
            ours = OLD_MODULES[module] + rest
            if module == f"{_CUPY}.constants" and ours not in ROWS:
                return qualified
            return ours
    return None


@functools.cache
def public_names(module: str) -> frozenset[str]:
    """What ``from MODULE import *`` gives, for the name as it stands in the program."""
    ours = "cudnn_compat.legacy.cupy.constants" if module.endswith(".constants") else None
    ours = ours or OLD_MODULES[module]
    loaded = importlib.import_module(ours)
    listed = getattr(loaded, "__all__", None)
    names = listed if listed is not None else [n for n in vars(loaded) if not n.startswith("_")]
    return frozenset(names)
