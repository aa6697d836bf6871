"""Softmax: always left."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Softmax(CupyRule):
    """CC130 and others."""

    codes = (
        "CC130",
        "CC131",
        "CC265",
        "CC266",
    )
    reason = (
        "v2 has no softmax, and an expression need not round as the library does: write e"
        " = exp(x - x.max(axis, keepdims=True)); y = e / e.sum(axis, keepdims=True), and "
        "dx = y * (dy - (y * dy).sum(axis, keepdims=True))"
    )


rule = Softmax()
