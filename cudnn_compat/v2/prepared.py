"""What was checked once need not be checked again: calls that come back with arrays of one kind.

Whether arguments fit a spec depends on their shapes, dtypes and devices, not on what is in them. So
a call without lengths that has passed all checks is remembered by these, and the next one like it,
as in a loop over steps, goes straight to the engine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from cudnn_compat.arrays import Array, is_cupy, kind_of
from cudnn_compat.engines.interface import AnyEngine, GradientShapes, Shapes
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec

__all__ = ["Prepared", "prepare", "recall", "remember", "signature"]

_MOST = 256


class Prepared(NamedTuple):
    """A call whose arguments fit: who computes, where, and the shapes of the results.

    ``kind`` is that of all its arrays (see :func:`cudnn_compat.arrays.kind_of`), where they are
    plain arrays; else None.
    """

    engine: AnyEngine
    device: str
    sequences: Sequences
    shapes: Shapes
    gradient_shapes: GradientShapes
    kind: Any


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
    looks: list[Hashable] = [spec, layout, engine]
    for array in (w, x, hx, cx):
        if array is None:
            looks.append(None)
        elif is_cupy(array):
            looks += (array.shape, array.dtype, array.data.device_id)
        elif type(array) is np.ndarray:
            looks += (array.shape, array.dtype, -1)
        else:
            return None
    return tuple(looks)


def recall(key: Hashable) -> Prepared | None:
    """The call that was remembered under a signature."""
    return _calls.get(key)


def remember(key: Hashable, prepared: Prepared) -> None:
    """Remember a call that has passed all checks; of many, the first is forgotten."""
    _calls[key] = prepared
    if len(_calls) > _MOST:
        with contextlib.suppress(Exception):  # another thread was quicker
            del _calls[next(iter(_calls))]


def prepare(
    engine: AnyEngine, device: str, sequences: Sequences, spec: RNNSpec, w: Array, x: Array
) -> Prepared:
    """What a call needs to know whose arguments fit; x is in batched form."""
    batch = sequences.batch
    state, cell = spec.state_shape(batch), spec.cell_shape(batch) if spec.has_cell else None
    kind = kind_of(w)
    return Prepared(
        engine,
        device,
        sequences,
        ((*x.shape[:-1], spec.output_size), state, cell),
        (x.shape, state, cell, w.shape),
        kind if kind[0] is not None and kind == kind_of(x) else None,
    )
