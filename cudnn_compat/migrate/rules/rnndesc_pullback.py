"""``pullback(desc, …)`` is a method of the network: ``desc.pullback(…)``."""

from __future__ import annotations

from cudnn_compat.migrate.rules.rnndesc_methods import MethodRule

__all__ = ["rule"]


class Pullback(MethodRule):
    """See the module."""

    codes = ("CC016",)
    method = "pullback"


rule = Pullback()
