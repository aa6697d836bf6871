"""What must stay because something that stays reads it."""

from __future__ import annotations

import libcst as cst

from cudnn_compat.migrate.rules.cupy_syntax import code
from cudnn_compat.migrate.rules.cupy_tree import Place
from cudnn_compat.migrate.rules.cupy_values import Value
from cudnn_compat.migrate.rules.cupy_work import Work

__all__ = ["clear_parameters", "needed"]


def needed(work: Work, node: cst.CSTNode) -> bool:
    """Whether something that stays reads what a statement makes."""
    flow = work.flow
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        name = Place(None, node.name.value)
        return not flow.loads[name] or work.read(name) or name.name in work.exported
    if isinstance(node, cst.For):
        return any(needed(work, inner) for inner in node.body.body)
    assert isinstance(node, cst.SimpleStatementLine)
    small = node.body[0]
    if isinstance(small, cst.Assign):
        target = small.targets[0].target
        if _never_read(work, small):
            return True
        targets: list[cst.BaseExpression] = [target]
        if isinstance(target, cst.Tuple):
            targets = [element.value for element in target.elements]
        known = [work.place(each) for each in targets]
        if any(p is not None and p.owner is None and p.name in work.exported for p in known):
            return True
        return any(place is None or _read_beyond_none(work, place) for place in known)
    # It sets, fills or destroys something: as long as that stays, so does this.
    for leaf in work.values.leaves(small):
        made = work.place(leaf)
        for definition in flow.definitions.get(made, []) if made is not None else []:
            statement = flow.statement_of(definition.node)
            if _is_servant(work, statement) and not work.gone(statement):
                return True
    return False


def _never_read(work: Work, small: cst.Assign) -> bool:
    """Whether nobody ever read it, so that it is not the plan that made it useless."""
    if isinstance(small.value, (cst.Name, cst.Attribute)):
        return False
    values = [small.value]
    if isinstance(small.value, cst.Tuple):
        values += [element.value for element in small.value.elements]
    places = [place for value in values for place in work.flow.given.get(value, [])]
    return not any(work.flow.loads[place] for place in places)


def _read_beyond_none(work: Work, place: Place) -> bool:
    parameters = {work.place(load) for load in work.alive(place)}
    return (bool(parameters) and not _only_handed_on(work, place)) or (
        place.name in work.words() and not place.attribute
    )


def _only_handed_on(work: Work, place: Place) -> bool:
    """Whether a place is read only as an argument that its private function does not read."""
    return all(_idle_argument(work, load) is not None for load in work.alive(place))


def _idle_argument(work: Work, load: cst.CSTNode) -> tuple[cst.Call, cst.FunctionDef] | None:
    flow = work.flow
    arg = flow.parents[load]
    call = flow.parents.get(arg)
    if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call):
        return None
    func = call.func
    name = func.attr.value if isinstance(func, cst.Attribute) else code(func)
    for node in flow.order:
        if isinstance(node, cst.FunctionDef) and node.name.value == name:
            if not work.values.private(node) or _uses_old_names(work, node):
                return None
            method = isinstance(func, cst.Attribute)
            bound = work.values.bound(node.params, Value(call), method=method)
            for place, value in (bound or {}).items():
                if value.node is load:
                    return None if work.read(place) else (call, node)
    return None


def clear_parameters(work: Work) -> None:
    """Arguments that named what is gone, and the parameters of private functions for them."""
    flow = work.flow
    for place, definitions in list(flow.definitions.items()):
        if not any(flow.statement_of(d.node) in work.new for d in definitions):
            continue
        for load in work.alive(place):
            found = _idle_argument(work, load)
            if found is not None:
                work.drop_argument(load, *found)


def _is_servant(work: Work, statement: cst.CSTNode) -> bool:
    return any(work.old.call(node) is not None for node in work.flow.walk(statement))


def _uses_old_names(work: Work, function: cst.FunctionDef) -> bool:
    """Whether something old stays in a function."""
    names = [n for n in work.flow.walk(function) if work.old.name(n) is not None]
    return any(not work.gone(name) for name in names)
