"""What a shape needs: the dtype to compute in, and how the flat reserve is divided."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec

__all__ = ["DirectionReserve", "LayerReserve", "NumpyPlan"]


@dataclasses.dataclass
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

    gates: Array
    cells: Array | None = None
    outs: Array | None = None
    hidden: Array | None = None
    projected: Array | None = None


@dataclasses.dataclass
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
    algo: str = "numpy"

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
        size = sum(math.prod(shape) for _, _, _, shape in self._pieces(sequences))
        return size * self.dtype.itemsize

    def divide(self, sequences: Sequences, reserve: Array) -> list[LayerReserve]:
        """Views into the flat reserve (uint8), layer by layer."""
        flat = reserve.view(self.dtype)
        layers: list[LayerReserve] = []
        offset = 0
        for layer, direction, name, shape in self._pieces(sequences):
            size = math.prod(shape)
            view = flat[offset : offset + size].reshape(shape)
            offset += size
            if layer == len(layers):
                layers.append(LayerReserve([]))
            if direction is None:
                setattr(layers[layer], name, view)
            elif name == "gates":
                layers[layer].directions.append(DirectionReserve(view))
            else:
                setattr(layers[layer].directions[direction], name, view)
        return layers

    def _pieces(self, sequences: Sequences) -> list[tuple[int, int | None, str, tuple[int, int]]]:
        """(layer, direction or None, name, shape) of every piece of the reserve, in order."""
        spec, rows = self.spec, sequences.total
        hidden = spec.hidden_size
        names = {"gates": (4 if spec.cell in ("lstm", "gru") else 1) * hidden}
        if spec.cell == "lstm":
            names |= {"cells": hidden, "outs": hidden}
        elif spec.cell == "gru":
            names |= {"outs": hidden}
        if spec.proj_size is not None:
            names |= {"hidden": hidden, "projected": spec.proj_size}
        pieces: list[tuple[int, int | None, str, tuple[int, int]]] = []
        for layer in range(spec.num_layers):
            for direction in range(spec.num_directions):
                pieces += [(layer, direction, n, (rows, width)) for n, width in names.items()]
            last = layer == spec.num_layers - 1
            of_layer = [] if last and self.writes_y(sequences) else ["output"]
            if self.drops and not last:
                of_layer += ["mask", "dropped"]
            pieces += [(layer, None, n, (rows, spec.output_size)) for n in of_layer]
        return pieces
