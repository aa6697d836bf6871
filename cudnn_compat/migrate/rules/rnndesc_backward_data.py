"""``backwardData(desc, y, dy, dho, dco, h, c, reserve)``: the method of what the forward kept."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from cudnn_compat.migrate.binding import does_something
from cudnn_compat.migrate.rule import Answer, CallSite, Left, Rule
from cudnn_compat.migrate.rules.rnndesc_methods import GROUP

__all__ = ["rule"]

_FORMS = ("desc, y, dy, dho, dco, h, c, reserve", "desc, y, dy, dho, h, reserve")


class BackwardData(Rule):
    """See the module."""

    codes = ("CC014",)
    group = GROUP

    def call(self, site: CallSite) -> Answer:
        """``desc.backward_data(reserve, dy, dho[, dco, c])``: v2 knows y and the states."""
        given = site.arguments(*_FORMS)
        if isinstance(given, Left):
            return given
        for name in ("y", "h"):
            if does_something(given[name]):
                return Left(f"{name}, which is needed no more, is made by a call: name it first")
        order = ("desc", "reserve", "dy", "dho", "dco", "c")
        kept = {name: given[name] for name in order if name in given}
        if sum(does_something(value) for value in kept.values()) > 1:
            return Left("its arguments are calls, whose order would change: name them first")
        if m.matches(kept.get("c", cst.Name("None")), m.Name("None")):
            kept.pop("c", None)
            if m.matches(kept.get("dco", cst.Name("None")), m.Name("None")):
                kept.pop("dco", None)
        rest = ", ".join(f"{{{name}}}" for name in kept if name != "desc")
        return site.expression(f"{{desc}}.backward_data({rest})", **kept)


rule = BackwardData()
