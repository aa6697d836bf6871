"""What the three calls of a long batch share: rows, states, weights and pieces of the reserve."""

from __future__ import annotations

import dataclasses

import numpy as np

from cudnn_compat.arrays import Array, numpy_dtype
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.long_plan import LongPlan, Part, Reserve, Stage
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import Slot, WeightLayout, weight_layout

__all__ = ["Call"]

States = tuple[Array, Array | None]
"""h and c; c is None where the cell has none."""


class Call:
    """One call: in forward it fills the pieces of the reserve, in backward it finds them there."""

    def __init__(
        self, session: Session, plan: LongPlan, sequences: Sequences, reserve: Array | None
    ) -> None:
        if plan.spec.bidirectional or sequences.ragged:
            session.check_sending(
                "a batch of so many steps, bidirectional or with unequal lengths, sends indices to "
                "the GPU in every call, which cannot be captured"
            )
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
        """An uninitialised array on the device."""
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


def _flipped_rows(sequences: Sequences) -> np.ndarray:
    """Row of step ``length - 1 - t`` for that of step t of each sequence, in sorted order."""
    sizes = np.asarray(sequences.batch_sizes, dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    step = np.repeat(np.arange(len(sizes)), sizes)
    sequence = np.arange(sequences.total) - starts[step]
    lengths = np.sort(np.asarray(sequences.lengths, dtype=np.int64))[::-1]
    rows: np.ndarray = starts[lengths[sequence] - 1 - step] + sequence
    return rows
