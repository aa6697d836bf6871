"""``rnn_backward_data`` and ``_weights``, with and without ``_ex``, proved with their forward."""

from __future__ import annotations

from collections import defaultdict

import libcst as cst

from cudnn_compat.migrate.rules.cupy_forward import (
    INFERENCE,
    TRAINING,
    Arguments,
    assignments,
    cell_of,
    forward,
    when_given,
)
from cudnn_compat.migrate.rules.cupy_layout import Written, lines
from cudnn_compat.migrate.rules.cupy_old import OldCall
from cudnn_compat.migrate.rules.cupy_questions import Unclear
from cudnn_compat.migrate.rules.cupy_rule import CupyRule
from cudnn_compat.migrate.rules.cupy_syntax import code
from cudnn_compat.migrate.rules.cupy_tree import Place
from cudnn_compat.migrate.rules.cupy_values import Value
from cudnn_compat.migrate.rules.cupy_work import Draft, Work

__all__ = ["move", "rule"]

DATA = ("cudnn.rnn_backward_data", "cudnn.rnn_backward_data_ex")
WEIGHTS = ("cudnn.rnn_backward_weights", "cudnn.rnn_backward_weights_ex")


def move(work: Work) -> None:
    """All networks: each training forward with its backward calls, then the forwards alone."""
    after: dict[cst.CSTNode | None, list[OldCall]] = defaultdict(list)
    for call in work.named(*DATA, *WEIGHTS):
        after[_forward_of(work, call)].append(call)
    work.leave(
        after.pop(None, []),
        "where its reserve_space comes from cannot be seen in this file; keep the result of "
        "v2.rnn_forward(…, training=True) in its place",
    )
    for call in work.named(*TRAINING):
        _group(work, call, after[call.node])
    for call in work.named(*INFERENCE):
        _group(work, call, [])


def _group(work: Work, first: OldCall, after: list[OldCall]) -> None:
    """Move a forward and its backward calls, or none of them."""

    def proof() -> None:
        if first.name in TRAINING:
            _check_reserve(work, first, after)
        for call in sorted(after, key=lambda call: -work.flow.order[call.node]):
            _check_same(work, first, call)
            work.commit(_data(work, call) if call.name in DATA else _weights(work, call))
        work.commit(forward(work, first))

    work.attempt([first, *after], proof)


def _forward_of(work: Work, call: OldCall) -> cst.CSTNode | None:
    """The training call whose first result is this call's reserve."""
    reserve = call.given.get("reserve_space")
    if reserve is None:
        return None
    place = work.place(work.values.follow(Value(reserve)).node)
    definition = work.flow.only(place)
    if definition is None or definition.item != 0 or definition.value is None:
        return None
    made = work.old.call(definition.value)
    return made.node if made is not None and made.name in TRAINING else None


def _check_reserve(work: Work, first: OldCall, after: list[OldCall]) -> None:
    """Only the backward calls get the reserve, and each of the two comes once."""
    names = sorted(call.name.removesuffix("_ex") for call in after)
    if names and names not in ([DATA[0]], [DATA[0], WEIGHTS[0]]):
        raise Unclear("a v2 forward serves one backward: data, then weights, once each")
    reserves = [work.argument(call, "reserve_space") for call in after]
    todo: list[Place] = [
        place
        for place, found in work.flow.definitions.items()
        if any(d.value is first.node and d.item == 0 for d in found)
    ]
    seen: set[Place] = set()
    while todo:
        place = todo.pop()
        if place in seen:
            continue
        seen.add(place)
        if work.flow.hidden(place):
            raise Unclear("its reserve_space is used through another object")
        for load in work.flow.loads[place]:
            copies = work.flow.given.get(load, [])
            todo += copies
            if not copies and load not in reserves:
                raise Unclear("its reserve_space is used for something that is not a backward call")


