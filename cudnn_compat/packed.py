"""`Packed`: sequences without padding, and the way there and back."""

from __future__ import annotations

import dataclasses
from typing import Any

from cudnn_compat.arrays import Array, array_module, check_array, on_device_of
from cudnn_compat.checking import check_integer, check_name
from cudnn_compat.errors import ArgumentError, DTypeError
from cudnn_compat.sequences import make_sequences

__all__ = ["Packed", "pack", "unpack"]


@dataclasses.dataclass(frozen=True, eq=False)
class Packed:
    """Sequences without padding.

    Attributes:
        data: ``(sum, features)``; step t's block holds the rows of the sequences longer than t, in
            the order of ``lengths``.
        lengths: steps of each sequence, in any order, zeros allowed.
    """

    data: Array
    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        check_array("data", self.data)
        if self.data.ndim != 2:
            raise ArgumentError(f"data has shape {self.data.shape}; wanted (sum, features)")
        sequences = make_sequences("packed", self.data.shape, lengths=self.lengths)
        object.__setattr__(self, "lengths", sequences.lengths)

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Sequences longer than t, for each step t."""
        return make_sequences("packed", self.data.shape, lengths=self.lengths).batch_sizes


def pack(x: Array, lengths: Any, *, layout: str = "time_major") -> Packed:
    """Take the padding out of ``x``.

    Args:
        x: ``(T, B, features)``, or ``(B, T, features)`` with ``layout="batch_major"``.
        lengths: steps of each of the B sequences, in any order, zeros allowed.

    Returns:
        A :class:`Packed` with a new array of x's dtype.

    Raises:
        ArgumentError, DTypeError: wrong shapes, layout or lengths.
    """
    check_array("x", x)
    _check_padded_layout(layout)
    if x.ndim != 3:
        raise ArgumentError(f"x has shape {x.shape}; wanted three axes, {layout}")
    if lengths is None:
        raise DTypeError("lengths is None; wanted a sequence of integers")
    sequences = make_sequences(layout, x.shape, lengths=lengths)
    time_major = x if layout == "time_major" else x.swapaxes(0, 1)
    with on_device_of(x):
        rows = time_major[_alive(sequences.lengths, sequences.steps, x)]
    return Packed(rows, sequences.lengths)


def unpack(packed: Packed, *, steps: int | None = None, layout: str = "time_major") -> Array:
    """Padded form of ``packed``: ``(T, B, features)`` or ``(B, T, features)``, padding zero.

    Args:
        steps: T; None is the longest length.

    Raises:
        ArgumentError: ``steps`` is below the longest length, or the layout is not a padded one.
    """
    if not isinstance(packed, Packed):
        raise DTypeError(f"packed is a {type(packed).__name__}; wanted a Packed")
    _check_padded_layout(layout)
    longest = max(packed.lengths, default=0)
    if steps is None:
        steps = longest
    elif check_integer("steps", steps) < longest:
        raise ArgumentError(f"steps is {steps}; the longest sequence has {longest}")
    shape = (steps, len(packed.lengths), packed.data.shape[1])
    with on_device_of(packed.data):
        out = array_module(packed.data).zeros(shape, dtype=packed.data.dtype)
        out[_alive(packed.lengths, steps, packed.data)] = packed.data
        return out if layout == "time_major" else out.swapaxes(0, 1).copy()


def _check_padded_layout(layout: str) -> None:
    check_name("layout", layout, ("time_major", "batch_major"))


def _alive(lengths: tuple[int, ...], steps: int, like: Array) -> Array:
    """Mask ``(T, B)`` of what is not padding, on the current device, which is that of ``like``."""
    xp = array_module(like)
    return xp.arange(steps)[:, None] < xp.asarray(lengths, dtype="int64")[None, :]
