"""The functional calls backward: check, allocate, and let an engine compute."""

from __future__ import annotations

from typing import Any

from cudnn_compat.arrays import Array, is_cupy, plain, splits_elements
from cudnn_compat.checking import check_flag
from cudnn_compat.engines.interface import NotBegun
from cudnn_compat.errors import ArgumentError
from cudnn_compat.packed import Packed
from cudnn_compat.v2.checks import check_gradient, check_kinds
from cudnn_compat.v2.forms import data_in_form, state_in_form
from cudnn_compat.v2.results import RNNGradients, RNNOutput, Tape, check_stage, tape_for
from cudnn_compat.weights import check_weights

__all__ = ["rnn_backward", "rnn_backward_data", "rnn_backward_weights"]


def rnn_backward(
    out: RNNOutput,
    dy: Array | Packed | None = None,
    dhy: Array | None = None,
    dcy: Array | None = None,
) -> RNNGradients:
    """Gradients of a training forward: data, then weights.

    Args:
        out: what ``rnn_forward(…, training=True)`` returned; it serves one backward.
        dy: gradient of y, in its shape; None is zeros. Its padding is not read.
        dhy: gradient of hy; None is zeros.
        dcy: gradient of cy; None is zeros.

    Returns:
        :class:`RNNGradients`, which unpacks as ``dx, dhx, dcx, dw``.

    Raises:
        TapeError: inference forward, or this forward has had its backward, or tried to.
        ArgumentError, DTypeError: a gradient does not fit; names it.
        LibraryError: as in :func:`rnn_forward`. The tape is then of no more use.
    """
    tape = tape_for(out, "forward")
    dy_given, dhy_given, dcy_given = _checked(out, tape, dy, dhy, dcy)
    tape.claim("forward")
    try:
        dx, dhx, dcx, dw = tape.engine.gradients(
            tape.plan,
            tape.sequences,
            tape.gradient_shapes,
            tape.w,
            tape.x,
            tape.hx,
            tape.cx,
            tape.y,
            tape.reserve,
            dy_given,
            dhy_given,
            dcy_given,
        )
    except NotBegun as error:
        cause = error.__cause__
        tape.stage = "forward"  # from here on another thread may go back
    except BaseException:
        tape.settle()
        raise
    else:
        tape.stage = "weights"
        tape.settle()
        return _in_form(tape, dx, dhx, dcx, dw)
    assert cause is not None
    raise cause


def rnn_backward_data(
    out: RNNOutput,
    dy: Array | Packed | None = None,
    dhy: Array | None = None,
    dcy: Array | None = None,
) -> RNNGradients:
    """The first half of :func:`rnn_backward`: dx, dhx, dcx (``cudnnRNNBackwardData_v8``).

    Parameters and errors as there; ``dw`` of the result is None.
    """
    tape = tape_for(out, "forward")
    dy_given, dhy_given, dcy_given = _checked(out, tape, dy, dhy, dcy)
    runner, device = tape.engine, tape.plan.device
    with runner.on(device):
        dx, dhx, dcx = runner.results(tape.gradient_shapes[:3], out.spec.dtype, device)
        tape.claim("forward")
        try:
            runner.backward_data(
                tape.plan,
                tape.sequences,
                tape.w,
                tape.x,
                tape.hx,
                tape.cx,
                tape.y,
                tape.reserve,
                dy=dy_given,
                dhy=dhy_given,
                dcy=dcy_given,
                dx=dx,
                dhx=dhx,
                dcx=dcx,
            )
            tape.stage = "data"
        finally:
            tape.settle()
    return _in_form(tape, dx, dhx, dcx)


def _in_form(
    tape: Tape, dx: Array, dhx: Array, dcx: Array | None, dw: Array | None = None
) -> RNNGradients:
    """Gradients in the form of the forward's x."""
    form = tape.form
    if form != "batched":
        dx = data_in_form(dx, form, tape.sequences)
        dhx, dcx = state_in_form(dhx, form), state_in_form(dcx, form)
    return RNNGradients(dx, dhx, dcx, dw)


