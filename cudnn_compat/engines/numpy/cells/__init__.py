"""One direction of one layer: the step loops of each cell, and the products around them.

Every cell module has ``forward`` and ``backward`` with the same parameters:

* ``steps``: which rows belong to which step (:class:`~.common.Steps`),
* ``gates``/``kept``: what forward works on and what it keeps for backward,
* h, c, dh, dc: states ``(B, features)`` that are updated in place. Sequences that are shorter (or
  empty) are simply not touched in a step, so a state is handed on as it is.
"""

from __future__ import annotations

from types import ModuleType

from cudnn_compat.arrays import Array
from cudnn_compat.engines.numpy.cells import gru, lstm, plain
from cudnn_compat.engines.numpy.cells.common import Direction
from cudnn_compat.engines.numpy.cells.linear import input_gradient, weight_gradients
from cudnn_compat.engines.numpy.plan import DirectionReserve
from cudnn_compat.sequences import Sequences

__all__ = ["Direction", "backward", "forward", "input_gradient", "weight_gradients"]

_MODULES: dict[str, ModuleType] = {"relu": plain, "tanh": plain, "lstm": lstm, "gru": gru}


def forward(
    at: Direction,
    sequences: Sequences,
    entering: Array,
    h: Array,
    c: Array | None,
    output: Array,
    kept: DirectionReserve | None,
) -> None:
    """Fill ``output`` ``(N, P)`` from ``entering`` ``(N, in)``; h and c become the final states."""
    _MODULES[at.spec.cell].forward(at, sequences, entering, h, c, output, kept)


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
    """Turn ``kept.gates`` into their gradients; dh and dc become those of the initial states."""
    _MODULES[at.spec.cell].backward(at, sequences, dy, output, h0, c0, dh, dc, kept)
