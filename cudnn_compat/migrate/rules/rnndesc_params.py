"""``params(w, input, hidden, n)``: a function of the program that divides flat weights."""

from __future__ import annotations

import libcst as cst

from cudnn_compat.migrate.rule import Answer, CallSite, Rule, Site
from cudnn_compat.migrate.rules.rnndesc_methods import PART

__all__ = ["rule"]


class Params(Rule):
    """See the module."""

    codes = ("CC021",)

    def call(self, site: CallSite) -> Answer:
        """The same call, of the function that is copied in."""
        return site.call.with_changes(func=self.value(site))

    def value(self, site: Site) -> Answer:
        """The function that is copied in."""
        return cst.Name(site.define(PART, "divide"))


rule = Params()
