"""One step of a network for the tests of the old API, and what it has to give.

The right answers come from the slow reference (float64, engine-free) on a weight space that is put
together here by hand: ``Wi``, ``Wh``, one bias, and zeros for the bias that old callers never saw.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cudnn_compat import legacy
from cudnn_compat.matrix.reference import reference_backward, reference_forward
from cudnn_compat.matrix.tolerances import tolerance
from cudnn_compat.spec import RNNSpec
from tests.engine import Engine

HOST = Engine("numpy", np)
INPUT, HIDDEN = 3, 4
MODES = {
    "relu": legacy.CUDNN_RNN_RELU,
    "tanh": legacy.CUDNN_RNN_TANH,
    "lstm": legacy.CUDNN_LSTM,
    "gru": legacy.CUDNN_GRU,
}
GATES = {"relu": 1, "tanh": 1, "lstm": 4, "gru": 3}


@dataclasses.dataclass
class Step:
    """Arguments of one step as an old program has them: feature-first, Fortran-ordered."""

    cell: str
    batch: int | None = 5
    """None: x is a vector."""
    state: str = "batch"
    """``"vector"`` (hidden,), ``"column"`` (hidden, 1) or ``"batch"`` (hidden, batch)."""
    dtype: str = "float64"
    with_cell: bool = True
    """Whether an LSTM is called with c."""
    engine: Engine = dataclasses.field(default=HOST, repr=False)
    """Where the arrays are; old programs said it by their arrays and ``xp``."""

    def __post_init__(self) -> None:
        # From the text of the fields, so that every engine gets the same numbers.
        self._random = np.random.default_rng(list(repr(self).encode()))
        rows = GATES[self.cell] * HIDDEN
        self.Wi, self.Wh, self.b = self.draw(rows, INPUT), self.draw(rows, HIDDEN), self.draw(rows)
        self.desc = legacy.RNNDesc(
            MODES[self.cell], INPUT, HIDDEN, dtype=self.dtype, xp=self.engine.xp
        )
        legacy.setweights(self.desc, self.Wi, self.Wh, self.b)
        self.x = self.draw(INPUT) if self.batch is None else self.draw(INPUT, self.batch)
        shapes: dict[str, tuple[int, ...]] = {
            "vector": (HIDDEN,),
            "column": (HIDDEN, 1),
            "batch": (HIDDEN, self.columns),
        }
        self.h = self.draw(*shapes[self.state])
        self.c = self.draw(*shapes[self.state]) if self.has_c else None
        self.dy = self.draw(HIDDEN) if self.batch is None else self.draw(HIDDEN, self.batch)
        self.dho = self.draw(*self.state_shape)
        self.dco = self.draw(*self.state_shape) if self.has_c else None

    @property
    def columns(self) -> int:
        return 1 if self.batch is None else self.batch

    @property
    def has_c(self) -> bool:
        return self.cell == "lstm" and self.with_cell

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Of ho and dh: a vector only where x and h are."""
        vector = self.batch is None and self.state == "vector"
        return (HIDDEN,) if vector else (HIDDEN, self.columns)

    @property
    def states(self) -> list[Any]:
        """h, or h and c: what follows x in a call."""
        return [self.h] if self.c is None else [self.h, self.c]

    @property
    def after(self) -> list[Any]:
        """Gradients of what a step returns: dy, dho and, with c, dco."""
        return [self.dy, self.dho] if self.dco is None else [self.dy, self.dho, self.dco]

    def draw(self, *shape: int) -> Any:
        values = self._random.uniform(-1, 1, shape)
        return self.engine.put(np.asfortranarray(values.astype(self.dtype)))

    def run_forward(self, **options: Any) -> Any:
        return legacy.forward(self.desc, self.x, *self.states, **options)

    def right(self) -> list[np.ndarray]:
        """What forward has to give, float64, in the caller's form."""
        out = self._reference()
        y = np.stack([rows[0] for rows in out.ys], axis=-1)
        answers = [y if self.batch is not None else y[:, 0], self._state(out.hy)]
        return [*answers, self._state(out.cy)] if self.has_c else answers

    def right_gradients(
        self, dy: Any = None, dho: Any = None, dco: Any = None
    ) -> dict[str, np.ndarray]:
        """What pullback has to give for these gradients, float64; None is zeros."""
        dys = [np.zeros((1, HIDDEN)) for _ in range(self.columns)]
        if dy is not None:
            dys = [column[None] for column in self._get(dy).reshape(HIDDEN, -1).T]
        found = reference_backward(
            self._reference(), dys, *(None if d is None else self._batched(d) for d in (dho, dco))
        )
        dx = np.stack([rows[0] for rows in found.dxs], axis=-1)
        of_wi, of_wh = self.Wi.size, self.Wh.size
        answers = {
            "x": dx if self.batch is not None else dx[:, 0],
            "h": self._state(found.dhx),
            "c": self._state(found.dcx) if self.has_c else None,
            "Wi": found.dw[:of_wi].reshape(self.Wi.shape).T,
            "Wh": found.dw[of_wi : of_wi + of_wh].reshape(self.Wh.shape).T,
            "b": found.dw[of_wi + of_wh :][: len(self.b)],
        }
        return {name: value for name, value in answers.items() if value is not None}

    def _reference(self) -> Any:
        flat = [np.ascontiguousarray(self._get(a)).ravel() for a in (self.Wi, self.Wh, self.b)]
        w = np.concatenate([*flat, np.zeros(len(self.b))])
        sequences = [column[None] for column in self._get(self.x).reshape(INPUT, -1).T]
        c = None if self.c is None else self._batched(self.c)
        spec = RNNSpec(self.cell, INPUT, HIDDEN, dtype=self.dtype)
        return reference_forward(spec, w, sequences, self._batched(self.h), c)

    def _get(self, array: Any) -> np.ndarray:
        return np.asarray(self.engine.get(array))

    def _batched(self, state: Any) -> np.ndarray:
        columns = self._get(state).reshape(HIDDEN, -1)
        return np.broadcast_to(columns, (HIDDEN, self.columns)).T[None]

    def _state(self, state: Any) -> np.ndarray:
        return np.asarray(state)[0].T.reshape(self.state_shape)


