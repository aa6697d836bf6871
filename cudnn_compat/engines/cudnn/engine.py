"""The calls of the engine interface, on CuPy arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cudnn_compat.arrays import Array, load_cupy, numpy_dtype
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cache import BoundedCache, Kept
from cudnn_compat.engines.cudnn import backward, forward, fused_calls, long
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
from cudnn_compat.engines.cudnn.plain_operations import PlainOperations
from cudnn_compat.engines.cudnn.plan import (
    MAX_STEPS,
    CudnnPlan,
    EmptyPlan,
    Shape,
)
from cudnn_compat.engines.cudnn.selection import Selection
from cudnn_compat.engines.cudnn.settings import check_version
from cudnn_compat.engines.cudnn.staging import hand_on
from cudnn_compat.engines.interface import Gradients, GradientShapes, Outputs, Shapes
from cudnn_compat.engines.outputs import fresh_gradients, fresh_outputs
from cudnn_compat.errors import LibraryNotSupported, UnsupportedError
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec

__all__ = ["CudnnEngine"]

_ONE_CALL = (CudnnPlan, FusedPlan)
"""Plans whose calls may be recorded."""

AnyPlan = CudnnPlan | FusedPlan | long.LongPlan | EmptyPlan
"""What serves a call; the cache may hold a :class:`Choice` of them."""


class CudnnEngine(PlainOperations):
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
        _, made = self.keep_plan(spec, sequences, training=training, device=device)
        if not isinstance(made, Choice):
            return made
        return made.current() if begins else made.latest()

    def keep_plan(
        self, spec: RNNSpec, sequences: Sequences, *, training: bool, device: str = "cuda:0"
    ) -> tuple[Kept[AnyPlan | Choice], AnyPlan | Choice]:
        """See :meth:`cudnn_compat.engines.interface.Engine.keep_plan`."""
        layout, ragged = sequences.layout, sequences.ragged
        key = (spec, layout, sequences.steps, sequences.batch, ragged, training, device)
        return self.plans.keep(key, lambda: self._make(spec, sequences, training, device))

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
        short = plan.again if plan.trial is None else None
        found = None if short is None else short.forward(shapes, w, x, hx, cx)
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
        short = plan.again if plan.trial is None else None
        if short is not None and short.forward_into(w, x, hx, cx, y, hy, cy, reserve):
            return
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
        gradients = (dy, dhy, dcy, dx, dhx, dcx)
        short = plan.again if plan.trial is None else None
        if short is not None and short.data(w, hx, cx, y, reserve, *gradients):
            return
        with Session(plan.index) as session:
            given = (w, hx, cx, y, reserve, *gradients)
            if not sequences.total or isinstance(plan, EmptyPlan):
                dx[...] = 0
                hand_on(dhy, dhx)
                hand_on(dcy, dcx)
            elif isinstance(plan, long.LongPlan):
                long.run_data(session, plan, sequences, x, *given)
            elif isinstance(plan, FusedPlan):
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
        short = plan.again if plan.trial is None else None
        if short is not None and short.weights(x, hx, y, reserve, dw):
            return
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
        if isinstance(plan, _ONE_CALL) and sequences.total:
            gradients = (dy, dhy, dcy, dx, dhx, dcx, dw)
            given = (w, x, hx, cx, y, reserve)
            with Session(plan.index) as session:
                if isinstance(plan, FusedPlan):
                    fused_calls.run_both(session, plan, sequences, w, x, cx, reserve, *gradients)
                else:
                    backward.run_both(session, plan, sequences, *given, *gradients)
            return
        with Session(plan.index) as session:
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

    def gradients(
        self,
        plan: AnyPlan,
        sequences: Sequences,
        shapes: GradientShapes,
        w: Array,
        x: Array,
        hx: Array | None,
        cx: Array | None,
        y: Array,
        reserve: Any,
        dy: Array | None,
        dhy: Array | None,
        dcy: Array | None,
    ) -> Gradients:
        """See :meth:`cudnn_compat.engines.interface.Engine.gradients`."""
        short = plan.again if plan.trial is None else None
        if short is not None:
            found = short.gradients(shapes, w, x, hx, cx, y, reserve, dy, dhy, dcy)
            if found is not None:
                return found
        given = (w, x, hx, cx, y, reserve, dy, dhy, dcy)
        with Session(plan.index):
            return fresh_gradients(self, plan, sequences, shapes, *given)

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
