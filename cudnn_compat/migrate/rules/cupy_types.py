"""Data types: a spec has them by name."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Types(CupyRule):
    """CC102."""

    codes = ("CC102",)
    reason = "what this number is used for was left; v2 takes dtypes themselves"


rule = Types()
