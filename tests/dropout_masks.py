"""Which elements a library dropped, found out from what it returned.

A library's random generator is its own affair, but its masks show in its results: the output of
each step of the last layer depends on which elements of the layers below were dropped, and a small
network has few enough possibilities to try them all. With the masks known, dropout can be checked
like everything else.
"""

from __future__ import annotations

import itertools

import numpy as np

from cudnn_compat import v2
from cudnn_compat.matrix.equations import STEPS

__all__ = ["find_masks"]


def find_masks(
    spec: v2.RNNSpec,
    w: np.ndarray,
    sequences: list[np.ndarray],
    hx: np.ndarray,
    cx: np.ndarray,
    ys: list[np.ndarray],
    *,
    within: float,
) -> list[list[np.ndarray]]:
    """The masks of a unidirectional LSTM of few, small layers, as the slow reference takes them.

    Args:
        sequences: x of each sequence, ``(len_j, I)``; ``ys`` are the outputs.
        within: how far an output may be from what the right masks give. Any other masks must give
            something ten times as far away, so that the answer is certain.

    Returns:
        For each layer but the last one array ``(len_j, H)`` for each sequence.
    """
    scale, weights = 1 / (1 - spec.dropout), v2.named_weights(spec, w.astype(spec.dtype))
    draws = np.array(list(itertools.product((0.0, scale), repeat=spec.hidden_size)))
    found = [
        [np.zeros((len(ys_j), spec.hidden_size)) for ys_j in ys] for _ in range(1, spec.num_layers)
    ]
    for j, xs in enumerate(sequences):
        h, c = hx[:, j].astype(np.float64), cx[:, j].astype(np.float64)
        for t, x in enumerate(xs):
            # Candidates lie along the first axis; each boundary between layers multiplies them.
            entering, outputs, cells = x[None].astype(np.float64), [], []
            for layer in range(spec.num_layers):
                if layer:
                    entering = (entering[:, None] * draws).reshape(-1, spec.hidden_size)
                gates = range(spec.num_gates)
                of_x = [weights[layer, k] for k in gates]
                of_h = [weights[layer, spec.num_gates + k] for k in gates]
                entering, cell = STEPS[spec.cell](
                    [entering @ p.matrix.astype(np.float64).T + p.bias for p in of_x],
                    [p.matrix.astype(np.float64) @ h[layer] + p.bias for p in of_h],
                    h[layer],
                    c[layer],
                    spec.clip,
                )
                outputs.append(entering)
                cells.append(cell)
            distances = np.abs(entering - ys[j][t]).max(axis=1)
            best, second = np.argsort(distances)[:2]
            assert distances[best] <= within, f"no masks give y of sequence {j}, step {t}"
            assert distances[second] >= 10 * within, f"several masks give y of {j}, step {t}"
            for layer in reversed(range(spec.num_layers)):
                h[layer], c[layer] = outputs[layer][best], cells[layer][best]
                best, drawn = divmod(best, len(draws))
                if layer:
                    found[layer - 1][j][t] = draws[drawn]
    return found
