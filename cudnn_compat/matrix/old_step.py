"""One step of the old API: its arguments and the right answers, features first.

The reference sees one step of a batch, of a network with one bias.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cudnn_compat import legacy
from cudnn_compat.arrays import Array
from cudnn_compat.matrix.comparing import Case, Comparison, Found
from cudnn_compat.matrix.equations import GATES
from cudnn_compat.matrix.problems import Problem, problem
from cudnn_compat.matrix.shapes import HIDDEN, INPUT, SequenceShape, StepShape
from cudnn_compat.spec import RNNSpec

__all__ = ["MODES", "Step", "turned"]

MODES: Final = {"relu": 0, "tanh": 1, "lstm": 2, "gru": 3}


class Step:
    """The arguments of an old call, and the right answers, features first."""

    def __init__(self, case: Case) -> None:
        assert isinstance(case.row.shape, StepShape)
        self.case, self.shape = case, case.row.shape
        self.cell = case.cell
        self.has_cell = self.cell == "lstm"
        batch = self.shape.columns
        spec = RNNSpec(self.cell, INPUT, HIDDEN, bias="input")
        same = self.shape.state != "full"
        self.problem: Problem = problem(spec, SequenceShape(1, batch, same_state=same))
        self.gates = GATES[self.cell] * HIDDEN
        self.x = self.features_first(np.concatenate(self.problem.xs), self.shape.x_shape)
        self.h, self.c = (self.state(state) for state in (self.problem.hx, self.problem.cx))
        self.dy = self.features_first(np.concatenate(self.problem.dys), self.y_shape)
        self.dho, self.dco = (
            None if state is None else self.features_first(state[0], self.out_shape)
            for state in (self.problem.dhy, self.problem.dcy)
        )

    @property
    def y_shape(self) -> tuple[int, ...]:
        """y is a vector where x is one."""
        return (HIDDEN, *self.shape.x_shape[1:])

    @property
    def out_shape(self) -> tuple[int, ...]:
        """ho, co and their gradients are vectors where x and h are."""
        if self.shape.batch is None and self.shape.state == "vector":
            return (HIDDEN,)
        return (HIDDEN, self.shape.columns)

    def features_first(self, rows: Array, shape: tuple[int, ...]) -> Array:
        """``(batch, features)`` turned, in the row's dtype: the same memory, as in Julia."""
        return self.case.array(rows).T.reshape(shape, order="F")

    def state(self, state: Array | None) -> Array | None:
        """``(1, batch, hidden)`` as the row gives a state."""
        if state is None:
            return None
        rows = state[0] if self.shape.state == "full" else state[0, :1]
        return self.features_first(rows, self.shape.state_shape)

    def states(self) -> tuple[Array, ...]:
        """h, or h and c."""
        assert self.h is not None
        return (self.h,) if self.c is None else (self.h, self.c)

    def parts(self, flat: Array) -> tuple[Array, Array, Array]:
        """Wi ``(G·hidden, input)``, Wh and b of a flat weight space with one bias."""
        ends = np.cumsum([self.gates * INPUT, self.gates * HIDDEN])
        Wi, Wh, b = np.split(flat, ends)
        return Wi.reshape(self.gates, INPUT), Wh.reshape(self.gates, HIDDEN), b

    def output_gradients(self) -> tuple[Array, ...]:
        """dy, dho[, dco]."""
        return (self.dy, self.dho, self.dco) if self.has_cell else (self.dy, self.dho)

    def right_dx(self, right: Any = None) -> Array:
        """dx of right gradients, those of all three by default."""
        right = self.problem.gradients if right is None else right
        return turned(np.concatenate(right.dxs), self.shape.x_shape)

    def weights(self) -> tuple[Array, Array, Array]:
        """What ``setweights`` takes."""
        Wi, Wh, b = map(self.case.array, self.parts(self.problem.w))
        return Wi, Wh, b

    def descriptor(self, mode: int | None = None) -> Any:
        """A descriptor without weights."""
        mode = MODES[self.cell] if mode is None else mode
        return legacy.RNNDesc(mode, INPUT, HIDDEN, dtype=self.case.dtype, xp=self.case.xp)

    def ready(self, mode: int | None = None) -> Any:
        """A descriptor with weights."""
        desc = self.descriptor(mode)
        legacy.setweights(desc, *self.weights())
        return desc

    def compare(self, result: tuple[Array, ...], where: str = "") -> Found:
        """(y, ho[, co])."""
        right = self.problem.output
        yield Comparison("number of results", len(result), 3 if self.has_cell else 2, "exact")
        y = np.concatenate(right.ys)
        yield Comparison("y" + where, result[0], turned(y, self.y_shape))
        yield Comparison("ho" + where, result[1], turned(right.hy[0], self.out_shape))
        if right.cy is not None:
            yield Comparison("co" + where, result[2], turned(right.cy[0], self.out_shape))

    def compare_data(self, found: tuple[Array, ...]) -> Found:
        """(dx, dh[, dc])."""
        right = self.problem.gradients
        yield Comparison("number of gradients", len(found), 3 if self.has_cell else 2, "exact")
        yield Comparison("dx", found[0], self.right_dx(), "gradient")
        yield Comparison("dh", found[1], turned(right.dhx[0], self.out_shape), "gradient")
        if right.dcx is not None:
            yield Comparison("dc", found[2], turned(right.dcx[0], self.out_shape), "gradient")

    def compare_weights(self, d_wi: Array, d_wh: Array, d_b: Array) -> Found:
        """dWi and dWh, transposed against what ``setweights`` takes, and db."""
        Wi, Wh, b = self.parts(self.problem.gradients.dw)
        yield Comparison("dWi", d_wi, Wi.T, "gradient")
        yield Comparison("dWh", d_wh, Wh.T, "gradient")
        yield Comparison("db", d_b, b, "gradient")


def turned(rows: Array, shape: tuple[int, ...]) -> Array:
    """Right ``(batch, features)`` with features first."""
    return rows.T.reshape(shape, order="F")
