"""The matrix products around the step loops: input part, input gradient, weight gradients."""

from __future__ import annotations

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.engines.numpy.cells.common import Direction
from cudnn_compat.engines.numpy.plan import DirectionReserve

__all__ = ["input_gradient", "input_part", "weight_gradients"]


def input_part(
    at: Direction, entering: Array, bias: Array | None, signs: Array | None, out: Array
) -> None:
    """``out = signs * (x Wᵀ + bias)`` for all rows at once: ``(N, in)`` to ``(N, G·H)``.

    In skip mode x itself is added to every gate.
    """
    matrix = at.get("weight_ih")
    if matrix is None:
        # Along the last axis, so that it stays a view where ``out`` has wider rows.
        for gate in range(at.spec.num_gates):
            out[:, gate * at.hidden : (gate + 1) * at.hidden] = entering
        late = signs
    elif signs is not None and len(entering) >= matrix.shape[1]:
        np.matmul(entering, (matrix * signs[:, None]).T, out=out)
        late = None
    else:
        np.matmul(entering, matrix.T, out=out)
        late = signs
    if late is not None:
        np.multiply(out, late, out=out)
    if bias is not None:
        np.add(out, bias if signs is None else bias * signs, out=out)


def _input_side(at: Direction, kept: DirectionReserve) -> Array:
    """Gradients of the gates as the input matrices and biases see them: ``(N, G·H)``."""
    return kept.gates[:, at.hidden :] if at.spec.cell == "gru" else kept.gates


def input_gradient(at: Direction, kept: DirectionReserve, out: Array, *, add: bool) -> None:
    """Put the gradient of the rows that entered ``(N, in)`` into ``out``, or add it."""
    gates = _input_side(at, kept)
    matrix = at.get("weight_ih")
    if matrix is None:
        parts = [
            gates[:, gate * at.hidden : (gate + 1) * at.hidden] for gate in range(at.spec.num_gates)
        ]
        result = sum(parts[1:], parts[0])
    elif not add:
        np.matmul(gates, matrix, out=out)
        return
    else:
        result = gates @ matrix
    if add:
        out += result
    else:
        out[...] = result


def weight_gradients(at: Direction, kept: DirectionReserve, entering: Array, before: Array) -> None:
    """Add the gradients of this direction's weights into ``at.w`` (here the flat dw).

    Args:
        entering: rows that entered the layer, ``(N, in)``.
        before: h of the step before, ``(N, P)``.
    """
    spec, hidden = at.spec, at.hidden
    ones = np.ones(len(entering), kept.gates.dtype)
    gates = _input_side(at, kept)
    dw_ih, db_ih = at.get("weight_ih"), at.get("bias_ih")
    dw_hh, db_hh = at.recurrent, at.get("bias_hh")
    if dw_ih is not None:
        dw_ih += gates.T @ entering
    sums = None
    if db_ih is not None:
        sums = ones @ gates
        db_ih += sums
    if spec.cell == "gru":
        # The recurrent side of n is kept in front: its order is n r z.
        gates, sums = kept.gates[:, : 3 * hidden], None
        product = gates.T @ before
        dw_hh[: 2 * hidden] += product[hidden:]
        dw_hh[2 * hidden :] += product[:hidden]
    else:
        dw_hh += gates.T @ before
    if db_hh is not None:
        sums = ones @ gates if sums is None else sums
        db_hh += np.roll(sums, -hidden) if spec.cell == "gru" else sums
    dw_hr = at.get("weight_hr")
    if dw_hr is not None:
        assert kept.projected is not None and kept.hidden is not None
        dw_hr += kept.projected.T @ kept.hidden
