"""More steps than the library takes: parts that carry the states from one to the next.

A network of one direction is cut in time: all layers of a part of at most 65,535 steps, then those
of the next. With two directions the parts of one layer need the whole output of the layer below, so
it runs layer by layer and direction by direction, each a network of one layer, the second direction
on the sequences in reverse. Everything here is in sorted packed order, in which a part is a
contiguous block of rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cudnn_compat.arrays import Array, numpy_dtype
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cudnn import backward, forward
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.operations import (
    dropout_backward,
    dropout_forward,
    dropout_reserve_bytes,
)
from cudnn_compat.engines.cudnn.plan import CudnnPlan, Shape, ShapedPlan
from cudnn_compat.engines.cudnn.staging import whole_elements
from cudnn_compat.sequences import Sequences, make_sequences
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import Slot, WeightLayout, weight_layout

__all__ = ["LongPlan", "run", "run_data", "run_weights"]

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


States = tuple[Array, Array | None]
"""h and c; c is None where the cell has none."""


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
            self.algo = algos.pop() if len(algos) == 1 else "standard"
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
        plan: CudnnPlan = self._plan(spec, sequences, training=self.training, device=self.device)
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


def run(
    session: Session,
    plan: LongPlan,
    sequences: Sequences,
    w: Array,
    x: Array,
    hx: Array | None,
    cx: Array | None,
    y: Array,
    hy: Array | None,
    cy: Array | None,
    reserve: Array | None,
    dropout: DropoutState | None,
) -> None:
    """Fill y, hy, cy and, in training, the reserve."""
    w, x, hx, cx = map(whole_elements, (w, x, hx, cx))
    call = _Call(session, plan, sequences, reserve)
    h, c = call.states(hx, False), call.states(cx, True)
    entering = sequences.gather(x, x.dtype)
    for layer, stages in call.layers():
        output = call.output(layer)
        for index, stage in stages:
            weights = call.weights(stage, w)
            rows = call.in_direction(stage, entering)
            written = call.empty((sequences.total, stage.spec.output_size))
            for number, part in enumerate(call.parts):
                block = slice(part.start, part.stop)
                before = call.part_states(stage, part, h, c)
                call.save(index, number, before)
                after = call.like(before)
                part_plan = plan.part_plan(stage, part)
                forward.run(
                    session,
                    part_plan,
                    part.sequences,
                    weights,
                    rows[block],
                    before[0],
                    before[1],
                    written[block],
                    after[0],
                    after[1],
                    call.library_reserve(index, number),
                    dropout if part_plan.drops else None,
                )
                call.set_states(stage, part, after, h, c)
            output[:, stage.columns] = call.in_direction(stage, written)
        entering = output
        dropped = call.dropped(layer)
        if dropped is not None:
            assert dropout is not None
            ratio, dtype = plan.spec.dropout, plan.spec.dtype
            mask = call.reserve.bytes("mask", layer)
            dropout_forward(session, dropout, ratio, dtype, output, dropped, mask)
            entering = dropped
    sequences.scatter(entering, y)
    for states, out in ((h, hy), (c, cy)):
        if out is not None:
            sequences.unsort_states(states, out)


def run_data(
    session: Session,
    plan: LongPlan,
    sequences: Sequences,
    x: Array,
    w: Array,
    hx: Array | None,
    cx: Array | None,
    y: Array,
    reserve: Array,
    dy: Array | None,
    dhy: Array | None,
    dcy: Array | None,
    dx: Array,
    dhx: Array,
    dcx: Array | None,
) -> None:
    """Fill dx, dhx, dcx; changes the reserve in place."""
    w, y, dy, dhy, dcy = map(whole_elements, (w, y, dy, dhy, dcy))
    call = _Call(session, plan, sequences, reserve)
    dh, dc = call.states(dhy, False), call.states(dcy, True)
    if dy is None:
        leaving = session.xp.zeros((sequences.total, plan.spec.output_size), x.dtype)
    else:
        leaving = sequences.gather(dy, x.dtype)
    for layer, stages in reversed(call.layers()):
        output = call.output(layer, y)
        entering = session.xp.zeros((sequences.total, stages[0][1].spec.input_size), x.dtype)
        for index, stage in stages:
            weights = call.weights(stage, w)
            below = call.empty(entering.shape)
            rows, gradient = (
                call.in_direction(stage, array[:, stage.columns]) for array in (output, leaving)
            )
            for number, part in reversed(list(enumerate(call.parts))):
                block = slice(part.start, part.stop)
                before = call.saved(index, number, stage, part)
                after = call.part_states(stage, part, dh, dc)
                written = call.like(after)
                backward.run_data(
                    session,
                    plan.part_plan(stage, part),
                    part.sequences,
                    weights,
                    before[0],
                    before[1],
                    rows[block],
                    call.library_reserve(index, number),
                    gradient[block],
                    after[0],
                    after[1],
                    below[block],
                    written[0],
                    written[1],
                )
                call.set_states(stage, part, written, dh, dc)
            entering += call.in_direction(stage, below)
        leaving = entering
        if plan.drops and layer:
            leaving = call.empty(entering.shape)
            mask = call.reserve.bytes("mask", layer - 1)
            dropout_backward(session, plan.spec.dropout, plan.spec.dtype, entering, leaving, mask)
    sequences.scatter(leaving, dx)
    for states, out in ((dh, dhx), (dc, dcx)):
        if out is not None:
            sequences.unsort_states(states, out)


def run_weights(
    session: Session,
    plan: LongPlan,
    sequences: Sequences,
    x: Array,
    hx: Array | None,
    y: Array,
    reserve: Array,
    dw: Array,
) -> None:
    """Add the weight gradients into dw."""
    x, y = map(whole_elements, (x, y))
    call = _Call(session, plan, sequences, reserve)
    entering = sequences.gather(x, x.dtype)
    for layer, stages in call.layers():
        output = call.output(layer, y)
        for index, stage in stages:
            part_of_dw = session.xp.zeros(weight_layout(stage.spec).size, dw.dtype)
            rows = call.in_direction(stage, entering)
            written = call.in_direction(stage, output[:, stage.columns])
            for number, part in enumerate(call.parts):
                block = slice(part.start, part.stop)
                backward.run_weights(
                    session,
                    plan.part_plan(stage, part),
                    part.sequences,
                    rows[block],
                    call.saved(index, number, stage, part)[0],
                    written[block],
                    call.library_reserve(index, number),
                    part_of_dw,
                )
            for whole, own in call.slots(stage):
                whole.view(dw)[...] += own.view(part_of_dw)
        dropped = call.dropped(layer)
        entering = output if dropped is None else dropped


class _Call:
    """What the three calls share: parts, pieces of the reserve, states, weights of a stage."""

    def __init__(
        self, session: Session, plan: LongPlan, sequences: Sequences, reserve: Array | None
    ) -> None:
        self.session = session
        self.plan = plan
        self.sequences = sequences
        self.dtype = numpy_dtype(plan.spec.dtype)
        self.parts = plan.parts(sequences)
        self.training = reserve is not None
        self.reserve = Reserve(None, {}, 0)
        if self.training:
            self.reserve = plan.divide(session, sequences, reserve)
        self._flip: Array | None = None
        if plan.spec.bidirectional:
            self._flip = session.xp.asarray(_flipped_rows(sequences))

    def empty(self, shape: tuple[int, ...]) -> Array:
        return self.session.xp.empty(shape, self.dtype)

    def layers(self) -> list[tuple[int, list[tuple[int, Stage]]]]:
        """The stages, with their index, by layer."""
        stages = list(enumerate(self.plan.stages))
        layers = sorted({stage.layer for _, stage in stages})
        return [(layer, [each for each in stages if each[1].layer == layer]) for layer in layers]

    def output(self, layer: int, y: Array | None = None) -> Array:
        """Rows of a layer's output: memory for them or, with forward's y, what forward wrote."""
        shape = (self.sequences.total, self.plan.spec.output_size)
        if self.training and not self._is_last(layer):
            return self.reserve.array(self.plan.spec.dtype, shape, "output", layer)
        return self.empty(shape) if y is None else self.sequences.gather(y, y.dtype)

    def dropped(self, layer: int) -> Array | None:
        """Rows of a layer's output after dropout; None where none acts behind that layer."""
        if not self.plan.drops or self._is_last(layer):
            return None
        shape = (self.sequences.total, self.plan.spec.output_size)
        return self.reserve.array(self.plan.spec.dtype, shape, "dropped", layer)

    def _is_last(self, layer: int) -> bool:
        return layer == self.plan.stages[-1].layer

    def library_reserve(self, index: int, number: int) -> Array | None:
        """The library's reserve for a part of a stage; None in inference."""
        return self.reserve.bytes("library", index, number) if self.training else None

    def in_direction(self, stage: Stage, rows: Array) -> Array:
        """Rows in the order in which a stage takes and gives them; its own inverse."""
        if stage.direction:
            return rows[self._flip]
        return self.session.xp.ascontiguousarray(rows)

    def slots(self, stage: Stage) -> list[tuple[Slot, Slot]]:
        """The pieces of the whole weight space that a stage uses, and where it has them."""
        return _slots(self.plan.spec, stage)

    def weights(self, stage: Stage, w: Array) -> Array:
        """The weight space of a stage."""
        if not self.plan.spec.bidirectional:
            return w
        pieces = [whole.view(w).ravel() for whole, _ in self.slots(stage)]
        return self.session.xp.concatenate(pieces)

    def states(self, given: Array | None, cells: bool) -> Array | None:
        """States of all sequences in sorted order, to be changed as parts are done."""
        spec, batch = self.plan.spec, self.sequences.batch
        if cells and not spec.has_cell:
            return None
        if given is None:
            shape = spec.cell_shape(batch) if cells else spec.state_shape(batch)
            return self.session.xp.zeros(shape, self.dtype)
        return self.sequences.sort_states(given).copy()

    def like(self, states: States) -> States:
        """Memory for states of the same shapes."""
        h, c = states
        return self.empty(h.shape), None if c is None else self.empty(c.shape)

    def part_states(self, stage: Stage, part: Part, h: Array, c: Array | None) -> States:
        """Copies of the states of a stage, for the sequences of a part."""
        at = slice(stage.first, stage.last), slice(part.batch)
        return h[at].copy(), None if c is None else c[at].copy()

    def set_states(
        self, stage: Stage, part: Part, values: States, h: Array, c: Array | None
    ) -> None:
        """Write the states of a part back."""
        for value, state in zip(values, (h, c), strict=True):
            if state is not None:
                state[stage.first : stage.last, : part.batch] = value

    def save(self, index: int, number: int, states: States) -> None:
        """Keep the states that a part begins with for backward."""
        if self.training:
            for name, state in zip(("hx", "cx"), states, strict=True):
                if state is not None:
                    self.reserve.array(self.plan.spec.dtype, state.shape, name, index, number)[
                        ...
                    ] = state

    def saved(self, index: int, number: int, stage: Stage, part: Part) -> States:
        """The states that a part began with."""
        spec, dtype = stage.spec, self.plan.spec.dtype
        h = self.reserve.array(dtype, spec.state_shape(part.batch), "hx", index, number)
        if not spec.has_cell:
            return h, None
        return h, self.reserve.array(dtype, spec.cell_shape(part.batch), "cx", index, number)


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


