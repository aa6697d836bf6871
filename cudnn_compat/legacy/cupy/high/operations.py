"""Softmax and activations."""

from __future__ import annotations

import math

from cudnn_compat.arrays import Array, check_array, device_of, plain
from cudnn_compat.engines.choose import choose_engine
from cudnn_compat.errors import ArgumentError
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.translate import ACTIVATIONS, SOFTMAXES, choice, float_name

__all__ = ["activation_backward", "activation_forward", "softmax_backward", "softmax_forward"]


@old_name("cudnn")
def softmax_forward(x: Array, axis: int, algorithm: int) -> Array:
    """Softmax over one axis.

    Args:
        x: any shape; float16, float32 or float64.
        algorithm: ``CUDNN_SOFTMAX_ACCURATE``, ``CUDNN_SOFTMAX_FAST`` (which does not subtract the
            largest element first) or ``CUDNN_SOFTMAX_LOG`` (the logarithm).

    Returns:
        A new array of x's shape.
    """
    check_array("x", x)
    x = plain(x)
    shape = _around(x, axis)
    y = _empty_like(x)
    choose_engine(None, x).softmax_forward(
        x.reshape(shape),
        y=y.reshape(shape),
        algorithm=choice("algorithm", algorithm, SOFTMAXES),
        mode="channel",
    )
    return y


@old_name("cudnn")
def softmax_backward(y: Array, gy: Array, axis: int, algorithm: int) -> Array:
    """The gradient, from the y that forward gave with the same axis and algorithm."""
    check_array("y", y)
    check_array("gy", gy)
    y, gy = plain(y), plain(gy)
    shape = _around(y, axis)
    if gy.shape != y.shape:
        raise ArgumentError(f"gy has shape {gy.shape}; wanted y's, {y.shape}")
    gx = _empty_like(y)
    choose_engine(None, y).softmax_backward(
        y.reshape(shape),
        gy.reshape(shape),
        dx=gx.reshape(shape),
        algorithm=choice("algorithm", algorithm, SOFTMAXES),
        mode="channel",
    )
    return gx


@old_name("cudnn")
def activation_forward(x: Array, mode: int, coef: float = 0.0) -> Array:
    """An activation of each element.

    Args:
        x: any shape; float16, float32 or float64.
        mode: ``CUDNN_ACTIVATION_SIGMOID``, ``_RELU``, ``_TANH``, ``_CLIPPED_RELU`` or ``_ELU``.
        coef: the ceiling of the clipped relu, alpha of elu.

    Returns:
        A new array of x's shape.

    Raises:
        CuDNNError: another mode; ``_IDENTITY`` never worked outside a convolution.
    """
    check_array("x", x)
    x = plain(x)
    y = _empty_like(x)
    choose_engine(None, x).activation_forward(
        x, y=y, function=choice("mode", mode, ACTIVATIONS), coef=coef
    )
    return y


@old_name("cudnn")
def activation_backward(x: Array, y: Array, gy: Array, mode: int, coef: float = 0.0) -> Array:
    """The gradient, from forward's x and y."""
    for name, array in (("x", x), ("y", y), ("gy", gy)):
        check_array(name, array)
    x, y, gy = plain(x), plain(y), plain(gy)
    gx = _empty_like(x)
    choose_engine(None, x).activation_backward(
        x, y, gy, dx=gx, function=choice("mode", mode, ACTIVATIONS), coef=coef
    )
    return gx


def _empty_like(array: Array) -> Array:
    return choose_engine(None, array).empty(array.shape, float_name(array), device_of(array))


def _around(array: Array, axis: int) -> tuple[int, int, int]:
    """The shape with the axes before ``axis`` as one, and those behind it."""
    axes = array.ndim
    if not -axes <= axis < axes:
        raise ArgumentError(f"axis is {axis}; the array has shape {array.shape}")
    axis %= axes
    shape = array.shape
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
