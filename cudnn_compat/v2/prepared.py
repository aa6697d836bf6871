"""What was checked once need not be checked again: calls that come back with arrays of one kind.

Whether arguments fit a spec depends on their shapes, dtypes and devices, not on what is in them. So
a call without lengths that has passed all checks is remembered by these, and the next one like it,
as in a loop over steps, goes straight to the engine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from typing import Any

import numpy as np

from cudnn_compat.arrays import Array, is_cupy, kind_of
from cudnn_compat.engines.cache import Kept
from cudnn_compat.engines.interface import AnyEngine, GradientShapes, Shapes
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec

__all__ = ["Prepared", "recall", "remember", "signature"]

_MOST = 256


class Prepared:
    """A call whose arguments fit: who computes, where, and the shapes of the results.

    Attributes:
        engine, device, sequences: who, where, and on what lengths.
        shapes, gradient_shapes: of the results, forward and backward.
        kind: of its w and x (see :func:`cudnn_compat.arrays.kind_of`), where both are plain arrays;
            else None.
    """

    __slots__ = ("_plans", "device", "engine", "gradient_shapes", "kind", "sequences", "shapes")

    def __init__(
        self,
        engine: AnyEngine,
        device: str,
        sequences: Sequences,
        spec: RNNSpec,
        w: Array,
        x: Array,
    ) -> None:
        """``x`` is in batched form."""
        batch = sequences.batch
        state, cell = spec.state_shape(batch), spec.cell_shape(batch) if spec.has_cell else None
        kind = kind_of(w)
        self.engine = engine
        self.device = device
        self.sequences = sequences
        self.shapes: Shapes = ((*x.shape[:-1], spec.output_size), state, cell)
        self.gradient_shapes: GradientShapes = (x.shape, state, cell, w.shape)
        self.kind: Any = kind if kind[0] is not None and kind == kind_of(x) else None
        self._plans: list[Kept[Any] | None] = [None, None]

    def plan(self, spec: RNNSpec, training: bool) -> Any:
        """The plan of the next call, by its place in the engine's cache once that is known."""
        kept = self._plans[training]
        made = None if kept is None else kept.use()
        if made is None:
            kept, made = self.engine.keep_plan(
                spec, self.sequences, training=training, device=self.device
            )
            self._plans[training] = kept
        return made.current()


_calls: dict[Hashable, Prepared] = {}


def signature(
    spec: Any,
    layout: Any,
    engine: Any,
    w: Any,
    x: Any,
    hx: Any,
    cx: Any,
) -> Hashable:
    """What the checks of a call look at; None where they have to look for themselves."""
    if type(spec) is not RNNSpec or type(layout) is not str:
        return None
    if engine is not None and type(engine) is not str:
        return None
    if is_cupy(w) and is_cupy(x):
        given = (w.shape, w.dtype, w.data.device_id, x.shape, x.dtype, x.data.device_id)
    elif type(w) is np.ndarray and type(x) is np.ndarray:
        given = (w.shape, w.dtype, -1, x.shape, x.dtype, -1)
    else:
        return None
    if hx is None and cx is None:
        return (spec, layout, engine, given)
    states: list[Hashable] = []
    for array in (hx, cx):
        if array is None:
            states.append(None)
        elif is_cupy(array):
            states += (array.shape, array.dtype, array.data.device_id)
        elif type(array) is np.ndarray:
            states += (array.shape, array.dtype, -1)
        else:
            return None
    return (spec, layout, engine, given, *states)


def recall(key: Hashable) -> Prepared | None:
    """The call that was remembered under a signature."""
    return _calls.get(key)


def remember(key: Hashable, prepared: Prepared) -> None:
    """Remember a call that has passed all checks; of many, the first is forgotten."""
    _calls[key] = prepared
    if len(_calls) > _MOST:
        with contextlib.suppress(Exception):  # another thread was quicker
            del _calls[next(iter(_calls))]
