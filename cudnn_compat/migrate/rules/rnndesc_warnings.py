"""The classes of the warnings: what is filtered by them warns no more once it has moved."""

from __future__ import annotations

from cudnn_compat.migrate.rule import LeftRule

__all__ = ["rule"]


class Warnings(LeftRule):
    """See the module."""

    names = (
        "cudnn_compat.legacy.LegacyAPIWarning",
        "cudnn_compat.legacy.RemovedIn3Warning",
    )
    reason = "v2 does not warn so: remove this once nothing else is left"


rule = Warnings()
