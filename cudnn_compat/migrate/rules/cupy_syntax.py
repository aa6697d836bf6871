"""Small questions about the text of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

__all__ = [
    "code",
    "constant_int",
    "decorated",
    "is_atom",
    "is_none",
    "method_of",
    "pairs",
    "replaced",
    "single_return",
]


def code(node: cst.CSTNode) -> str:
    """The text of a node."""
    return cst.Module([]).code_for_node(node)


def is_atom(text: str) -> bool:
    """Whether an attribute of an expression can be written without parentheses."""
    node = cst.parse_expression(text)
    atoms = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
    return bool(getattr(node, "lpar", ())) or isinstance(node, atoms)


def constant_int(node: cst.CSTNode) -> int | None:
    """The value of an integer in the text."""
    return int(node.value, 0) if isinstance(node, cst.Integer) else None


def is_none(node: cst.CSTNode | None) -> bool:
    """Whether an expression is ``None``."""
    return isinstance(node, cst.Name) and node.value == "None"


def pairs(
    target: cst.Tuple | cst.List, value: cst.BaseExpression | None
) -> list[cst.BaseExpression] | None:
    """The values of ``a, b = c, d``, one for each target; None where they cannot be told apart."""
    if not isinstance(value, (cst.Tuple, cst.List)):
        return None
    if len(value.elements) != len(target.elements):
        return None
    if any(isinstance(element, cst.StarredElement) for element in value.elements):
        return None
    return [element.value for element in value.elements]


def decorated(function: cst.FunctionDef, *names: str) -> bool:
    """Whether a function has one of some decorators."""
    return any(
        isinstance(d.decorator, cst.Name) and d.decorator.value in names
        for d in function.decorators
    )


def single_return(function: cst.FunctionDef) -> cst.BaseExpression | None:
    """What a function returns that ends in its only ``return``."""
    returns: list[cst.Return] = []

    class Finder(cst.CSTVisitor):
        def visit_Return(self, node: cst.Return) -> None:
            returns.append(node)

    function.body.visit(Finder())
    last = function.body.body[-1] if function.body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return returns[0].value if len(returns) == 1 and returns[0] is last else None


def method_of(owner: cst.ClassDef, name: str) -> cst.FunctionDef | None:
    """A method by its name."""
    for statement in owner.body.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == name:
            return statement
    return None


def replaced(node: cst.CSTNode, parts: Mapping[cst.CSTNode, cst.CSTNode]) -> cst.CSTNode:
    """A node with some of the nodes in it replaced."""

    class Replacer(cst.CSTTransformer):
        def on_leave(self, original_node: Any, updated_node: Any) -> Any:
            return parts.get(original_node, updated_node)

    result = node.visit(Replacer())
    assert isinstance(result, cst.CSTNode)
    return result
