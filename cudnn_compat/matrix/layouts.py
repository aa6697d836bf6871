"""Batches cut into sequences and joined again, row by row, for the slow reference.

Shares nothing with ``cudnn_compat.sequences``, which it checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from cudnn_compat.errors import ArgumentError

__all__ = ["join_rows", "lengths_from_batch_sizes", "split_rows"]

Array: TypeAlias = Any
"""A NumPy array."""


def lengths_from_batch_sizes(batch_sizes: Iterable[int], batch: int | None = None) -> list[int]:
    """Steps of each sequence, of how many sequences each step has (longest sequence first).

    Args:
        batch: B, where more sequences are known than the first step has: those are empty.
    """
    sizes = list(batch_sizes)
    first = sizes[0] if sizes else 0
    return [sum(size > j for size in sizes) for j in range(first if batch is None else batch)]


def split_rows(
    x: Array, lengths: Iterable[int] | None = None, layout: str = "time_major"
) -> list[Array]:
    """Each sequence of a batch by itself, ``(len_j, features)``, in float64.

    Args:
        x: ``(T, B, features)`` for ``"time_major"``, ``(B, T, features)`` for ``"batch_major"``,
            ``(sum, features)`` for ``"packed"``: step t's rows are those of the sequences longer
            than t, in the order of ``lengths``.
        lengths: steps of each sequence; None, in the padded layouts: all T.
    """
    x = np.asarray(x).astype(np.float64)
    if layout != "packed":
        by_sequence = x if layout == "batch_major" else x.swapaxes(0, 1)
        if lengths is None:
            return list(by_sequence)
        return [rows[:length] for rows, length in zip(by_sequence, lengths, strict=True)]
    if lengths is None:
        raise ArgumentError("layout='packed' needs lengths")
    split = [np.zeros((length, x.shape[1])) for length in lengths]
    rows = iter(x)
    for t in range(max(map(len, split), default=0)):
        for sequence in split:
            if len(sequence) > t:
                sequence[t] = next(rows)
    if sum(map(len, split)) != len(x):
        raise ArgumentError(f"packed x has {len(x)} rows; the lengths add up to another number")
    return split


def join_rows(
    sequences: Sequence[Array],
    layout: str = "time_major",
    *,
    steps: int | None = None,
    features: int = 0,
) -> Array:
    """The reverse of :func:`split_rows`; padding is zero.

    Args:
        steps: T of the padded layouts; None is the longest length.
        features: of a batch without sequences.
    """
    features = sequences[0].shape[1] if len(sequences) else features
    longest = max(map(len, sequences), default=0)
    if layout == "packed":
        rows = [s[t] for t in range(longest) for s in sequences if len(s) > t]
        return np.array(rows, np.float64).reshape(len(rows), features)
    padded = np.zeros((len(sequences), longest if steps is None else steps, features))
    for place, sequence in zip(padded, sequences, strict=True):
        place[: len(sequence)] = sequence
    return padded if layout == "batch_major" else padded.swapaxes(0, 1).copy()
