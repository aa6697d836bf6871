"""The cells, as equations: one step of one sequence, and its gradient.

Gate k arrives as u_k = W_k x + b_Wk and v_k = R_k h_prev + b_Rk, each ``(H,)`` in float64, in
cuDNN's order of gates:

    relu, tanh   h = relu(u + v), h = tanh(u + v)
    gru          r = σ(u_r + v_r)
                 z = σ(u_z + v_z)
                 n = tanh(u_n + r * v_n)
                 h = (1 - z) * n + z * h_prev
    lstm         i, f, o = σ(u_i + v_i), σ(u_f + v_f), σ(u_o + v_o)
                 g = tanh(u_g + v_g)
                 c = f * clip(c_prev) + i * g
                 h = o * tanh(clip(c))

The c that is handed on is not clipped. A gradient passes a clip inside its bounds and not outside;
relu has slope 0 at 0. Source: NVIDIA's cuDNN API reference, ``cudnnRNNMode_t`` and
``cudnnRNNSetClip_v8``; for the single biases, the clip and its gradient also results recorded from
the library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

__all__ = ["GATES", "GRADIENTS", "STEPS"]

Array: TypeAlias = Any
"""A NumPy array."""

Clip: TypeAlias = tuple[float, float] | None

Step: TypeAlias = Callable[[list[Array], list[Array], Array, Array, Clip], tuple[Array, Array]]
"""(u, v, h_prev, c_prev, clip) to (h before projection, c)."""

Gradient: TypeAlias = Callable[
    [list[Array], list[Array], Array, Array, Clip, Array, Array],
    tuple[list[Array], list[Array], Array, Array],
]
"""(u, v, h_prev, c_prev, clip, dh, dc) to (du, dv, dh_prev, dc_prev).

dh is the whole gradient of h before projection, and dh_prev lacks what goes through v.
"""


def sigmoid(a: Array) -> Array:
    """1 / (1 + exp(-a)), without overflow."""
    return np.exp(-np.logaddexp(0.0, -a))


def clipped(c: Array, clip: Clip) -> Array:
    """c within the bounds."""
    return c if clip is None else np.clip(c, *clip)


def slope_of_clip(c: Array, clip: Clip) -> Array:
    """1 inside the bounds, 0 outside."""
    return np.ones_like(c) if clip is None else (clip[0] <= c) & (c <= clip[1])


def relu(u: list[Array], v: list[Array], h: Array, c: Array, clip: Clip) -> tuple[Array, Array]:
    """One step of a relu network."""
    return np.maximum(u[0] + v[0], 0), c


def relu_gradient(
    u: list[Array], v: list[Array], h: Array, c: Array, clip: Clip, dh: Array, dc: Array
) -> tuple[list[Array], list[Array], Array, Array]:
    """Gradient of :func:`relu`."""
    da = dh * (u[0] + v[0] > 0)
    return [da], [da], np.zeros_like(h), dc


def tanh(u: list[Array], v: list[Array], h: Array, c: Array, clip: Clip) -> tuple[Array, Array]:
    """One step of a tanh network."""
    return np.tanh(u[0] + v[0]), c


def tanh_gradient(
    u: list[Array], v: list[Array], h: Array, c: Array, clip: Clip, dh: Array, dc: Array
) -> tuple[list[Array], list[Array], Array, Array]:
    """Gradient of :func:`tanh`."""
    da = dh * (1 - np.tanh(u[0] + v[0]) ** 2)
    return [da], [da], np.zeros_like(h), dc


def gru(u: list[Array], v: list[Array], h: Array, c: Array, clip: Clip) -> tuple[Array, Array]:
    """One step of a GRU, reset after the recurrent product."""
    r, z = sigmoid(u[0] + v[0]), sigmoid(u[1] + v[1])
    n = np.tanh(u[2] + r * v[2])
    return (1 - z) * n + z * h, c


def gru_gradient(
    u: list[Array], v: list[Array], h: Array, c: Array, clip: Clip, dh: Array, dc: Array
) -> tuple[list[Array], list[Array], Array, Array]:
    """Gradient of :func:`gru`."""
    r, z = sigmoid(u[0] + v[0]), sigmoid(u[1] + v[1])
    n = np.tanh(u[2] + r * v[2])
    da_z = dh * (h - n) * z * (1 - z)
    da_n = dh * (1 - z) * (1 - n**2)
    da_r = da_n * v[2] * r * (1 - r)
    return [da_r, da_z, da_n], [da_r, da_z, da_n * r], dh * z, dc


def lstm(u: list[Array], v: list[Array], h: Array, c: Array, clip: Clip) -> tuple[Array, Array]:
    """One step of an LSTM."""
    i, f, o = sigmoid(u[0] + v[0]), sigmoid(u[1] + v[1]), sigmoid(u[3] + v[3])
    g = np.tanh(u[2] + v[2])
    new_c = f * clipped(c, clip) + i * g
    return o * np.tanh(clipped(new_c, clip)), new_c


def lstm_gradient(
    u: list[Array], v: list[Array], h: Array, c: Array, clip: Clip, dh: Array, dc: Array
) -> tuple[list[Array], list[Array], Array, Array]:
    """Gradient of :func:`lstm`."""
    i, f, o = sigmoid(u[0] + v[0]), sigmoid(u[1] + v[1]), sigmoid(u[3] + v[3])
    g = np.tanh(u[2] + v[2])
    new_c = f * clipped(c, clip) + i * g
    tanh_c = np.tanh(clipped(new_c, clip))
    dc = dc + dh * o * (1 - tanh_c**2) * slope_of_clip(new_c, clip)
    da = [
        dc * g * i * (1 - i),
        dc * clipped(c, clip) * f * (1 - f),
        dc * i * (1 - g**2),
        dh * tanh_c * o * (1 - o),
    ]
    return da, da, np.zeros_like(h), dc * f * slope_of_clip(c, clip)


GATES: Final = {"relu": 1, "tanh": 1, "lstm": 4, "gru": 3}
"""Gates of each cell."""

STEPS: Final[dict[str, Step]] = {"relu": relu, "tanh": tanh, "lstm": lstm, "gru": gru}
"""One step of each cell."""

GRADIENTS: Final[dict[str, Gradient]] = {
    "relu": relu_gradient,
    "tanh": tanh_gradient,
    "lstm": lstm_gradient,
    "gru": gru_gradient,
}
"""The gradient of one step of each cell."""
