"""Activations: always left."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Activations(CupyRule):
    """CC132 and others."""

    codes = (
        "CC132",
        "CC133",
        "CC260",
        "CC261",
        "CC262",
        "CC263",
        "CC264",
    )
    reason = (
        "v2 has no activations, and an expression need not round as the library does: "
        "write maximum(x, 0), tanh(x), 1 / (1 + exp(-x)) or clip"
    )


rule = Activations()
