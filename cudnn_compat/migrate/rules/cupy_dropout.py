"""Dropout as an operation of its own: always left."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Dropout(CupyRule):
    """CC114 and others."""

    codes = (
        "CC114",
        "CC115",
        "CC254",
        "CC255",
        "CC256",
    )
    reason = (
        "v2 has no dropout of its own, and its masks would be others: draw a mask with "
        "the array library's generator, keep it, and multiply by mask / (1 - ratio)"
    )


rule = Dropout()
