"""Feature-first arrays as v2 sees them, and back; and the checks, in the caller's own dimensions.

A Fortran-ordered ``(input, batch)`` array is the memory of a C-ordered ``(batch, input)`` one, so
each way is a transposed view. Only a state that is broadcast over the batch gets memory of its own.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from cudnn_compat.arrays import (
    Array,
    array_module,
    check_array,
    device_of,
    dtype_name,
    is_cupy,
    on_device_of,
)
from cudnn_compat.errors import ArgumentError, DTypeError
from cudnn_compat.legacy.rnndesc import RNNDesc

__all__ = [
    "check_arrays",
    "check_desc",
    "check_input",
    "check_state",
    "fits",
    "is_zero",
    "state_from_v2",
    "state_to_v2",
    "type_name",
]


def type_name(value: Any) -> str:
    """The type of ``value`` as a user would write it."""
    kind = type(value)
    known = kind.__module__ == "builtins"
    return kind.__qualname__ if known else f"{kind.__module__}.{kind.__qualname__}"


def check_desc(desc: Any) -> None:
    """Refuse what is not a descriptor."""
    if not isinstance(desc, RNNDesc):
        raise DTypeError(f"desc is a {type_name(desc)}; wanted a legacy.RNNDesc")


def fits(desc: RNNDesc, *arrays: Any) -> bool:
    """Whether each is None or an array of the descriptor's own kind, dtype and device.

    The quick answer for the usual case; otherwise :func:`check_arrays` looks closely.
    """
    kind: Any
    kind, dtype, device = desc._kind
    for array in arrays:
        if array is None:
            continue
        if type(array) is not kind or array.dtype != dtype:
            return False
        if device is not None and array.data.device_id != device:
            return False
    return True


def check_arrays(desc: RNNDesc, arrays: dict[str, Any]) -> dict[str, Array]:
    """Refuse what is no array, or differs from the descriptor in dtype or device.

    Returns:
        The arrays, as plain ones where they were of a subclass (which may index differently).
    """
    for name, value in arrays.items():
        if isinstance(value, (tuple, list)) and name in ("h", "c"):
            raise DTypeError(
                f"{name} is a {type_name(value)}; wanted an array: the states h and c of an LSTM "
                "are two arguments"
            )
        check_array(name, value)
    if any(array.dtype != desc.params.dtype for array in arrays.values()):
        listed = ", ".join(f"{name} {dtype_name(array)}" for name, array in arrays.items())
        raise DTypeError(f"the descriptor has dtype='{desc.dtype}' and the arguments are {listed}")
    device = device_of(desc.params)
    if any(device_of(array) != device for array in arrays.values()):
        listed = ", ".join(f"{name} on {device_of(array)}" for name, array in arrays.items())
        raise ArgumentError(f"the descriptor's weights are on {device}, the arguments: {listed}")
    return {
        name: array if is_cupy(array) else array.view(np.ndarray) for name, array in arrays.items()
    }


def is_zero(name: str, value: Any) -> bool:
    """Whether a gradient means zeros: None or the integer 0. The old code took any integer for dy.

    Raises:
        ArgumentError: another integer.
    """
    if value is None:
        return True
    if isinstance(value, np.ndarray) or is_cupy(value):
        return False
    try:
        number = operator.index(value)
    except TypeError:
        return False
    if number != 0:
        raise ArgumentError(f"{name} is {number}; wanted an array, or None or 0 for zeros")
    return True


def check_input(desc: RNNDesc, x: Array) -> int:
    """The batch of x: its columns, 1 for a vector."""
    shape: tuple[int, ...] = x.shape
    if not 1 <= len(shape) <= 2 or shape[0] != desc._spec.input_size:
        size = desc.input
        raise ArgumentError(f"x has shape {shape}; wanted ({size},) or ({size}, batch)")
    return shape[1] if len(shape) == 2 else 1


def check_state(
    desc: RNNDesc, name: str, state: Array, batch: int, x_shape: tuple[int, ...]
) -> None:
    """Refuse a state that is neither of the batch nor can be broadcast over it."""
    hidden, layers = desc.hidden, desc.layers
    allowed = [(hidden,), (hidden, 1), (hidden, batch)]
    if layers > 1:
        # One without a layer axis is each layer's.
        allowed.append((hidden, batch, layers))
    if state.shape not in allowed:
        wanted = ", ".join(str(shape) for shape in dict.fromkeys(allowed))
        raise ArgumentError(
            f"{name} has shape {state.shape}; wanted one of {wanted}: "
            f"x {x_shape} has a batch of {batch}"
        )


def state_to_v2(
    desc: RNNDesc, name: str, state: Array, batch: int, x_shape: tuple[int, ...]
) -> Array:
    """A state as ``(layers, batch, hidden)``: a view where it has its batch, else broadcast."""
    spec, turned = desc._spec, state.T
    shape, full = turned.shape, spec.state_shape(batch)
    if spec.num_layers > 1:
        if shape == full:
            return turned
    elif shape == full[1:]:
        return turned.reshape(full)  # a view; indexing takes CuPy twice as long
    if shape not in (full[2:], (1, full[2])):
        check_state(desc, name, state, batch, x_shape)
    elif batch == spec.num_layers == 1:
        return turned.reshape(full)
    # Assigned: NumPy's broadcast_to alone costs as much as a small step.
    if type(state) is np.ndarray:
        out = np.empty(full, state.dtype)
        out[...] = turned
        return out
    with on_device_of(state):
        out = array_module(state).empty(full, state.dtype)
        out[...] = turned
        return out


def state_from_v2(state: Array, ndim: int) -> Array:
    """``(layers, batch, hidden)`` as ``(hidden,)``, ``(hidden, batch)`` or all of it."""
    if ndim == 2:
        return state.reshape(state.shape[1:]).T
    return state.reshape(-1) if ndim == 1 else state.T
