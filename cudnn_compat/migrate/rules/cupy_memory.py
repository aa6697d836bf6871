"""What descriptors and addresses stand for: arrays, dimensions, the batch size of each step."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import libcst as cst

from cudnn_compat.migrate.rules.cupy_old import OldCall
from cudnn_compat.migrate.rules.cupy_questions import Unclear
from cudnn_compat.migrate.rules.cupy_syntax import code
from cudnn_compat.migrate.rules.cupy_tree import Place
from cudnn_compat.migrate.rules.cupy_values import Value
from cudnn_compat.migrate.rules.cupy_work import Work

__all__ = ["Steps", "address_of", "array", "dimensions", "same_array", "shape_of", "steps"]

_TENSOR = ("cudnn.create_tensor_nd_descriptor", "cudnn.create_tensor_descriptor")
_ARRAYS = ("array", "asarray")
_FILLED = ("empty", "zeros", "ones")


def array(work: Work, node: cst.CSTNode) -> Value | None:
    """The array whose address an expression is; None for NULL.

    Raises:
        Unclear: it is not the address of an array that can be seen.
    """
    value = work.values.follow(Value(node))
    if work.old.constant(value.node) == 0 or code(value.node) == "None":
        return None
    found = address_of(work, value)
    if found is None:
        raise Unclear(f"{code(node)} is not the address of an array that can be seen")
    while (place := work.place(found.node)) is not None and place in found.given:
        found = found.given[place]
    return found


def address_of(work: Work, value: Value) -> Value | None:
    """What an expression is the address of."""
    node, given = work.values.follow(value)
    if isinstance(node, cst.IfExp):
        return address_of(work, Value(node.body, given))
    if isinstance(node, cst.Call) and code(node.func).split(".")[-1] == "addressof":
        return Value(node.args[0].value, given) if len(node.args) == 1 else None
    if isinstance(node, cst.Call) and code(node.func) == "int" and len(node.args) == 1:
        return address_of(work, Value(node.args[0].value, given))
    if not isinstance(node, cst.Attribute) or not isinstance(node.value, cst.Attribute):
        return None
    names = node.value.attr.value, node.attr.value
    of_array = names in (("data", "ptr"), ("ctypes", "data"))
    return Value(node.value.value, given) if of_array else None


def same_array(work: Work, one: Value | None, other: Value | None) -> bool:
    """Whether two arrays are certainly one."""
    if one is None or other is None:
        return one is other
    key = work.values.key(one)
    return key is not None and key == work.values.key(other)


def _elements(work: Work, value: Value) -> list[Value] | None:
    """The elements of a tuple, a list, a ctypes or a NumPy array that is written down."""
    node, given = work.values.follow(value)
    if isinstance(node, (cst.Tuple, cst.List)):
        found: list[Value] = []
        for element in node.elements:
            if isinstance(element, cst.StarredElement):
                inner = _elements(work, Value(element.value, given))
                if inner is None:
                    return None
                found += inner
            else:
                found.append(Value(element.value, given))
        return found
    if not isinstance(node, cst.Call):
        return None
    if isinstance(node.func, cst.BinaryOperation):  # (ctypes.c_int * 3)(a, b, c)
        listed = [
            cst.StarredElement(arg.value) if arg.star else cst.Element(arg.value)
            for arg in node.args
        ]
        return _elements(work, Value(cst.Tuple(listed), given))
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _ARRAYS and node.args:
        return _elements(work, Value(node.args[0].value, given))
    return None


def shape_of(work: Work, address: cst.CSTNode) -> Value | None:
    """The array whose shape the host array at an address is: ``int_array(*x.shape)``."""
    base = address_of(work, Value(address))
    found = None if base is None else work.values.follow(base)
    if found is None or not isinstance(found.node, cst.Call) or len(found.node.args) != 1:
        return None
    node, given = work.values.follow(Value(found.node.args[0].value, found.given))
    if isinstance(node, cst.Tuple) and len(node.elements) == 1:
        node, given = work.values.follow(Value(node.elements[0].value, given))
    if isinstance(node, cst.Attribute) and node.attr.value == "shape":
        return Value(node.value, given)
    return None


def set_call(work: Work, made: OldCall, parameter: str, *names: str) -> OldCall:
    """The one call that sets a descriptor.

    Raises:
        Unclear: there is none, or more.
    """
    found = [
        call
        for call in work.named(*names)
        if parameter in call.given and work.old.made_by(Value(call.given[parameter])) is made
    ]
    if len(found) != 1:
        count = "nowhere that can be seen" if not found else "in more than one place"
        raise Unclear(f"a descriptor of it is set {count}")
    return found[0]


def dimensions(work: Work, value: Value) -> list[Value]:
    """The dimensions of a tensor descriptor.

    Raises:
        Unclear: they cannot be seen.
    """
    source = work.old.source(_picked(work, value))
    if source is None:
        raise Unclear(f"where the descriptor {code(value.node)} comes from cannot be seen")
    made, given = source
    if made.name in _TENSOR:
        return _shape(work, Value(work.argument(made, "arr"), given))
    if made.name != "libcudnn.createTensorDescriptor":
        raise Unclear(f"{code(value.node)} is no tensor descriptor")
    setter = set_call(
        work,
        made,
        "tensorDesc",
        "libcudnn.setTensorNdDescriptor",
        "libcudnn.setTensor4dDescriptor",
        "libcudnn.setTensor4dDescriptorEx",
    )
    if setter.name != "libcudnn.setTensorNdDescriptor":
        return [Value(work.argument(setter, name), given) for name in "nchw"]
    base = address_of(work, Value(work.argument(setter, "dimA"), given))
    found = None if base is None else _elements(work, base)
    if found is None:
        raise Unclear("the dimensions of a tensor descriptor cannot be seen")
    return found


def _picked(work: Work, value: Value) -> Value:
    """For ``descriptors[0]`` what is in the list: a loop puts the same kind in every place."""
    node, given = work.values.follow(value)
    if isinstance(node, cst.Subscript):
        listed = work.values.follow(Value(node.value, given))
        if isinstance(listed.node, cst.List) and not listed.node.elements:
            _, element = _appended(work, listed.node, listed.given)
            return value if element is None else element
        if isinstance(listed.node, cst.ListComp):
            return Value(listed.node.elt, listed.given)
    return value


def _shape(work: Work, arr: Value) -> list[Value]:
    node, given = work.values.follow(arr)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args:
        name = node.func.attr.value
        if name in _FILLED:
            found = _elements(work, Value(node.args[0].value, given))
            if found is not None:
                return found
        if name == "reshape" and len(node.args) > 1:
            return [Value(arg.value, given) for arg in node.args]
    sizes = []
    for axis in range(3):
        index = cst.Index(cst.Integer(str(axis)))
        # The array's own node stands in it, so that its names are found.
        shape = cst.Attribute(arr.node, cst.Name("shape"))  # type: ignore[arg-type]
        part = cst.Subscript(shape, [cst.SubscriptElement(index)])
        sizes.append(Value(part, arr.given))
    return sizes


@dataclasses.dataclass(frozen=True, slots=True)
class Steps:
    """What a host array of tensor descriptors says: ``(batch, features, 1)`` for each step."""

    sizes: Value
    repeat: Value | None
    """Where all steps have one batch size: how many steps there are."""
    features: Value

    def text(self, work: Work, at: cst.CSTNode) -> str:
        """The batch sizes, as a list."""
        if self.repeat is not None:
            batch, count = work.text(self.sizes, at), work.text(self.repeat, at)
            count = count if count.isdigit() else work.grouped(count)
            return f"[{batch}] * {count}"
        found = work.text(self.sizes, at, "the batch size of each step")
        return found if found.startswith("[") else f"list({found})"


def steps(work: Work, node: cst.CSTNode) -> Steps:
    """What the host array of descriptors at an address says.

    Raises:
        Unclear: it cannot be seen.
    """
    base = address_of(work, Value(node))
    found = None if base is None else work.values.follow(base)
    if found is None or not isinstance(found.node, cst.Call) or not found.node.args:
        raise Unclear(f"the descriptors at {code(node)} cannot be seen")
    listed = work.values.follow(Value(found.node.args[0].value, found.given))
    return _listed(work, listed, node)


def _listed(work: Work, value: Value, where: cst.CSTNode) -> Steps:
    node, given = value
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        items = _elements(work, Value(node.left, given))
        if items is not None and len(items) == 1:
            batch, features = _step(work, items[0])
            return Steps(batch, Value(node.right, given), features)
    element: Value | None = None
    loop: cst.For | cst.CompFor | None = None
    if isinstance(node, cst.ListComp):
        loop, element = node.for_in, Value(node.elt, given)
        if loop.ifs or loop.inner_for_in is not None:
            loop = None
    elif isinstance(node, cst.List) and not node.elements:
        loop, element = _appended(work, node, given)
    if loop is None or element is None or not isinstance(loop.target, cst.Name):
        raise Unclear(f"how the descriptors at {code(where)} are made cannot be seen")
    batch, features = _step(work, element)
    variable = work.values.follow(batch)
    if work.place(variable.node) != work.flow.place(loop.target):
        raise Unclear("the batch size of a step is not simply what its loop goes through")
    return Steps(Value(loop.iter, given), None, features)


def _step(work: Work, value: Value) -> tuple[Value, Value]:
    dims = dimensions(work, value)
    if len(dims) < 2:
        raise Unclear("a step's descriptor has not the dimensions (batch, features, 1)")
    return dims[0], dims[1]


def _appended(
    work: Work, node: cst.List, given: Mapping[Place, Value]
) -> tuple[cst.For | None, Value | None]:
    """The loop that fills an empty list, and what it appends."""
    flow = work.flow
    places = flow.given.get(node, [])
    appends: list[cst.Call] = []
    for place in places:
        for load in flow.loads[place]:
            above = flow.parents[load]
            if isinstance(above, cst.Attribute):
                call = flow.parents[above]
                if above.attr.value != "append" or not isinstance(call, cst.Call):
                    return None, None
                appends.append(call)
    if len(appends) != 1 or len(appends[0].args) != 1:
        return None, None
    block = flow.parents[flow.statement_of(appends[0])]
    loop = flow.parents[block]
    if not isinstance(loop, cst.For) or block is not loop.body or _jumps(loop):
        return None, None
    return loop, Value(appends[0].args[0].value, given)


def _jumps(loop: cst.For) -> bool:
    """Whether a loop may leave something out."""
    found = False

    class Finder(cst.CSTVisitor):
        def visit_Break(self, node: cst.Break) -> None:
            nonlocal found
            found = True

        def visit_Continue(self, node: cst.Continue) -> None:
            nonlocal found
            found = True

    loop.body.visit(Finder())
    return found or loop.orelse is not None
