"""What the calls return: outputs with their tape, and gradients."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

from cudnn_compat.arrays import Array, on_device_of
from cudnn_compat.engines.interface import AnyEngine, GradientShapes, Plan, Shapes
from cudnn_compat.errors import TapeError
from cudnn_compat.packed import Packed
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec
from cudnn_compat.v2.checks import check_kinds
from cudnn_compat.weights import check_weights

__all__ = ["RNNGradients", "RNNOutput", "Tape"]


_CLAIMING = threading.Lock()


@dataclasses.dataclass(slots=True, eq=False)
class Tape:
    """What one backward needs of its forward: references, not copies, and the reserve.

    Changing w, x, hx, cx or y in place before backward is the caller's mistake.
    """

    engine: AnyEngine
    plan: Plan
    sequences: Sequences
    shapes: Shapes
    """Of y, hy and cy in batched form."""
    gradient_shapes: GradientShapes
    """Of dx, dhx, dcx and dw, likewise."""
    kind: Any
    """Of the forward's arrays, as :class:`cudnn_compat.v2.prepared.Prepared` has it."""
    w: Array
    x: Array
    hx: Array | None
    cx: Array | None
    y: Array
    reserve: Any
    stream: Any
    """Where the reserve was taken."""
    form: str
    """``"batched"``, ``"unbatched"``, ``"step"`` or ``"packed"``: what the caller passed as x."""
    stage: str = "forward"
    """What has run: ``"forward"``, ``"data"``, then ``"weights"``; ``"busy"`` while one of the two
    runs, ``"failed"`` once one has failed."""

    def __reduce__(self) -> NoReturn:
        """Refuse copies and pickles: two could not both have the one backward."""
        raise TapeError(
            "what a training forward keeps for its backward cannot be copied or pickled; take y, "
            "hy and cy of the output, or call v2.rnn_forward without training=True"
        )

    def claim(self, stage: str) -> None:
        """Begin one of the two passes, at ``stage``; only one thread gets past this.

        Raises:
            TapeError: the tape is at another stage, or another thread was quicker.
        """
        with _CLAIMING:
            if self.stage != stage:
                check_stage(self, stage)
            self.stage = "busy"

    def settle(self) -> None:
        """End a pass: it has failed where nobody has set the stage since :meth:`claim`.

        Memory is let go behind the work that was put on the current stream.
        """
        self.engine.follow(self.stream, self.plan.device)
        if self.stage == "busy":
            self.stage = "failed"
        if self.stage != "data":
            self.release()

    def release(self) -> None:
        """Let go of everything once it has served; only the stage remains."""
        self.w = self.x = self.hx = self.cx = self.y = self.reserve = None


@dataclasses.dataclass(slots=True, eq=False)
class RNNOutput:
    """The result of :func:`~cudnn_compat.v2.rnn_forward`; unpacks as ``y, hy, cy``.

    Attributes:
        y: output of the last layer in the form of x, with D·P features; padding is zero.
        hy: final hidden states ``(L·D, B, P)`` (unbatched: ``(L·D, P)``).
        cy: final cell states ``(L·D, B, H)``, or None where the cell has none.
        engine: the engine that computed, ``"numpy"`` or ``"cudnn"``.
        algo: the algorithm that ran.
        spec: the description of the network.
    """

    y: Array | Packed
    hy: Array
    cy: Array | None
    engine: str
    algo: str
    spec: RNNSpec
    _tape: Tape | None = dataclasses.field(default=None, repr=False)
    __weakref__: object = dataclasses.field(init=False, repr=False)

    def __iter__(self) -> Iterator[Array | Packed | None]:
        return iter((self.y, self.hy, self.cy))

    @property
    def training(self) -> bool:
        """Whether this was a forward in training mode."""
        return self._tape is not None

    @property
    def can_backward(self) -> bool:
        """Whether the one backward of a training forward is still to come."""
        return self._tape is not None and self._tape.stage == "forward"

    @property
    def reserve_bytes(self) -> int:
        """Bytes that the tape holds beside references to the caller's arrays; 0 once spent."""
        if self._tape is None or self._tape.reserve is None:
            return 0
        return int(self._tape.reserve.nbytes)

    @property
    def weights(self) -> Array | None:
        """The weight space that backward will read; None without a tape or once it is spent."""
        return None if self._tape is None else self._tape.w

    def own_weights(self, copy: Array | None = None) -> Array | None:
        """Let backward read a copy, so that the caller may change his weights now.

        Args:
            copy: a copy of the weight space to use (so that several outputs can share one); None
                makes one.

        Returns:
            The copy, or None where there is nothing left that would read the weights.

        Raises:
            ArgumentError, DTypeError: ``copy`` is not like the weights; names it.
        """
        if self.weights is None:
            return None
        assert self._tape is not None
        if copy is not None:
            check_kinds(self.spec, w=self._tape.w, copy=copy)
            check_weights(self.spec, copy, name="copy")
        self._tape.kind = None  # a copy may be of another class
        with on_device_of(self._tape.w):
            self._tape.w = self._tape.w.copy() if copy is None else copy
        return self._tape.w


@dataclasses.dataclass(slots=True, eq=False)
class RNNGradients:
    """Gradients of one call; unpacks as ``dx, dhx, dcx, dw``.

    Attributes:
        dx: in the form of x; padding is zero.
        dhx: ``(L·D, B, P)`` (unbatched: ``(L·D, P)``), also where hx was not given.
        dcx: ``(L·D, B, H)``, or None where the cell has none.
        dw: flat weight gradients, or None from :func:`~cudnn_compat.v2.rnn_backward_data`.
    """

    dx: Array | Packed
    dhx: Array
    dcx: Array | None
    dw: Array | None = None

    def __iter__(self) -> Iterator[Array | Packed | None]:
        return iter((self.dx, self.dhx, self.dcx, self.dw))


def tape_for(out: object, stage: str) -> Tape:
    """The tape of ``out`` if it is at ``stage``.

    Raises:
        TapeError: in words, what is wrong and what to do.
    """
    if isinstance(out, RNNGradients):
        raise TapeError(
            "gradients of gradients are not offered: cuDNN's RNNs have first order only"
        )
    if not isinstance(out, RNNOutput):
        raise TapeError(
            f"out is a {type(out).__name__}; wanted the RNNOutput that v2.rnn_forward returned"
        )
    tape = out._tape
    if tape is None:
        raise TapeError(
            "this forward ran in inference mode and kept nothing for backward: "
            "call v2.rnn_forward(…, training=True)"
        )
    check_stage(tape, stage)
    return tape


def check_stage(tape: Tape, stage: str) -> None:
    """``tape`` is at ``stage``.

    Raises:
        TapeError: in words, what is wrong and what to do.
    """
    if tape.stage == stage:
        return
    if tape.stage == "forward":
        raise TapeError("weights come after data: call v2.rnn_backward_data first")
    if tape.stage == "failed":
        raise TapeError("the backward of this forward has failed: call v2.rnn_forward again")
    if tape.stage == "busy":
        raise TapeError("another thread is at the backward of this forward, which serves one")
    raise TapeError(
        "a forward serves one backward, and this one has had it: call v2.rnn_forward again"
    )
