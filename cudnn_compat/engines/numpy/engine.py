"""The calls of the engine interface, on NumPy arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from contextlib import AbstractContextManager

import numpy as np

from cudnn_compat.arrays import Array, numpy_dtype
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cache import BoundedCache, Kept
from cudnn_compat.engines.interface import Gradients, GradientShapes, Outputs, Shapes
from cudnn_compat.engines.numpy import backward, forward, operations
from cudnn_compat.engines.numpy.plan import NumpyPlan
from cudnn_compat.engines.operations import (
    check_activation,
    check_dropout,
    check_like,
    check_softmax,
)
from cudnn_compat.engines.outputs import fresh_gradients, fresh_outputs
from cudnn_compat.errors import UnsupportedError
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec

__all__ = ["NumpyEngine"]


_ANYWHERE = contextlib.nullcontext()


class NumpyEngine:
    """Computes with NumPy on the host. Safe to use from many threads."""

    name = "numpy"

    def __init__(self) -> None:
        self.plans: BoundedCache[NumpyPlan] = BoundedCache(256)

    def clear(self) -> None:
        """Let go of all plans."""
        self.plans.clear()

    def plan(
        self,
        spec: RNNSpec,
        sequences: Sequences,
        *,
        training: bool,
        device: str = "cpu",
        begins: bool = True,
    ) -> NumpyPlan:
        """The plan for a spec and a geometry, from a cache of 256.

        Raises:
            UnsupportedError: ``math="half"``.
        """
        shape = _shape(spec, sequences, training)
        return self.plans.get(shape, lambda: _make(*shape))

    def keep_plan(
        self, spec: RNNSpec, sequences: Sequences, *, training: bool, device: str = "cpu"
    ) -> tuple[Kept[NumpyPlan], NumpyPlan]:
        """See :meth:`cudnn_compat.engines.interface.Engine.keep_plan`."""
        shape = _shape(spec, sequences, training)
        return self.plans.keep(shape, lambda: _make(*shape))

    def on(self, device: str = "cpu") -> AbstractContextManager[None]:
        """Nothing to be found."""
        return _ANYWHERE

    def empty(self, shape: tuple[int, ...], dtype: str, device: str = "cpu") -> Array:
        """An uninitialised array."""
        return np.empty(shape, numpy_dtype(dtype))

    def zeros(self, shape: tuple[int, ...], dtype: str, device: str = "cpu") -> Array:
        """An array of zeros."""
        return np.zeros(shape, numpy_dtype(dtype))

    def results(
        self, shapes: Iterable[tuple[int, ...] | None], dtype: str, device: str = "cpu"
    ) -> list[Array | None]:
        """See :meth:`cudnn_compat.engines.interface.Engine.results`."""
        kind = numpy_dtype(dtype)
        return [None if shape is None else np.empty(shape, kind) for shape in shapes]

    def reserve(self, plan: NumpyPlan, sequences: Sequences, device: str = "cpu") -> Array:
        """See :meth:`cudnn_compat.engines.interface.Engine.reserve`."""
        return np.empty((plan.reserve_bytes(sequences),), "uint8")

    def stream(self, device: str = "cpu") -> None:
        """None: calls return when they are done."""

    def follow(self, stream: None, device: str = "cpu") -> None:
        """Nothing to wait for."""

    def outputs(
        self,
        plan: NumpyPlan,
        sequences: Sequences,
        shapes: Shapes,
        w: Array,
        x: Array,
        hx: Array | None,
        cx: Array | None,
        *,
        dropout: DropoutState | None,
    ) -> Outputs:
        """See :meth:`cudnn_compat.engines.interface.Engine.outputs`."""
        return fresh_outputs(self, plan, sequences, shapes, w, x, hx, cx, dropout)

    def forward(
        self,
        plan: NumpyPlan,
        sequences: Sequences,
        w: Array,
        x: Array,
        hx: Array | None,
        cx: Array | None,
        *,
        y: Array,
        hy: Array | None,
        cy: Array | None,
        reserve: Array | None,
        dropout: DropoutState | None,
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.forward`."""
        # 1 + exp(-a) is infinite far to the left, where the sigmoid is rightly 0, and exp(-a)
        # vanishes far to the right: no matter for a caller who made NumPy strict.
        with np.errstate(over="ignore", under="ignore"):
            forward.run(plan, sequences, w, x, hx, cx, y, hy, cy, reserve, dropout)

    def backward_data(
        self,
        plan: NumpyPlan,
        sequences: Sequences,
        w: Array,
        x: Array,
        hx: Array | None,
        cx: Array | None,
        y: Array,
        reserve: Array,
        *,
        dy: Array | None,
        dhy: Array | None,
        dcy: Array | None,
        dx: Array,
        dhx: Array,
        dcx: Array | None,
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.backward_data`."""
        with np.errstate(over="ignore", under="ignore"):  # as on a GPU: infinite, or zero
            backward.run_data(plan, sequences, w, hx, cx, y, reserve, dy, dhy, dcy, dx, dhx, dcx)

    def backward_weights(
        self,
        plan: NumpyPlan,
        sequences: Sequences,
        w: Array,
        x: Array,
        hx: Array | None,
        y: Array,
        reserve: Array,
        *,
        dw: Array,
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.backward_weights`."""
        with np.errstate(over="ignore", under="ignore"):
            backward.run_weights(plan, sequences, x, hx, y, reserve, dw)

    def backward(
        self,
        plan: NumpyPlan,
        sequences: Sequences,
        w: Array,
        x: Array,
        hx: Array | None,
        cx: Array | None,
        y: Array,
        reserve: Array,
        *,
        dy: Array | None,
        dhy: Array | None,
        dcy: Array | None,
        dx: Array,
        dhx: Array,
        dcx: Array | None,
        dw: Array,
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.backward`."""
        given = (plan, sequences, w, x, hx, cx, y, reserve)
        self.backward_data(*given, dy=dy, dhy=dhy, dcy=dcy, dx=dx, dhx=dhx, dcx=dcx)
        dw[...] = 0
        self.backward_weights(plan, sequences, w, x, hx, y, reserve, dw=dw)

    def gradients(
        self,
        plan: NumpyPlan,
        sequences: Sequences,
        shapes: GradientShapes,
        w: Array,
        x: Array,
        hx: Array | None,
        cx: Array | None,
        y: Array,
        reserve: Array,
        dy: Array | None,
        dhy: Array | None,
        dcy: Array | None,
    ) -> Gradients:
        """See :meth:`cudnn_compat.engines.interface.Engine.gradients`."""
        given = (w, x, hx, cx, y, reserve, dy, dhy, dcy)
        return fresh_gradients(self, plan, sequences, shapes, *given)

    def dropout_reserve_bytes(self, size: int, dtype: str, device: str = "cpu") -> int:
        """One byte for each element."""
        return size

    def dropout_forward(
        self, x: Array, *, y: Array, reserve: Array, ratio: float, state: DropoutState
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.dropout_forward`."""
        check_like("x", x, y=y)
        check_dropout(ratio, reserve, x.size)
        operations.dropout_forward(x, y, reserve, ratio, state)

    def dropout_backward(self, dy: Array, *, dx: Array, reserve: Array, ratio: float) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.dropout_backward`."""
        check_like("dy", dy, dx=dx)
        check_dropout(ratio, reserve, dy.size)
        with np.errstate(under="ignore"):
            operations.dropout_backward(dy, dx, reserve, ratio)

    def softmax_forward(self, x: Array, *, y: Array, algorithm: str, mode: str) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.softmax_forward`."""
        check_like("x", x, y=y)
        check_softmax(x, algorithm, mode)
        if x.size:
            # "fast" overflows where the library's does; an infinite x has no softmax.
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                operations.softmax_forward(x, y, algorithm, _axes(x, mode))

    def softmax_backward(
        self, y: Array, dy: Array, *, dx: Array, algorithm: str, mode: str
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.softmax_backward`."""
        check_like("y", y, dy=dy, dx=dx)
        check_softmax(y, algorithm, mode)
        with np.errstate(under="ignore", invalid="ignore"):
            operations.softmax_backward(y, dy, dx, algorithm, _axes(y, mode))

    def activation_forward(self, x: Array, *, y: Array, function: str, coef: float) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.activation_forward`."""
        check_like("x", x, y=y)
        check_activation(function)
        with np.errstate(over="ignore", under="ignore"):
            operations.activation_forward(x, y, function, coef)

    def activation_backward(
        self, x: Array, y: Array, dy: Array, *, dx: Array, function: str, coef: float
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.activation_backward`."""
        check_like("x", x, y=y, dy=dy, dx=dx)
        check_activation(function)
        with np.errstate(over="ignore", under="ignore"):
            operations.activation_backward(x, y, dy, dx, function, coef)


def _axes(x: Array, mode: str) -> tuple[int, ...]:
    return (1,) if mode == "channel" else tuple(range(1, x.ndim))


def _shape(
    spec: RNNSpec, sequences: Sequences, training: bool
) -> tuple[RNNSpec, str, int, int, bool, bool]:
    """What a plan is for."""
    layout, ragged = sequences.layout, sequences.ragged
    return spec, layout, sequences.steps, sequences.batch, ragged, training


def _make(
    spec: RNNSpec, layout: str, steps: int, batch: int, ragged: bool, training: bool
) -> NumpyPlan:
    if spec.math == "half":
        raise UnsupportedError(
            "the NumPy engine has no float16 arithmetic (math='half'); "
            "use math='default', which computes float16 data in float32"
        )
    return NumpyPlan(spec, layout, steps, batch, ragged, training)
