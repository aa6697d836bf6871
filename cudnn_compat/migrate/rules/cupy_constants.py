"""Constants: words, in the arguments of what has moved."""

from __future__ import annotations

from cudnn_compat.legacy.cupy import constants
from cudnn_compat.legacy.table_constants import CONSTANTS
from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


_HOME = "cudnn_compat.legacy.cupy"
_ROWS = {row.name for row in CONSTANTS}


class Constants(CupyRule):
    """CC300 to CC334, and the constants that have no row."""

    codes = tuple(row.code for row in CONSTANTS)
    names = tuple(
        f"{_HOME}.{module}.{name}"
        for name in constants.__all__
        if name not in _ROWS
        for module in ("constants", "libcudnn")
    )
    reason = (
        "what it is used for was left, or cannot be seen; "
        "`cudnn-compat explain` has the word for it"
    )


rule = Constants()
