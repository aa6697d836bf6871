"""What an engine must offer: plans, and calls that fill the buffers given to them.

Shapes, with T steps, B batch, N rows that are not padding: x and dx ``(T, B, I)``, ``(B, T, I)`` or
``(N, I)`` as the plan's layout says, y and dy the same with D·P features; hx, hy, dhx, dhy
``(L·D, B, P)``; cx, cy, dcx, dcy ``(L·D, B, H)``; w and dw flat. Everything has the spec's dtype.
Arguments are checked before they come here. Buffers to be written are C-contiguous and hold no
defined values; those to be read may be read-only and have any strides, and are never written.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from cudnn_compat.arrays import Array
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cache import BoundedCache, Kept
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec

__all__ = [
    "AnyEngine",
    "Engine",
    "GradientShapes",
    "Gradients",
    "NotBegun",
    "Outputs",
    "Plan",
    "Shapes",
]

Shapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None]
"""Of y, hy and cy."""

GradientShapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None, tuple[int, ...]]
"""Of dx, dhx, dcx and dw."""

Gradients = tuple[Array, Array, Array | None, Array]
"""dx, dhx, dcx and dw."""

Outputs = tuple[Array, Array, Array | None, Any, Any]
"""y, hy, cy; what training keeps, and the stream that it was taken on (None in inference)."""


class NotBegun(Exception):
    """Nothing has been computed or changed; the cause says why."""


class Plan(Protocol):
    """What can be prepared once for a spec and a shape. Lengths are not part of it."""

    spec: RNNSpec
    layout: str
    steps: int
    batch: int
    ragged: bool
    training: bool
    device: str
    algo: str
    """The algorithm that runs; ``"numpy"`` on the NumPy engine."""
    settled: bool
    """Whether that stays so."""

    def current(self) -> Any:
        """The plan of the next call: itself, unless there is still a choice."""

    def workspace_bytes(self, sequences: Sequences) -> int:
        """Bytes of scratch that a call takes beside the buffers given to it."""

    def reserve_bytes(self, sequences: Sequences) -> int:
        """Bytes of the flat reserve that training needs; 0 in inference."""


PlanT = TypeVar("PlanT", bound=Plan)


class Engine(Protocol[PlanT]):
    """One way to compute, with plans of its own."""

    name: str
    plans: BoundedCache[PlanT]
    """The plans that were used last."""

    def clear(self) -> None:
        """Let go of all plans and what they share."""

    def plan(
        self,
        spec: RNNSpec,
        sequences: Sequences,
        *,
        training: bool,
        device: str = "cpu",
        begins: bool = True,
    ) -> PlanT:
        """The plan for a spec and a geometry, from a bounded cache.

        Args:
            begins: whether a forward follows; else it is the plan of the last one, to ask for
                sizes or to go back with.

        Raises:
            UnsupportedError: this engine cannot do what the spec says; in words.
        """

    def keep_plan(
        self, spec: RNNSpec, sequences: Sequences, *, training: bool, device: str = "cpu"
    ) -> tuple[Kept[Any], Any]:
        """A place in the cache, for who calls again with the same, and what is there.

        The plan of a call is the ``current()`` of it.

        Raises:
            UnsupportedError: as above.
        """

    def on(self, device: str = "cpu") -> AbstractContextManager[Any]:
        """A context for several calls on one device, which then find their way only once."""

    def empty(self, shape: tuple[int, ...], dtype: str, device: str = "cpu") -> Array:
        """An uninitialised array where this engine computes."""

    def zeros(self, shape: tuple[int, ...], dtype: str, device: str = "cpu") -> Array:
        """An array of zeros where this engine computes."""

    def results(
        self, shapes: Iterable[tuple[int, ...] | None], dtype: str, device: str = "cpu"
    ) -> list[Array | None]:
        """Several such arrays, and None for None."""

    def reserve(self, plan: PlanT, sequences: Sequences, device: str = "cpu") -> Array:
        """A flat uint8 array for what a forward in training keeps; of no bytes in inference.

        Any array of that size serves; one from here may serve faster.
        """

    def stream(self, device: str = "cpu") -> Any:
        """A mark of where work goes now; None where there are no streams."""

    def follow(self, stream: Any, device: str = "cpu") -> None:
        """Let what is put on ``stream`` from now on wait for what was put on the current one.

        Asked for before memory is let go that was taken on ``stream``, which would use it again.
        """

    def outputs(
        self,
        plan: PlanT,
        sequences: Sequences,
        shapes: Shapes,
        w: Array,
        x: Array,
        hx: Array | None,
        cx: Array | None,
        *,
        dropout: DropoutState | None,
    ) -> Outputs:
        """A forward into arrays that are the caller's, with a reserve for this engine alone."""

    def forward(
        self,
        plan: PlanT,
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
        """Fill y, hy, cy (None: not wanted) and, in training, the reserve.

        hx or cx of None are zeros. ``dropout`` is touched only where dropout acts.
        """

    def backward_data(
        self,
        plan: PlanT,
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
        """Fill dx, dhx, dcx. Gradients of None are zeros. Changes the reserve in place."""

    def backward_weights(
        self,
        plan: PlanT,
        sequences: Sequences,
        w: Array,
        x: Array,
        hx: Array | None,
        y: Array,
        reserve: Array,
        *,
        dw: Array,
    ) -> None:
        """Add the weight gradients into dw. Comes after :meth:`backward_data`."""

    def backward(
        self,
        plan: PlanT,
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
        """Both passes backward: fill dx, dhx, dcx, and dw, which is not added to."""

    def gradients(
        self,
        plan: PlanT,
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
        """Both passes backward, into arrays that are the caller's.

        Raises:
            NotBegun: there was no memory for these; the reserve is as it was.
        """

    # The plain operations. Arrays of one call have one shape and dtype (float16, float32, float64);
    # their rules and refusals are those of :mod:`cudnn_compat.engines.operations`.

    def dropout_reserve_bytes(self, size: int, dtype: str, device: str = "cpu") -> int:
        """Bytes of the mask of ``size`` elements."""

    def dropout_forward(
        self, x: Array, *, y: Array, reserve: Array, ratio: float, state: DropoutState
    ) -> None:
        """Fill y with x under a fresh mask, scaled by 1/(1 - ratio); the reserve keeps the mask."""

    def dropout_backward(self, dy: Array, *, dx: Array, reserve: Array, ratio: float) -> None:
        """Fill dx with dy under the mask of the reserve."""

    def softmax_forward(self, x: Array, *, y: Array, algorithm: str, mode: str) -> None:
        """Fill y with the softmax of x, ``(N, C, …)``, over what ``mode`` says."""

    def softmax_backward(
        self, y: Array, dy: Array, *, dx: Array, algorithm: str, mode: str
    ) -> None:
        """Fill dx, from the y that forward gave."""

    def activation_forward(self, x: Array, *, y: Array, function: str, coef: float) -> None:
        """Fill y with an activation of x; NaN counts as not positive."""

    def activation_backward(
        self, x: Array, y: Array, dy: Array, *, dx: Array, function: str, coef: float
    ) -> None:
        """Fill dx, from forward's x and y."""


AnyEngine = Engine[Any]
"""An engine of which only the interface is known."""
