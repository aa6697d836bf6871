"""Dropout descriptors: the dropout of a spec, and a generator."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class DropoutDescriptors(CupyRule):
    """CC106 and others."""

    codes = (
        "CC106",
        "CC107",
        "CC108",
        "CC250",
        "CC251",
        "CC252",
        "CC253",
    )
    reason = (
        "it serves a call that was left, or has a ratio: write dropout= in the spec and "
        "pass seed=v2.DropoutState(…)"
    )


rule = DropoutDescriptors()
