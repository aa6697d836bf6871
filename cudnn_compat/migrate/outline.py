"""What the other files of a program tell about one, read quickly."""

from __future__ import annotations

import ast
import dataclasses
import warnings
from collections.abc import Mapping

__all__ = ["Outline", "outline"]


@dataclasses.dataclass(frozen=True)
class Outline:
    """What one file takes from others.

    Attributes:
        imported: names that it imports, by the last part of the module they come from.
        attributes: every attribute that it names.
    """

    imported: Mapping[str, frozenset[str]]
    attributes: frozenset[str]


def outline(source: bytes) -> Outline:
    """The outline of a file; an empty one where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the file's own oddities
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return Outline({}, frozenset())
    imported: dict[str, frozenset[str]] = {}
    attributes = set()
    modules: dict[str, str] = {}  # what an attribute may be taken from, and its last part
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            last = (node.module or "").rpartition(".")[2]
            names = {alias.name for alias in node.names}
            imported[last] = imported.get(last, frozenset()) | names
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {a.asname or a.name: a.name.rpartition(".")[2] for a in node.names}
        elif isinstance(node, ast.Attribute):
            attributes.add(node.attr)
        elif isinstance(node, ast.MatchClass):
            attributes.update(node.kwd_attrs)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            module = modules.get(ast.unparse(node.value))
            if module is not None:
                imported[module] = imported.get(module, frozenset()) | {node.attr}
    return Outline(imported, frozenset(attributes))
