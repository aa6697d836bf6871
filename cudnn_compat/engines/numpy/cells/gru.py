"""GRU, the reset-after form.

    r, z = σ(W x + R h_prev + b)           q = R h_prev + b_R (of n)
    n = tanh(W x + b_W + r * q)            h = n + z * (h_prev - n)

Backward:

    dn = dh * (1 - z)(1 - n²)              dq = dn * r
    dr = dn * q * r(1 - r)                 dz = dh * (h_prev - n) * z(1 - z)
    dh_prev = dh * z + Rᵀ (dr, dz, dq)

Forward keeps q, 1/r, 1/z, n. All factors beside dh are known before the loop. The gates are kept
in the order q r z n: q r z belong to the recurrent matrices, r z n to the input matrices, and both
are contiguous.
"""

from __future__ import annotations

from itertools import repeat

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
from cudnn_compat.engines.numpy.plan import DirectionReserve
from cudnn_compat.sequences import Sequences

__all__ = ["backward", "forward"]

_SIGMOIDS = (True, True, False)


def _biases(at: Direction, dtype: np.dtype) -> tuple[Array | None, Array]:
    """What is added to the input part ``(3H,)``, and b_R of n ``(H,)``."""
    bias_ih, bias_hh, hidden = at.get("bias_ih"), at.get("bias_hh"), at.hidden
    if bias_hh is None:
        return bias_ih, np.zeros(hidden, dtype)
    joined = bias_hh.copy()
    joined[2 * hidden :] = 0
    if bias_ih is not None:
        joined += bias_ih
    return joined, bias_hh[2 * hidden :]


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
    rows, hidden, reverse = len(entering), at.hidden, at.reverse
    signs = gate_signs(hidden, _SIGMOIDS, h.dtype)
    bias, bias_n = _biases(at, h.dtype)
    folded = folds(sequences)
    sums = np.empty((rows, 3 * hidden), h.dtype) if kept is None else kept.gates[:, hidden:]
    input_part(at, entering, bias, signs if folded else None, sums)
    recurrent, one = at.loop_matrix(signs if folded else None), np.ones((), h.dtype)
    dot, add, subtract, divide = np.dot, np.add, np.subtract, np.divide
    exp, tanh, negative = np.exp, np.tanh, np.negative
    for run in runs(sequences, reverse):
        state = h[: run.batch]
        scratch = np.empty((run.batch, 3 * hidden), h.dtype)
        scratch_rz, scratch_n = scratch[:, : 2 * hidden], scratch[:, 2 * hidden :]
        inner = np.empty_like(state)
        before, after, copies = outputs_of_steps(output, run, reverse, state)
        x_steps = steps_of(sums, run, reverse)
        if kept is None:
            parts = (scratch_rz, scratch[:, :hidden], scratch[:, hidden : 2 * hidden])
            rz_steps, r_steps, z_steps = (repeat(part) for part in parts)
            n_steps, q_steps = repeat(np.empty_like(state)), repeat(np.empty_like(state))
        else:
            rz_steps, n_steps = x_steps[..., : 2 * hidden], x_steps[..., 2 * hidden :]
            r_steps, z_steps = rz_steps[..., :hidden], rz_steps[..., hidden:]
            q_steps = steps_of(kept.gates[:, :hidden], run, reverse)
        h_t = state
        for x_rz, x_n, rz, r, z, n, q, h_prev, h_t, y_t in zip(  # noqa: B905 - `before` has one more
            x_steps[..., : 2 * hidden],
            x_steps[..., 2 * hidden :],
            rz_steps,
            r_steps,
            z_steps,
            n_steps,
            q_steps,
            before,
            after,
            copies or repeat(None),
        ):
            dot(h_prev, recurrent, scratch)
            add(scratch_n, bias_n, q)
            add(scratch_rz, x_rz, rz)
            if not folded:
                negative(rz, rz)
            exp(rz, rz)
            add(rz, one, rz)
            divide(q, r, inner)
            add(inner, x_n, inner)
            tanh(inner, n)
            subtract(h_prev, n, inner)
            divide(inner, z, inner)
            add(inner, n, h_t)
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
    hidden, back = at.hidden, not at.reverse
    _factors(kept, sequences.previous(output, h0, at.reverse))
    recurrent = np.roll(at.recurrent, hidden, axis=0)
    dot, add, multiply = np.dot, np.add, np.multiply
    for run in runs(sequences, back):
        dh_b = dh[: run.batch]
        dh_of_gates = dh_b[:, None, :]
        scratch = np.empty_like(dh_b)
        steps = steps_of(kept.gates, run, back)
        gates = steps.reshape(run.steps, run.batch, 4, hidden)
        dys = repeat(None) if dy is None else steps_of(dy, run, back)
        for da, da_recurrent, through, dy_t in zip(  # noqa: B905
            gates, steps[..., : 3 * hidden], steps_of(kept.outs, run, back), dys
        ):
            if dy_t is not None:
                add(dh_b, dy_t, dh_b)
            multiply(da, dh_of_gates, da)
            multiply(dh_b, through, scratch)
            dot(da_recurrent, recurrent, dh_b)
            add(dh_b, scratch, dh_b)


def _factors(kept: DirectionReserve, before: Array) -> None:
    """Replace what forward kept by the factors of dh (see the module's docstring)."""
    hidden, outs = before.shape[1], kept.outs
    assert outs is not None
    multiply, subtract = np.multiply, np.subtract
    for block, (u, v) in blocks(outs, 2):
        gates = kept.gates[block]
        q, r, z, n = (gates[:, k * hidden : (k + 1) * hidden] for k in range(4))
        for sigmoid in (r, z):
            np.reciprocal(sigmoid, out=sigmoid)
        outs[block] = z
        # of z: (h_prev - n) z(1 - z), and of n: (1 - z)(1 - n²)
        subtract(1, z, u)
        multiply(z, u, z)
        subtract(before[block], n, v)
        multiply(z, v, z)
        multiply(n, n, v)
        subtract(1, v, v)
        multiply(u, v, n)
        # of r: of n * q r(1 - r), and of q: of n * r
        subtract(1, r, u)
        multiply(u, r, u)
        multiply(u, q, u)
        multiply(n, r, q)
        multiply(u, n, r)
