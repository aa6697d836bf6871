"""Filter descriptors: gone with the calls that they served."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Filters(CupyRule):
    """CC105 and others."""

    codes = (
        "CC105",
        "CC216",
        "CC217",
        "CC218",
        "CC219",
        "CC220",
    )
    reason = "it serves a call that was left; v2 takes the weights themselves"


rule = Filters()
