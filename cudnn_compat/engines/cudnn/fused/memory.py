"""What training keeps, in one flat reserve of bytes.

For each layer and direction: the gates ``(N, places, H)``, which backward turns into their
gradients; h one step earlier ``(N, H)``; with LSTM c ``(N, H)``; all float32. For each layer but
the last its output ``(N, D·H)`` in the spec's dtype.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

from cudnn_compat.spec import RNNSpec

__all__ = ["Kept", "Piece", "kept", "places"]

_ALIGNMENT = 256


class Piece(NamedTuple):
    """A part of the reserve: where it begins, in bytes, and its length."""

    offset: int
    nbytes: int


class Kept(NamedTuple):
    """The pieces of every layer, and the bytes of all.

    ``gates``, ``before`` and ``cells`` have one direction after the other.
    """

    gates: tuple[Piece, ...]
    before: tuple[Piece, ...]
    cells: tuple[Piece, ...]
    outputs: tuple[Piece, ...]
    nbytes: int


def places(spec: RNNSpec, *, training: bool) -> int:
    """Values of one unit in a row of gates: in training a GRU keeps one more."""
    return 4 if training and spec.cell == "gru" else spec.num_gates


@functools.lru_cache(maxsize=256)
def kept(spec: RNNSpec, rows: int) -> Kept:
    """The reserve of a batch of so many rows."""
    directions, hidden, layers = spec.num_directions, spec.hidden_size, spec.num_layers
    state = 4 * directions * rows * hidden
    itemsize = 4 if spec.dtype == "float32" else 2
    offset = 0

    def take(sizes: list[int]) -> Iterator[Piece]:
        nonlocal offset
        for size in sizes:
            yield Piece(offset, size)
            offset += -(-size // _ALIGNMENT) * _ALIGNMENT

    gates = tuple(take([state * places(spec, training=True)] * layers))
    before = tuple(take([state] * layers))
    cells = tuple(take([state] * layers if spec.has_cell else []))
    outputs = tuple(take([itemsize * directions * rows * hidden] * (layers - 1)))
    return Kept(gates, before, cells, outputs, offset)
