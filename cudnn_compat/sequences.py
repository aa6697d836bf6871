"""Lengths and layouts: which row of x belongs to which step of which sequence.

Three layouts hold a batch of sequences: ``time_major`` ``(T, B, I)``, ``batch_major`` ``(B, T, I)``
and ``packed`` ``(sum, I)``, where step t's block holds the rows of the sequences longer than t, in
the caller's order of sequences.

Engines that compute in *sorted packed order* (sequences by length, longest first, step after step,
and in step t only the sequences longer than t) find the way there and back here. With equal
lengths, time-major and packed x are in that order already and nothing is copied.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from cudnn_compat.arrays import Array, array_module, is_cupy
from cudnn_compat.checking import check_integer
from cudnn_compat.errors import ArgumentError, DTypeError

__all__ = ["LAYOUTS", "Run", "Sequences", "make_sequences"]

LAYOUTS: Final = ("time_major", "batch_major", "packed")


class Run(NamedTuple):
    """Consecutive steps with the same number of sequences, in sorted packed order."""

    start: int
    """Row at which the run starts."""
    steps: int
    batch: int

    @property
    def stop(self) -> int:
        """Row behind the run."""
        return self.start + self.steps * self.batch


@dataclasses.dataclass(frozen=True, eq=False)
class Sequences:
    """The geometry of one batch of sequences.

    Attributes:
        layout: the layout of the caller's x and y.
        steps: T, the padded number of steps (packed: the longest length).
        batch: B.
        lengths: steps of each sequence, in the caller's order.
        ragged: whether some sequence is shorter than ``steps``.
    """

    layout: str
    steps: int
    batch: int
    lengths: tuple[int, ...]
    ragged: bool

    @functools.cached_property
    def total(self) -> int:
        """N: rows that are not padding."""
        return sum(self.lengths) if self.ragged else self.steps * self.batch

    @functools.cached_property
    def batch_sizes(self) -> tuple[int, ...]:
        """Sequences longer than t, for each step t up to the longest length."""
        if not self.ragged:
            return (self.batch,) * self.steps
        ends = np.bincount(self.lengths, minlength=1)
        return tuple((self.batch - np.cumsum(ends))[:-1].tolist())

    @functools.cached_property
    def runs(self) -> tuple[Run, ...]:
        """The steps in runs of equal batch size, first step first; none is empty."""
        runs, start = [], 0
        for batch, group in itertools.groupby(self.batch_sizes):
            run = Run(start, len(list(group)), batch)
            start = run.stop
            if run.stop > run.start:
                runs.append(run)
        return tuple(runs)

    @functools.cached_property
    def order(self) -> np.ndarray | None:
        """Sequence k in sorted order is the caller's ``order[k]``; None where nothing moves."""
        if not self.ragged:
            return None
        lengths = np.asarray(self.lengths)
        if np.all(lengths[:-1] >= lengths[1:]):
            return None
        return np.argsort(-lengths, kind="stable")

    @property
    def in_order(self) -> bool:
        """Whether the caller's rows are in sorted packed order already."""
        if self.layout == "packed":
            return self.order is None
        return self.layout == "time_major" and not self.ragged

    @functools.cached_property
    def rows(self) -> np.ndarray:
        """Row i in sorted packed order is row ``rows[i]`` of the caller's (flattened) x."""
        steps = len(self.batch_sizes)
        alive = np.arange(steps)[:, None] < np.asarray(self.lengths, dtype=np.int64)
        if self.layout == "packed":
            place = np.cumsum(alive).reshape(alive.shape) - 1
        elif self.layout == "time_major":
            place = np.arange(steps * self.batch).reshape(steps, self.batch)
        else:
            place = np.arange(steps)[:, None] + self.steps * np.arange(self.batch)
        if self.order is not None:
            alive, place = alive[:, self.order], place[:, self.order]
        return place[alive]

    def gather(self, x: Array, dtype: Any) -> Array:
        """The rows of x ``(N, features)`` in sorted packed order; x itself where it is that."""
        features, xp = x.shape[-1], array_module(x)
        if self.in_order:
            return xp.ascontiguousarray(x, dtype=dtype).reshape(self.total, features)
        if not self.ragged:
            moved = x.swapaxes(0, 1) if self.layout == "batch_major" else x
            return xp.ascontiguousarray(moved, dtype=dtype).reshape(self.total, features)
        flat = xp.ascontiguousarray(x).reshape(-1, features)
        return flat[xp.asarray(self.rows)].astype(dtype, copy=False)

    def scatter(self, rows: Array, y: Array) -> None:
        """Write rows in sorted packed order to ``y`` in the caller's layout; padding becomes 0."""
        features = rows.shape[-1]
        if self.in_order:
            y.reshape(self.total, features)[...] = rows
        elif not self.ragged:
            y.swapaxes(0, 1)[...] = rows.reshape(self.steps, self.batch, features)
        else:
            if self.layout != "packed":
                y[...] = 0
            y.reshape(-1, features)[array_module(y).asarray(self.rows)] = rows

    def sort_states(self, states: Array) -> Array:
        """States ``(L·D, B, features)`` in sorted order; the same array where nothing moves."""
        if self.order is None:
            return states
        return states[:, array_module(states).asarray(self.order)]

    def unsort_states(self, sorted_states: Array, out: Array) -> None:
        """Write states in sorted order to ``out`` in the caller's order."""
        if self.order is None:
            out[...] = sorted_states
        else:
            out[:, array_module(out).asarray(self.order)] = sorted_states

    @functools.cached_property
    def _previous_rows(self) -> tuple[np.ndarray, np.ndarray]:
        sizes = np.asarray(self.batch_sizes, dtype=np.int64)
        step = np.repeat(np.arange(len(sizes)), sizes)
        starts = np.cumsum(sizes) - sizes
        sequence = np.arange(self.total) - starts[step]
        initial = self.total + sequence
        forward = np.where(step == 0, initial, starts[step - 1] + sequence)
        after = np.minimum(step + 1, len(sizes) - 1)
        goes_on = (step + 1 < len(sizes)) & (sizes[after] > sequence)
        reverse = np.where(goes_on, starts[after] + sequence, initial)
        return forward, reverse

    def previous(self, values: Array, initial: Array, reverse: bool) -> Array:
        """For each row the value one step earlier in the direction's own order.

        Args:
            values: ``(N, features)`` in sorted packed order.
            initial: ``(B, features)``, what stands before the first step.
            reverse: whether the direction runs from the last step to the first.

        Returns:
            A new array ``(N, features)``.
        """
        out = np.empty(values.shape, values.dtype)
        if self.ragged:
            rows = self._previous_rows[reverse]
            return np.take(np.concatenate((values, initial)), rows, axis=0, out=out)
        if self.total:
            if reverse:
                out[: -self.batch], out[-self.batch :] = values[self.batch :], initial
            else:
                out[self.batch :], out[: self.batch] = values[: -self.batch], initial
        return out


