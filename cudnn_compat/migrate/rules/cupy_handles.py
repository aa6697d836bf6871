"""Handles and streams: v2 finds a handle by itself, and runs on CuPy's current stream."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Handles(CupyRule):
    """CC100 and others."""

    codes = (
        "CC100",
        "CC201",
        "CC202",
    )
    reason = "it serves a call that was left; v2 needs no handle"


rule = Handles()