def _checked(
    out: RNNOutput, tape: Tape, dy: Array | Packed | None, dhy: Array | None, dcy: Array | None
) -> tuple[Array | None, Array | None, Array | None]:
    """dy, dhy, dcy, checked and in batched form."""
    kind = tape.kind
    if kind is not None and tape.form == "batched":
        of_y, of_hy, of_cy = tape.shapes
        if (
            (dy is None or _fits(dy, of_y, kind))
            and (dhy is None or _fits(dhy, of_hy, kind))
            and (dcy is None or _fits(dcy, of_cy, kind))
        ):
            return dy, dhy, dcy
    w = tape.w
    if w is None:  # another thread has had the backward in the meantime
        check_stage(tape, "forward")
    spec = out.spec
    dy_array, y = _unpacked(dy, out.y)
    if dcy is not None and not spec.has_cell:
        raise ArgumentError(f"dcy was given, but a {spec.cell} has no cell state")
    check_kinds(spec, w=w, dy=dy_array, dhy=dhy, dcy=dcy)
    check_gradient("dy", dy_array, y, "y")
    check_gradient("dhy", dhy, out.hy, "hy")
    if out.cy is not None:
        check_gradient("dcy", dcy, out.cy, "cy")
    dy_array, dhy, dcy = plain(dy_array), plain(dhy), plain(dcy)
    if tape.form in ("unbatched", "step"):
        dy_array = None if dy_array is None else dy_array.reshape(tape.shapes[0])
        dhy = None if dhy is None else dhy[:, None]
        dcy = None if dcy is None else dcy[:, None]
    return dy_array, dhy, dcy


def rnn_backward_weights(
    out: RNNOutput, *, dw: Array | None = None, accumulate: bool = False
) -> Array:
    """The second half of :func:`rnn_backward`: weight gradients (``cudnnRNNBackwardWeights_v8``).

    Args:
        out: the output whose :func:`rnn_backward_data` has run.
        dw: array ``(weight_size(spec),)`` to write to; None makes one.
        accumulate: add to ``dw`` instead of overwriting it.

    Returns:
        dw. The tape is spent and its memory is free.

    Raises:
        TapeError: data has not run, or the weights have.
        ArgumentError, DTypeError: dw does not fit, is read-only, or is missing with ``accumulate``.
    """
    accumulate = check_flag("accumulate", accumulate)
    tape = tape_for(out, "data")
    w = tape.w
    if w is None:
        check_stage(tape, "data")
    spec, device = out.spec, tape.plan.device
    target = dw
    if dw is None:
        if accumulate:
            raise ArgumentError("accumulate=True adds to dw, so dw must be given")
    else:
        check_kinds(spec, w=w, dw=dw)
        check_weights(spec, dw, name="dw")
        if not is_cupy(dw) and not dw.flags.writeable:
            raise ArgumentError("dw is read-only; wanted an array to write to")
        if is_cupy(dw) and splits_elements(dw):
            raise ArgumentError("dw begins in the middle of an element, where a GPU cannot write")
        if not dw.flags.c_contiguous:
            target = None
    with tape.engine.on(device):
        if target is None:
            target = tape.engine.zeros(w.shape, spec.dtype, device)
        elif not accumulate:
            target[...] = 0
        tape.claim("data")
        try:
            tape.engine.backward_weights(
                tape.plan,
                tape.sequences,
                tape.w,
                tape.x,
                tape.hx,
                tape.y,
                tape.reserve,
                dw=target,
            )
            tape.stage = "weights"
        finally:
            tape.settle()
        if dw is None or dw is target:
            return target
        if accumulate:
            dw += target
        else:
            dw[...] = target
    return dw


def _fits(gradient: Any, shape: tuple[int, ...] | None, kind: Any) -> bool:
    """Whether a gradient is for certain what is wanted; else the checks look closer."""
    of_type, dtype, device = kind
    return (
        type(gradient) is of_type
        and gradient.shape == shape
        and gradient.dtype == dtype
        and (device is None or gradient.data.device_id == device)
    )


def _unpacked(dy: Array | Packed | None, y: Array | Packed) -> tuple[Array | None, Array]:
    """The arrays of dy and y; dy may be a Packed where y is one."""
    if not isinstance(y, Packed):
        if isinstance(dy, Packed):
            raise ArgumentError("dy is a Packed, but y is an array; pass an array of y's shape")
        return dy, y
    if isinstance(dy, Packed):
        if dy.lengths != y.lengths:
            raise ArgumentError(f"dy has lengths {dy.lengths}; wanted y's, {y.lengths}")
        dy = dy.data
    return dy, y.data
