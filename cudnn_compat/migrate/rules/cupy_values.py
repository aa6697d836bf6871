"""What an expression is made of, followed through assignments, helpers and small classes.

:meth:`Values.follow` goes back from a name to what was assigned to it, through functions of the
module that return one expression, and through attributes and properties of objects that the module
makes.
:meth:`Values.text` writes a value down where other names are in scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import libcst as cst

from cudnn_compat.migrate.rules.cupy_flow import Flow
from cudnn_compat.migrate.rules.cupy_syntax import code, is_atom, method_of, replaced, single_return
from cudnn_compat.migrate.rules.cupy_tree import Definition, Place

__all__ = ["Value", "Values"]


class Value(NamedTuple):
    """An expression, and what the parameters in it stand for."""

    node: cst.CSTNode
    given: Mapping[Place, Value] = {}


class Values:
    """Questions about the values of one module."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.new: Mapping[cst.CSTNode, str | list[str]] = {}
        for nodes in list(flow.foreign.values()):
            for node in list(nodes):
                made = self.made(Value(node.value))
                if made is not None:
                    flow.known(node, made[0])

    # Going back.

    def follow(self, value: Value) -> Value:
        """Where a value comes from: an expression that is no name of something else."""
        for _ in range(50):
            found = self._back(value)
            if found is None:
                break
            value = found
        return value

    def _back(self, value: Value) -> Value | None:
        node, given = value
        if isinstance(node, cst.Name):
            place = self.flow.place(node)
            if place is None:
                return None
            return given[place] if place in given else self._assigned(place, value)
        if isinstance(node, cst.Attribute):
            place = self.flow.place(node)
            if place is not None:
                return self._assigned(place, value)
            return self._member(value)
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            function = self.flow.functions.get(node.func.value)
            returned = None if function is None else single_return(function)
            if function is not None and returned is not None and not function.decorators:
                bound = self.bound(function.params, Value(node, given))
                return None if bound is None else Value(returned, {**given, **bound})
        return None

    def _assigned(self, place: Place, value: Value) -> Value | None:
        definition = self.flow.only(place)
        if definition is not None and definition.item is None and not definition.loop:
            assert definition.value is not None
            return Value(definition.value, value.given)
        if place in self.flow.parameters and self.flow.steady(place):
            return self._argument(place)
        return None

    def _argument(self, place: Place) -> Value | None:
        """The argument of the one call that a private function or method gets."""
        function = place.owner
        if not isinstance(function, cst.FunctionDef) or not self.private(function):
            return None
        (call,) = self.flow.calls_of(function)
        bound = self.bound(function.params, Value(call), method="self" in code(call.func))
        return None if bound is None else bound.get(place)

    def private(self, function: cst.FunctionDef) -> bool:
        """Whether a function's name begins with ``_`` and it is called in one place."""
        name = function.name.value
        if not name.startswith("_") or name.startswith("__") or function.decorators:
            return False
        return len(self.flow.calls_of(function)) == 1 and self.flow.mentions[name] == 2

    def made(self, value: Value) -> tuple[cst.ClassDef, Mapping[Place, Value]] | None:
        """The class of this module that an object is made of, and its constructor's arguments."""
        node, given = self.follow(value)
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
            return None
        found = self.flow.classes.get(node.func.value)
        if found is None or found.bases or found.decorators:
            return None
        constructor = method_of(found, "__init__")
        if constructor is None:
            return found, given
        bound = self.bound(constructor.params, Value(node, given), method=True)
        return None if bound is None else (found, {**given, **bound})

    def _member(self, value: Value) -> Value | None:
        """An attribute or property of an object that this module makes."""
        node = value.node
        assert isinstance(node, cst.Attribute)
        made = self.made(Value(node.value, value.given))
        if made is None:
            return None
        owner, given = made
        method = method_of(owner, node.attr.value)
        if method is not None:
            returned = single_return(method)
            if returned is None or len(method.decorators) != 1:
                return None
            decorator = method.decorators[0].decorator
            if isinstance(decorator, cst.Name) and decorator.value == "property":
                return Value(returned, given)
            return None
        found = self.attribute_of(owner, node.attr.value)
        return None if found is None or found.value is None else Value(found.value, given)

    def attribute_of(self, owner: cst.ClassDef, name: str) -> Definition | None:
        """The one assignment of an attribute, whoever reads it."""
        found = self.flow.definitions.get(Place(owner, name, attribute=True), [])
        only = len(found) == 1 and found[0].item is None and not found[0].loop
        return found[0] if only else None

    def bound(
        self, parameters: cst.Parameters, call: Value, *, method: bool = False
    ) -> dict[Place, Value] | None:
        """The arguments of a call by parameter; None where they cannot be seen."""
        node = call.node
        assert isinstance(node, cst.Call)
        names = [*parameters.posonly_params, *parameters.params][1 if method else 0 :]
        owner = self.flow.parents[parameters]
        bound: dict[Place, Value] = {}
        star = parameters.star_arg
        if isinstance(star, cst.Param) and not names:
            if any(arg.keyword or arg.star == "**" for arg in node.args):
                return None
            elements = [
                cst.StarredElement(arg.value) if arg.star else cst.Element(arg.value)
                for arg in node.args
            ]
            return {Place(owner, star.name.value): Value(cst.Tuple(elements), call.given)}
        for index, arg in enumerate(node.args):
            if arg.star or (arg.keyword is None and index >= len(names)):
                return None
            name = names[index].name.value if arg.keyword is None else arg.keyword.value
            bound[Place(owner, name)] = Value(arg.value, call.given)
        for parameter in (*names, *parameters.kwonly_params):
            place = Place(owner, parameter.name.value)
            if place not in bound and parameter.default is not None:
                bound[place] = Value(parameter.default)
        return bound

    # Writing down.

    def text(self, value: Value, at: cst.CSTNode) -> str | None:
        """The source of a value in the place of the node ``at``; None: it cannot be said there."""
        return self._text(value, at, 0)

    def _text(self, value: Value, at: cst.CSTNode, depth: int) -> str | None:
        node, given = value
        if depth > 20 or not self._repeatable(node, at):
            return None
        whole = self._leaf(value, at, depth)
        if whole is not None:
            return whole[0]
        parts: dict[cst.CSTNode, cst.BaseExpression] = {
            inner: cst.parse_expression(text)
            for inner, text in self.new.items()
            if isinstance(text, str)
            and inner in self.flow.parents
            and self.flow.inside(inner, node)
        }
        for child in self.leaves(node):
            found = self._leaf(Value(child, given), at, depth)
            if found is None or found[0] is None:
                return None
            if found[0] != code(child):
                text = found[0] if is_atom(found[0]) else f"({found[0]})"
                parts[child] = cst.parse_expression(text)
        return code(replaced(node, parts))

    def _repeatable(self, node: cst.CSTNode, at: cst.CSTNode) -> bool:
        """Whether an expression may be written at ``at``: it is there, or has no effects."""
        if node in self.flow.parents and self.flow.inside(node, self.flow.statement_of(at)):
            return True
        calls = [inner for inner in self.flow.walk(node) if isinstance(inner, cst.Call)]
        return all(code(call.func).rpartition(".")[2] in _PURE for call in calls)

    def leaves(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The names, and the attributes of known objects, that an expression reads."""
        found: list[cst.CSTNode] = []
        if isinstance(node, cst.Attribute) and self.flow.place(node) is not None:
            return [node]
        if isinstance(node, cst.Name):
            return [node]
        for child in self.flow.inside_of(node):
            if isinstance(node, cst.Attribute) and child is node.attr:
                continue
            if isinstance(node, cst.Arg) and child is node.keyword:
                continue
            found += self.leaves(child)
        return found

    def _leaf(self, value: Value, at: cst.CSTNode, depth: int) -> tuple[str | None] | None:
        """The text of a leaf in a tuple; None where ``value`` is no leaf."""
        node, given = value
        if not isinstance(node, (cst.Name, cst.Attribute)):
            return None
        place = self.flow.place(node)
        if place is None:
            return None if isinstance(node, cst.Attribute) else (None,)
        if place in given:
            return (self._text(given[place], at, depth + 1),)
        here = node in self.flow.parents and self.flow.inside(node, self.flow.statement_of(at))
        if here or self.visible(place, at):
            return (code(node),)
        back = self._back(value)
        return (None if back is None else self._text(back, at, depth + 1),)

    def visible(self, place: Place, at: cst.CSTNode) -> bool:
        """Whether a name means the same at ``at`` as wherever it is used."""
        flow = self.flow
        if isinstance(place.owner, cst.CompFor):
            return flow.inside(at, flow.parents[place.owner])
        if not flow.steady(place):
            return False
        definition = flow.only(place)
        if place.owner is None:
            return (
                definition is None
                or flow.order[definition.node] < flow.order[at]
                or (flow.function_of(at) is not None)
            )
        if place.attribute:
            function = flow.function_of(at)
            if function is None or self.class_around(function) is not place.owner:
                return False
            if definition is None:
                return True
            there = flow.function_of(definition.node)
            if there is function:
                return flow.order[definition.node] < flow.order[at]
            return there is not None and there.name.value == "__init__"
        if not flow.inside(at, place.owner):
            return False
        return place in flow.parameters or (
            definition is not None and flow.order[definition.node] < flow.order[at]
        )

    def class_around(self, function: cst.FunctionDef) -> cst.ClassDef | None:
        """The class that a method belongs to (the first base of this module)."""
        first = function.params.params[:1]
        if not first:
            return None
        return self.flow.class_of(first[0].name)

    def _too_early(self, node: cst.CSTNode) -> bool:
        """Whether a name is read before its one assignment, so that it is another value's."""
        place = self.flow.place(node) if isinstance(node, cst.Name) else None
        made = self.flow.only(place)
        if made is None or node not in self.flow.order:
            return False
        here = self.flow.function_of(node) is self.flow.function_of(made.node)
        return here and self.flow.order[node] < self.flow.order[made.node]

    def same(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether two expressions certainly have one value."""
        one, other = self.key(Value(first)), self.key(Value(second))
        return one is not None and one == other

    def key(self, value: Value, depth: int = 0) -> str | None:
        """A text that is equal for equal values; None: not known."""
        node, given = value
        if depth > 20:
            return None
        if self._too_early(node):
            return None
        back = self._back(value) if isinstance(node, (cst.Name, cst.Attribute)) else None
        if back is not None and not isinstance(back.node, cst.Call):
            return self.key(back, depth + 1)
        if isinstance(node, (cst.Name, cst.Attribute)):
            place = self.flow.place(node)
            if place is not None:
                steady = self.flow.steady(place)
                return f"{id(place.owner)}.{place.name}" if steady else None
        if isinstance(node, cst.Attribute):
            base = self.key(Value(node.value, given), depth + 1)
            return None if base is None else f"{base}.{node.attr.value}"
        if isinstance(node, (cst.Integer, cst.Float, cst.SimpleString)):
            return code(node)
        func = node.func if isinstance(node, cst.Call) else None
        if isinstance(node, cst.Call) and isinstance(func, cst.Attribute):
            if func.attr.value != "reshape":
                return f"node {id(node)}"
            parts = [func.value, *(arg.value for arg in node.args)]
            keys = [self.key(Value(part, given), depth + 1) for part in parts]
            return None if None in keys else f"reshape({', '.join(map(str, keys))})"
        return f"node {id(node)}"


_PURE = frozenset(["dtype", "int", "len", "list", "max", "min", "range", "sum", "tuple"])
"""What may be called once more."""