def on_host(array: Any) -> np.ndarray:
    """An array of any engine as a NumPy array."""
    return array.get() if hasattr(array, "get") else array


def assert_close(found: Any, right: Any, dtype: str = "float64", what: str = "output") -> None:
    """Same shape, the descriptor's dtype, and within the tolerance of that dtype."""
    engine, found = ("numpy" if isinstance(found, np.ndarray) else "cudnn"), on_host(found)
    assert found.dtype == dtype
    assert found.shape == right.shape
    bound = tolerance(dtype, "full", engine=engine, what=what)
    assert np.max(np.abs(found.astype("float64") - right), initial=0.0) <= bound


def assert_same(found: Any, right: Any) -> None:
    """Equal to the bit on NumPy; on cuDNN within the tolerance: see ``networks.same``."""
    assert type(found) is type(right)
    if isinstance(found, np.ndarray):
        np.testing.assert_array_equal(found, right)
    else:
        assert_close(found, on_host(right), found.dtype.name)


def by_hand(step: Step, dy, dho, dco=None) -> dict[str, Any]:
    """Gradients from the three separate calls, under the names that pullback gives."""
    reserve, (y, *_) = legacy.forwardTrain(step.desc, step.x, *step.states)
    if step.c is not None:
        data = legacy.backwardData(step.desc, y, dy, dho, dco, step.h, step.c, reserve)
    else:
        data = legacy.backwardData(step.desc, y, dy, dho, step.h, reserve)
    (dWi, dWh), db = legacy.backwardWeights(step.desc, step.x, step.h, y, reserve)
    names = ("x", "h", "c") if step.c is not None else ("x", "h")
    return dict(zip(names, data, strict=True)) | {"Wi": dWi, "Wh": dWh, "b": db}


def by_pullback(step: Step, *after) -> dict[str, Any]:
    _, back = legacy.pullback(step.desc, step.x, *step.states)
    return back(*after)._asdict()
