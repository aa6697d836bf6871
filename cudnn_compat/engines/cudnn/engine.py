"""The calls of the engine interface, on CuPy arrays."""

from __future__ import annotations

from cudnn_compat.arrays import Array, load_cupy, numpy_dtype
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cache import BoundedCache
from cudnn_compat.engines.cudnn import backward, forward, long
from cudnn_compat.engines.cudnn.algorithms import Networks, check_named
from cudnn_compat.engines.cudnn.device import (
    Session,
    Stream,
    current_stream,
    device_index,
    follow,
)
from cudnn_compat.engines.cudnn.dropout import forget_scratch
from cudnn_compat.engines.cudnn.plan import (
    MAX_STEPS,
    CudnnPlan,
    EmptyPlan,
    Shape,
    geometry_cache,
)
from cudnn_compat.engines.cudnn.settings import check_version
from cudnn_compat.engines.cudnn.staging import hand_on
from cudnn_compat.errors import LibraryNotSupported, UnsupportedError
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec

__all__ = ["CudnnEngine"]

AnyPlan = CudnnPlan | long.LongPlan | EmptyPlan


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
        self.plans: BoundedCache[AnyPlan] = BoundedCache(256)
        self._networks = Networks()
        self._geometries = geometry_cache()

    def plan(
        self, spec: RNNSpec, sequences: Sequences, *, training: bool, device: str = "cuda:0"
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
        return self.plans.get(key, lambda: self._make(spec, sequences, training, device))

    def clear(self) -> None:
        """Let go of all plans and what they share."""
        self.plans.clear()
        self._networks.clear()
        self._geometries.clear()
        forget_scratch()

    def empty(self, shape: tuple[int, ...], dtype: str, device: str = "cuda:0") -> Array:
        """An uninitialised array on the device."""
        xp = load_cupy()
        with xp.cuda.Device(device_index(device)):
            return xp.empty(shape, numpy_dtype(dtype))

    def stream(self, device: str = "cuda:0") -> Stream:
        """Which stream work goes to now."""
        xp = load_cupy()
        with xp.cuda.Device(device_index(device)):
            return current_stream(xp)

    def follow(self, stream: Stream, device: str = "cuda:0") -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.follow`."""
        xp = load_cupy()
        with xp.cuda.Device(device_index(device)):
            follow(xp, stream)

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
            else:
                given = (w, x, hx, cx, y, hy, cy, reserve, dropout)
                try:
                    forward.run(session, plan, sequences, *given)
                except LibraryNotSupported as error:
                    if plan.spec.algo != "auto" or plan.algo == "standard":
                        raise
                    self._networks.refuse(session, plan, str(error))
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
            else:
                backward.run_weights(session, plan, sequences, x, hx, y, reserve, dw)

    def _make(self, spec: RNNSpec, sequences: Sequences, training: bool, device: str) -> AnyPlan:
        layout, ragged = sequences.layout, sequences.ragged
        steps, batch = sequences.steps, sequences.batch
        with Session(device_index(device)) as session:
            check_version(session.library, spec)
            check_named(spec, ragged=ragged)
            shape = Shape(spec, layout, steps, batch, ragged, training, device)
            if not steps or not batch:
                return EmptyPlan(shape)
            if steps > self.max_steps:
                return long.LongPlan(shape, self.plan, self.max_steps)
            network = self._networks.choose(
                session,
                spec,
                padded=layout != "packed",
                batch=batch,
                ragged=ragged,
                training=training,
            )
            return CudnnPlan(shape, network, self._geometries)
