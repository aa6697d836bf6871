"""What the plain operations take: one check for all engines, so that they refuse the same.

Dropout, softmax and activations stand beside the networks because the old API has them; they are
no part of :mod:`cudnn_compat.v2`.
"""

from __future__ import annotations

from typing import Final

from cudnn_compat.arrays import Array, device_of, dtype_name
from cudnn_compat.checking import check_name
from cudnn_compat.errors import ArgumentError, DTypeError, UnsupportedError

__all__ = [
    "FUNCTIONS",
    "SOFTMAX_ALGORITHMS",
    "SOFTMAX_MODES",
    "check_activation",
    "check_dropout",
    "check_like",
    "check_softmax",
]

FUNCTIONS: Final = ("sigmoid", "relu", "tanh", "clipped_relu", "elu")
"""Activations: ``clipped_relu`` is ``min(max(x, 0), coef)``, ``elu`` is ``coef * (exp(x) - 1)``
where x is not positive."""

SOFTMAX_ALGORITHMS: Final = ("fast", "accurate", "log")
"""``fast`` does not subtract the largest element first; ``log`` gives the logarithm."""

SOFTMAX_MODES: Final = ("channel", "instance")
"""Normalised over axis 1, or over all axes but the first."""

_DTYPES = ("float16", "float32", "float64")


def check_like(name: str, array: Array, **others: Array) -> None:
    """All arrays have the shape, dtype and device of ``array``, and it is a floating-point one.

    Raises:
        ArgumentError: a shape or a device differs.
        DTypeError: a dtype differs, or is none of float16, float32, float64.
    """
    if dtype_name(array) not in _DTYPES:
        raise DTypeError(f"{name} is {dtype_name(array)}; wanted one of {', '.join(_DTYPES)}")
    for other, value in others.items():
        if value.shape != array.shape:
            raise ArgumentError(f"{other} has shape {value.shape}; wanted {name}'s, {array.shape}")
        if value.dtype != array.dtype:
            raise DTypeError(f"{name} is {dtype_name(array)} and {other} {dtype_name(value)}")
        if device_of(value) != device_of(array):
            raise ArgumentError(f"{name} is on {device_of(array)}, {other} on {device_of(value)}")


def check_dropout(ratio: float, reserve: Array, needed: int) -> None:
    """A ratio is a probability, and the reserve has room for the mask.

    Raises:
        ArgumentError: it is not, or has not.
    """
    if not 0 <= ratio <= 1:
        raise ArgumentError(f"the dropout ratio is {ratio}; wanted a number from 0 to 1")
    if reserve.nbytes < needed:
        raise ArgumentError(f"the reserve of dropout has {reserve.nbytes} bytes; wanted {needed}")


def check_softmax(x: Array, algorithm: str, mode: str) -> None:
    """x has the axes that the mode speaks of.

    Raises:
        ArgumentError: it has not, or there is no such algorithm or mode.
    """
    check_name("algorithm", algorithm, SOFTMAX_ALGORITHMS)
    check_name("mode", mode, SOFTMAX_MODES)
    if x.ndim < 2:
        raise ArgumentError(f"softmax takes arrays of two or more axes; got shape {x.shape}")


def check_activation(function: str) -> None:
    """There is such an activation.

    Raises:
        UnsupportedError: ``identity``, which cuDNN has only inside a convolution.
        ArgumentError: another name.
    """
    if function == "identity":
        raise UnsupportedError(
            "cuDNN has the activation 'identity' only inside a convolution; use the array itself"
        )
    check_name("function", function, FUNCTIONS)
