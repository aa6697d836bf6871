"""What a file has already, and what moved places need in it: imports and definitions."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Sequence

import libcst as cst
from libcst.metadata import ImportAssignment

from cudnn_compat.migrate.hints import Hints
from cudnn_compat.migrate.imports import first_place
from cudnn_compat.migrate.names import Names

__all__ = ["FileContext"]

SHORT = {"numpy": "np", "cudnn_compat.v2": "v2"}
"""What modules are called where the name is free; others by their last part."""

_NO_HINTS = Hints()


@dataclasses.dataclass(frozen=True)
class Replacement:
    """What comes in place of a node, and the group of the rule that says so."""

    new: cst.BaseExpression | Sequence[cst.BaseStatement]
    group: str | None


class FileContext:
    """One file while it is rewritten.

    Attributes:
        path: as it was given.
        names: what its expressions mean.
        config: indentation and newline, for new code.
        imports: local names of modules to import, by qualified name.
        definitions: local names of classes and functions to copy in, by (part, name).
        taken: every name that the file, or new code in it, binds or reads.
        defined_elsewhere: definitions that other files of the program get, by (part, name).
        hints: what all files of the program say about the objects of the old class.
    """

    def __init__(
        self,
        path: str,
        names: Names,
        defined_elsewhere: Collection[tuple[str, str]] = (),
        hints: Hints = _NO_HINTS,
    ) -> None:
        self.path = path
        self.names = names
        self.defined_elsewhere = defined_elsewhere
        self.hints = hints
        self.config = names.module.config_for_parsing
        self.imports: dict[str, str] = {}
        self.definitions: dict[tuple[str, str], str] = {}
        self.replaced: dict[cst.CSTNode, Replacement] = {}
        self.left_by_plan: list[tuple[cst.BaseExpression, str, str]] = []
        self._group: str | None = None
        self.taken = set(names.taken)

    @property
    def tree(self) -> cst.Module:
        """The file as it was: the nodes that sites and :meth:`replace` mean."""
        return self.names.module

    @contextlib.contextmanager
    def plan(self, group: str | None) -> Iterator[None]:
        """While a rule of this group prepares."""
        self._group = group
        try:
            yield
        finally:
            self._group = None

    def replace(
        self, node: cst.CSTNode, new: cst.BaseExpression | Sequence[cst.BaseStatement]
    ) -> None:
        """Put other code in place of a node of :attr:`tree`; from :meth:`.rule.Rule.prepare` only.

        Args:
            node: a statement or an expression. Sites in it count as moved and are not asked.
            new: statements for a statement (none: it is removed), an expression for an expression.
                Comments above a statement stay above the first new one.
        """
        self.replaced[node] = Replacement(new, self._group)

    def left(self, node: cst.BaseExpression, code: str, reason: str) -> None:
        """Report a place that no site stands for as left, and mark it; from ``prepare`` only.

        Args:
            node: of :attr:`tree`. code: of the row it belongs to. reason: as in ``Left``.
        """
        self.left_by_plan.append((node, code, reason))

    def module(self, qualified: str) -> str:
        """See :meth:`.rule.Site.module`."""
        return self._imported(qualified) or self._new_module(qualified)

    def define(self, part: str, name: str) -> str:
        """See :meth:`.rule.Site.define`."""
        key = (part, name)
        if key not in self.definitions:
            self.definitions[key] = self.free(name)
        return self.definitions[key]

    def wanted(self) -> tuple[dict[str, str], dict[tuple[str, str], str], set[str]]:
        """What is asked for so far, for :meth:`want`."""
        return dict(self.imports), dict(self.definitions), set(self.taken)

    def want(self, before: tuple[dict[str, str], dict[tuple[str, str], str], set[str]]) -> None:
        """Forget what was asked for since then: the place is left after all."""
        self.imports, self.definitions, self.taken = before

    def _new_module(self, qualified: str) -> str:
        if qualified not in self.imports:
            self.imports[qualified] = self.free(SHORT.get(qualified, qualified.split(".")[-1]))
        return self.imports[qualified]

    def _imported(self, qualified: str) -> str | None:
        """A name that the module's top level binds to this module and nothing else binds at all."""
        scope = self.names.global_scope
        for assignment in [] if scope is None else scope.assignments:
            if not isinstance(assignment, ImportAssignment) or "." in assignment.name:
                continue
            # Not one in a branch or a try.
            line = self.names.parents[assignment.node]
            if self.names.parents[line] is not self.names.module:
                continue
            # Not one below the place where definitions go.
            if not self._is_early(line):
                continue
            means = {each.name for each in assignment.get_qualified_names_for(assignment.name)}
            if means == {qualified} and self._bound_once(assignment.name):
                return assignment.name
        return None

    def _is_early(self, line: object) -> bool:
        body = self.names.module.body
        return next(i for i, each in enumerate(body) if each is line) < first_place(self.names)

    def _bound_once(self, name: str) -> bool:
        bound = [
            each
            for scope in self.names.all_scopes
            for each in scope.assignments
            if each.name == name
        ]
        return len(bound) == 1

    def free(self, wanted: str) -> str:
        """``wanted``, or it with a number where the file has that name already."""
        name, number = wanted, 2
        if self.names.only_old(wanted):
            return wanted
        while name in self.taken:
            name, number = f"{wanted}{number}", number + 1
        self.taken.add(name)
        return name
