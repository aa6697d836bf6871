"""Gradients: from the last layer to the first; then the weights, one matrix product each."""

from __future__ import annotations

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.engines.numpy import cells
from cudnn_compat.engines.numpy.forward import initial_states
from cudnn_compat.engines.numpy.plan import LayerReserve, NumpyPlan
from cudnn_compat.sequences import Sequences
from cudnn_compat.weights import weight_layout

__all__ = ["run_data", "run_weights"]


def _output_rows(plan: NumpyPlan, sequences: Sequences, layer: LayerReserve, y: Array) -> Array:
    if layer.output is not None:
        return layer.output
    return y.reshape(sequences.total, plan.spec.output_size)


def run_data(
    plan: NumpyPlan,
    sequences: Sequences,
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
    """Fill dx, dhx, dcx; the reserve then holds the gradients of the gates."""
    spec, dtype, size = plan.spec, plan.dtype, plan.spec.state_size
    w = np.ascontiguousarray(w, dtype)
    layout = weight_layout(spec)
    kept = plan.divide(sequences, reserve)
    state_shape, cell_shape = spec.state_shape(sequences.batch), spec.cell_shape(sequences.batch)
    h0 = initial_states(plan, sequences, hx, state_shape)
    dh = initial_states(plan, sequences, dhy, state_shape)
    c0 = dc = None
    if spec.has_cell:
        c0 = initial_states(plan, sequences, cx, cell_shape)
        dc = initial_states(plan, sequences, dcy, cell_shape)
    leaving = None if dy is None else sequences.gather(dy, dtype)
    for layer in reversed(range(spec.num_layers)):
        mine = kept[layer]
        output = _output_rows(plan, sequences, mine, y)
        entering = np.empty((sequences.total, spec.layer_input_size(layer)), dtype)
        for direction in range(spec.num_directions):
            index = layer * spec.num_directions + direction
            columns = slice(direction * size, (direction + 1) * size)
            at = cells.Direction(spec, layout.pseudo_layers[index], w, bool(direction))
            cells.backward(
                at,
                sequences,
                None if leaving is None else leaving[:, columns],
                output[:, columns],
                h0[index],
                None if c0 is None else c0[index],
                dh[index],
                None if dc is None else dc[index],
                mine.directions[direction],
            )
            cells.input_gradient(at, mine.directions[direction], entering, add=direction > 0)
        if layer and kept[layer - 1].mask is not None:
            entering *= kept[layer - 1].mask
        leaving = entering
    assert leaving is not None
    sequences.scatter(leaving, dx)
    sequences.unsort_states(dh, dhx)
    if dcx is not None:
        sequences.unsort_states(dc, dcx)


def run_weights(
    plan: NumpyPlan,
    sequences: Sequences,
    x: Array,
    hx: Array | None,
    y: Array,
    reserve: Array,
    dw: Array,
) -> None:
    """Add the weight gradients into dw."""
    spec, size = plan.spec, plan.spec.state_size
    layout = weight_layout(spec)
    kept = plan.divide(sequences, reserve)
    h0 = initial_states(plan, sequences, hx, spec.state_shape(sequences.batch))
    # Sums of float16 gradients are taken in float32 and rounded once.
    total = dw if plan.native else np.zeros(dw.shape, plan.dtype)
    entering = sequences.gather(x, plan.dtype)
    for layer in range(spec.num_layers):
        output = _output_rows(plan, sequences, kept[layer], y)
        for direction in range(spec.num_directions):
            index = layer * spec.num_directions + direction
            columns = slice(direction * size, (direction + 1) * size)
            before = sequences.previous(output[:, columns], h0[index], bool(direction))
            cells.weight_gradients(
                cells.Direction(spec, layout.pseudo_layers[index], total, bool(direction)),
                kept[layer].directions[direction],
                entering,
                before,
            )
        dropped = kept[layer].dropped
        entering = output if dropped is None else dropped
    if total is not dw:
        dw += total.astype(dw.dtype)
