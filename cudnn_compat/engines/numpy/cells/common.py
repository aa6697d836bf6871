"""What the step loops of all cells share."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from itertools import chain, repeat

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.sequences import Run, Sequences
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import PseudoLayer

__all__ = ["Direction", "blocks", "folds", "gate_signs", "outputs_of_steps", "runs", "steps_of"]

_FOLD_STEPS = 8
"""From this many steps on, signs are changed in a copy of the weights, not in each step."""

_BLOCK_ELEMENTS = 1 << 14
"""Elements of one gate that are worked on at a time, so that they stay in the cache."""


@dataclasses.dataclass(frozen=True)
class Direction:
    """One direction of one layer: its weights in the flat array ``w`` of the compute dtype."""

    spec: RNNSpec
    part: PseudoLayer
    w: Array
    reverse: bool

    @property
    def hidden(self) -> int:
        """H."""
        return self.spec.hidden_size

    def get(self, name: str) -> Array | None:
        """The stacked matrix or bias of that name, a view; None where the network has none."""
        slot = getattr(self.part, name)
        return None if slot is None else slot.view(self.w)

    @property
    def recurrent(self) -> Array:
        """``weight_hh``, ``(G·H, P)``."""
        return self.part.weight_hh.view(self.w)

    def loop_matrix(self, signs: Array | None) -> Array:
        """``weight_hh`` as a step loop multiplies by it: ``(P, G·H)``.

        With ``signs`` it is a contiguous copy with its columns' signs changed, worth its cost over
        many steps; else a view.
        """
        matrix = self.recurrent.T
        if signs is None:
            return matrix
        return np.multiply(matrix, signs, order="C")


def folds(sequences: Sequences) -> bool:
    """Whether signs are applied to the weights once instead of to the gates in each step."""
    return sequences.steps >= _FOLD_STEPS


@functools.lru_cache(maxsize=64)
def gate_signs(hidden: int, sigmoids: tuple[bool, ...], dtype: np.dtype) -> Array:
    """Per gate element -1 for sigmoid gates, 1 for the others; shape ``(G·H,)``.

    The loops work with ``1 + exp(-a)``, the reciprocal of the sigmoid: dividing by it is the
    product with the sigmoid, rounded once. A sign changes no bit of a sum, so it may be applied
    to the weights instead.
    """
    signs = np.repeat(np.where(sigmoids, -1.0, 1.0), hidden).astype(dtype)
    signs.flags.writeable = False
    return signs


def runs(sequences: Sequences, reverse: bool) -> Iterator[Run]:
    """The runs in the order in which a loop visits them."""
    return reversed(sequences.runs) if reverse else iter(sequences.runs)


def steps_of(values: Array, run: Run, reverse: bool) -> Array:
    """A view ``(steps, batch, features)`` of the rows of a run, in the order of a loop."""
    view = values[run.start : run.stop].reshape(run.steps, run.batch, values.shape[1])
    return view[::-1] if reverse else view


def outputs_of_steps(
    output: Array, run: Run, reverse: bool, state: Array
) -> tuple[Iterator[Array], Iterator[Array], Iterator[Array] | None]:
    """Where a loop finds h of the step before, where it writes h, and where to copy that to.

    With contiguous output rows h is written there once and read from there by the next step;
    else it is kept in ``state`` and copied.
    """
    steps = steps_of(output, run, reverse)
    if output.flags.c_contiguous:
        return chain((state,), steps), iter(steps), None
    return repeat(state, run.steps), repeat(state, run.steps), iter(steps)


def blocks(values: Array, count: int) -> Iterator[tuple[slice, list[Array]]]:
    """Walk over the rows of ``values`` ``(N, H)``, so many at a time as stay in the cache.

    Yields:
        a slice of rows, and ``count`` scratch arrays of its shape.
    """
    rows, width = values.shape
    size = max(1, min(rows, _BLOCK_ELEMENTS // width))
    scratch = [np.empty((size, width), values.dtype) for _ in range(count)]
    for start in range(0, rows, size):
        block = slice(start, min(start + size, rows))
        yield block, [array[: block.stop - start] for array in scratch]
