"""``RNNDesc`` is a class of the program itself, on v2: ``Network``, of one layer."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from cudnn_compat.migrate.rule import Answer, CallSite, Left, Rule, Site
from cudnn_compat.migrate.rules.rnndesc_methods import GROUP, PART

__all__ = ["rule"]

_LAYERS = (
    "several layers: use v2.RNNSpec(…, num_layers=…), v2.named_weights and v2.rnn_forward, whose "
    "states are (layers, batch, hidden)"
)
_METHODS = frozenset(("step", "set_weights", "pullback", "backward_data", "backward_weights"))
"""What Network has and RNNDesc had not."""
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
        func = self.value(site)
        if site.subscript is not None and not isinstance(func, Left):
            func = site.call.func.with_changes(value=func)
        return func if isinstance(func, Left) else site.call.with_changes(func=func, args=args)

    def value(self, site: Site) -> Answer:
        """``Network``, where nothing in the file hides its methods."""
        refused = _hidden_method(site) or _question_about_class(site)
        if refused:
            return Left(refused)
        return cst.Name(site.define(PART, "Network"))

    def _cell(self, site: CallSite, mode: cst.BaseExpression) -> cst.BaseExpression:
        """A known mode as the name of its cell; any other as it is, which Network takes too."""
        if isinstance(mode, cst.Integer) and mode.evaluated_value < len(_MODES):
            return cst.SimpleString(f'"{_MODES[mode.evaluated_value]}"')
        return mode


def _hidden_method(site: Site) -> str:
    """Why a class or an assignment would hide a method of Network; empty where none does."""
    parents = site.file.names.parents
    parent = parents[site.original]
    if isinstance(parent, cst.Attribute) and parent.attr.value in _METHODS:
        return f"it is given a {parent.attr.value} of its own: rename that first"
    holder = parents.get(parent)
    if isinstance(parent, cst.Arg) and isinstance(holder, cst.ClassDef):
        for member in holder.body.body:
            names = (
                [member.name]
                if isinstance(member, cst.FunctionDef)
                else m.findall(member, m.Name())
            )
            for name in names:
                if isinstance(name, cst.Name) and name.value in _METHODS:
                    return f"its subclass has a {name.value} of its own: rename that first"
    return ""


def _question_about_class(site: Site) -> str:
    """Why ``isinstance(…, RNNDesc)`` cannot be answered; empty where it can, or is not asked."""
    if (PART, "Network") not in site.file.defined_elsewhere:
        return ""
    node: cst.CSTNode = site.original
    asks = m.Call(func=m.Name("isinstance") | m.Name("issubclass"))
    while not isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
        node = site.file.names.parents[node]
        if m.matches(node, asks):
            return "other files make networks of a class of their own: ask for .spec instead"
    return ""


rule = DescriptorClass()
