"""The networks of the frozen program as plain equations, which use nothing of this package.

Everything is (features, batch), vectors are columns, and all numbers may be complex: gradients come
from complex steps. For an analytic f, f(p + ih).imag / h is the derivative without a difference
being taken, so that h may be tiny and the result is exact to rounding (Squire and Trapp, SIAM
Review 40, 1998). One call serves all entries of an array: axes before the last two are broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray
STEP = 1e-30


def sigmoid(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))


def cell_step(kind: str, weights: Sequence[Array], x: Array, state: Sequence[Array]) -> list[Array]:
    """The new state, whose first part is the output. ``weights`` are Wi, Wh, b, gate by gate."""
    Wi, Wh, b = weights
    h = state[0]
    a, r = Wi @ x + b, Wh @ h
    if kind == "tanh":
        return [np.tanh(a + r)]
    if kind == "relu":
        return [np.where((a + r).real > 0, a + r, 0)]
    if kind == "gru":
        a_r, a_z, a_n = np.split(a, 3, axis=-2)
        r_r, r_z, r_n = np.split(r, 3, axis=-2)
        reset, update = sigmoid(a_r + r_r), sigmoid(a_z + r_z)
        return [(1 - update) * np.tanh(a_n + reset * r_n) + update * h]
    assert kind == "lstm"
    i, f, g, o = np.split(a + r, 4, axis=-2)
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(c), c]


@dataclass
class PlainModel:
    """Cells one above the other, then W y + b.

    ``arrays`` are Wi, Wh, b, h (and c) of each cell, then W and b, where h and c are the state
    before the first step.
    """

    kinds: list[str]
    arrays: list[Array]

    def outputs(
        self, arrays: list[Array], xs: Sequence[Array], states: Sequence[Sequence[Array]] = ()
    ) -> tuple[list[Array], list[list[Array]]]:
        """One output per x, with ``arrays`` in place of the model's, and the cells' last states.

        It begins in ``states``, or in the initial ones.
        """
        rest = iter(arrays)
        cells, initial = [], []
        for kind in self.kinds:
            cells.append((kind, [next(rest) for _ in range(3)]))
            initial.append([next(rest) for _ in range(2 if kind == "lstm" else 1)])
        W, b = rest
        now = [list(state) for state in states or initial]
        ys = []
        for y in xs:
            for k, (kind, weights) in enumerate(cells):
                now[k] = cell_step(kind, weights, y, now[k])
                y = now[k][0]
            ys.append(W @ y + b)
        return ys, now


def plain_copy(model: Any) -> PlainModel:
    """The frozen library's ``model`` with its parameters as they are now."""
    kinds = [layer.cell.kind for layer in model.layers[:-1]]
    return PlainModel(kinds, [np.array(p, float).reshape(len(p), -1) for p in model.params()])


def mean_squared_error(ys: Sequence[Array], targets: Sequence[Array]) -> Any:
    """Mean over steps, features and batch."""
    each = [((y - t) ** 2).mean(axis=(-2, -1)) for y, t in zip(ys, targets, strict=True)]
    return sum(each) / len(each)


def derivatives(value: Callable[[list[Array]], Any], arrays: list[Array]) -> list[Array]:
    """d value(arrays) / d array, for each of ``arrays``."""
    result = []
    for k, array in enumerate(arrays):
        steps = 1j * STEP * np.eye(array.size).reshape(array.size, *array.shape)
        moved = value([*arrays[:k], array + steps, *arrays[k + 1 :]])
        d = np.imag(np.broadcast_to(moved, array.size)) / STEP
        result.append(d.reshape(array.shape))
    return result


@dataclass
class PlainOptimiser:
    """Gradient descent, or Adam (Kingma and Ba, 2015, algorithm 1), in place."""

    rate: float
    adam: bool
    t: int = 0
    moments: list[tuple[Any, Any]] = field(default_factory=list)

    def update(self, arrays: list[Array], gradients: list[Array]) -> None:
        self.t += 1
        before = self.moments or [(0.0, 0.0)] * len(arrays)
        self.moments = []
        for array, g, (m, v) in zip(arrays, gradients, before, strict=True):
            if not self.adam:
                array -= self.rate * g
                continue
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
            m_hat, v_hat = m / (1 - 0.9**self.t), v / (1 - 0.999**self.t)
            array -= self.rate * m_hat / (np.sqrt(v_hat) + 1e-8)
            self.moments.append((m, v))
