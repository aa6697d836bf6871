"""One call of the library as a CUDA graph that can be launched again and again."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, NamedTuple

from cudnn_compat.arrays import Array
from cudnn_compat.cudnn.handles import SpareHandle
from cudnn_compat.cudnn.library import Library
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.graphs.copies import Copies

__all__ = ["Addresses", "Call", "On", "Own", "Place", "Recorder", "Recording", "Scratch"]

_AGAIN: Final = 8
"""Calls in a row with all arrays in one place, after which that place is recorded, …"""
_PLACES: Final = 3
"""… at most so often for one recording: whose arrays move gains nothing from it."""

Addresses = tuple[int, ...]
"""Where arrays begin in device memory; 0 where one is absent."""


class On(NamedTuple):
    """What a call of the library is put on.

    Attributes:
        handle: ``cudnnHandle_t``, with the stream set.
        workspace: address of its scratch memory.
        stream: ``cudaStream_t``, for what is not the library's.
        blas: address of scratch for cuBLAS, where there is any.
    """

    handle: int
    workspace: int
    stream: int
    blas: int = 0


Call = Callable[[On, Addresses, Addresses], None]
"""One call of the library, or several: on addresses that it reads, and that it writes."""


class Scratch(NamedTuple):
    """Addresses of a graph's scratch: its workspace, and cuBLAS's (0: none)."""

    workspace: int
    blas: int


class Own(NamedTuple):
    """Arrays of a graph's own: addresses, and bytes."""

    addresses: Addresses
    sizes: tuple[int, ...]


class Place:
    """Where the caller's arrays of one recording have been in the last calls.

    Attributes:
        addresses: of the last call.
        bound: a graph on these very addresses, which copies nothing.
    """

    __slots__ = ("_again", "_tries", "addresses", "bound")

    def __init__(self) -> None:
        self.addresses: Any = None
        self.bound: Recording | None = None
        self._again = 0
        self._tries = 0

    def comes_back(self, addresses: Any) -> bool:
        """Note where the arrays are; whether it is now worth while to record that place."""
        if addresses != self.addresses:
            if self.bound is None or self._tries < _PLACES:
                self.addresses, self.bound, self._again = addresses, None, 0
            return False
        self._again += 1
        if self.bound is not None or self._again != _AGAIN or self._tries >= _PLACES:
            return False
        self._tries += 1
        return True

    def give_up(self) -> None:
        """Record no place any more."""
        self._tries = _PLACES


class Recorder:
    """What records for one stream: a handle that nothing else uses, and a stream that captures.

    What a handle has inside of the library is part of the graphs that are recorded with it; as
    these are launched on one stream alone, they are in order.

    Attributes:
        lock: to be held from :meth:`run` to the end of :meth:`record`.
        order: held while something is put on the stream that works in the handle's memory or in
            cuBLAS's: a graph of another thread must not come between the kernels of one call.
    """

    def __init__(self, session: Session) -> None:
        self.lock = threading.Lock()
        self.order = threading.Lock()
        self._handle = SpareHandle(session.library, session.device)
        self._library: Library = session.library
        self._capturing = session.xp.cuda.Stream(non_blocking=True)
        self._blas: weakref.ref[Any] | None = None

    def share_blas(self, session: Session, size: int) -> Array:
        """Scratch memory for cuBLAS, one for all graphs of the stream, while anybody has it.

        Raises:
            MemoryError: there is none.
        """
        shared = None if self._blas is None else self._blas()
        if shared is None:
            shared = session.bytes(size)
            self._blas = weakref.ref(shared)
        return shared

    def _on(self, scratch: Scratch, stream: int) -> On:
        self._library.cudnnSetStream(self._handle.value, stream)
        return On(self._handle.value, scratch.workspace, stream, scratch.blas)

    def run(
        self,
        session: Session,
        call: Call,
        scratch: Scratch,
        reads: Addresses,
        writes: Addresses,
    ) -> None:
        """The call as it is, on the current stream; it also makes the handle ready to record it."""
        with self.order:
            call(self._on(scratch, session.stream.cupy.ptr), reads, writes)

    def record(
        self,
        session: Session,
        call: Call,
        scratch: Scratch,
        reads: Own,
        writes: Own,
    ) -> Recording:
        """Capture the call on a graph's own arrays. Nothing is computed.

        Where all sizes are 0 nothing is copied in or out: the arrays are where they always are.

        Raises:
            Exception: whatever the library, the driver or CuPy says if it cannot be captured.
        """
        xp, stream = session.xp, self._capturing.ptr
        runtime = xp.cuda.runtime
        inward = outward = None
        if any(reads.sizes) or any(writes.sizes):
            inward = Copies(xp, session.device, reads.addresses, reads.sizes, True)
            outward = Copies(xp, session.device, writes.addresses, writes.sizes, False)
        on = self._on(scratch, stream)
        # Relaxed: the library may load kernels, and other threads may allocate.
        runtime.streamBeginCapture(stream, runtime.streamCaptureModeRelaxed)
        try:
            if inward is not None:
                inward.capture(stream, (0,) * len(reads.addresses))
            with self._capturing:
                call(on, reads.addresses, writes.addresses)
            if outward is not None:
                outward.capture(stream, (0,) * len(writes.addresses))
        except BaseException:
            with contextlib.suppress(Exception):  # it says that the capture was broken off
                runtime.graphDestroy(runtime.streamEndCapture(stream))
            raise
        graph = runtime.streamEndCapture(stream)
        try:
            executable = runtime.graphInstantiate(graph)
        except BaseException:
            runtime.graphDestroy(graph)
            raise
        made = Recording(self, runtime, graph, executable, inward, outward, call, scratch)
        runtime.graphUpload(executable, session.stream.cupy.ptr)
        return made


class Recording:
    """An executable graph: copies in, the library's kernels, copies out.

    Attributes:
        call: what was recorded; it keeps what the graph refers to, lengths on the device.
        scratch: what it works in.
        place: where the caller's arrays have been.
    """

    __slots__ = (
        "_executable",
        "_graph",
        "_inward",
        "_order",
        "_outward",
        "_runtime",
        "call",
        "place",
        "scratch",
    )

    def __init__(
        self,
        recorder: Recorder,
        runtime: ModuleType,
        graph: int,
        executable: int,
        inward: Copies | None,
        outward: Copies | None,
        call: Call,
        scratch: Scratch,
    ) -> None:
        self._runtime = runtime
        self._order = recorder.order
        self.call = call
        self.scratch = scratch
        self.place = Place()
        self._graph = graph  # whose nodes are named when the executable is told addresses
        self._executable = executable
        self._inward = inward
        self._outward = outward

    def launch(self, stream: int, reads: Addresses, writes: Addresses) -> None:
        """Compute on a stream: from the arrays at ``reads``, to those at ``writes``.

        What is at 0, or in the graph's own place, is there already and stays there.
        """
        if self._inward is not None and self._outward is not None:
            self._inward.tell(self._executable, reads)
            self._outward.tell(self._executable, writes)
        with self._order:
            self._runtime.graphLaunch(self._executable, stream)

    def __del__(self) -> None:
        # A graph that is still running is destroyed when it ends. At interpreter exit the names of
        # modules may be gone.
        try:
            self._runtime.graphExecDestroy(self._executable)
            self._runtime.graphDestroy(self._graph)
        except Exception:  # nobody is left who could act on it
            pass
