"""What only served calls that are gone: descriptors, handles, scratch memory, helpers for them.

Everything that could be such a thing is taken to be gone at first. Then what is still read, and
what that reads, comes back, until nothing changes.
"""

from __future__ import annotations

import libcst as cst

from cudnn_compat.migrate.rules.cupy_need import clear_parameters, needed
from cudnn_compat.migrate.rules.cupy_questions import MAKERS
from cudnn_compat.migrate.rules.cupy_syntax import code, single_return
from cudnn_compat.migrate.rules.cupy_tree import Place, Statement
from cudnn_compat.migrate.rules.cupy_work import Work

__all__ = ["clear"]

_SERVANTS = frozenset(
    "cudnn." + name
    for name in [
        "get_handle",
        "Descriptor",
        "create_tensor_descriptor",
        "create_tensor_nd_descriptor",
        "create_filter_descriptor",
        "create_dropout_descriptor",
        "set_dropout_descriptor",
        "create_dropout_states",
        "create_rnn_descriptor",
        "get_data_type",
        "set_max_workspace_size",
    ]
) | frozenset(
    "libcudnn." + name
    for name in [
        "create",
        "destroy",
        "createTensorDescriptor",
        "setTensorNdDescriptor",
        "setTensor4dDescriptor",
        "setTensor4dDescriptorEx",
        "destroyTensorDescriptor",
        "createFilterDescriptor",
        "setFilterNdDescriptor_v4",
        "setFilter4dDescriptor_v4",
        "destroyFilterDescriptor",
        "createDropoutDescriptor",
        "setDropoutDescriptor",
        "destroyDropoutDescriptor",
        "dropoutGetStatesSize",
        "createRNNDescriptor",
        "setRNNDescriptor_v5",
        "setRNNDescriptor_v6",
        "destroyRNNDescriptor",
        "setRNNPaddingMode",
        "getRNNWorkspaceSize",
        "getRNNTrainingReserveSize",
        "createRNNDataDescriptor",
        "setRNNDataDescriptor",
        "destroyRNNDataDescriptor",
        "createPersistentRNNPlan",
        "setPersistentRNNPlan",
        "destroyPersistentRNNPlan",
    ]
)
"""Old functions that do nothing but serve others."""


def clear(work: Work) -> None:
    """Take away what only served calls that the plan has replaced."""
    if not work.new:
        return
    candidates = _candidates(work)
    removed: dict[cst.CSTNode, list[str]] = {node: [] for node in candidates}
    while True:
        work.new |= removed
        back = [node for node in removed if needed(work, node)]
        for node in back:
            del removed[node]
            del work.new[node]
        if not back:
            break
    clear_parameters(work)


def _candidates(work: Work) -> list[Statement]:
    """Statements, functions and classes that may have served old calls only."""
    flow = work.flow
    found: list[Statement] = []
    places: set[Place] = set()
    changed = True
    while changed:
        changed = False
        for node in flow.order:
            if node in found or (work.gone(node) and node not in found):
                continue
            if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
                if _serves(work, node.body[0], places):
                    found.append(node)
                    changed = True
            elif isinstance(node, (cst.FunctionDef, cst.ClassDef)):
                if isinstance(flow.parents[node], cst.Module) and _helper(work, node):
                    found.append(node)
                    changed = True
            elif isinstance(node, cst.For) and node.orelse is None:
                quiet = all(_idle(work, inner) for inner in flow.walk(node.iter))
                if quiet and all(inner in found for inner in node.body.body):
                    found.append(node)
                    changed = True
    return found


def _serves(work: Work, small: cst.CSTNode, places: set[Place]) -> bool:
    """Whether a statement makes, sets or destroys what serves old calls."""
    if isinstance(small, cst.Expr):
        call = work.old.call(small.value)
        if call is not None:
            return call.name in _SERVANTS
        return _appends(work, small.value, places)
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return False
    targets: list[cst.BaseExpression] = [small.targets[0].target]
    values: list[cst.BaseExpression] = [small.value]
    if isinstance(targets[0], cst.Tuple):
        targets = [element.value for element in targets[0].elements]
        if isinstance(small.value, cst.Tuple):
            values = [element.value for element in small.value.elements]
    known = [work.place(target) for target in targets]
    serve = None not in known and all(_servant(work, value, places) for value in values)
    if not serve and not _fills(work, small, known, places):
        return False
    places |= {place for place in known if place is not None}
    return True


