"""What the rules share whose function takes a descriptor first: it becomes a method of that."""

from __future__ import annotations

from typing import ClassVar

import libcst as cst

from cudnn_compat.migrate.rule import Answer, CallSite, Left, Rule, Site, group
from cudnn_compat.migrate.rules.rnndesc_keywords import passed_by_name

__all__ = ["GROUP", "PART", "MethodRule"]

GROUP = "RNNDesc"
"""A descriptor that old functions made is none that new code takes, and the other way round."""
PART = "rnndesc"


class MethodRule(Rule):
    """A function of a descriptor that is now a method.

    Attributes:
        method: of ``Network`` in ``parts/rnndesc.py``. Its parameters are those of the function,
            without the descriptor.
        more: what is written behind the arguments.
    """

    group = GROUP
    method: ClassVar[str]
    more: ClassVar[str] = ""

    def call(self, site: CallSite) -> Answer:
        """``desc.method(the other arguments as they are)``; with stars ``Network.method(…)``."""
        if any(arg.star for arg in site.call.args) and not self.more:
            if _hands_on_desc(site.call):
                return Left("its ** may hold desc, which is no argument of the method")
            return site.call.with_changes(func=self._unbound(site))
        given = site.arguments()
        if isinstance(given, Left):
            return given
        desc, *_ = given.values()
        index = next(i for i, arg in enumerate(site.call.args) if arg.value is desc)
        if index and site.reorders(given):
            return Left("its arguments are calls, whose order would change: name them first")
        func = cst.Attribute(group(desc), cst.Name(self.method))
        return without_argument(site.call, index, self.more).with_changes(func=func)

    def value(self, site: Site) -> Answer:
        """``Network.method`` takes a network first, as the old function did."""
        if self.more:
            return Left("it is used as a value, so its arguments cannot be seen")
        if refused := passed_by_name(site.file, "desc"):
            return Left(refused)
        return self._unbound(site)

    def _unbound(self, site: Site) -> cst.Attribute:
        return cst.Attribute(cst.Name(site.define(PART, "Network")), cst.Name(self.method))


def _hands_on_desc(call: cst.Call) -> bool:
    """Whether a call with stars gives, or may give, the descriptor by its name."""
    if any(arg.keyword is not None and arg.keyword.value == "desc" for arg in call.args):
        return True
    first = call.args[0]
    return any(arg.star == "**" for arg in call.args) and (
        first.star != "" or first.keyword is not None
    )


def without_argument(call: cst.Call, index: int, more: str = "") -> cst.Call:
    """The call without one argument, and with ``more`` behind the rest; comments stay."""
    args = list(call.args)
    gone = args.pop(index)
    changes: dict[str, object] = {}
    if isinstance(gone.comma, cst.Comma) and index == 0:
        after = gone.comma.whitespace_after
        if isinstance(after, cst.ParenthesizedWhitespace):
            changes["whitespace_before_args"] = after
        elif not args:
            changes["whitespace_before_args"] = cst.SimpleWhitespace("")
    if more:
        last = args[-1].comma if args else None
        if args and not isinstance(last, cst.Comma):
            comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
            args[-1] = args[-1].with_changes(comma=comma)
        extra = cst.ensure_type(cst.parse_expression(f"f({more})"), cst.Call).args[0]
        if isinstance(last, cst.Comma):
            extra = extra.with_changes(comma=last)
            spaced = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
            args[-1] = args[-1].with_changes(comma=spaced)
        args.append(extra)
    elif args and index == len(args):
        args[-1] = args[-1].with_changes(comma=gone.comma)
    return call.with_changes(args=args, **changes)
