"""Sizes of scratch memory and reserves: v2 takes what it needs."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Sizes(CupyRule):
    """CC228 and others."""

    codes = (
        "CC228",
        "CC229",
    )
    reason = "it serves a call that was left; v2 takes its own memory"


rule = Sizes()