def _servant(work: Work, value: cst.BaseExpression, places: set[Place]) -> bool:
    """Whether a value can only serve old calls."""
    if isinstance(value, (cst.Name, cst.Attribute)) and work.old.constant(value) is not None:
        return True
    place = work.place(value)
    if place is not None:
        return place in places
    if not all(_idle(work, node) for node in work.flow.walk(value)):
        return False
    for node in work.flow.walk(value):
        call = work.old.call(node)
        if call is not None and call.name in _SERVANTS:
            return True
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            name = node.func.value
            helper = work.flow.functions.get(name) or work.flow.classes.get(name)
            if helper is not None and _helper(work, helper):
                return True
        func = node.func if isinstance(node, cst.Call) else None
        if isinstance(func, cst.BinaryOperation) and "c_" in code(func.left):
            return True
    inner = [work.place(node) for node in work.values.leaves(value)]
    return any(place in places for place in inner if place is not None) and _pure(value)


_IDLE = frozenset(
    [
        "bool",
        "dict",
        "enumerate",
        "float",
        "int",
        "len",
        "list",
        "max",
        "min",
        "range",
        "sorted",
        "tuple",
        "zip",
    ]
)


def _idle(work: Work, node: cst.CSTNode) -> bool:
    """Whether a node does nothing that would be missed: no call of something unknown."""
    if not isinstance(node, (cst.Call, cst.Await, cst.Yield, cst.NamedExpr)):
        return True
    if not isinstance(node, cst.Call):
        return False
    if work.old.call(node) is not None or isinstance(node.func, cst.BinaryOperation):
        return True
    if isinstance(node.func, cst.Name):
        name = node.func.value
        helper = work.flow.functions.get(name) or work.flow.classes.get(name)
        return name in _IDLE if helper is None else _helper(work, helper)
    assert isinstance(node.func, cst.BaseExpression)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in MAKERS:
        return True
    root: cst.CSTNode = node.func
    while isinstance(root, cst.Attribute):
        root = root.value
    return isinstance(root, cst.Name) and work.flow.is_module(root.value)


def _pure(value: cst.BaseExpression) -> bool:
    """``numpy.array([descriptor] * 5, numpy.uintp)``, and what is written with brackets."""
    if isinstance(value, cst.Call):
        return isinstance(value.func, cst.Attribute) and value.func.attr.value in (
            "array",
            "asarray",
        )
    return isinstance(value, (cst.List, cst.Tuple, cst.ListComp, cst.BinaryOperation))


def _appends(work: Work, value: cst.CSTNode, places: set[Place]) -> bool:
    """``descriptors.append(descriptor)``."""
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute):
        return False
    if value.func.attr.value != "append" or len(value.args) != 1:
        return False
    return _servant(work, value.args[0].value, places)


def _fills(work: Work, small: cst.Assign, known: list[Place | None], places: set[Place]) -> bool:
    """``descriptors = []``, where descriptors are appended; ``kind = dict(…)`` for old calls."""
    place = known[0] if len(known) == 1 else None
    if place is None:
        return False
    if isinstance(small.value, cst.List) and not small.value.elements:
        above = [work.flow.parents[load] for load in work.flow.loads[place]]
        return any(
            _appends(work, work.flow.parents[each], places)
            for each in above
            if isinstance(each, cst.Attribute)
        )
    return any(small.value in work.followed(star) for c in work.old.calls for star in c.stars)


def _helper(work: Work, node: cst.FunctionDef | cst.ClassDef) -> bool:
    """Whether a function or class of the module makes descriptors, C arrays or addresses."""
    if node.decorators:
        return False
    calls = [call for each in work.flow.walk(node) if (call := work.old.call(each)) is not None]
    if calls:
        return all(call.name in _SERVANTS for call in calls)
    if not isinstance(node, cst.FunctionDef):
        return False
    returned = single_return(node)
    return returned is not None and len(node.body.body) <= 2 and _low(returned)


def _low(returned: cst.BaseExpression) -> bool:
    text = code(returned)
    return any(word in text for word in (".data.ptr", ".ctypes.data", "ctypes.c_", "addressof"))
