"""``backwardWeights(desc, x, h, y, reserve)``: the method of what the forward kept."""

from __future__ import annotations

from cudnn_compat.migrate.binding import does_something
from cudnn_compat.migrate.rule import Answer, CallSite, Left, Rule
from cudnn_compat.migrate.rules.rnndesc_methods import GROUP

__all__ = ["rule"]


class BackwardWeights(Rule):
    """See the module."""

    codes = ("CC015",)
    group = GROUP

    def call(self, site: CallSite) -> Answer:
        """``desc.backward_weights(reserve)``: v2 knows x, h and y."""
        given = site.arguments()
        if isinstance(given, Left):
            return given
        for name in ("x", "h", "y"):
            if does_something(given[name]):
                return Left(f"{name}, which is needed no more, is made by a call: name it first")
        return site.expression(
            "{desc}.backward_weights({reserve})", desc=given["desc"], reserve=given["reserve"]
        )


rule = BackwardWeights()
