"""Arrays as the library takes them, and the way back.

The library wants contiguous arrays, and numbers must not depend on where an array begins, so views
with other strides and addresses that are not aligned go through copies. Packed batches go to it by
length, longest first and without empty sequences; in the padded layouts it takes any order, and
only the states of empty sequences, which it gets wrong, are put right.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cudnn_compat.arrays import Array, array_module, splits_elements
from cudnn_compat.checking import INT_MAX
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.sequences import Sequences

__all__ = [
    "ALIGNMENT",
    "Moves",
    "hand_on",
    "input_array",
    "moves_of",
    "output_array",
    "put_back",
    "whole_elements",
]

ALIGNMENT = 16
"""Bytes: the widest load of a GPU. Every allocation of CuPy begins at a multiple of 512."""


@dataclasses.dataclass(frozen=True, eq=False)
class Moves:
    """What stands elsewhere in the library's batch; index arrays on the device.

    Attributes:
        rows: packed layout: row i of the library is the caller's ``rows[i]``; None: the same.
        kept: packed layout: sequence k of the library is the caller's ``kept[k]``; None: the same.
        empty: sequences without steps, whose states are handed on; None: there are none.
    """

    rows: Array | None = None
    kept: Array | None = None
    empty: Array | None = None

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(a.nbytes for a in (self.rows, self.kept, self.empty) if a is not None)

    def data(self, x: Array) -> Array:
        """x, or y, in the library's order."""
        return input_array(x) if self.rows is None else whole_elements(x).take(self.rows, axis=0)

    def data_target(self, y: Array) -> Array:
        """Memory for what the library writes in place of y."""
        return output_array(y) if self.rows is None else _like(y, y.shape)

    def data_back(self, written: Array, y: Array) -> None:
        """Bring what was written to y."""
        if self.rows is None:
            put_back(written, y)
        else:
            y[self.rows] = written

    def state(self, h: Array | None) -> Array | None:
        """States in the library's order."""
        if h is None:
            return None
        return input_array(h) if self.kept is None else whole_elements(h).take(self.kept, axis=1)

    def state_target(self, h: Array | None) -> Array | None:
        """Memory for states that the library writes."""
        if h is None:
            return None
        if self.kept is None:
            return output_array(h)
        return _like(h, (h.shape[0], self.kept.size, h.shape[2]))

    def state_back(self, written: Array | None, h: Array | None, before: Array | None) -> None:
        """Bring written states to ``h``; empty sequences hand on ``before`` (None: zeros)."""
        if h is None:
            return
        if self.kept is None:
            put_back(written, h)
        else:
            h[:, self.kept] = written
        if self.empty is not None:
            before = whole_elements(before)
            h[:, self.empty] = 0 if before is None else before.take(self.empty, axis=1)


_NOTHING = Moves()


def moves_of(session: Session, sequences: Sequences) -> Moves:
    """The moves between the caller's order and the library's."""
    if not sequences.ragged:
        return _NOTHING
    lengths = np.asarray(sequences.lengths)
    empty = np.flatnonzero(lengths == 0)
    rows = kept = None
    if sequences.layout == "packed" and (sequences.order is not None or empty.size):
        order = np.arange(sequences.batch) if sequences.order is None else sequences.order
        kept = session.sent(order[: sequences.batch - empty.size])
        if sequences.order is not None:
            index = "int32" if sequences.total <= INT_MAX else "int64"
            rows = session.sent(sequences.rows.astype(index, copy=False))
    return Moves(rows, kept, session.sent(empty) if empty.size else None)


def input_array(array: Array) -> Array:
    """The array itself where the library can read it, else a copy."""
    if array.flags.c_contiguous and array.data.ptr % ALIGNMENT == 0:
        return array
    return _copied(array)


def output_array(array: Array) -> Array:
    """The array itself where the library can write to it, else memory of its shape."""
    if array.flags.c_contiguous and array.data.ptr % ALIGNMENT == 0:
        return array
    return _like(array, array.shape)


def put_back(written: Array, array: Array) -> None:
    """Copy what was written in place of ``array`` to it, if it was in its place."""
    if written is array:
        return
    if splits_elements(array):
        _as_bytes(array)[...] = _as_bytes(written)
    else:
        array[...] = written


def whole_elements(array: Array | None) -> Any:
    """The array itself where CuPy can read it, else a copy: GPUs read whole elements only."""
    return _copied(array) if array is not None and splits_elements(array) else array


def _copied(array: Array) -> Array:
    if not splits_elements(array):
        return array.copy(order="C")
    out = _like(array, array.shape)
    _as_bytes(out)[...] = _as_bytes(array)
    return out


def _as_bytes(array: Array) -> Array:
    """The same memory with an axis more, of the bytes of each element."""
    return array_module(array).ndarray(
        (*array.shape, array.itemsize), "uint8", array.data, (*array.strides, 1)
    )


def hand_on(before: Array | None, after: Array | None) -> None:
    """States of sequences without a step: those after are those before (None: zeros)."""
    if after is not None:
        after[...] = 0 if before is None else whole_elements(before)


def _like(array: Array, shape: tuple[int, ...]) -> Array:
    return array_module(array).empty(shape, array.dtype)
