"""Where the rows of a batch lie on the device, and the order without padding.

Batches of equal lengths are computed where they are: a row's place follows from two strides. Ragged
ones are brought into an order of sequence after sequence without padding, so that no product sees
padding, whatever it holds; lengths stay on the device, and the host waits for nothing.
"""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.engines.cudnn.fused import kernels
from cudnn_compat.sequences import LAYOUTS, Sequences

if TYPE_CHECKING:
    from cudnn_compat.engines.cudnn.fused.call import Call

__all__ = ["Rows"]

_STEPS_PER_BLOCK = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one batch, for one device; on the stream that it was made on.

    Attributes:
        total: N, rows that are not padding.
        batch_stride, step_stride: from sequence to sequence and from step to step, in rows.
        lengths, starts: int32 ``(B,)`` on the device: steps of each sequence, and the row of its
            first one; None where all have the same.
    """

    sequences: Sequences
    total: int
    batch_stride: int
    step_stride: int
    lengths: Array | None = None
    starts: Array | None = None

    @classmethod
    def of(cls, xp: ModuleType, sequences: Sequences) -> Rows:
        """The rows of a batch; ragged ones send their lengths to the device."""
        total = sequences.total
        if sequences.ragged:
            lengths = np.asarray(sequences.lengths, "int64")
            both = xp.asarray(np.stack((lengths, np.cumsum(lengths) - lengths)).astype("int32"))
            return cls(sequences, total, 0, 1, both[0], both[1])
        if sequences.layout == "batch_major":
            return cls(sequences, total, sequences.steps, 1)
        return cls(sequences, total, 1, sequences.batch)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return 0 if self.lengths is None else 2 * self.lengths.nbytes

    def compact(self, call: Call, x: Array) -> Array:
        """x of the caller as ``(N, features)``; x itself where it has no padding."""
        features = x.shape[-1]
        if self.lengths is None:
            return x.reshape(self.total, features)
        out = call.xp.empty((self.total, features), x.dtype)
        self._move(call, "gather", x, out)
        return out

    def spread(self, call: Call, compact: Array, y: Array) -> None:
        """Write ``(N, features)`` to y in the caller's layout; padding becomes 0."""
        self._move(call, "scatter", compact, y)

    def _move(self, call: Call, name: str, from_: Array, to: Array) -> None:
        sequences = self.sequences
        kernel = kernels.helpers(call.xp, call.device, name, call.spec.cell, call.spec.dtype)
        kernel(
            (-(-sequences.steps // _STEPS_PER_BLOCK), sequences.batch),
            (32, _STEPS_PER_BLOCK),
            (
                *(from_, to, self.lengths, self.starts),
                np.int32(LAYOUTS.index(sequences.layout)),
                *(np.int32(n) for n in (sequences.steps, sequences.batch, from_.shape[-1])),
            ),
        )
