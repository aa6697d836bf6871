"""Checks of arguments against the spec, before an engine is called."""

from __future__ import annotations

import numpy as np

from cudnn_compat.arrays import Array, check_array, device_of, dtype_name, is_cupy, numpy_dtype
from cudnn_compat.errors import ArgumentError, DTypeError
from cudnn_compat.spec import RNNSpec

__all__ = [
    "check_gradient",
    "check_input",
    "check_kinds",
    "check_state",
]


def check_kinds(spec: RNNSpec, **arrays: Array | None) -> None:
    """All arrays have the spec's dtype and are on one device.

    Raises:
        DTypeError: lists the dtype of each argument.
        ArgumentError: lists the device of each argument.
    """
    wanted = numpy_dtype(spec.dtype)
    place = None
    fits = True
    for name, array in arrays.items():
        if array is None:
            continue
        here = -1
        if is_cupy(array):
            here = array.data.device_id
        elif type(array) is not np.ndarray:
            check_array(name, array)
        fits = fits and array.dtype == wanted and place in (None, here)
        place = here
    if not fits:
        _refuse_kinds(spec, {name: a for name, a in arrays.items() if a is not None})


def _refuse_kinds(spec: RNNSpec, given: dict[str, Array]) -> None:
    wanted = numpy_dtype(spec.dtype)
    if any(array.dtype != wanted for array in given.values()):
        listed = ", ".join(f"{name} {dtype_name(array)}" for name, array in given.items())
        raise DTypeError(f"the spec says dtype='{spec.dtype}' and the arguments are {listed}")
    listed = ", ".join(f"{name} on {device_of(array)}" for name, array in given.items())
    raise ArgumentError(f"the arguments are on different devices: {listed}")


def check_input(spec: RNNSpec, x: Array, layout: str) -> None:
    """x has a number of axes that the layout allows, and I features.

    The message counts the caller's own dimensions.
    """
    if layout == "packed":
        wanted = f"(sum, {spec.input_size})"
        fits = x.ndim == 2
    else:
        batched = "steps, batch" if layout == "time_major" else "batch, steps"
        size = spec.input_size
        wanted = f"({batched}, {size}), ({size},) or (steps, {size})"
        fits = 1 <= x.ndim <= 3
    if not fits or x.shape[-1] != spec.input_size:
        raise ArgumentError(
            f"x has shape {x.shape}; wanted {wanted}: layout='{layout}', "
            f"input_size={spec.input_size}"
        )


def check_state(
    name: str,
    state: Array | None,
    shape: tuple[int, ...],
    *,
    batched: bool,
    x_shape: tuple[int, ...],
) -> None:
    """A state has the shape ``(L·D, B, features)``, without B where x is unbatched."""
    if state is None or state.shape == shape:
        return
    message = f"{name} has shape {state.shape}; wanted {shape}"
    if batched and state.ndim == 3 and state.shape[1] != shape[1]:
        message += f": {name} has a batch of {state.shape[1]}, x {x_shape} has {shape[1]}"
    else:
        axes = (
            "(layers * directions, batch, features)"
            if batched
            else ("(layers * directions, features), because x is unbatched")
        )
        message += f": {axes}"
    raise ArgumentError(message)


def check_gradient(name: str, gradient: Array | None, like: Array, of: str) -> None:
    """A gradient has the shape of what it is the gradient of."""
    if gradient is not None and gradient.shape != like.shape:
        raise ArgumentError(
            f"{name} has shape {gradient.shape}; wanted the shape of {of}, {like.shape}"
        )
