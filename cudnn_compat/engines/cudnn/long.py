"""More steps than the library takes: parts that carry the states from one to the next.

A network of one direction is cut in time: all layers of a part of at most 65,535 steps, then those
of the next. With two directions the parts of one layer need the whole output of the layer below, so
it runs layer by layer and direction by direction, each a network of one layer, the second direction
on the sequences in reverse. Everything here is in sorted packed order, in which a part is a
contiguous block of rows.
"""

from __future__ import annotations

from cudnn_compat.arrays import Array
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cudnn import backward, forward
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.long_call import Call
from cudnn_compat.engines.cudnn.long_plan import LongPlan
from cudnn_compat.engines.cudnn.operations import dropout_backward, dropout_forward
from cudnn_compat.engines.cudnn.staging import whole_elements
from cudnn_compat.sequences import Sequences
from cudnn_compat.weights import weight_layout

__all__ = ["LongPlan", "run", "run_data", "run_weights"]


def run(
    session: Session,
    plan: LongPlan,
    sequences: Sequences,
    w: Array,
    x: Array,
    hx: Array | None,
    cx: Array | None,
    y: Array,
    hy: Array | None,
    cy: Array | None,
    reserve: Array | None,
    dropout: DropoutState | None,
) -> None:
    """Fill y, hy, cy and, in training, the reserve."""
    w, x, hx, cx = map(whole_elements, (w, x, hx, cx))
    call = Call(session, plan, sequences, reserve)
    h, c = call.states(hx, False), call.states(cx, True)
    entering = sequences.gather(x, x.dtype)
    for layer, stages in call.layers():
        output = call.output(layer)
        for index, stage in stages:
            weights = call.weights(stage, w)
            rows = call.in_direction(stage, entering)
            written = call.empty((sequences.total, stage.spec.output_size))
            for number, part in enumerate(call.parts):
                block = slice(part.start, part.stop)
                before = call.part_states(stage, part, h, c)
                call.save(index, number, before)
                after = call.like(before)
                part_plan = plan.part_plan(stage, part)
                forward.run(
                    session,
                    part_plan,
                    part.sequences,
                    weights,
                    rows[block],
                    before[0],
                    before[1],
                    written[block],
                    after[0],
                    after[1],
                    call.library_reserve(index, number),
                    dropout if part_plan.drops else None,
                )
                call.set_states(stage, part, after, h, c)
            output[:, stage.columns] = call.in_direction(stage, written)
        entering = output
        dropped = call.dropped(layer)
        if dropped is not None:
            assert dropout is not None
            ratio, dtype = plan.spec.dropout, plan.spec.dtype
            mask = call.reserve.bytes("mask", layer)
            dropout_forward(session, dropout, ratio, dtype, output, dropped, mask)
            entering = dropped
    sequences.scatter(entering, y)
    for states, out in ((h, hy), (c, cy)):
        if out is not None:
            sequences.unsort_states(states, out)


def run_data(
    session: Session,
    plan: LongPlan,
    sequences: Sequences,
    x: Array,
    w: Array,
    hx: Array | None,
    cx: Array | None,
    y: Array,
    reserve: Array,
    dy: Array | None,
    dhy: Array | None,
    dcy: Array | None,
    dx: Array,
    dhx: Array,
    dcx: Array | None,
) -> None:
    """Fill dx, dhx, dcx; changes the reserve in place."""
    w, y, dy, dhy, dcy = map(whole_elements, (w, y, dy, dhy, dcy))
    call = Call(session, plan, sequences, reserve)
    dh, dc = call.states(dhy, False), call.states(dcy, True)
    if dy is None:
        leaving = session.xp.zeros((sequences.total, plan.spec.output_size), x.dtype)
    else:
        leaving = sequences.gather(dy, x.dtype)
    for layer, stages in reversed(call.layers()):
        output = call.output(layer, y)
        entering = session.xp.zeros((sequences.total, stages[0][1].spec.input_size), x.dtype)
        for index, stage in stages:
            weights = call.weights(stage, w)
            below = call.empty(entering.shape)
            rows, gradient = (
                call.in_direction(stage, array[:, stage.columns]) for array in (output, leaving)
            )
            for number, part in reversed(list(enumerate(call.parts))):
                block = slice(part.start, part.stop)
                before = call.saved(index, number, stage, part)
                after = call.part_states(stage, part, dh, dc)
                written = call.like(after)
                backward.run_data(
                    session,
                    plan.part_plan(stage, part),
                    part.sequences,
                    weights,
                    before[0],
                    before[1],
                    rows[block],
                    call.library_reserve(index, number),
                    gradient[block],
                    after[0],
                    after[1],
                    below[block],
                    written[0],
                    written[1],
                )
                call.set_states(stage, part, written, dh, dc)
            entering += call.in_direction(stage, below)
        leaving = entering
        if plan.drops and layer:
            leaving = call.empty(entering.shape)
            mask = call.reserve.bytes("mask", layer - 1)
            dropout_backward(session, plan.spec.dropout, plan.spec.dtype, entering, leaving, mask)
    sequences.scatter(leaving, dx)
    for states, out in ((dh, dhx), (dc, dcx)):
        if out is not None:
            sequences.unsort_states(states, out)


def run_weights(
    session: Session,
    plan: LongPlan,
    sequences: Sequences,
    x: Array,
    hx: Array | None,
    y: Array,
    reserve: Array,
    dw: Array,
) -> None:
    """Add the weight gradients into dw."""
    x, y = map(whole_elements, (x, y))
    call = Call(session, plan, sequences, reserve)
    entering = sequences.gather(x, x.dtype)
    for layer, stages in call.layers():
        output = call.output(layer, y)
        for index, stage in stages:
            part_of_dw = session.xp.zeros(weight_layout(stage.spec).size, dw.dtype)
            rows = call.in_direction(stage, entering)
            written = call.in_direction(stage, output[:, stage.columns])
            for number, part in enumerate(call.parts):
                block = slice(part.start, part.stop)
                backward.run_weights(
                    session,
                    plan.part_plan(stage, part),
                    part.sequences,
                    rows[block],
                    call.saved(index, number, stage, part)[0],
                    written[block],
                    call.library_reserve(index, number),
                    part_of_dw,
                )
            for whole, own in call.slots(stage):
                whole.view(dw)[...] += own.view(part_of_dw)
        dropped = call.dropped(layer)
        entering = output if dropped is None else dropped
