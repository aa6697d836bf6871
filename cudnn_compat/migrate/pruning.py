"""Imports taken out of a tree, and what becomes of the comments of their lines."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import libcst as cst

if TYPE_CHECKING:
    from cudnn_compat.migrate.imports import Import, Imported

__all__ = ["is_gone", "pruned", "without_gone", "without_space"]

_GONE: Final = cst.Pass()
"""Stands where a line was removed, until its comments have gone to their new place."""


class _Pruner(cst.CSTTransformer):
    """Takes imports out; at module level a line that has nothing left becomes ``_GONE``."""

    def __init__(self, removed: Sequence[Imported]) -> None:
        super().__init__()
        self.removed: dict[cst.CSTNode, dict[str, Imported]] = {}
        for each in removed:
            self.removed.setdefault(each.node, {})[each.local] = each

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> Any:
        return self._prune(original_node, updated_node)

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> Any:
        return self._prune(original_node, updated_node)

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        # An empty block is written as `pass`.
        return updated_node.with_changes(body=without_gone(updated_node.body))

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        if not updated_node.body:
            return updated_node.with_changes(body=[_GONE])
        # The last statement of a line has no semicolon.
        last = updated_node.body[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
        if len(updated_node.body) == len(original_node.body):
            return updated_node
        return updated_node.with_changes(body=[*updated_node.body[:-1], last])

    def _prune(self, original: Import, updated: Import) -> Any:
        gone = self.removed.get(original)
        if gone is None:
            return updated
        if isinstance(updated.names, cst.ImportStar):
            return cst.RemoveFromParent()
        kept = []
        for alias in updated.names:
            old = gone.get(alias.evaluated_alias or alias.evaluated_name)
            if old is None:
                kept.append(alias)
            elif old.instead is not None:
                kept.append(alias.with_changes(name=cst.Name(old.instead)))
        if not kept:
            return cst.RemoveFromParent()
        in_parentheses = isinstance(updated, cst.ImportFrom) and updated.lpar
        last = updated.names[-1].comma if in_parentheses else cst.MaybeSentinel.DEFAULT
        kept[-1] = kept[-1].with_changes(comma=last)
        return updated.with_changes(names=kept)


def pruned(module: cst.Module, removed: Sequence[Imported]) -> cst.Module:
    """The module without some imports; lines that have nothing left are still to be taken out."""
    return module.visit(_Pruner(removed))


def is_gone(statement: object) -> bool:
    """Whether a line of the module stands for one that was removed."""
    return isinstance(statement, cst.SimpleStatementLine) and statement.body[0] is _GONE


def without_gone(body: Sequence[Any]) -> list[Any]:
    """Statements without the removed lines, whose comments go to the next statement."""
    found: list[Any] = []
    carried: list[cst.EmptyLine] = []
    gone = False
    for statement in body:
        if is_gone(statement):
            gone = True
            carried += statement.leading_lines
            comment = statement.trailing_whitespace.comment
            if comment is not None:
                carried.append(cst.EmptyLine(comment=comment))
            continue
        lines = list(statement.leading_lines)
        if any(line.comment for line in carried):
            lines = [*carried, *lines]
        elif gone and not found:
            lines = without_space(lines)
        elif not lines:
            lines = carried
        statement = statement.with_changes(leading_lines=lines) if gone else statement
        carried, gone = [], False
        found.append(statement)
    return found


def without_space(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Without the empty lines it begins with."""
    return list(itertools.dropwhile(lambda line: line.comment is None, lines))
