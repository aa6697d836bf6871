"""Questions about a syntax tree that need nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

__all__ = ["dotted", "imported_module", "walk"]


def dotted(node: cst.CSTNode) -> str:
    """``a.b.c`` as text; empty for anything else than names and dots."""
    if isinstance(node, cst.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr.value}" if before else ""
    return node.value if isinstance(node, cst.Name) else ""


def imported_module(node: cst.ImportFrom) -> str:
    """The module of ``from MODULE import …``, with the dots of a relative one."""
    name = "" if node.module is None else dotted(node.module)
    return "." * len(node.relative) + name


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and everything in it."""
    yield node
    for child in node.children:
        yield from walk(child)
