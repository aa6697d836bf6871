"""Forward: one layer after the other, in each one direction or two."""

from __future__ import annotations

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.numpy import cells
from cudnn_compat.engines.numpy.dropout import draw_mask
from cudnn_compat.engines.numpy.plan import NumpyPlan
from cudnn_compat.sequences import Sequences
from cudnn_compat.weights import weight_layout

__all__ = ["initial_states", "run"]


def initial_states(
    plan: NumpyPlan, sequences: Sequences, given: Array | None, shape: tuple[int, ...]
) -> Array:
    """States in sorted order and the compute dtype, a new array; zeros where none are given."""
    if given is None:
        return np.zeros(shape, plan.dtype)
    return np.array(sequences.sort_states(given), plan.dtype, order="C")


def run(
    plan: NumpyPlan,
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
    """Fill y, hy, cy and the reserve."""
    spec, dtype, rows = plan.spec, plan.dtype, sequences.total
    w = np.ascontiguousarray(w, dtype)
    layout = weight_layout(spec)
    kept = None if reserve is None else plan.divide(sequences, reserve)
    h = initial_states(plan, sequences, hx, spec.state_shape(sequences.batch))
    c = None
    if spec.has_cell:
        c = initial_states(plan, sequences, cx, spec.cell_shape(sequences.batch))
    entering = sequences.gather(x, dtype)
    for layer in range(spec.num_layers):
        last = layer == spec.num_layers - 1
        mine = None if kept is None else kept[layer]
        if last and plan.writes_y(sequences):
            output = y.reshape(rows, spec.output_size)
        elif mine is not None:
            assert mine.output is not None
            output = mine.output
        else:
            output = np.empty((rows, spec.output_size), dtype)
        for direction in range(spec.num_directions):
            index = layer * spec.num_directions + direction
            columns = slice(direction * spec.state_size, (direction + 1) * spec.state_size)
            cells.forward(
                cells.Direction(spec, layout.pseudo_layers[index], w, bool(direction)),
                sequences,
                entering,
                h[index],
                None if c is None else c[index],
                output[:, columns],
                None if mine is None else mine.directions[direction],
            )
        entering = output
        if not last and mine is not None and mine.mask is not None:
            assert dropout is not None and mine.dropped is not None
            draw_mask(dropout, spec.dropout, mine.mask)
            entering = np.multiply(output, mine.mask, out=mine.dropped)
    if not plan.writes_y(sequences):
        sequences.scatter(output, y)
    if hy is not None:
        sequences.unsort_states(h, hy)
    if cy is not None:
        sequences.unsort_states(c, cy)
