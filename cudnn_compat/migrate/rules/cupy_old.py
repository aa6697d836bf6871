"""The old calls of one file, with their arguments by name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping

import libcst as cst

from cudnn_compat.legacy.cupy import constants
from cudnn_compat.migrate import binding
from cudnn_compat.migrate.names import Names
from cudnn_compat.migrate.rules.cupy_flow import Flow
from cudnn_compat.migrate.rules.cupy_syntax import code, constant_int
from cudnn_compat.migrate.rules.cupy_tree import Place
from cudnn_compat.migrate.rules.cupy_values import Value, Values

__all__ = ["OldCall", "OldNames"]

_HOME = "cudnn_compat.legacy.cupy."
_CONSTANTS = frozenset(constants.__all__)
_VIEWS = ("libcudnn.getRNNLinLayerMatrixParams", "libcudnn.getRNNLinLayerBiasParams")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class OldCall:
    """A call of an old function.

    Attributes:
        name: ``"cudnn.get_handle"``, ``"libcudnn.create"``.
        node: the call.
        given: its arguments by the names of the old signature.
        stars: the dictionaries that ``**`` brought.
        fault: why its arguments cannot be seen; empty where they can.
        choices: of a call through the variable of a loop: the old names that the loop goes through.
    """

    name: str
    node: cst.Call
    given: dict[str, cst.BaseExpression]
    stars: tuple[cst.BaseExpression, ...] = ()
    fault: str = ""
    choices: tuple[cst.CSTNode, ...] = ()


class OldNames:
    """Which expressions are old names, and which calls are calls of them.

    Attributes:
        calls: in the order of the text.
    """

    def __init__(self, names: Names, flow: Flow, values: Values) -> None:
        self.names, self.flow, self.values = names, flow, values
        found = [node for node in flow.order if isinstance(node, cst.Call)]
        found.sort(key=flow.order.__getitem__)
        self.calls = [call for node in found if (call := self._call(node)) is not None]
        self._by_node = {call.node: call for call in self.calls}

    def name(self, node: cst.CSTNode) -> str | None:
        """``"cudnn.get_handle"`` for an expression that is that; None for all others."""
        if not isinstance(node, (cst.Name, cst.Attribute)) or node not in self.flow.order:
            return None
        use = self.names.use(node)
        if use is None or use.is_module or not use.qualified.startswith(_HOME):
            return None
        if use.doubt and not self._or_none(node):
            return None
        name = use.qualified.removeprefix(_HOME)
        return name if use.row is not None or name.rpartition(".")[2] in _CONSTANTS else None

    def _or_none(self, node: cst.BaseExpression) -> bool:
        """Whether what an expression may be beside the old name is None: a failed import."""
        while isinstance(node, cst.Attribute):
            node = node.value
        place = self.flow.place(node)
        found = [] if place is None else self.flow.definitions.get(place, [])
        return bool(found) and all(
            isinstance(each.value, cst.Name) and each.value.value == "None" for each in found
        )

    def call(self, node: cst.CSTNode) -> OldCall | None:
        """The old call that a node is."""
        return self._by_node.get(node) if isinstance(node, cst.Call) else None

    def made_by(self, value: Value) -> OldCall | None:
        """The old call that a value comes from; ``.value`` of a descriptor is the descriptor."""
        found = self.source(value)
        return None if found is None else found[0]

    def source(self, value: Value) -> tuple[OldCall, Mapping[Place, Value]] | None:
        """The old call that a value comes from, and what the parameters there stand for."""
        node, given = self.values.follow(value)
        if isinstance(node, cst.Attribute) and node.attr.value in ("value", "_desc"):
            return self.source(Value(node.value, given))
        call = self.call(node)
        if call is not None and call.name == "cudnn.Descriptor" and "descriptor" in call.given:
            return self.source(Value(call.given["descriptor"], given))
        return None if call is None else (call, given)

    def constant(self, node: cst.CSTNode) -> int | None:
        """The number that an integer, or the name of a constant, is."""
        name = self.name(node)
        if name is not None and name.startswith("libcudnn.CUDNN_"):
            found = getattr(constants, name.removeprefix("libcudnn."), None)
            return found if isinstance(found, int) else None
        return constant_int(node)

    def _call(self, node: cst.Call) -> OldCall | None:
        name = self.name(node.func)
        choices: tuple[cst.CSTNode, ...] = ()
        if name is None and isinstance(node.func, cst.Attribute):
            name = self._method(node.func)
        elif name is None:
            choices = self._looped(node.func)
            name = None if not choices else self.name(choices[0])
        if name is None:
            return None
        signature = binding.old_signature(_HOME + name)
        if name.startswith("cudnn.DropoutStates"):
            signature = _without_self(signature)
        positional: list[cst.BaseExpression] = []
        named: dict[str, cst.BaseExpression] = {}
        stars: list[cst.BaseExpression] = []
        for arg in node.args:
            if arg.star == "*":
                listed = self.values.follow(Value(arg.value)).node
                if not isinstance(listed, (cst.Tuple, cst.List)) or not self._only_stars(arg.value):
                    fault = "it is called with *, so its arguments are hidden"
                    return OldCall(name, node, {}, (), fault)
                positional += [element.value for element in listed.elements]
                stars.append(arg.value)
            elif arg.star:
                inner = self._items(arg.value)
                if inner is None:
                    fault = f"what **{code(arg.value)} holds cannot be seen"
                    return OldCall(name, node, {}, (), fault)
                named |= inner
                stars.append(arg.value)
            elif arg.keyword is not None:
                named[arg.keyword.value] = arg.value
            else:
                positional.append(arg.value)
        try:
            given = dict(signature.bind(*positional, **named).arguments)
        except TypeError:
            return OldCall(name, node, {}, (), "its arguments do not fit the old signature")
        return OldCall(name, node, given, tuple(stars), choices=choices)

    def _method(self, func: cst.Attribute) -> str | None:
        """A method of a ``DropoutStates``."""
        if func.attr.value not in ("set_dropout_ratio", "forward", "backward"):
            return None
        node, _ = self.values.follow(Value(func.value))
        if isinstance(node, cst.Call) and self.name(node.func) == "cudnn.DropoutStates":
            return f"cudnn.DropoutStates.{func.attr.value}"
        return None

    def _looped(self, func: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
        """The old functions that the variable of a loop goes through, all of one signature."""
        place = self.flow.place(func) if isinstance(func, cst.Name) else None
        definition = self.flow.only(place)
        if definition is None or not definition.loop:
            return ()
        if not isinstance(definition.value, (cst.Tuple, cst.List)):
            return ()
        found: list[cst.CSTNode] = []
        for element in definition.value.elements:
            item: cst.BaseExpression = element.value
            if definition.item is not None:
                if not isinstance(item, (cst.Tuple, cst.List)):
                    return ()
                item = item.elements[definition.item].value
            found.append(item)
        names = {self.name(each) for each in found}
        return tuple(found) if names <= set(_VIEWS) and names else ()

    def _only_stars(self, node: cst.BaseExpression) -> bool:
        """Whether what a tuple, list or dictionary is kept in is read with stars only."""
        place = self.flow.place(node)
        loads = [] if place is None else self.flow.loads[place]
        parents = [self.flow.parents[load] for load in loads]
        return all(isinstance(parent, cst.Arg) and parent.star for parent in parents)

    def _items(self, node: cst.BaseExpression) -> dict[str, cst.BaseExpression] | None:
        """What ``dict(a=1)`` or ``{"a": 1}`` holds, where nothing but ``**`` reads it."""
        if not self._only_stars(node):
            return None
        found = self.values.follow(Value(node)).node
        if isinstance(found, cst.Call) and code(found.func) == "dict":
            given = {arg.keyword.value: arg.value for arg in found.args if arg.keyword}
            return given if len(given) == len(found.args) else None
        if isinstance(found, cst.Dict):
            items: dict[str, cst.BaseExpression] = {}
            for element in found.elements:
                key = element.key if isinstance(element, cst.DictElement) else None
                if not isinstance(key, cst.SimpleString):
                    return None
                items[str(key.evaluated_value)] = element.value
            return items
        return None


def _without_self(signature: inspect.Signature) -> inspect.Signature:
    parameters = [p for name, p in signature.parameters.items() if name != "self"]
    return signature.replace(parameters=parameters)
