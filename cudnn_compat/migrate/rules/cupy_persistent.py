"""Plans of the persistent algorithms: v2 makes its own."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Persistent(CupyRule):
    """CC236 and others."""

    codes = (
        "CC236",
        "CC237",
        "CC238",
    )
    reason = 'it serves a call that was left; in a spec algo="persist_dynamic" is all'


rule = Persistent()
