"""``forward(desc, x, h)`` is a method of the network: ``desc.step(x, h)``."""

from __future__ import annotations

from cudnn_compat.migrate.rules.rnndesc_methods import MethodRule

__all__ = ["rule"]


class Forward(MethodRule):
    """See the module."""

    codes = ("CC012",)
    method = "step"


rule = Forward()
