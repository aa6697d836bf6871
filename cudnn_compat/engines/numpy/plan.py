"""What a shape needs: the dtype to compute in, and how the flat reserve is divided."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec

__all__ = ["DirectionReserve", "LayerReserve", "NumpyPlan"]


@dataclasses.dataclass(slots=True)
class DirectionReserve:
    """What one direction of one layer keeps. N rows, H hidden, P projection size.

    Before backward data the arrays hold what forward computed, after it what the last column says.

    ============= =========== ============================== ===========================
    array         shape       after forward                  after backward data
    ============= =========== ============================== ===========================
    gates (lstm)  ``(N, 4H)`` 1/i 1/f g 1/o                  gradients of i f g o
    gates (gru)   ``(N, 4H)`` R h of n; 1/r 1/z n            gradients of it; of r z n
    gates (other) ``(N, H)``  nothing                        gradient of the pre-activation
    cells (lstm)  ``(N, H)``  c                              f (its factor in dc)
    outs (lstm)   ``(N, H)``  tanh(c)                        scratch
    outs (gru)    ``(N, H)``  nothing                        z (its factor in dh)
    hidden        ``(N, H)``  h before projection            the same
    projected     ``(N, P)``  nothing                        gradient of h after projection
    ============= =========== ============================== ===========================
    """

    gates: Array = None
    cells: Array | None = None
    outs: Array | None = None
    hidden: Array | None = None
    projected: Array | None = None


class Piece(NamedTuple):
    """One array ``(N, width)`` of the reserve; direction None: of the whole layer."""

    layer: int
    direction: int | None
    name: str
    width: int


@dataclasses.dataclass(slots=True)
class LayerReserve:
    """What one layer keeps: its output rows (None: they are y), and dropout's mask and result."""

    directions: list[DirectionReserve]
    output: Array | None = None
    mask: Array | None = None
    dropped: Array | None = None


@dataclasses.dataclass(frozen=True)
class NumpyPlan:
    """The plan of the NumPy engine; it holds no buffers."""

    spec: RNNSpec
    layout: str
    steps: int
    batch: int
    ragged: bool
    training: bool
    device: str = "cpu"
    algo: str = "numpy"
    settled: bool = True

    def current(self) -> NumpyPlan:
        """Itself."""
        return self

    @functools.cached_property
    def dtype(self) -> np.dtype:
        """The dtype computed in: float64 for float64, float32 for everything else."""
        return np.dtype("float64" if self.spec.dtype == "float64" else "float32")

    @functools.cached_property
    def native(self) -> bool:
        """Whether data is computed in its own dtype."""
        return self.spec.dtype == self.dtype.name

    @property
    def drops(self) -> bool:
        """Whether dropout acts: in training, between layers."""
        return self.training and self.spec.drops

    def writes_y(self, sequences: Sequences) -> bool:
        """Whether the last layer writes its rows straight into y."""
        return self.native and sequences.in_order

    def workspace_bytes(self, sequences: Sequences) -> int:
        """0: scratch comes from NumPy's allocator."""
        return 0

    def reserve_bytes(self, sequences: Sequences) -> int:
        """Bytes of the flat reserve; 0 in inference."""
        if not self.training:
            return 0
        widths = sum(piece.width for piece in self._pieces(sequences))
        return widths * sequences.total * self.dtype.itemsize

    def divide(self, sequences: Sequences, reserve: Array) -> list[LayerReserve]:
        """Views into the flat reserve (uint8), layer by layer."""
        flat, rows = reserve.view(self.dtype), sequences.total
        directions = range(self.spec.num_directions)
        layers = [
            LayerReserve([DirectionReserve() for _ in directions])
            for _ in range(self.spec.num_layers)
        ]
        start = 0
        for layer, direction, name, width in self._pieces(sequences):
            stop = start + rows * width
            owner = layers[layer] if direction is None else layers[layer].directions[direction]
            setattr(owner, name, flat[start:stop].reshape(rows, width))
            start = stop
        return layers

    def _pieces(self, sequences: Sequences) -> tuple[Piece, ...]:
        return _pieces(self.spec, self.drops, self.writes_y(sequences))


@functools.lru_cache(maxsize=256)
def _pieces(spec: RNNSpec, drops: bool, writes_y: bool) -> tuple[Piece, ...]:
    """The pieces of the reserve, in order."""
    hidden = spec.hidden_size
    widths = {"gates": (4 if spec.cell in ("lstm", "gru") else 1) * hidden}
    if spec.cell == "lstm":
        widths |= {"cells": hidden, "outs": hidden}
    elif spec.cell == "gru":
        widths |= {"outs": hidden}
    if spec.proj_size is not None:
        widths |= {"hidden": hidden, "projected": spec.proj_size}
    pieces = []
    for layer in range(spec.num_layers):
        for direction in range(spec.num_directions):
            pieces += [Piece(layer, direction, name, width) for name, width in widths.items()]
        last = layer == spec.num_layers - 1
        of_layer = [] if last and writes_y else ["output"]
        if drops and not last:
            of_layer += ["mask", "dropped"]
        pieces += [Piece(layer, None, name, spec.output_size) for name in of_layer]
    return tuple(pieces)
