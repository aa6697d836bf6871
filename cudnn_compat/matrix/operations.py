"""Softmax, activations and dropout: data, and what they are as formulas in float64."""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.matrix.comparing import Case
from cudnn_compat.matrix.shapes import ArrayShape

__all__ = [
    "ACTIVATIONS",
    "COEF",
    "SOFTMAXES",
    "Operands",
    "activation",
    "activation_gradient",
    "softmax",
    "softmax_gradient",
]

ACTIVATIONS: Final = {"sigmoid": 0, "relu": 1, "tanh": 2, "clipped_relu": 3, "elu": 4}
"""``CUDNN_ACTIVATION_*``."""

SOFTMAXES: Final = {"fast": 0, "accurate": 1, "log": 2}
"""``CUDNN_SOFTMAX_*``."""

COEF: Final = 0.75
"""The ceiling of the clipped relu, alpha of elu."""


class Operands:
    """x and the gradient of y, multiples of 1/64 that are no corner of an activation.

    Attributes:
        x, dy: float64, exact in every dtype.
        axis: the axis that the operation runs along, where it has one.
    """

    def __init__(self, case: Case) -> None:
        assert isinstance(case.row.shape, ArrayShape)
        self.case, self.shape = case, case.row.shape
        self.axis = self.shape.axis or 0
        generator = np.random.default_rng(zlib.crc32(self.shape.label.encode()))
        # Odd multiples of 1/64: 0 and COEF are even ones.
        self.x, self.dy = (
            (2 * generator.integers(-96, 96, self.shape.dims) + 1) / 64.0 for _ in range(2)
        )

    def rounded(self, values: Array) -> Array:
        """What the row's dtype makes of values, exactly."""
        return values.astype(self.case.dtype).astype(np.float64)


def softmax(x: Array, algorithm: str, axis: int | tuple[int, ...]) -> Array:
    """exp(x) / Σ exp(x), or its logarithm."""
    powers = np.exp(x)
    y = powers / powers.sum(axis, keepdims=True)
    return np.log(y) if algorithm == "log" else y


def softmax_gradient(y: Array, dy: Array, algorithm: str, axis: int | tuple[int, ...]) -> Array:
    """dx from the y of the forward."""
    if algorithm == "log":
        return dy - np.exp(y) * dy.sum(axis, keepdims=True)
    return y * (dy - (y * dy).sum(axis, keepdims=True))


def activation(x: Array, function: str) -> Array:
    """The function of each element."""
    formulas: dict[str, Any] = {
        "sigmoid": lambda: 1 / (1 + np.exp(-x)),
        "relu": lambda: np.where(x > 0, x, 0),
        "tanh": lambda: np.tanh(x),
        "clipped_relu": lambda: np.clip(x, 0, COEF),
        "elu": lambda: np.where(x > 0, x, COEF * (np.exp(x) - 1)),
    }
    y: Array = formulas[function]()
    return y


def activation_gradient(x: Array, dy: Array, function: str) -> Array:
    """dx: dy times the slope at x."""
    slopes: dict[str, Any] = {
        "sigmoid": lambda: np.exp(-x) / (1 + np.exp(-x)) ** 2,
        "relu": lambda: x > 0,
        "tanh": lambda: 1 / np.cosh(x) ** 2,
        "clipped_relu": lambda: (x > 0) & (x < COEF),
        "elu": lambda: np.where(x > 0, 1, COEF * np.exp(x)),
    }
    return dy * slopes[function]()
