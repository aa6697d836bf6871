"""What forward and backward share: where a call runs, on which rows, and its kernels' arguments."""

from __future__ import annotations

import dataclasses
import functools
from types import ModuleType
from typing import Any

import numpy as np

from cudnn_compat.arrays import Array, numpy_dtype
from cudnn_compat.engines.cudnn.fused import kernels
from cudnn_compat.engines.cudnn.fused.blocks import Blocks
from cudnn_compat.engines.cudnn.fused.products import Products
from cudnn_compat.engines.cudnn.fused.rows import Rows
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import PseudoLayer, Slot, weight_layout

__all__ = ["Call", "address"]


def address(array: Array | None) -> int:
    """Where an array begins; 0 of None."""
    return 0 if array is None else array.data.ptr


@functools.cache
def _opaque(size: int) -> np.dtype:
    return np.dtype(f"V{size}")


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """One call of a network on a batch, on the current device and stream.

    Attributes:
        xp: the module ``cupy``.
        device: N of ``cuda:N``.
        rows: the batch.
        blas: address and bytes of scratch for products; an address of 0 leaves it to cuBLAS.
    """

    xp: ModuleType
    device: int
    spec: RNNSpec
    rows: Rows
    blas: tuple[int, int] = (0, 0)

    @property
    def itemsize(self) -> int:
        """Bytes of an element of the spec's dtype."""
        return numpy_dtype(self.spec.dtype).itemsize

    @property
    def width(self) -> int:
        """D·H, features of a layer's output."""
        return self.spec.num_directions * self.spec.hidden_size

    def state(self, layer: int) -> int:
        """Bytes from the beginning of a states array to a layer."""
        sequences, width = self.rows.sequences, self.width
        return layer * sequences.batch * width * self.itemsize

    def layer(self, layer: int) -> tuple[PseudoLayer, ...]:
        """The weights of each direction of a layer."""
        directions = self.spec.num_directions
        return weight_layout(self.spec).pseudo_layers[layer * directions :][:directions]

    def in_weights(self, w: Array, slot: Slot | None) -> int:
        """The address of a piece of w; 0 where the network has none."""
        return 0 if slot is None else w.data.ptr + slot.offset * self.itemsize

    def products(self) -> Products:
        """Products with the precision that the spec asks for."""
        return Products(self.xp, quick=self.spec.math != "full", workspace=self.blas)

    def floats(self, *shape: int) -> Array:
        """Uninitialised float32 memory."""
        return self.xp.empty(shape, "float32")

    def arguments(self, struct: np.dtype, gate_row: int) -> Any:
        """The arguments of a kernel that are the same for every layer."""
        rows, args = self.rows, np.zeros((), struct)
        args["batch"], args["steps"] = rows.sequences.batch, rows.sequences.steps
        args["batch_stride"], args["step_stride"] = rows.batch_stride, rows.step_stride
        args["lengths"], args["starts"] = address(rows.lengths), address(rows.starts)
        args["gate_row"] = gate_row
        args["next_gates"] = rows.total * gate_row
        args["next_rows"] = rows.total * self.spec.hidden_size
        if self.spec.clip is not None:
            args["clips"] = 1
            args["low"], args["high"] = self.spec.clip
        return args

    def put_matrices(self, args: Any, w: Array, layer: int) -> None:
        """Say where a layer's recurrent weights are."""
        first, last = self.layer(layer)[0], self.layer(layer)[-1]
        args["R"] = self.in_weights(w, first.weight_hh)
        args["next_matrix"] = last.weight_hh.offset - first.weight_hh.offset

    def launch(self, file: str, cut: Blocks, args: Any, *, training: bool) -> None:
        """Run a recurrence for one layer."""
        spec, batch = self.spec, self.rows.sequences.batch
        kernel = kernels.recurrence(
            self.xp,
            self.device,
            file,
            spec.cell,
            spec.dtype,
            spec.hidden_size,
            cut,
            training=training,
        )
        groups = -(-batch // cut.sequences)
        # Without fields: CuPy asks for the description of a structure at every launch.
        kernel(
            (groups * cut.blocks, spec.num_directions),
            (cut.threads,),
            (args.view(_opaque(args.itemsize)),),
            shared_mem=cut.room,
        )