def _slots(spec: RNNSpec, stage: Stage) -> list[tuple[Slot, Slot]]:
    whole: WeightLayout = weight_layout(spec)
    if not spec.bidirectional:
        everything = Slot(0, (whole.size,))
        return [(everything, everything)]
    (own,) = weight_layout(stage.spec).pseudo_layers
    mine = whole.pseudo_layers[stage.first]
    names = [field.name for field in dataclasses.fields(own)]
    pairs = [(getattr(mine, name), getattr(own, name)) for name in names]
    # The order of the fields is that of the weight space of one layer.
    return [(slot, at) for slot, at in pairs if slot is not None]


def _packed(lengths: tuple[int, ...]) -> Sequences:
    return make_sequences("packed", (sum(lengths), 0), lengths=lengths)


def _flipped_rows(sequences: Sequences) -> np.ndarray:
    """Row of step ``length - 1 - t`` for that of step t of each sequence, in sorted order."""
    sizes = np.asarray(sequences.batch_sizes, dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    step = np.repeat(np.arange(len(sizes)), sizes)
    sequence = np.arange(sequences.total) - starts[step]
    lengths = np.sort(np.asarray(sequences.lengths, dtype=np.int64))[::-1]
    rows: np.ndarray = starts[lengths[sequence] - 1 - step] + sequence
    return rows
