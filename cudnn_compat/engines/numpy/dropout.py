"""Dropout masks of the NumPy engine."""

from __future__ import annotations

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.dropout import DropoutState

__all__ = ["draw_mask"]


def draw_mask(state: DropoutState, ratio: float, out: Array) -> None:
    """Fill ``out`` with 0 (probability ``ratio``) and 1/(1 - ratio); advances the generator."""
    with state.lock:
        generator = state.realise("numpy", np.random.default_rng)
        draws = generator.random(out.shape, dtype=np.float32)
    if ratio >= 1.0:
        out[...] = 0
    else:
        np.multiply(draws >= ratio, 1.0 / (1.0 - ratio), out=out, casting="unsafe")
