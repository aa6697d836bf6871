"""The four modes: where a call takes one, the cell in words; elsewhere a number of the program."""

from __future__ import annotations

import libcst as cst

from cudnn_compat.legacy import modes
from cudnn_compat.migrate.rule import Answer, CallSite, Left, Rule, Site
from cudnn_compat.migrate.rules.rnndesc_methods import GROUP, PART

__all__ = ["rule"]


class Modes(Rule):
    """See the module."""

    codes = ("CC001", "CC002", "CC003", "CC004")
    group = GROUP

    def call(self, site: CallSite) -> Answer:
        """Left."""
        return Left("it is a number and is called")

    def value(self, site: Site) -> Answer:
        """The cell, as the table has it, where RNNDesc takes it; else the number, by its name."""
        assert site.row is not None and site.row.value is not None
        names = site.file.names
        parent = names.parents[site.original]
        if isinstance(parent, cst.MatchValue):
            # A bare name would be a pattern that everything matches.
            return cst.Integer(str(getattr(modes, site.name)))
        call = names.parents.get(parent)
        if isinstance(parent, cst.Arg) and isinstance(call, cst.Call):
            func = call.func.value if isinstance(call.func, cst.Subscript) else call.func
            row = names.row(func)
            # A star is no position of its own.
            first = parent is call.args[0] and not parent.star and parent.keyword is None
            named = parent.keyword is not None and parent.keyword.value == "mode"
            if row is not None and row.code == "CC010" and (first or named):
                return cst.SimpleString(site.row.value)
        return cst.Name(site.define(PART, site.name))


rule = Modes()
