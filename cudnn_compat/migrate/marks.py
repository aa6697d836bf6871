"""The comments at places that were left."""

from __future__ import annotations

from typing import Any

import libcst as cst

__all__ = ["MARK", "add_mark", "is_mark", "remove_marks"]

MARK = "# cudnn-compat: left, "
"""What such a comment begins with. Lines that begin so belong to the tool."""


def add_mark(statement: Any, text: str) -> Any:
    """The statement (or several in place of one) with a comment above it."""
    if isinstance(statement, cst.FlattenSentinel):
        first, *rest = statement
        return cst.FlattenSentinel([add_mark(first, text), *rest])
    line = cst.EmptyLine(comment=cst.Comment(MARK + text))
    return statement.with_changes(leading_lines=[*statement.leading_lines, line])


def is_mark(line: cst.EmptyLine) -> bool:
    """Whether a line is such a comment."""
    return line.comment is not None and line.comment.value.startswith(MARK)


def remove_marks(module: cst.Module) -> cst.Module:
    """The module without the marks of an earlier run, which this run decides anew."""
    return module.visit(_Remover())


class _Remover(cst.CSTTransformer):
    def leave_EmptyLine(
        self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine
    ) -> cst.EmptyLine | cst.RemovalSentinel:
        return cst.RemoveFromParent() if is_mark(updated_node) else updated_node