def _check_same(work: Work, first: OldCall, call: OldCall) -> None:
    """A backward gets what its forward got: v2 remembers that, and is not told again."""
    for name in ("hx", "cx", "w", "xs"):
        if name in call.given and not _same(work, first, call, name):
            raise Unclear(
                f"the {name} of a backward call is not certainly that of its forward; v2 goes back "
                "with what the forward was given"
            )
    place = work.place(work.values.follow(Value(work.argument(call, "ys"))).node)
    made = work.flow.only(place)
    if made is None or made.value is not first.node or made.item != 3:
        raise Unclear("the ys of a backward call is not certainly what its forward gave")


def _same(work: Work, first: OldCall, call: OldCall, name: str) -> bool:
    one, other = work.argument(first, name), work.argument(call, name)
    if work.values.same(one, other):
        return True
    flow = work.flow
    if code(one) != code(other) or flow.function_of(one) is not flow.function_of(other):
        return False
    # The same text in one function, and nothing in it is given another value there.
    begin, end = flow.order[first.node], flow.order[call.node]
    for leaf in work.values.leaves(other):
        place = work.place(leaf)
        if place is None:
            return False
        for each in flow.definitions.get(place, []):
            if isinstance(flow.parents[each.node], cst.AugAssign):
                continue  # of an array: the same memory
            there = flow.function_of(each.node)
            if there is flow.function_of(other):
                changed = begin <= flow.order[each.node] <= end
            else:
                changed = there is not None and there.name.value != "__init__"
            if changed:
                return False
    return not any(isinstance(each, cst.Call) for each in flow.walk(other))


def _data(work: Work, call: OldCall) -> Draft:
    draft = Draft()
    draft.done.append(call)
    has_cell = cell_of(work, draft, call) == '"lstm"'
    given = Arguments(
        work, call, "reserve_space dys dhy dcy" if has_cell else "reserve_space dys dhy"
    )
    cx = work.text(work.argument(call, "cx"), call.node)
    parts = [given["reserve_space"], given["dys"], given["dhy"]]
    if has_cell and given["dcy"] != "None":
        dcy = when_given(work, call, given["dcy"], cx, "None")
        if dcy != "None":
            parts.append(dcy)
    while parts[-1] == "None":
        parts.pop()
    new = Written(f"{work.v2}.rnn_backward_data", parts)
    grad = work.fresh("grad", call.node)
    names = ("dhx", "dcx", "dx")

    def source(name: str) -> str:
        if name != "dcx":
            return f"{grad}.{name}"
        absent = f"{grad}.dhx[:0, 0, 0]"
        if not has_cell:
            if code(work.argument(call, "cx")) != "None":
                raise Unclear("this cell has no cell state, but its dcx, which was zeros, is used")
            return absent
        return when_given(work, call, f"{grad}.dcx", cx, absent)

    line, targets = work.line(call.node), work.targets(call, 3)
    small = line.body[0]
    text = [*given.before, *lines(f"{grad} = ", new, work.depth(call.node))]
    if targets is not None:
        sources = [
            source(name) if work.used(target) else f"{grad}.{name}"
            for target, name in zip(targets, names, strict=True)
        ]
        text += assignments(targets, sources)
    elif isinstance(small, cst.Return) and small.value is call.node:
        text.append(f"return {', '.join(source(name) for name in names)}")
    elif isinstance(small, cst.Assign) and small.value is call.node and len(small.targets) == 1:
        left = code(small.targets[0].target)
        text.append(f"{left} = {', '.join(source(name) for name in names)}")
    elif isinstance(small, cst.Expr) and small.value is call.node:
        text = [*given.before, *lines("", new, work.depth(call.node))]
    else:
        raise Unclear("it stands inside an expression; give its results names: dhx, dcx, dxs = …")
    draft.new[line] = text
    return draft


def _weights(work: Work, call: OldCall) -> Draft:
    draft = Draft()
    draft.done.append(call)
    reserve = work.text(work.argument(call, "reserve_space"), call.node)
    w = work.primary(work.argument(call, "w"), call.node)
    draft.new[call.node] = f"{work.v2}.rnn_backward_weights({reserve}).reshape({w}.shape)"
    return draft


class Backward(CupyRule):
    """CC122, CC123, CC126 and CC127."""

    codes = ("CC122", "CC123", "CC126", "CC127")


rule = Backward()
