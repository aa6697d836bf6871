"""The texts of a plan as code, in place of what was there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from cudnn_compat.migrate.rules.cupy_syntax import replaced
from cudnn_compat.migrate.rules.cupy_work import Work

__all__ = ["put_in_place"]

_New = cst.BaseExpression | Sequence[cst.BaseStatement]


def put_in_place(work: Work) -> None:
    """Hand the new code of a plan over."""
    found = dict(_new_code(work))
    for function in work.shortened:
        inside = {node for node in found if work.flow.inside(node, function)}
        parts: dict[cst.CSTNode, Any] = {node: found.pop(node) for node in inside}
        parts[function.params] = work.shortened[function]
        found[function] = [_rebuilt(function, parts)]
    for node, new in found.items():
        work.file.replace(node, new)


def _new_code(work: Work) -> Iterator[tuple[cst.CSTNode, _New]]:
    config = work.file.config
    for line, ahead in work.ahead.items():
        assert isinstance(line, cst.SimpleStatementLine)
        texts = {n: t for n, t in work.new.items() if isinstance(t, str)}
        parts = {
            node: cst.parse_expression(text, config)
            for node, text in texts.items()
            if work.flow.inside(node, line)
        }
        for node in parts:
            del work.new[node]
        first = cst.parse_module("\n".join(ahead) + "\n", config).body
        last: Any = replaced(line, parts)
        yield line, [*first, last.with_changes(leading_lines=[])]
    for node, text in work.new.items():
        above = work.flow.parents.get(node)
        if above is not None and work.gone(above):
            continue
        if isinstance(text, str):
            yield _of_expression(work, node, cst.parse_expression(text, config))
            continue
        body = list(cst.parse_module("\n".join(text) + "\n", config).body) if text else []
        if body:
            body[0] = _with_comments(node, body[0])
        yield node, body


def _of_expression(
    work: Work, node: cst.CSTNode, new: cst.BaseExpression
) -> tuple[cst.CSTNode, _New]:
    """Where an expression is all that a statement does, the statement is what is replaced."""
    small = work.flow.parents[node]
    line = work.flow.parents.get(small)
    if isinstance(small, (cst.Assign, cst.Expr)) and isinstance(line, cst.SimpleStatementLine):
        return line, [line.with_deep_changes(small, value=new)]
    return node, new


def _with_comments(old: cst.CSTNode, new: Any) -> Any:
    """A statement with the comments that stood in and behind the old one, behind it."""
    leading = getattr(old, "leading_lines", ())
    above = {each for line in leading for each in _all(line)}
    found = [n.value for n in _all(old) if isinstance(n, cst.Comment) and n not in above]
    if not found:
        return new
    space = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), cst.Comment("  ".join(found)))
    return new.with_changes(trailing_whitespace=space)


def _all(node: cst.CSTNode) -> list[cst.CSTNode]:
    return [node, *(inner for child in node.children for inner in _all(child))]


def _rebuilt(function: cst.FunctionDef, parts: dict[cst.CSTNode, Any]) -> cst.FunctionDef:
    """A function with the new code in it."""

    class Rebuilder(cst.CSTTransformer):
        def on_visit(self, node: cst.CSTNode) -> bool:
            return node not in parts

        def on_leave(self, original_node: Any, updated_node: Any) -> Any:
            if original_node not in parts:
                return updated_node
            new = parts[original_node]
            if not isinstance(new, list):
                return new
            if not new:
                return cst.RemoveFromParent()
            first = new[0].with_changes(leading_lines=original_node.leading_lines)
            return cst.FlattenSentinel([first, *new[1:]])

    found = function.visit(Rebuilder())
    assert isinstance(found, cst.FunctionDef)
    if not found.body.body:
        nothing = cst.SimpleStatementLine([cst.Pass()])
        return found.with_changes(body=found.body.with_changes(body=[nothing]))
    return found
