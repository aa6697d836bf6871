"""The plan of a batch of more steps than the library takes: stages, parts, and the reserve."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cudnn_compat.arrays import Array, numpy_dtype
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.operations import dropout_reserve_bytes
from cudnn_compat.engines.cudnn.plan import CudnnPlan, Shape, ShapedPlan
from cudnn_compat.engines.cudnn.settings import ALGO_CODES
from cudnn_compat.sequences import Sequences, make_sequences
from cudnn_compat.spec import RNNSpec

__all__ = ["LongPlan", "Part", "Reserve", "Stage"]

_ALIGNMENT = 256
"""Bytes: pieces of the reserve begin at multiples of it, as CuPy's allocations do."""


class Stage(NamedTuple):
    """A network of one direction that is run part by part.

    Attributes:
        layer: the layer it computes (0 where it computes all).
        direction: 0, or 1 for the one that runs from the end.
        first, last: rows of the states: pseudo-layers ``first`` to ``last - 1``.
        columns: its part of the features of an output row.
    """

    spec: RNNSpec
    layer: int
    direction: int
    first: int
    last: int
    columns: slice


class Part(NamedTuple):
    """Consecutive steps of the longest ``batch`` sequences, in sorted packed order."""

    start: int
    stop: int
    sequences: Sequences

    @property
    def batch(self) -> int:
        """Sequences that reach the first step of the part."""
        return self.sequences.batch


@dataclasses.dataclass(frozen=True)
class Reserve:
    """The flat reserve, and how it is divided: offset and bytes of each piece by name."""

    flat: Array | None
    pieces: dict[tuple[str | int, ...], tuple[int, int]]
    size: int

    def bytes(self, *name: str | int) -> Array:
        """A piece as it is."""
        assert self.flat is not None
        start, size = self.pieces[name]
        return self.flat[start : start + size]

    def array(self, dtype: str, shape: tuple[int, ...], *name: str | int) -> Array:
        """A piece as an array."""
        return self.bytes(*name).view(numpy_dtype(dtype)).reshape(shape)


class LongPlan(ShapedPlan):
    """The stages of a network and the plans of their parts."""

    settled = True

    def __init__(self, shape: Shape, plan: Callable[..., Any], most: int) -> None:
        """``most``: steps of a part, all but the last."""
        super().__init__(shape, "standard")
        self._plan = plan
        self._most = most
        stages = _stages(shape.spec)
        if not shape.ragged:
            # The parts of equal sequences may run with any algorithm that all stages can have.
            lengths = (most,) * shape.batch
            algos = {self._planned(stage.spec, _packed(lengths)).algo for stage in stages}
            algo = algos.pop() if len(algos) == 1 else "standard"
            self.algo = algo if algo in ALGO_CODES else "standard"
        self.stages = tuple(
            stage._replace(spec=stage.spec.replace(algo=self.algo)) for stage in stages
        )

    @property
    def drops(self) -> bool:
        """Whether dropout acts between stages (within one, the library sees to it)."""
        return self.training and self.spec.drops and self.spec.bidirectional

    def parts(self, sequences: Sequences) -> list[Part]:
        """The parts, first steps first."""
        lengths = sorted(sequences.lengths, reverse=True)
        sizes, parts, start = sequences.batch_sizes, [], 0
        for first in range(0, len(sizes), self._most):
            stop = start + sum(sizes[first : first + self._most])
            own = tuple(min(n - first, self._most) for n in lengths[: sizes[first]])
            parts.append(Part(start, stop, _packed(own)))
            start = stop
        return parts

    def part_plan(self, stage: Stage, part: Part) -> CudnnPlan:
        """The plan of a part of a stage."""
        return self._planned(stage.spec, part.sequences)

    def _planned(self, spec: RNNSpec, sequences: Sequences) -> CudnnPlan:
        # The parts of one call take the plan turn by turn, and sizes are asked for in between.
        plan: CudnnPlan = self._plan(
            spec, sequences, training=self.training, device=self.device, begins=False
        )
        return plan

    def workspace_bytes(self, sequences: Sequences) -> int:
        """The most that the library takes for a part, and the rows that stages hand on."""
        library = [
            self.part_plan(stage, part).workspace_bytes(part.sequences)
            for stage in self.stages
            for part in self.parts(sequences)
        ]
        widths = sum(self.spec.layer_input_size(i) + self.spec.output_size for i in (0, 1))
        rows = sequences.total * widths * numpy_dtype(self.spec.dtype).itemsize
        return max(library, default=0) + rows

    def reserve_bytes(self, sequences: Sequences) -> int:
        """Bytes of the flat reserve; 0 in inference."""
        if not self.training or not sequences.total:
            return 0
        with Session(self.index) as session:
            return self.divide(session, sequences, None).size

    def divide(self, session: Session, sequences: Sequences, flat: Array | None) -> Reserve:
        """The pieces of the reserve."""
        pieces: dict[tuple[str | int, ...], tuple[int, int]] = {}
        spec, end = self.spec, 0
        itemsize = numpy_dtype(spec.dtype).itemsize

        def take(size: int, *name: str | int) -> None:
            nonlocal end
            pieces[name] = end, size
            end += -(-size // _ALIGNMENT) * _ALIGNMENT

        elements = sequences.total * spec.output_size
        for layer in range(spec.num_layers - 1 if spec.bidirectional else 0):
            take(elements * itemsize, "output", layer)
            if self.drops:
                take(elements * itemsize, "dropped", layer)
                take(dropout_reserve_bytes(session, spec.dtype, elements), "mask", layer)
        for index, stage in enumerate(self.stages):
            for number, part in enumerate(self.parts(sequences)):
                states = stage.spec.state_shape(part.batch)
                take(int(np.prod(states)) * itemsize, "hx", index, number)
                if spec.has_cell:
                    cells = stage.spec.cell_shape(part.batch)
                    take(int(np.prod(cells)) * itemsize, "cx", index, number)
                size = self.part_plan(stage, part).reserve_bytes(part.sequences)
                take(size, "library", index, number)
        return Reserve(flat, pieces, end)


def _stages(spec: RNNSpec) -> list[Stage]:
    if not spec.bidirectional:
        # Without dropout that does nothing, of which a new spec would warn again.
        whole = spec if spec.drops or not spec.dropout else spec.replace(dropout=0.0)
        return [Stage(whole, 0, 0, 0, spec.num_layers, slice(None))]
    size = spec.state_size
    stages = []
    for layer in range(spec.num_layers):
        part = spec.replace(
            input_size=spec.layer_input_size(layer),
            num_layers=1,
            bidirectional=False,
            dropout=0.0,
            input_mode=spec.input_mode if layer == 0 else "linear",
        )
        for direction in range(2):
            index = 2 * layer + direction
            columns = slice(direction * size, (direction + 1) * size)
            stages.append(Stage(part, layer, direction, index, index + 1, columns))
    return stages


def _packed(lengths: tuple[int, ...]) -> Sequences:
    return make_sequences("packed", (sum(lengths), 0), lengths=lengths)
