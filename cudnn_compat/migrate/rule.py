"""What a rule is, and what it is told about a place.

A rule is a class with one instance, in a file of its own in ``rules/``::

    class NumGates(Rule):
        codes = ("CC020",)

        def call(self, site: CallSite) -> Answer:
            given = site.arguments()            # by the old signature; keywords and positions
            if isinstance(given, Left):
                return given
            return site.expression("{desc}.spec.num_gates", desc=given["desc"])

    rule = NumGates()

Every file in ``rules/`` has such a ``rule``; nothing else registers it. The engine calls

* :meth:`Rule.prepare` once a file, before anything else;
* :meth:`Rule.statement` where the call is a whole statement (``call(…)``) or the whole right side
  of one (``a, b = call(…)``): the answer may be several statements;
* :meth:`Rule.call` for any other call, and where ``statement`` answered None;
* :meth:`Rule.value` for a use that is no call: the name is passed on, compared, subclassed …

A rule answers with new code, or with :class:`Left` and a reason: the place then stays as it is, is
marked with a comment, and reported. **When in doubt, Left**: a place that is left keeps running.

Inner expressions are rewritten before outer ones: expressions of a site are new code already, while
``site.original`` and everything asked about meaning is the program as it was.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import libcst as cst
from libcst.helpers import parse_template_expression, parse_template_statement

from cudnn_compat.legacy.names import LegacyName
from cudnn_compat.migrate import binding

if TYPE_CHECKING:
    from cudnn_compat.migrate.file_context import FileContext

__all__ = [
    "Answer",
    "CallSite",
    "Left",
    "LeftRule",
    "Rule",
    "Site",
    "Statement",
    "Statements",
    "group",
]


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    """This place cannot be moved.

    Attributes:
        reason: why, and what to do by hand, in one line; becomes a comment and a line of the
            report. It must not depend on the line number (a second run must say the same).
    """

    reason: str


Statement: TypeAlias = cst.SimpleStatementLine | cst.BaseCompoundStatement
Answer: TypeAlias = cst.BaseExpression | Left
Statements: TypeAlias = Sequence[Statement]


@dataclasses.dataclass
class Site:
    """A use of an old name.

    Attributes:
        row: its row in the table of old names; None for a name in :attr:`Rule.names`.
        name: its last part (``"forward"``).
        original: the node, as the program had it: the call, or the name or attribute itself.
        file: the file: imports, definitions, scopes.
    """

    row: LegacyName | None
    name: str
    original: cst.BaseExpression
    file: FileContext

    def module(self, qualified: str) -> str:
        """The local name of a module, imported if it is not: ``site.module("cudnn_compat.v2")``.

        "numpy" is called np, and so on; another name is taken where that one is in use.
        """
        return self.file.module(qualified)

    def define(self, part: str, name: str) -> str:
        """The local name of a class or function of ``parts/PART.py``, copied into the file."""
        return self.file.define(part, name)

    def origin(self, expression: cst.BaseExpression) -> str | None:
        """The code of the old call that certainly made this object, or None.

        Certain is a call itself, and a variable that is assigned once in its scope, by that call.
        Ask about nodes of :attr:`original`.
        """
        return self.file.names.origin(expression)

    def row_of(self, expression: cst.BaseExpression) -> LegacyName | None:
        """The row of an old name itself (a constant, say). Ask about nodes of the original."""
        return self.file.names.row(expression)

    def expression(self, template: str, **parts: cst.BaseExpression) -> cst.BaseExpression:
        """New code: ``site.expression("{desc}.spec", desc=given["desc"])``.

        Parts get parentheses where they need them. Write v2 as ``{v2}`` and numpy as ``{np}``.
        """
        return parse_template_expression(
            template, self.file.config, **self._modules(template), **_grouped(template, parts)
        )

    def statement(self, template: str, **parts: cst.BaseExpression) -> Statement:
        """The same for one statement."""
        return parse_template_statement(
            template, self.file.config, **self._modules(template), **_grouped(template, parts)
        )

    def _modules(self, template: str) -> dict[str, cst.BaseExpression]:
        known = {"v2": "cudnn_compat.v2", "np": "numpy"}
        return {
            short: cst.Name(self.module(qualified))
            for short, qualified in known.items()
            if f"{{{short}}}" in template
        }


@dataclasses.dataclass
class CallSite(Site):
    """A call of an old name.

    Attributes:
        call: the call as it is now, its arguments rewritten.
        subscript: for ``RNNDesc[dtype](…)``: what stands in the brackets; else None.
        targets: of a call that is the whole right side of an assignment: its targets, outermost
            first (``a = b = call()`` has two); empty for a call that is a whole statement; None for
            any other.
    """

    call: cst.Call
    subscript: cst.BaseExpression | None = None
    targets: tuple[cst.BaseExpression, ...] | None = None

    def arguments(self, *signatures: str) -> Mapping[str, cst.BaseExpression] | Left:
        """The arguments that were given, by the names of the old signature.

        Args:
            *signatures: source text, such as ``"desc, x, h, c=None"``; the first that fits is
                meant. None given: the signature of the old function.

        Returns:
            A dictionary in the order of the signature; defaults are left out. Left where the call
            has stars, or does not fit.
        """
        return binding.bind(self, signatures)

    def original_argument(self, name: str, *signatures: str) -> cst.BaseExpression | None:
        """An argument as it was before it was rewritten; None where it was not given."""
        bound = binding.bind(self, signatures, original=True)
        return None if isinstance(bound, Left) else bound.get(name)

    def reorders(self, given: Mapping[str, cst.BaseExpression]) -> bool:
        """Whether writing the arguments in the order of the mapping changes what is called first.

        It does where more than one argument does something (calls, awaits) and their order differs.
        """
        return binding.reorders(self, given)


class Rule:
    """A rule for one old name, or for a few that move alike.

    Attributes:
        codes: codes of the rows it is for. Each code has one rule.
        names: qualified old names without a row that it is for as well.
        group: rules of one group move together: where one of their places is left, in whatever
            file of the program, all of them stay. For objects that old and new code cannot share.
    """

    codes: ClassVar[tuple[str, ...]] = ()
    names: ClassVar[tuple[str, ...]] = ()
    group: ClassVar[str | None] = None

    def prepare(self, file: FileContext) -> None:
        """Look at a whole file before any of its sites is asked about.

        For what cannot be decided place by place: ``file.replace(node, new)`` puts new code in
        place of any node of ``file.tree``, ``file.left(node, code, reason)`` leaves a place.
        """

    def statement(self, site: CallSite) -> Statements | Left | None:
        """Statements in place of the whole statement; None: ask :meth:`call`."""
        return None

    def call(self, site: CallSite) -> Answer:
        """An expression in place of the call."""
        raise NotImplementedError

    def value(self, site: Site) -> Answer:
        """An expression in place of the name itself."""
        return Left("it is used as a value, so the calls it gets cannot be seen; move it by hand")


class LeftRule(Rule):
    """A rule for names that are always left.

    Attributes:
        reason: why, and what to do instead.
    """

    reason: ClassVar[str]

    def call(self, site: CallSite) -> Answer:
        """Left."""
        return Left(self.reason)

    def value(self, site: Site) -> Answer:
        """Left."""
        return Left(self.reason)


def _grouped(
    template: str, parts: Mapping[str, cst.BaseExpression]
) -> dict[str, cst.BaseExpression]:
    """Parts in parentheses where the template binds them to something."""
    loose = {name: re.search(rf"[(\[,=]\s*\{{{name}\}}\s*[)\],]", template) for name in parts}
    whole = template.strip()
    return {
        name: part if loose[name] or whole == f"{{{name}}}" else group(part)
        for name, part in parts.items()
    }


_CLOSED = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.BaseList,
    cst.BaseDict,
    cst.BaseSet,
    cst.SimpleString,
    cst.FormattedString,
)


def group(part: cst.BaseExpression) -> cst.BaseExpression:
    """``part`` with parentheses where an attribute or an operator could bind it otherwise."""
    if part.lpar or isinstance(part, _CLOSED):
        return part
    return part.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