@functools.lru_cache(maxsize=1024)
def _equal(layout: str, steps: int, batch: int) -> Sequences:
    return Sequences(layout, steps, batch, (steps,) * batch, ragged=False)


def make_sequences(
    layout: str,
    shape: tuple[int, ...],
    *,
    lengths: Any = None,
    batch_sizes: Any = None,
    batch: int | None = None,
) -> Sequences:
    """The geometry of an x of ``shape`` in ``layout``.

    Args:
        shape: ``(T, B, I)``, ``(B, T, I)`` or ``(sum, I)``.
        lengths: steps of each sequence: any sequence of integers or integer array, in any order,
            zeros allowed.
        batch_sizes: packed layout only: sequences that have step t, for each t; non-increasing.
        batch: B where a state tells it (packed layout with ``batch_sizes``: sequences that never
            occur are empty).

    Raises:
        ArgumentError: a length is negative or above T (index, value and T are named), counts do
            not agree, or ``batch_sizes`` came with a padded layout.
        DTypeError: lengths are not integers.
    """
    if layout != "packed":
        if batch_sizes is not None:
            raise ArgumentError(
                f"batch_sizes is for layout='packed'; layout='{layout}' takes lengths"
            )
        steps, batch = shape[:2] if layout == "time_major" else shape[1::-1]
        if lengths is None:
            return _equal(layout, steps, batch)
        known = _integers("lengths", lengths)
        _check_count(known, batch)
        _check_range(known, steps)
        return _of_lengths(layout, steps, known)
    if (lengths is None) == (batch_sizes is None):
        raise ArgumentError(
            "layout='packed' needs exactly one of lengths and batch_sizes; got "
            + ("neither" if lengths is None else "both")
        )
    if batch_sizes is not None:
        sizes = _integers("batch_sizes", batch_sizes)
        _check_batch_sizes(sizes)
        _check_total("batch_sizes", sizes, shape[0])
        known = _lengths_of(sizes, batch)
    else:
        known = _integers("lengths", lengths)
        _check_range(known, None)
        if batch is not None:
            _check_count(known, batch)
        _check_total("lengths", known, shape[0])
    return _of_lengths("packed", max(known, default=0), known)


