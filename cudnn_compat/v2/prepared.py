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

from cudnn_compat.arrays import Array, is_cupy
from cudnn_compat.engines.interface import AnyEngine, Shapes
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec

__all__ = ["Prepared", "recall", "remember", "result_shapes", "signature"]

_MOST = 256


class Prepared(NamedTuple):
    """A call whose arguments fit: who computes, where, and the shapes of the results."""

    engine: AnyEngine
    device: str
    sequences: Sequences
    shapes: Shapes


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
    kinds: list[Hashable] = [spec, layout, engine]
    for array in (w, x, hx, cx):
        if array is None:
            kinds.append(None)
        elif type(array) is np.ndarray:
            kinds += (array.shape, array.dtype, -1)
        elif is_cupy(array):
            kinds += (array.shape, array.dtype, array.data.device_id)
        else:
            return None
    return tuple(kinds)


def recall(key: Hashable) -> Prepared | None:
    """The call that was remembered under a signature."""
    return _calls.get(key)


def remember(key: Hashable, prepared: Prepared) -> None:
    """Remember a call that has passed all checks; of many, the first is forgotten."""
    _calls[key] = prepared
    if len(_calls) > _MOST:
        with contextlib.suppress(Exception):  # another thread was quicker
            del _calls[next(iter(_calls))]


def result_shapes(spec: RNNSpec, x: Array, batch: int) -> Shapes:
    """Shapes of y, hy, cy for x in batched form."""
    return (
        (*x.shape[:-1], spec.output_size),
        spec.state_shape(batch),
        spec.cell_shape(batch) if spec.has_cell else None,
    )
