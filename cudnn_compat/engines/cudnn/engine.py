"""The calls of the engine interface, on CuPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cudnn_compat.arrays import Array, device_of, load_cupy, numpy_dtype
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cache import BoundedCache
from cudnn_compat.engines.cudnn import backward, forward, fused_calls, long, operations
from cudnn_compat.engines.cudnn.algorithms import check_named
from cudnn_compat.engines.cudnn.choice import Choice
from cudnn_compat.engines.cudnn.device import (
    Session,
    Stream,
    device_index,
    follow,
    fresh,
    is_current,
)
from cudnn_compat.engines.cudnn.fused_plan import FusedPlan
from cudnn_compat.engines.cudnn.plan import (
    MAX_STEPS,
    CudnnPlan,
    EmptyPlan,
    Shape,
)
from cudnn_compat.engines.cudnn.selection import Selection
from cudnn_compat.engines.cudnn.settings import check_version
from cudnn_compat.engines.cudnn.staging import hand_on, input_array, output_array, put_back
from cudnn_compat.engines.interface import Outputs, Shapes
from cudnn_compat.engines.operations import (
    check_activation,
    check_dropout,
    check_like,
    check_softmax,
)
from cudnn_compat.engines.outputs import fresh_outputs
from cudnn_compat.errors import LibraryNotSupported, UnsupportedError
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec

__all__ = ["CudnnEngine"]

_ONE_CALL = (CudnnPlan, FusedPlan)
"""Plans whose calls may be recorded."""

AnyPlan = CudnnPlan | FusedPlan | long.LongPlan | EmptyPlan
"""What serves a call; the cache may hold a :class:`Choice` of them."""


class CudnnEngine:
    """Computes with cuDNN on the device of the arrays, on CuPy's current stream.

    Safe to use from many threads. Work is put on the stream and not waited for; arrays that another
    stream still writes are the caller's to wait for.

    Raises:
        LibraryNotFound: CuPy or cuDNN is missing; says where it was sought and what to install.
    """

    name = "cudnn"

    def __init__(self, max_steps: int = MAX_STEPS) -> None:
        """``max_steps``: longer batches are computed in parts of so many steps."""
        self.max_steps = max_steps
        self.plans: BoundedCache[AnyPlan | Choice] = BoundedCache(256)
        self._selection = Selection()

    def plan(
        self,
        spec: RNNSpec,
        sequences: Sequences,
        *,
        training: bool,
        device: str = "cuda:0",
        begins: bool = True,
    ) -> AnyPlan:
        """The plan for a spec and a geometry, from a cache of 256.

        Raises:
            UnsupportedError: the library is too old for the spec, or refuses its algorithm.
            LibraryError: the library failed in another way.
        """
        key = (
            spec,
            sequences.layout,
            sequences.steps,
            sequences.batch,
            sequences.ragged,
            training,
            device,
        )
        made = self.plans.find(key)
        if made is None:
            made = self.plans.get(key, lambda: self._make(spec, sequences, training, device))
        if not isinstance(made, Choice):
            return made
        return made.current() if begins else made.latest()

    def clear(self) -> None:
        """Let go of all plans and what they share."""
        self.plans.clear()
        self._selection.clear()

    def on(self, device: str = "cuda:0") -> Session:
        """See :meth:`cudnn_compat.engines.interface.Engine.on`."""
        return Session(device_index(device))

    def empty(self, shape: tuple[int, ...], dtype: str, device: str = "cuda:0") -> Array:
        """An uninitialised array on the device."""
        with Session(device_index(device)) as session:
            return session.xp.empty(shape, numpy_dtype(dtype))

    def zeros(self, shape: tuple[int, ...], dtype: str, device: str = "cuda:0") -> Array:
        """An array of zeros on the device, which no kernel of CuPy's has to fill."""
        with Session(device_index(device)) as session:
            return session.xp.zeros(shape, numpy_dtype(dtype))

    def results(
        self, shapes: Iterable[tuple[int, ...] | None], dtype: str, device: str = "cuda:0"
    ) -> list[Array | None]:
        """See :meth:`cudnn_compat.engines.interface.Engine.results`."""
        kind, index, xp = numpy_dtype(dtype), device_index(device), load_cupy()
        shapes = tuple(shapes)
        if xp.cuda.runtime.getDevice() == index:
            return fresh(xp, shapes, kind)
        with xp.cuda.Device(index):
            return fresh(xp, shapes, kind)

    def reserve(self, plan: AnyPlan, sequences: Sequences, device: str = "cuda:0") -> Array:
        """See :meth:`cudnn_compat.engines.interface.Engine.reserve`."""
        with Session(device_index(device)) as session:
            size = plan.reserve_bytes(sequences)
            replays = plan.replays if isinstance(plan, _ONE_CALL) else None
            lent = None if replays is None else replays.reserve(session, size)
            return session.xp.empty((size,), "uint8") if lent is None else lent

    def stream(self, device: str = "cuda:0") -> Stream:
        """Which stream work goes to now."""
        with Session(device_index(device)) as session:
            return session.stream

    def follow(self, stream: Stream, device: str = "cuda:0") -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.follow`."""
        index = device_index(device)
        if not is_current(stream, index):
            with Session(index) as session:
                follow(session, stream)

    def outputs(
        self,
        plan: AnyPlan,
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
        if isinstance(plan, _ONE_CALL) and plan.again is not None and plan.trial is None:
            found = plan.again.forward(shapes, w, x, hx, cx)
            if found is not None:
                return found
        with Session(plan.index):
            return fresh_outputs(self, plan, sequences, shapes, w, x, hx, cx, dropout)

    def forward(
        self,
        plan: AnyPlan,
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
        with Session(plan.index) as session:
            if not sequences.total or isinstance(plan, EmptyPlan):  # the library must not see it
                y[...] = 0
                hand_on(hx, hy)
                hand_on(cx, cy)
            elif isinstance(plan, long.LongPlan):
                long.run(session, plan, sequences, w, x, hx, cx, y, hy, cy, reserve, dropout)
            elif isinstance(plan, FusedPlan):
                fused_calls.run_forward(session, plan, sequences, w, x, hx, cx, y, hy, cy, reserve)
            else:
                given = (w, x, hx, cx, y, hy, cy, reserve, dropout)
                try:
                    forward.run(session, plan, sequences, *given)
                except LibraryNotSupported as error:
                    if plan.spec.algo != "auto" or plan.algo == "standard":
                        raise
                    self._selection.refuse(session, plan, str(error))
                    self.plans.clear()
                    raise UnsupportedError(
                        f"cuDNN refuses {plan.algo}, which algo='auto' chose, for this shape; the "
                        f"next call will run STANDARD. It says: {error}"
                    ) from error

    def backward_data(
        self,
        plan: AnyPlan,
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
        with Session(plan.index) as session:
            given = (w, hx, cx, y, reserve, dy, dhy, dcy, dx, dhx, dcx)
            if not sequences.total or isinstance(plan, EmptyPlan):
                dx[...] = 0
                hand_on(dhy, dhx)
                hand_on(dcy, dcx)
            elif isinstance(plan, long.LongPlan):
                long.run_data(session, plan, sequences, x, *given)
            elif isinstance(plan, FusedPlan):
                gradients = dy, dhy, dcy, dx, dhx, dcx
                fused_calls.run_data(session, plan, sequences, w, cx, reserve, *gradients)
            else:
                backward.run_data(session, plan, sequences, *given)

    def backward_weights(
        self,
        plan: AnyPlan,
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
        with Session(plan.index) as session:
            if not sequences.total or isinstance(plan, EmptyPlan):
                return
            if isinstance(plan, long.LongPlan):
                long.run_weights(session, plan, sequences, x, hx, y, reserve, dw)
            elif isinstance(plan, FusedPlan):
                fused_calls.run_weights(session, plan, sequences, x, reserve, dw)
            else:
                backward.run_weights(session, plan, sequences, x, hx, y, reserve, dw)

    def backward(
        self,
        plan: AnyPlan,
        sequences: Sequences,
        w: Array,
        x: Array,
        hx: Array | None,
        cx: Array | None,
        y: Array,
        reserve: Any,
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
        if isinstance(plan, _ONE_CALL) and plan.trial is None and sequences.total:
            gradients = (dy, dhy, dcy, dx, dhx, dcx, dw)
            given = (w, x, hx, cx, y, reserve)
            if plan.again is not None and plan.again.backward(*given, *gradients):
                return
            with Session(plan.index) as session:
                if isinstance(plan, FusedPlan):
                    fused_calls.run_both(session, plan, sequences, w, x, cx, reserve, *gradients)
                else:
                    backward.run_both(session, plan, sequences, *given, *gradients)
            return
        with Session(plan.index) as session:  # times are taken of each
            self.backward_data(
                *(plan, sequences, w, x, hx, cx, y, reserve),
                dy=dy,
                dhy=dhy,
                dcy=dcy,
                dx=dx,
                dhx=dhx,
                dcx=dcx,
            )
            dw.data.memset_async(0, dw.nbytes, session.stream.cupy)
            self.backward_weights(plan, sequences, w, x, hx, y, reserve, dw=dw)

    def dropout_reserve_bytes(self, size: int, dtype: str, device: str = "cuda:0") -> int:
        """What the library says."""
        if not size:
            return 0
        with Session(device_index(device)) as session:
            return operations.dropout_reserve_bytes(session, dtype, size)

    def dropout_forward(
        self, x: Array, *, y: Array, reserve: Array, ratio: float, state: DropoutState
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.dropout_forward`."""
        check_like("x", x, y=y)
        dtype, device = x.dtype.name, device_of(x)
        check_dropout(ratio, reserve, self.dropout_reserve_bytes(x.size, dtype, device))
        if not x.size or ratio == 1:  # 1 / (1 - ratio) is not to be asked of the library
            y[...] = 0
            return
        with Session(device_index(device)) as session:
            given, out = input_array(x), output_array(y)
            operations.dropout_forward(session, state, ratio, dtype, given, out, reserve)
            put_back(out, y)

    def dropout_backward(self, dy: Array, *, dx: Array, reserve: Array, ratio: float) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.dropout_backward`."""
        check_like("dy", dy, dx=dx)
        dtype, device = dy.dtype.name, device_of(dy)
        check_dropout(ratio, reserve, self.dropout_reserve_bytes(dy.size, dtype, device))
        if not dy.size or ratio == 1:
            dx[...] = 0
            return
        with Session(device_index(device)) as session:
            given, out = input_array(dy), output_array(dx)
            operations.dropout_backward(session, ratio, dtype, given, out, reserve)
            put_back(out, dx)

    def softmax_forward(self, x: Array, *, y: Array, algorithm: str, mode: str) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.softmax_forward`."""
        check_like("x", x, y=y)
        check_softmax(x, algorithm, mode)
        if not x.size:
            return
        _apply(operations.softmax_forward, (x,), y, algorithm, mode)

    def softmax_backward(
        self, y: Array, dy: Array, *, dx: Array, algorithm: str, mode: str
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.softmax_backward`."""
        check_like("y", y, dy=dy, dx=dx)
        check_softmax(y, algorithm, mode)
        if not y.size:
            return
        _apply(operations.softmax_backward, (y, dy), dx, algorithm, mode)

    def activation_forward(self, x: Array, *, y: Array, function: str, coef: float) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.activation_forward`."""
        check_like("x", x, y=y)
        check_activation(function)
        if not x.size:
            return
        _apply(operations.activation_forward, (x,), y, function, coef)

    def activation_backward(
        self, x: Array, y: Array, dy: Array, *, dx: Array, function: str, coef: float
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.activation_backward`."""
        check_like("x", x, y=y, dy=dy, dx=dx)
        check_activation(function)
        if not x.size:
            return
        _apply(operations.activation_backward, (x, y, dy), dx, function, coef)

    def _make(
        self, spec: RNNSpec, sequences: Sequences, training: bool, device: str
    ) -> AnyPlan | Choice:
        layout, ragged = sequences.layout, sequences.ragged
        steps, batch = sequences.steps, sequences.batch
        with Session(device_index(device)) as session:
            check_version(session.library, spec)
            check_named(spec, ragged=ragged)
            shape = Shape(spec, layout, steps, batch, ragged, training, device)
            if not steps or not batch:
                return EmptyPlan(shape)
            if steps > self.max_steps and spec.algo != "fused":
                return long.LongPlan(shape, self.plan, self.max_steps)
            return self._selection.select(session, shape)


def _apply(
    operation: Callable[..., None], given: tuple[Array, ...], out: Array, *how: str | float
) -> None:
    """Let the library compute a plain operation; ``out`` and ``given`` may be any views."""
    with Session(device_index(device_of(out))) as session:
        target = output_array(out)
        operation(session, *map(input_array, given), target, *how)
        put_back(target, out)
