"""A module read once: what stands where, the names of each scope, what is assigned."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import libcst as cst

from cudnn_compat.migrate.rules.cupy_syntax import pairs

__all__ = ["Definition", "Place", "Statement", "Tree"]

Statement: TypeAlias = cst.SimpleStatementLine | cst.BaseCompoundStatement
_Scope: TypeAlias = cst.FunctionDef | cst.Lambda | cst.CompFor


class Place(NamedTuple):
    """A name in a function or comprehension (``owner``), of a class (``attribute``), or global."""

    owner: cst.CSTNode | None
    name: str
    attribute: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """One assignment.

    Attributes:
        value: what is assigned, or for ``item`` what is unpacked or iterated; None: unknown.
        node: the target.
        item: which element of ``value``, None: all of it.
        loop: whether ``value`` is iterated.
    """

    value: cst.BaseExpression | None
    node: cst.CSTNode
    item: int | None = None
    loop: bool = False


class Tree(cst.CSTVisitor):
    """The nodes of a module.

    Attributes:
        parents: the node above each node.
        order: the position of each node in the text.
        functions: module-level functions by name.
        classes: module-level classes by name.
        mentions: how often each identifier stands in the text.
    """

    def __init__(self, module: cst.Module) -> None:
        self.module = module
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self.order: dict[cst.CSTNode, int] = {}
        self.functions: dict[str, cst.FunctionDef] = {}
        self.classes: dict[str, cst.ClassDef] = {}
        self.mentions: Counter[str] = Counter()
        self._modules: set[str] = set()
        self._below: dict[cst.CSTNode, list[cst.CSTNode]] = defaultdict(list)
        self._stack: list[cst.CSTNode] = []
        self._locals: dict[cst.CSTNode, set[str]] = defaultdict(set)
        self._declared: dict[cst.CSTNode, set[str]] = defaultdict(set)
        self._targets: dict[cst.CSTNode, Definition] = {}
        self._calls: dict[str, list[cst.Call]] = defaultdict(list)
        module.visit(self)

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Note where a node stands."""
        self.order[node] = len(self.order)
        if self._stack:
            self.parents[node] = self._stack[-1]
            self._below[self._stack[-1]].append(node)
        self._stack.append(node)
        self._read(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Go back up."""
        self._stack.pop()

    def _read(self, node: cst.CSTNode) -> None:
        match node:
            case cst.Name():
                self.mentions[node.value] += 1
            case cst.FunctionDef():
                self._name(node.name)
                if isinstance(self.parents.get(node), cst.Module):
                    self.functions[node.name.value] = node
            case cst.ClassDef():
                self._name(node.name)
                if isinstance(self.parents.get(node), cst.Module):
                    self.classes[node.name.value] = node
            case cst.Param():
                scope = self._scope_above(skip=0)
                if scope is not None:
                    self._locals[scope].add(node.name.value)
            case cst.Assign():
                for target in node.targets:
                    self._bind(target.target, node.value)
            case cst.AnnAssign():
                self._bind(node.target, node.value)
            case cst.AugAssign() | cst.Del():
                self._bind(node.target, None)
            case cst.For():
                self._bind(node.target, node.iter, loop=True)
            case cst.CompFor():
                self._bind(node.target, node.iter, loop=True, scope=node)
            case cst.NamedExpr():
                self._bind(node.target, node.value)
            case cst.AsName():
                if not isinstance(self.parents.get(node), cst.ImportAlias):
                    self._bind(node.name, None)
            case cst.Global() | cst.Nonlocal():
                scope = self._scope_above()
                if scope is not None:
                    self._declared[scope] |= {item.name.value for item in node.names}
            case cst.ImportAlias():
                self._imported(node)
            case cst.Call(func=cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name))):
                self._calls[name].append(node)

    def _imported(self, node: cst.ImportAlias) -> None:
        name: cst.CSTNode = node.asname.name if node.asname else node.name
        while isinstance(name, cst.Attribute):
            name = name.value
        scope = self._scope_above()
        if isinstance(name, cst.Name):
            self._modules.add(name.value)
            if scope is not None:
                self._locals[scope].add(name.value)

    def _name(self, node: cst.Name) -> None:
        scope = self._scope_above(skip=1)
        if scope is not None:
            self._locals[scope].add(node.value)

    def _scope_above(self, skip: int = 0) -> _Scope | None:
        for node in reversed(self._stack[: len(self._stack) - skip]):
            if isinstance(node, (cst.FunctionDef, cst.Lambda)):
                return node
            if isinstance(node, cst.ClassDef):
                return None
        return None

    def _bind(
        self,
        target: cst.CSTNode,
        value: cst.BaseExpression | None,
        item: int | None = None,
        *,
        loop: bool = False,
        scope: _Scope | None = None,
    ) -> None:
        scope = scope or self._scope_above()
        if isinstance(target, (cst.Tuple, cst.List)):
            known = item is None and not any(
                isinstance(element, cst.StarredElement) for element in target.elements
            )
            values = pairs(target, value) if known and not loop else None
            for index, element in enumerate(target.elements):
                if values is not None:
                    self._bind(element.value, values[index], scope=scope)
                elif known:
                    self._bind(element.value, value, index, loop=loop, scope=scope)
                else:
                    self._bind(element.value, None, scope=scope)
        elif isinstance(target, cst.Name):
            if scope is not None:
                self._locals[scope].add(target.value)
            self._targets[target] = Definition(value, target, item, loop)
        elif isinstance(target, cst.Attribute):
            self._targets[target] = Definition(value, target, item, loop)

    def inside_of(self, node: cst.CSTNode) -> Sequence[cst.CSTNode]:
        """The nodes right below a node, which may also be one that was made of the module's."""
        return self._below[node] if node in self.order else node.children
