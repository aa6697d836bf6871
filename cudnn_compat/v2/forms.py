"""The forms in which a caller may pass x, and the batched form that engines see.

``"batched"`` is the layout's own shape, ``"unbatched"`` one sequence ``(T, I)``, ``"step"`` one
step of it ``(I,)``, ``"packed"`` a :class:`Packed`. Results go back in the form in which x came.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from cudnn_compat.arrays import Array
from cudnn_compat.packed import Packed
from cudnn_compat.sequences import Sequences, make_sequences
from cudnn_compat.spec import RNNSpec
from cudnn_compat.v2.checks import check_input, check_state

__all__ = ["Batched", "arrange", "data_in_form", "state_in_form"]


@dataclasses.dataclass(slots=True, eq=False)
class Batched:
    """Arguments in batched form, and the form in which they came."""

    form: str
    x: Array
    hx: Array | None
    cx: Array | None
    sequences: Sequences


def arrange(
    spec: RNNSpec,
    x: Array,
    hx: Array | None,
    cx: Array | None,
    *,
    lengths: Any,
    batch_sizes: Any,
    layout: str,
) -> Batched:
    """Check shapes and lengths, and bring x and the states into batched form (views).

    Raises:
        ArgumentError, DTypeError: in the caller's own dimensions.
    """
    check_input(spec, x, layout)
    form, shape, batch = "batched", x.shape, None
    if layout == "packed":
        batch = next((s.shape[1] for s in (hx, cx) if s is not None and s.ndim == 3), None)
    elif x.ndim < 3:
        form = "unbatched" if x.ndim == 2 else "step"
        steps = x if form == "unbatched" else x[None]
        x = steps[:, None] if layout == "time_major" else steps[None]
        check_state("hx", hx, spec.state_shape(1)[::2], batched=False, x_shape=shape)
        check_state("cx", cx, spec.cell_shape(1)[::2], batched=False, x_shape=shape)
        hx = None if hx is None else hx[:, None]
        cx = None if cx is None else cx[:, None]
    sequences = make_sequences(
        layout, x.shape, lengths=lengths, batch_sizes=batch_sizes, batch=batch
    )
    batch = sequences.batch
    check_state("hx", hx, spec.state_shape(batch), batched=True, x_shape=shape)
    check_state("cx", cx, spec.cell_shape(batch), batched=True, x_shape=shape)
    return Batched(form, x, hx, cx, sequences)


def data_in_form(data: Array, form: str, sequences: Sequences) -> Array | Packed:
    """y or dx in the form of x."""
    if form == "batched":
        return data
    if form == "packed":
        return Packed(data, sequences.lengths)
    if form == "step":
        return data[0, 0]
    return data[:, 0] if sequences.layout == "time_major" else data[0]


def state_in_form(state: Array | None, form: str) -> Array | None:
    """A state or its gradient, without the batch axis where x has none."""
    return state[:, 0] if state is not None and form in ("unbatched", "step") else state
