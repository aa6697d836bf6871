"""What the cases of the RNNDesc dialect start from."""

from __future__ import annotations

from typing import Any

import numpy as np


def variables() -> dict[str, Any]:
    """Fresh arrays, the same each time: weights of an LSTM (4, 3 → 4), and of a GRU."""
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    return {
        "Wi": draw(16, 3),
        "Wh": draw(16, 4),
        "b": draw(16),
        "x": draw(3, 5),
        "h": draw(4, 5),
        "c": draw(4, 5),
        "dy": draw(4, 5),
        "dho": draw(4, 5),
        "dco": draw(4, 5),
        "x1": draw(3),
        "h1": draw(4),
        "c1": draw(4),
    }
