"""``RNNDesc`` is a class of the program itself, on v2: ``Network``, of one layer."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from cudnn_compat.migrate.rule import Answer, CallSite, Left, Rule, Site
from cudnn_compat.migrate.rules import rnndesc_unseen as unseen
from cudnn_compat.migrate.rules.rnndesc_methods import GROUP, PART

__all__ = ["rule"]

_LAYERS = (
    "several layers: use v2.RNNSpec(…, num_layers=…), v2.named_weights and v2.rnn_forward, whose "
    "states are (layers, batch, hidden)"
)
_MODES = ("relu", "tanh", "lstm", "gru")


class DescriptorClass(Rule):
    """See the module."""

    codes = ("CC010",)
    group = GROUP

    def call(self, site: CallSite) -> Answer:
        """``Network(…)``; a mode that is known becomes a cell, a dtype in brackets a keyword."""
        given = site.arguments()
        if isinstance(given, Left):
            return given
        layers = given.get("layers")
        if layers is not None and not m.matches(layers, m.Integer("1")):
            return Left(_LAYERS)
        if site.subscript is not None and "dtype" in given:
            return Left("it has two dtypes")
        mode = given["mode"]
        args = []
        for arg in site.call.args:
            if arg.value is layers:
                continue
            if arg.value is mode:
                arg = arg.with_changes(value=self._cell(site, mode))
            args.append(arg)
        if layers is not None and args:
            args[-1] = args[-1].with_changes(comma=site.call.args[-1].comma)
        if refused := unseen.everywhere(site):
            return Left(refused)
        func: cst.BaseExpression = cst.Name(site.define(PART, "Network"))
        if site.subscript is not None:
            func = site.call.func.with_changes(value=func)
        return site.call.with_changes(func=func, args=args)

    def value(self, site: Site) -> Answer:
        """``Network``, where nothing hides its methods, and nobody asks which class it is."""
        questions = (unseen.everywhere, unseen.made_elsewhere, unseen.class_itself)
        if refused := next(filter(None, (ask(site) for ask in questions)), ""):
            return Left(refused)
        return cst.Name(site.define(PART, "Network"))

    def _cell(self, site: CallSite, mode: cst.BaseExpression) -> cst.BaseExpression:
        """A known mode as the name of its cell; any other as it is, which Network takes too."""
        if isinstance(mode, cst.Integer) and mode.evaluated_value < len(_MODES):
            return cst.SimpleString(f'"{_MODES[mode.evaluated_value]}"')
        return mode


rule = DescriptorClass()
