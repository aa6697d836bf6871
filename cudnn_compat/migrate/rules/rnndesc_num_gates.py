"""``ngates(desc)`` is an attribute of the spec; ``ngates(CUDNN_LSTM)`` is a number."""

from __future__ import annotations

import libcst as cst

from cudnn_compat.migrate.rule import Answer, CallSite, Left, Rule, Site
from cudnn_compat.migrate.rules.rnndesc_methods import GROUP, PART
from cudnn_compat.spec import RNNSpec

__all__ = ["rule"]


class NumGates(Rule):
    """See the module."""

    codes = ("CC020",)
    group = GROUP

    def call(self, site: CallSite) -> Answer:
        """The number where the cell is known, else the function of the part."""
        given = site.arguments("desc")
        if isinstance(given, Left):
            return given
        original = site.original_argument("desc", "desc")
        assert original is not None
        row = site.row_of(original)
        if row is not None and row.value is not None:
            return cst.Integer(str(RNNSpec(row.value.strip('"'), 1, 1).num_gates))
        if site.origin(original) == "CC010":
            return site.expression("{desc}.spec.num_gates", desc=given["desc"])
        return site.call.with_changes(func=self.value(site))

    def value(self, site: Site) -> Answer:
        """The function that is copied in, which takes both."""
        return cst.Name(site.define(PART, "number_of_gates"))


rule = NumGates()
