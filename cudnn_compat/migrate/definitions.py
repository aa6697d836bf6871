"""The code that is copied into a moved program: classes, functions and values of ``parts/``.

A part is an ordinary module, imports first. What a program needs is taken from it with everything
that it refers to; of a class only the members that the program names somewhere.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterable, Iterator
from importlib.resources import files

import libcst as cst

from cudnn_compat.migrate.file_context import FileContext
from cudnn_compat.migrate.syntax import walk

__all__ = ["attributes_of", "build", "members_of"]

Definition = cst.ClassDef | cst.FunctionDef | cst.SimpleStatementLine


@dataclasses.dataclass(frozen=True)
class _Part:
    """A module of ``parts/``: its modules by local name, its definitions in their order."""

    modules: dict[str, str]
    definitions: dict[str, Definition]


def build(file: FileContext, attributes: Collection[str]) -> list[Definition]:
    """The definitions that ``file`` asked for, with what they need, under their local names.

    Args:
        attributes: every attribute that the program names: which members a class keeps.
    """
    found: list[Definition] = []
    for part_name in sorted({part for part, _ in file.definitions}):
        part = _load(part_name)
        wanted = [name for part, name in file.definitions if part == part_name]
        kept: dict[str, Definition] = {}
        while wanted:
            name = wanted.pop()
            if name not in kept:
                kept[name] = _without_unused_members(part.definitions[name], attributes)
                wanted += [used for used in _identifiers(kept[name]) if used in part.definitions]
        local = {name: file.define(part_name, name) for name in kept}
        for definition in kept.values():
            for used in _identifiers(definition):
                if used in part.modules:
                    local[used] = file.module(part.modules[used])
        found += [
            kept[name].visit(_Renamer(local, file.tree.default_newline))  # type: ignore[misc]
            for name in part.definitions
            if name in kept
        ]
    return found


@functools.cache
def members_of(part: str, name: str) -> frozenset[str]:
    """What a class of a part has: its methods, and the attributes of its objects."""
    definition = cst.ensure_type(_load(part).definitions[name], cst.ClassDef)
    members = definition.body.body
    methods = {each.name.value for each in members if isinstance(each, cst.FunctionDef)}
    own = {name for each in members for name in _own(each)}
    return frozenset(methods | own)


@functools.cache
def _load(name: str) -> _Part:
    text = (files("cudnn_compat.migrate.parts") / f"{name}.py").read_text(encoding="utf-8")
    modules: dict[str, str] = {}
    definitions: dict[str, Definition] = {}
    for statement in cst.parse_module(text).body:
        if isinstance(statement, (cst.ClassDef, cst.FunctionDef)):
            definitions[statement.name.value] = statement
        elif isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                if isinstance(small, (cst.Import, cst.ImportFrom)):
                    modules.update(_imported(small))
                elif isinstance(small, cst.Assign):
                    target = cst.ensure_type(small.targets[0].target, cst.Name)
                    if target.value != "__all__":
                        definitions[target.value] = statement
    return _Part(modules, definitions)


def _imported(node: cst.Import | cst.ImportFrom) -> Iterator[tuple[str, str]]:
    """(local name, module) of ``import module [as name]`` and ``from package import module``."""
    assert not isinstance(node.names, cst.ImportStar)
    package = ""
    if isinstance(node, cst.ImportFrom):
        package = f"{cst.Module([]).code_for_node(cst.ensure_type(node.module, cst.Name))}."
    for alias in node.names:
        qualified = package + alias.evaluated_name
        yield alias.evaluated_alias or alias.evaluated_name, qualified


def _identifiers(node: cst.CSTNode) -> Iterator[str]:
    """Names in it that are no attributes."""
    for each in walk(node):
        if isinstance(each, cst.Name):
            yield each.value


def attributes_of(nodes: Iterable[cst.CSTNode]) -> set[str]:
    """The attributes that are named in them."""
    return {
        (each.attr if isinstance(each, cst.Attribute) else each.key).value
        for node in nodes
        for each in walk(node)
        if isinstance(each, cst.Attribute | cst.MatchKeywordElement)
    }


def _without_unused_members(definition: Definition, attributes: Collection[str]) -> Definition:
    if not isinstance(definition, cst.ClassDef):
        return definition
    members = {
        member.name.value: member
        for member in definition.body.body
        if isinstance(member, cst.FunctionDef)
    }
    wanted = [name for name in members if name.startswith("__") or name in attributes]
    kept: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept.add(name)
            wanted += [used for used in _own(members[name]) if used in members]
    body = [
        member
        for member in definition.body.body
        if not isinstance(member, cst.FunctionDef) or member.name.value in kept
    ]
    return definition.with_deep_changes(definition.body, body=body)


def _own(member: cst.CSTNode) -> Iterator[str]:
    """The members of its own class that it uses."""
    for each in walk(member):
        if not isinstance(each, cst.Attribute) or not isinstance(each.value, cst.Name):
            continue
        if each.value.value in ("self", "cls"):
            yield each.attr.value


class _Renamer(cst.CSTTransformer):
    """Local names for names (attributes and keywords stay), and the file's newlines in texts."""

    def __init__(self, local: dict[str, str], newline: str) -> None:
        super().__init__()
        self.local = local
        self.newline = newline

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        return updated_node.with_changes(value=updated_node.value.replace("\n", self.newline))

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        name = self.local.get(original_node.value)
        return updated_node if name is None else updated_node.with_changes(value=name)
