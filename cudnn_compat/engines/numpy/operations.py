"""Dropout, softmax and activations as plain operations, by their formulas.

float16 is computed in float32 and rounded once.
"""

from __future__ import annotations

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.numpy.dropout import draw_kept

__all__ = [
    "activation_backward",
    "activation_forward",
    "dropout_backward",
    "dropout_forward",
    "softmax_backward",
    "softmax_forward",
]


def dropout_forward(x: Array, y: Array, reserve: Array, ratio: float, state: DropoutState) -> None:
    """Fill y; the reserve (uint8) gets one byte for each element: whether it is kept."""
    reserve.reshape(-1)[: x.size] = draw_kept(state, ratio, (x.size,))
    dropout_backward(x, y, reserve, ratio)


def dropout_backward(dy: Array, dx: Array, reserve: Array, ratio: float) -> None:
    """Fill dx with ``dy / (1 - ratio)`` where the element was kept, else with zero."""
    kept = reserve.reshape(-1)[: dy.size].reshape(dy.shape).astype(bool)
    if ratio >= 1.0:
        dx[...] = 0
        return
    dx[...] = np.where(kept, _wide(dy) * _wide(dy).dtype.type(1.0 / (1.0 - ratio)), 0)


def softmax_forward(x: Array, y: Array, algorithm: str, axes: tuple[int, ...]) -> None:
    """``exp(x) / sum exp(x)``, or its logarithm, over ``axes``."""
    a = _wide(x)
    if algorithm == "fast":
        e = np.exp(a)
        y[...] = e / e.sum(axis=axes, keepdims=True)
        return
    a = a - a.max(axis=axes, keepdims=True)
    e = np.exp(a)
    total = e.sum(axis=axes, keepdims=True)
    y[...] = a - np.log(total) if algorithm == "log" else e / total


def softmax_backward(y: Array, dy: Array, dx: Array, algorithm: str, axes: tuple[int, ...]) -> None:
    """``y (dy - sum(y dy))``; of the logarithm ``dy - exp(y) sum(dy)``."""
    out, grad = _wide(y), _wide(dy)
    if algorithm == "log":
        dx[...] = grad - np.exp(out) * grad.sum(axis=axes, keepdims=True)
    else:
        dx[...] = out * (grad - (out * grad).sum(axis=axes, keepdims=True))


def activation_forward(x: Array, y: Array, function: str, coef: float) -> None:
    """The activation of each element."""
    a = _wide(x)
    if function == "sigmoid":
        y[...] = 1 / (1 + np.exp(-a))
    elif function == "tanh":
        y[...] = np.tanh(a)
    elif function == "relu":
        y[...] = np.where(a > 0, a, 0)
    elif function == "clipped_relu":
        y[...] = np.where(a > 0, np.minimum(a, a.dtype.type(coef)), 0)
    else:
        y[...] = np.where(a > 0, a, a.dtype.type(coef) * np.expm1(a))


def activation_backward(
    x: Array, y: Array, dy: Array, dx: Array, function: str, coef: float
) -> None:
    """``dy`` times the derivative, which is taken from y where it can be."""
    a, out, grad = _wide(x), _wide(y), _wide(dy)
    if function == "sigmoid":
        dx[...] = grad * out * (1 - out)
    elif function == "tanh":
        dx[...] = grad * (1 - out * out)
    elif function == "relu":
        dx[...] = np.where(a > 0, grad, 0)
    elif function == "clipped_relu":
        dx[...] = np.where((a > 0) & (a < coef), grad, 0)
    else:
        dx[...] = np.where(a > 0, grad, grad * (out + out.dtype.type(coef)))


def _wide(array: Array) -> Array:
    """The array in the dtype to compute in; itself where it is that."""
    return array.astype("float32") if array.dtype.itemsize == 2 else array
