"""`forward` and `forwardTrain`: one step of a network becomes one call of v2."""

from __future__ import annotations

from typing import Any

from cudnn_compat import v2
from cudnn_compat.arrays import Array
from cudnn_compat.errors import ArgumentError
from cudnn_compat.legacy.deprecations import warner
from cudnn_compat.legacy.rnndesc import RNNDesc
from cudnn_compat.legacy.translate import (
    check_arrays,
    check_desc,
    check_input,
    fits,
    state_from_v2,
    state_to_v2,
)

__all__ = ["Reserve", "forward", "forwardTrain", "run_step"]

_warn_forward = warner("cudnn_compat.legacy.forward")
_warn_forward_train = warner("cudnn_compat.legacy.forwardTrain")


class Reserve:
    """What a training forward keeps for its backward. Opaque: pass it on.

    It serves one backward, data then weights, and frees what it holds when it is dropped.
    """

    __slots__ = ("_desc", "_out", "_state_shape", "_x_shape", "_y_shape")

    def __init__(self, desc: RNNDesc, out: v2.RNNOutput, *shapes: tuple[int, ...]) -> None:
        self._desc = desc
        self._out = out
        # In the caller's form; the last is that of ho and co.
        self._x_shape, self._y_shape, self._state_shape = shapes

    def __repr__(self) -> str:
        return f"<reserve of {self._desc!r}: {self._out.reserve_bytes} bytes>"


def forward(desc: RNNDesc, x: Array, h: Array, c: Array | None = None, train: bool = False) -> Any:
    """One step.

    Args:
        desc: descriptor with the weights. All arrays have its dtype.
        x: ``(input,)`` or ``(input, batch)``; Fortran-ordered ones are not copied.
        h: ``(hidden,)``, ``(hidden, 1)`` or ``(hidden, batch)``; the first two are broadcast over
            the batch. With several layers also ``(hidden, batch, layers)``; one without that axis
            is each layer's.
        c: cell state of an LSTM, in the same shapes; None starts from zeros.
        train: keep what :func:`backwardData` needs. Do not change x, h, c or y in place until then.

    Returns:
        ``(y, ho)``, or ``(y, ho, co)`` where c was given; ``(reserve, that)`` with ``train``. y is
        ``(hidden,)`` or ``(hidden, batch)`` as x is. ho and co are ``(hidden, batch)``, or
        ``(hidden,)`` where x and h are vectors; ``(hidden, batch, layers)`` with several layers.

    Raises:
        ArgumentError: a shape is wrong, or c was given to a cell without one.
        DTypeError: no array, or dtypes are mixed.
    """
    _warn_forward()
    if not train:
        return run_step(desc, x, h, c, False)[0]
    result, reserve = run_step(desc, x, h, c, True)
    return reserve, result


def forwardTrain(
    desc: RNNDesc, x: Array, h: Array, c: Array | None = None
) -> tuple[Reserve, tuple[Array, ...]]:
    """:func:`forward` with ``train``: ``(reserve, (y, ho[, co]))``."""
    _warn_forward_train()
    result, reserve = run_step(desc, x, h, c, True)
    return reserve, result


def run_step(
    desc: RNNDesc, x: Any, h: Any, c: Any, training: bool
) -> tuple[tuple[Array, ...], Any]:
    """The result of a step, and its reserve in training."""
    if not isinstance(desc, RNNDesc):
        check_desc(desc)
    if x is None or h is None or not fits(desc, x, h, c):
        given = check_arrays(desc, {"x": x, "h": h} if c is None else {"x": x, "h": h, "c": c})
        x, h, c = given["x"], given["h"], given.get("c")
    x_shape, batch, spec = x.shape, check_input(desc, x), desc._spec
    hx, cx = state_to_v2(desc, "h", h, batch, x_shape), None
    if c is not None:
        if not spec.has_cell:
            raise ArgumentError(
                f"c was given, but a {spec.cell} descriptor (mode {desc.mode}) has no cell state; "
                "pass h alone"
            )
        cx = state_to_v2(desc, "c", c, batch, x_shape)
    if not desc._complete:
        desc._check_complete()
    vector = len(x_shape) == 1
    # Views; indexing takes CuPy twice as long.
    steps = x.reshape(1, 1, -1) if vector else x.T.reshape(1, *x_shape[::-1])
    out = v2.rnn_forward(spec, desc._params, steps, hx, cx, training=training)
    rows: Array = out.y
    y = rows.reshape(-1) if vector else rows.reshape(rows.shape[1:]).T
    if spec.num_layers > 1:
        ndim = 3
    else:
        ndim = 1 if vector and h.ndim == 1 else 2
    ho = state_from_v2(out.hy, ndim)
    result = (y, ho) if c is None else (y, ho, state_from_v2(out.cy, ndim))
    if not training:
        return result, None
    desc._live.add(out)
    return result, Reserve(desc, out, x_shape, y.shape, ho.shape)
