"""Networks with their data, drawn once, and what the slow reference makes of them.

All values are multiples of 1/128 and exact in every dtype of the matrix, bfloat16 included, so one
evaluation in float64 is the right answer for all of them.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from typing import Final

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.matrix.reference import (
    ReferenceGradients,
    ReferenceOutput,
    distance_to_kink,
    reference_backward,
    reference_forward,
)
from cudnn_compat.matrix.shapes import SequenceShape
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import weight_size

__all__ = ["ATTEMPTS", "AWAY_FROM_KINKS", "Problem", "problem"]

AWAY_FROM_KINKS: Final = 1e-2
"""Closer to where a relu or a clip bends, a gradient may rightly go either way in the short dtypes,
and in float32 with TF32."""

ATTEMPTS: Final = 200
"""Draws to look for one that is far enough away."""


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """A network and its data, all float64, batches as one array for each sequence.

    Attributes:
        spec: in float64, without dropout.
        shape: steps, batch, lengths.
        w: flat weight space.
        xs: ``(len_j, I)`` for each sequence.
        hx, cx: states, or None.
        dys: ``(len_j, D·P)`` for each sequence.
        dhy, dcy: gradients of the final states; dcy is None where the cell has none.
    """

    spec: RNNSpec
    shape: SequenceShape
    w: Array
    xs: list[Array]
    hx: Array | None
    cx: Array | None
    dys: list[Array]
    dhy: Array
    dcy: Array | None
    _found: dict[tuple[str, ...], ReferenceGradients] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def output(self) -> ReferenceOutput:
        """The right y, hy, cy."""
        return reference_forward(self.spec, self.w, self.xs, self.hx, self.cx)

    @property
    def gradients(self) -> ReferenceGradients:
        """The right dx, dhx, dcx, dw of all three gradients."""
        return self.gradients_of(("dy", "dhy", "dcy"))

    def gradients_of(
        self, given: tuple[str, ...], output: ReferenceOutput | None = None
    ) -> ReferenceGradients:
        """The right gradients where only those named of dy, dhy, dcy are given."""
        if output is None or output is self.output:
            if given not in self._found:
                self._found[given] = self._gradients_of(given, self.output)
            return self._found[given]
        return self._gradients_of(given, output)

    def _gradients_of(self, given: tuple[str, ...], output: ReferenceOutput) -> ReferenceGradients:
        return reference_backward(
            output,
            self.dys if "dy" in given else None,
            self.dhy if "dhy" in given else None,
            self.dcy if "dcy" in given else None,
        )


def problem(spec: RNNSpec, shape: SequenceShape) -> Problem:
    """The problem of a network and a shape: the same in every run, and for every dtype."""
    plain = spec.replace(dtype="float64", math="default", algo="auto", dropout=0.0)
    return _problem(plain, shape)


@functools.lru_cache(maxsize=64)
def _problem(spec: RNNSpec, shape: SequenceShape) -> Problem:
    best = None
    seed = zlib.crc32(f"{spec} {shape.label}".encode())
    for attempt in range(ATTEMPTS):
        drawn = _draw(spec, shape, np.random.default_rng((seed, attempt)))
        if spec.cell != "relu" and spec.clip is None:
            return drawn
        if distance_to_kink(drawn.output) > AWAY_FROM_KINKS:
            return drawn
        if best is None or distance_to_kink(drawn.output) > distance_to_kink(best.output):
            best = drawn
    assert best is not None
    return best


def _draw(spec: RNNSpec, shape: SequenceShape, generator: np.random.Generator) -> Problem:
    def draw(*size: int, top: int = 127) -> Array:
        return generator.integers(-top, top + 1, size) / 128.0

    batch, lengths = shape.batch, shape.known_lengths
    hx = cx = None
    if shape.states:
        hx = draw(*spec.state_shape(batch))
        cx = draw(*spec.cell_shape(batch)) if spec.has_cell else None
    if shape.same_state:
        hx, cx = (None if s is None else np.repeat(s[:, :1], batch, axis=1) for s in (hx, cx))
    return Problem(
        spec=spec,
        shape=shape,
        # 1/sqrt(H), as for weights that a network starts from.
        w=draw(weight_size(spec), top=int(128 / spec.hidden_size**0.5)),
        xs=[draw(length, spec.input_size) for length in lengths],
        hx=hx,
        cx=cx,
        dys=[draw(length, spec.output_size) for length in lengths],
        dhy=draw(*spec.state_shape(batch)),
        dcy=draw(*spec.cell_shape(batch)) if spec.has_cell else None,
    )
