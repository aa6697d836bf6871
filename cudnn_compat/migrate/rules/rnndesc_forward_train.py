"""``forwardTrain(desc, …)`` is a method of the network: ``desc.step(…, train=True)``."""

from __future__ import annotations

from cudnn_compat.migrate.rules.rnndesc_methods import MethodRule

__all__ = ["rule"]


class ForwardTrain(MethodRule):
    """See the module."""

    codes = ("CC013",)
    method = "step"
    more = "train=True"


rule = ForwardTrain()
