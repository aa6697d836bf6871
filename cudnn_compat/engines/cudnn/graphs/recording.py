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

__all__ = ["Addresses", "Call", "On", "Own", "Place", "Places", "Recorder", "Recording", "Scratch"]

_AGAIN: Final = 8
"""Calls with all arrays in one place, after which that place is recorded, …"""
_SEEN: Final = 4
"""… if it is one of the last so many; results that are handed out again take turns."""
_BOUND: Final = 2
"""Places of one recording that have a graph of their own, …"""
_TRIES: Final = 3
"""… and how often one is made: whose arrays move gains nothing from it."""

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


Place = tuple[Addresses, Addresses]
"""Where all arrays of a call are: those that it reads, and those that it writes."""

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


class Places:
    """Where the caller's arrays of one recording have been, and what was recorded there.

    Attributes:
        bound: graphs that copy nothing, by the addresses that they read and write.
    """

    __slots__ = ("_seen", "_tries", "bound")

    def __init__(self) -> None:
        self.bound: dict[Place, Recording] = {}
        self._seen: dict[Place, int] = {}
        self._tries = 0

    def come_back(self, place: Place) -> bool:
        """Note where the arrays are; whether it is now worth while to record that place."""
        if self._tries >= _TRIES:
            return False
        again = self._seen.pop(place, 0) + 1
        self._seen[place] = again
        if len(self._seen) > _SEEN:
            del self._seen[next(iter(self._seen))]
        return again > _AGAIN

    def bind(self, place: Place, recording: Recording) -> None:
        """Keep what was recorded on a place."""
        self._tries += 1
        self._seen.pop(place, None)
        self.bound[place] = recording
        if len(self.bound) > _BOUND:
            del self.bound[next(iter(self.bound))]

    def give_up(self) -> None:
        """Record no place any more."""
        self._tries = _TRIES


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
        places: where the caller's arrays have been.
    """

    __slots__ = (
        "_executable",
        "_graph",
        "_inward",
        "_launch",
        "_order",
        "_outward",
        "_runtime",
        "call",
        "places",
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
        self._launch = runtime.graphLaunch
        self._order = recorder.order
        self.call = call
        self.scratch = scratch
        self.places = Places()
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
        self.replay(stream)

    def replay(self, stream: int) -> None:
        """Compute on a stream, from and to where it did the last time."""
        with self._order:
            self._launch(self._executable, stream)

    def __del__(self) -> None:
        # A graph that is still running is destroyed when it ends. At interpreter exit the names of
        # modules may be gone.
        try:
            self._runtime.graphExecDestroy(self._executable)
            self._runtime.graphDestroy(self._graph)
        except Exception:  # nobody is left who could act on it
            pass
