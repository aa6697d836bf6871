"""Dropout masks of the NumPy engine."""

from __future__ import annotations

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.dropout import DropoutState

__all__ = ["draw_kept", "draw_mask"]


def draw_kept(state: DropoutState, ratio: float, shape: tuple[int, ...]) -> Array:
    """Which elements are kept, with probability ``1 - ratio``; advances the generator."""
    with state.lock:
        generator = state.realise("numpy", np.random.default_rng)
        draws = generator.random(shape, dtype=np.float32)
    return draws >= ratio


def draw_mask(state: DropoutState, ratio: float, out: Array) -> None:
    """Fill ``out`` with 0 (probability ``ratio``) and 1/(1 - ratio); advances the generator."""
    kept = draw_kept(state, ratio, out.shape)
    if ratio >= 1.0:
        out[...] = 0
    else:
        np.multiply(kept, 1.0 / (1.0 - ratio), out=out, casting="unsafe")
