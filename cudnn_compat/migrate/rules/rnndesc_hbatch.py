"""``hBatch(x, h)``: a function of the program; v2 is not needed for it."""

from __future__ import annotations

import libcst as cst

from cudnn_compat.migrate.rule import Answer, CallSite, Rule, Site
from cudnn_compat.migrate.rules.rnndesc_methods import PART

__all__ = ["rule"]


class OverBatch(Rule):
    """See the module."""

    codes = ("CC022",)

    def call(self, site: CallSite) -> Answer:
        """The same call, of the function that is copied in."""
        return site.call.with_changes(func=self.value(site))

    def value(self, site: Site) -> Answer:
        """The function that is copied in."""
        return cst.Name(site.define(PART, "over_batch"))


rule = OverBatch()
