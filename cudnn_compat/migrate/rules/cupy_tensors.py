"""Tensor descriptors: gone with the calls that they served."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Tensors(CupyRule):
    """CC101 and others."""

    codes = (
        "CC101",
        "CC103",
        "CC104",
        "CC210",
        "CC211",
        "CC212",
        "CC213",
        "CC214",
        "CC215",
    )
    reason = "it serves a call that was left; v2 takes arrays, without descriptors"


rule = Tensors()
