"""``setweights(desc, …)`` is a method of the network: ``desc.set_weights(…)``."""

from __future__ import annotations

from cudnn_compat.migrate.rules.rnndesc_methods import MethodRule

__all__ = ["rule"]


class SetWeights(MethodRule):
    """See the module."""

    codes = ("CC011",)
    method = "set_weights"


rule = SetWeights()