def _of_lengths(layout: str, steps: int, lengths: tuple[int, ...]) -> Sequences:
    if lengths.count(steps) == len(lengths):
        return _equal(layout, steps, len(lengths))
    return Sequences(layout, steps, len(lengths), lengths, ragged=True)


def _integers(name: str, values: Any) -> tuple[int, ...]:
    """A tuple of Python integers from a list, tuple or integer array of any library."""
    if is_cupy(values):
        values = values.get()
    if hasattr(values, "dtype") and not isinstance(values, np.ma.MaskedArray):
        array = np.asarray(values)
        if array.dtype.kind not in "iu":
            raise DTypeError(f"{name} has dtype {array.dtype}; wanted integers")
        if array.ndim != 1:
            raise ArgumentError(f"{name} has shape {array.shape}; wanted one axis")
        return tuple(array.tolist())
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise DTypeError(f"{name} is {values!r}; wanted a sequence or array of integers")
    return tuple(
        check_integer(f"{name}[{index}]", value, -math.inf, math.inf)
        for index, value in enumerate(values)
    )


def _check_count(lengths: tuple[int, ...], batch: int) -> None:
    if len(lengths) != batch:
        raise ArgumentError(f"lengths has {len(lengths)} entries; the batch has {batch} sequences")


def _check_total(name: str, counts: tuple[int, ...], rows: int) -> None:
    if sum(counts) != rows:
        raise ArgumentError(f"packed x has {rows} rows, but {name} add up to {sum(counts)}")


def _check_range(lengths: tuple[int, ...], steps: int | None) -> None:
    if lengths and (min(lengths) < 0 or (steps is not None and max(lengths) > steps)):
        for index, value in enumerate(lengths):
            if value < 0 or (steps is not None and value > steps):
                top = "" if steps is None else f" to T={steps}"
                raise ArgumentError(f"lengths[{index}] is {value}; wanted 0{top or ' or more'}")


def _check_batch_sizes(batch_sizes: tuple[int, ...]) -> None:
    for index, value in enumerate(batch_sizes):
        if value < 0 or (index and value > batch_sizes[index - 1]):
            raise ArgumentError(
                f"batch_sizes[{index}] is {value}; wanted non-increasing sizes of 0 or more "
                "(longest sequence first)"
            )


def _lengths_of(batch_sizes: tuple[int, ...], batch: int | None) -> tuple[int, ...]:
    first = batch_sizes[0] if batch_sizes else 0
    if batch is None:
        batch = first
    elif first > batch:
        raise ArgumentError(f"batch_sizes[0] is {first}, but the states have a batch of {batch}")
    sizes = np.asarray(batch_sizes, dtype=np.int64)
    return tuple(np.count_nonzero(sizes[:, None] > np.arange(batch), axis=0).tolist())
