"""LSTM, with projection and cell clipping.

    i, f, o = σ(W x + R h_prev + b)        g = tanh(W x + R h_prev + b)
    c = f * clip(c_prev) + i * g           h = o * tanh(clip(c)), then h = W_hr h with projection

Backward, for the gradient dh of h before projection:

    dc += dh * o(1 - tanh²)                do = dh * tanh(c) * o(1 - o)
    di = dc * g * i(1 - i)                 df = dc * clip(c_prev) * f(1 - f)
    dg = dc * i(1 - g²)                    dc_prev = dc * f

Forward keeps 1/i, 1/f, g, 1/o. All factors beside dh and dc are known before the loop. Where a
clip binds its factor is 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.engines.numpy.cells.common import (
    Direction,
    blocks,
    folds,
    gate_signs,
    outputs_of_steps,
    runs,
    steps_of,
)
from cudnn_compat.engines.numpy.cells.linear import input_part
from cudnn_compat.engines.numpy.cells.plain import joined_bias
from cudnn_compat.engines.numpy.plan import DirectionReserve
from cudnn_compat.sequences import Sequences

__all__ = ["backward", "forward"]

_SIGMOIDS = (True, True, False, True)


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
    assert c is not None
    rows, hidden, reverse, clip = len(entering), at.hidden, at.reverse, at.spec.clip
    signs = gate_signs(hidden, _SIGMOIDS, h.dtype)
    folded = folds(sequences)
    inputs = np.empty((rows, 4 * hidden), h.dtype) if kept is None else kept.gates
    input_part(at, entering, joined_bias(at), signs if folded else None, inputs)
    recurrent, one = at.loop_matrix(signs if folded else None), np.ones((), h.dtype)
    projection = at.get("weight_hr")
    projection = None if projection is None else projection.T
    dot, add, multiply, divide = np.dot, np.add, np.multiply, np.divide
    exp, tanh = np.exp, np.tanh
    for run in runs(sequences, reverse):
        h_b, c_b = h[: run.batch], c[: run.batch]
        sums_t = np.empty((run.batch, 4 * hidden), h.dtype)
        sums_of_g = sums_t[:, 2 * hidden : 3 * hidden]
        product = np.empty((run.batch, hidden), h.dtype)
        before, after, copies = outputs_of_steps(output, run, reverse, h_b)
        gates: Iterable[Array]
        c_before: Iterable[Array]
        unprojected: Iterable[Array | None] = repeat(None)
        if kept is None:
            scratch = np.empty_like(sums_t)
            gates = repeat(scratch)
            parts = [repeat(part) for part in _split(scratch, hidden)]
            c_before = c_after = repeat(c_b)
            outs = repeat(np.empty_like(product))
            if projection is not None:
                unprojected = repeat(np.empty_like(product))
        else:
            gates = steps_of(inputs, run, reverse)
            parts = _split(gates, hidden)
            c_after = steps_of(kept.cells, run, reverse)
            c_before = chain((c_b,), c_after)
            outs = steps_of(kept.outs, run, reverse)
            if projection is not None:
                unprojected = steps_of(kept.hidden, run, reverse)
        h_t, c_t = h_b, c_b
        for x_t, a, i, f, g, o, c_prev, c_t, tanh_c, hidden_t, h_prev, h_t, y_t in zip(  # noqa: B905
            steps_of(inputs, run, reverse),
            gates,
            *parts,
            c_before,
            c_after,
            outs,
            unprojected,
            before,
            after,
            copies or repeat(None),
        ):
            dot(h_prev, recurrent, sums_t)
            add(sums_t, x_t, sums_t)
            if not folded:
                multiply(sums_t, signs, sums_t)
            exp(sums_t, a)
            add(a, one, a)
            tanh(sums_of_g, g)
            divide(g, i, product)
            if clip is None:
                divide(c_prev, f, c_t)
                add(c_t, product, c_t)
                tanh(c_t, tanh_c)
            else:
                divide(_clipped(c_prev, clip), f, c_t)
                add(c_t, product, c_t)
                tanh(_clipped(c_t, clip), tanh_c)
            if projection is None:
                divide(tanh_c, o, h_t)
            else:
                divide(tanh_c, o, hidden_t)
                dot(hidden_t, projection, h_t)
            if y_t is not None:
                y_t[...] = h_t
        h_b[...] = h_t
        c_b[...] = c_t


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
    assert c0 is not None and dc is not None
    hidden, back = at.hidden, not at.reverse
    _factors(kept, sequences.previous(kept.cells, c0, at.reverse), at.spec.clip)
    recurrent, projection = at.recurrent, at.get("weight_hr")
    dot, add, multiply = np.dot, np.add, np.multiply
    for run in runs(sequences, back):
        dh_b, dc_b = dh[: run.batch], dc[: run.batch]
        dc_of_gates = dc_b[:, None, :]
        scratch = np.empty_like(dc_b)
        dh_t = dh_b if projection is None else np.empty_like(dc_b)
        gates = steps_of(kept.gates, run, back)
        of_c = gates[..., : 3 * hidden].reshape(run.steps, run.batch, 3, hidden)
        of_o = gates[..., 3 * hidden :]
        dys = repeat(None) if dy is None else steps_of(dy, run, back)
        projected = repeat(None) if projection is None else steps_of(kept.projected, run, back)
        for da, da_of_c, da_of_o, through_h, through_c, dy_t, dp_t in zip(  # noqa: B905
            gates,
            of_c,
            of_o,
            steps_of(kept.outs, run, back),
            steps_of(kept.cells, run, back),
            dys,
            projected,
        ):
            if dy_t is not None:
                add(dh_b, dy_t, dh_b)
            if projection is not None:
                dp_t[...] = dh_b
                dot(dh_b, projection, dh_t)
            multiply(dh_t, through_h, scratch)
            add(dc_b, scratch, dc_b)
            multiply(da_of_c, dc_of_gates, da_of_c)
            multiply(da_of_o, dh_t, da_of_o)
            multiply(dc_b, through_c, dc_b)
            dot(da, recurrent, dh_b)


def _factors(kept: DirectionReserve, c_before: Array, clip: tuple[float, float] | None) -> None:
    """Replace what forward kept by the factors of dh and dc (see the module's docstring)."""
    cells, outs = kept.cells, kept.outs
    assert cells is not None and outs is not None
    hidden = cells.shape[1]
    multiply, subtract = np.multiply, np.subtract
    for block, (u, v) in blocks(cells, 2):
        i, f, g, o = _split(kept.gates[block], hidden)
        tanh_c, c, c_prev = outs[block], cells[block], c_before[block]
        for sigmoid in (i, f, o):
            np.reciprocal(sigmoid, out=sigmoid)
        # through h: o(1 - tanh²), and of o: tanh(c) o(1 - o)
        multiply(tanh_c, tanh_c, u)
        subtract(1, u, u)
        multiply(u, o, u)
        subtract(1, o, v)
        multiply(v, o, v)
        multiply(v, tanh_c, o)
        if clip is None:
            tanh_c[...] = u
            c[...] = f
        else:
            multiply(u, _inside(c, clip), tanh_c)
            multiply(f, _inside(c_prev, clip), c)
            c_prev = _clipped(c_prev, clip)
        # of f: c_prev f(1 - f)
        subtract(1, f, u)
        multiply(u, f, u)
        multiply(u, c_prev, f)
        # of g: i(1 - g²), and of i: g i(1 - i)
        multiply(g, g, u)
        subtract(1, u, u)
        multiply(u, i, u)
        subtract(1, i, v)
        multiply(v, i, v)
        multiply(v, g, i)
        g[...] = u


def _split(gates: Array, hidden: int) -> list[Array]:
    """Views of the gates along the last axis."""
    return [gates[..., n * hidden : (n + 1) * hidden] for n in range(4)]


def _clipped(c: Array, clip: tuple[float, float]) -> Array:
    return np.minimum(np.maximum(c, clip[0]), clip[1])


def _inside(c: Array, clip: tuple[float, float]) -> Array:
    return (c >= clip[0]) & (c <= clip[1])
