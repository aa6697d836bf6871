"""What the cases of the CuPy dialect start from."""

from __future__ import annotations

from typing import Any

import numpy as np

from cudnn_compat import v2


def variables() -> dict[str, Any]:
    """Fresh arrays, the same each time.

    Sequences of 5, 4 and 2 steps, packed (``xs``) and padded (``x3``); an LSTM of two layers
    (``w``), a GRU (``wg``), a GRU of two directions (``wb``), with their states and gradients.
    """
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    found: dict[str, Any] = {}
    for letter, cell, layers, both in (
        ("", "lstm", 2, False),
        ("g", "gru", 1, False),
        ("b", "gru", 1, True),
    ):
        spec = v2.RNNSpec(cell, 3, 4, num_layers=layers, bidirectional=both)
        rows, features = layers * (1 + both), 4 * (1 + both)
        found |= {
            f"w{letter}": draw(v2.weight_size(spec), 1, 1),
            f"hx{letter}": draw(rows, 3, 4),
            f"dhy{letter}": draw(rows, 3, 4),
            f"dys{letter}": draw(11, features),
            f"dy3{letter}": draw(5, 3, features),
        }
    return found | {
        "sizes": [3, 3, 2, 2, 1],
        "lengths": np.array([5, 4, 2], np.int32),
        "xs": draw(11, 3),
        "x3": draw(5, 3, 3),
        "cx": draw(2, 3, 4),
        "dcy": draw(2, 3, 4),
    }
