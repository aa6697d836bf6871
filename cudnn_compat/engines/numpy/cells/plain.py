"""relu and tanh: ``h = f(W x + R h_prev + b)``."""

from __future__ import annotations

from itertools import repeat

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.engines.numpy.cells.common import (
    Direction,
    blocks,
    outputs_of_steps,
    runs,
    steps_of,
)
from cudnn_compat.engines.numpy.cells.linear import input_part
from cudnn_compat.engines.numpy.plan import DirectionReserve
from cudnn_compat.sequences import Sequences

__all__ = ["backward", "forward"]


def joined_bias(at: Direction) -> Array | None:
    """``b_W + b_R``, whichever the network has."""
    bias_ih, bias_hh = at.get("bias_ih"), at.get("bias_hh")
    if bias_ih is None or bias_hh is None:
        return bias_hh if bias_ih is None else bias_ih
    return bias_ih + bias_hh


def forward(
    at: Direction,
    sequences: Sequences,
    entering: Array,
    h: Array,
    c: Array | None,
    output: Array,
    kept: DirectionReserve | None,
) -> None:
    """See :func:`cudnn_compat.engines.numpy.cells.forward`."""
    rows = len(entering)
    sums = np.empty((rows, at.hidden), h.dtype) if kept is None else kept.gates
    input_part(at, entering, joined_bias(at), None, sums)
    recurrent, zero = at.loop_matrix(None), np.zeros((), h.dtype)
    relu = at.spec.cell == "relu"
    dot, add, tanh, maximum = np.dot, np.add, np.tanh, np.maximum
    for run in runs(sequences, at.reverse):
        state = h[: run.batch]
        scratch = np.empty_like(state)
        before, after, copies = outputs_of_steps(output, run, at.reverse, state)
        h_t = state
        for a, h_prev, h_t, y_t in zip(  # noqa: B905 - `before` has one more
            steps_of(sums, run, at.reverse), before, after, copies or repeat(None)
        ):
            dot(h_prev, recurrent, scratch)
            add(scratch, a, scratch)
            if relu:
                maximum(scratch, zero, out=h_t)
            else:
                tanh(scratch, h_t)
            if y_t is not None:
                y_t[...] = h_t
        state[...] = h_t


def backward(
    at: Direction,
    sequences: Sequences,
    dy: Array | None,
    output: Array,
    h0: Array,
    c0: Array | None,
    dh: Array,
    dc: Array | None,
    kept: DirectionReserve,
) -> None:
    """See :func:`cudnn_compat.engines.numpy.cells.backward`."""
    gates = kept.gates
    for block, () in blocks(gates, 0):
        h, of_a = output[block], gates[block]
        if at.spec.cell == "relu":
            of_a[...] = h > 0
        else:
            np.multiply(h, h, out=of_a)
            np.subtract(1, of_a, out=of_a)
    recurrent = at.recurrent
    dot, add, multiply = np.dot, np.add, np.multiply
    for run in runs(sequences, not at.reverse):
        dh_b = dh[: run.batch]
        dys = repeat(None) if dy is None else steps_of(dy, run, not at.reverse)
        for da, dy_t in zip(steps_of(gates, run, not at.reverse), dys):  # noqa: B905
            if dy_t is not None:
                add(dh_b, dy_t, dh_b)
            multiply(da, dh_b, da)
            dot(da, recurrent, dh_b)
