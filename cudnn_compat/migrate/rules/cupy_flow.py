"""Where values come from and go to in one module: places, what is assigned to them, who reads them.

A *place* is a local name, an attribute of ``self``, or a name of the module. What cannot be seen
(an attribute that is set through another object, a name that is deleted) makes a place unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import libcst as cst

from cudnn_compat.migrate.rules.cupy_syntax import decorated, is_none
from cudnn_compat.migrate.rules.cupy_tree import Definition, Place, Statement, Tree

__all__ = ["Flow"]


class Flow(Tree):
    """The places of a module.

    Attributes:
        definitions: what is assigned to each place.
        loads: the nodes that read each place.
        parameters: the places that are parameters.
        given: the places that get an expression, or a part of it.
        foreign: attributes of objects whose class is not known, by name.
    """

    def __init__(self, module: cst.Module) -> None:
        super().__init__(module)
        self.definitions: dict[Place, list[Definition]] = defaultdict(list)
        self.loads: dict[Place, list[cst.CSTNode]] = defaultdict(list)
        self.parameters: dict[Place, cst.Param] = {}
        self.given: dict[cst.CSTNode, list[Place]] = defaultdict(list)
        self.foreign: dict[str, list[cst.Attribute]] = defaultdict(list)
        self._places: dict[cst.CSTNode, Place | None] = {}
        self._collect()

    def _collect(self) -> None:
        for node in sorted(self.order, key=self.order.__getitem__):
            if isinstance(node, cst.Param):
                above = self._above(node, (cst.FunctionDef, cst.Lambda))
                self.parameters[Place(above, node.name.value)] = node
        for node in sorted(self.order, key=self.order.__getitem__):
            if not isinstance(node, (cst.Name, cst.Attribute)) or not self._is_value(node):
                continue
            place = self.place(node)
            if place is None:
                if isinstance(node, cst.Attribute) and not self._in_module(node):
                    self.foreign[node.attr.value].append(node)
                continue
            found = self._targets.get(node)
            if found is not None:
                self.definitions[place].append(found)
                if found.value is not None:
                    self.given[found.value].append(place)
            if found is None or isinstance(self.parents[node], (cst.AugAssign, cst.Del)):
                self.loads[place].append(node)

    def _is_value(self, node: cst.CSTNode) -> bool:
        parent = self.parents.get(node)
        match parent:
            case cst.Attribute():
                return parent.attr is not node
            case cst.Arg():
                return parent.keyword is not node
            case cst.FunctionDef() | cst.ClassDef() | cst.Param():
                return parent.name is not node
            case cst.NameItem() | cst.ImportAlias() | cst.ImportFrom():
                return False
            case cst.AsName():
                return not isinstance(self.parents.get(parent), cst.ImportAlias)
        return True

    def _in_module(self, node: cst.Attribute) -> bool:
        return isinstance(node.value, cst.Name) and node.value.value in self._modules

    def is_module(self, name: str) -> bool:
        """Whether a name is imported."""
        return name in self._modules

    def known(self, node: cst.Attribute, owner: cst.ClassDef) -> None:
        """An attribute of an object is one of this class after all."""
        if node not in self._targets:
            self.foreign[node.attr.value].remove(node)
            self.loads[Place(owner, node.attr.value, attribute=True)].append(node)

    def place(self, node: cst.CSTNode) -> Place | None:
        """The place that a name or an attribute means; None where that is not known."""
        if node not in self._places:
            self._places[node] = self._place(node)
        return self._places[node]

    def _place(self, node: cst.CSTNode) -> Place | None:
        if isinstance(node, cst.Name):
            return Place(self._owner(node), node.value)
        if isinstance(node, cst.Attribute):
            owner = self.class_of(node.value)
            if owner is not None:
                return Place(owner, node.attr.value, attribute=True)
        return None

    def _owner(self, node: cst.Name) -> cst.CSTNode | None:
        below: cst.CSTNode = node
        above = self.parents.get(node)
        while above is not None:
            if isinstance(above, (cst.FunctionDef, cst.Lambda)) and below is not above.params:
                inside = not isinstance(above, cst.FunctionDef) or below is above.body
                known = node.value in self._locals[above] - self._declared[above]
                if inside and known:
                    return above
            if isinstance(above, (cst.BaseComp,)) and node.value in self._locals[above.for_in]:
                return above.for_in
            if isinstance(above, cst.CompFor) and node.value in self._locals[above]:
                return above
            if isinstance(above, cst.Param) and below is above.name:
                holder: cst.CSTNode | None = self._above(above, (cst.FunctionDef, cst.Lambda))
                return holder
            below, above = above, self.parents.get(above)
        return None

    def class_of(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """The class, of this module, of ``self``."""
        if not isinstance(node, cst.Name):
            return None
        place = self.place(node)
        if place is None or place not in self.parameters:
            return None
        method = place.owner
        if not isinstance(method, cst.FunctionDef) or not method.params.params:
            return None
        above = self._above(method, (cst.ClassDef, cst.FunctionDef))
        if not isinstance(above, cst.ClassDef) or self.definitions.get(place):
            return None
        if method.decorators and decorated(method, "staticmethod", "classmethod"):
            return None
        return self._root(above) if method.params.params[0].name.value == place.name else None

    def _root(self, node: cst.ClassDef) -> cst.ClassDef:
        for base in node.bases:
            if isinstance(base.value, cst.Name) and base.value.value in self.classes:
                found = self.classes[base.value.value]
                return node if found is node else self._root(found)
        return node

    def _above(self, node: cst.CSTNode, kinds: Any) -> Any:
        above = self.parents.get(node)
        while above is not None and not isinstance(above, kinds):
            above = self.parents.get(above)
        return above

    # Questions.

    def function_of(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The function that a node stands in."""
        found: cst.FunctionDef | None = self._above(node, cst.FunctionDef)
        return found

    def statement_of(self, node: cst.CSTNode) -> Statement:
        """The statement that a node stands in."""
        while not isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            node = self.parents[node]
        return node

    def inside(self, node: cst.CSTNode, above: cst.CSTNode) -> bool:
        """Whether ``node`` is ``above`` or stands in it."""
        current: cst.CSTNode | None = node
        while current is not None and current is not above:
            current = self.parents.get(current)
        return current is not None

    def walk(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """A node and all nodes in it."""
        yield node
        for child in self.inside_of(node):
            yield from self.walk(child)

    def only(self, place: Place | None) -> Definition | None:
        """The one assignment of a place; ones of None before it do not count."""
        if place is None or place in self.parameters or self.hidden(place):
            return None
        found = self._assigned(place)
        return found[0] if len(found) == 1 and found[0].value is not None else None

    def hidden(self, place: Place) -> bool:
        """Whether a place may be read or written where that is not seen."""
        return place.attribute and bool(self.foreign.get(place.name))

    def steady(self, place: Place) -> bool:
        """Whether a place is given its value at one point, if any."""
        if self.hidden(place):
            return False
        count = len(self._assigned(place))
        return count == 0 if place in self.parameters else count <= 1

    def _assigned(self, place: Place) -> list[Definition]:
        """The assignments of a place, and twice one that reads what is there: ``x = x + 1``."""
        found = [d for d in self.definitions.get(place, []) if not is_none(d.value)]
        again = [
            d
            for d in found
            if d.value is not None and any(self.inside(n, d.value) for n in self.loads[place])
        ]
        return [*found, *again]

    def calls_of(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls that go, by name, to a function or method of this module."""
        return self._calls.get(function.name.value, [])
