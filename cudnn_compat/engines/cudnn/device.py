"""CuPy, handles and streams: where and in which order a call runs."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any, NamedTuple

from cudnn_compat.arrays import Array, load_cupy
from cudnn_compat.cudnn.handles import current_handle
from cudnn_compat.cudnn.library import Library, load

__all__ = ["Session", "Stream", "address", "current_stream", "device_index", "follow"]

_PER_THREAD = 2
"""``cudaStreamPerThread``: one address for a stream of each thread."""


def device_index(device: str) -> int:
    """N of ``"cuda:N"``."""
    return int(device.removeprefix("cuda:"))


def address(array: Array | None) -> int | None:
    """Where an array begins in device memory; None of None, which the library takes for NULL."""
    return None if array is None else int(array.data.ptr)


class Stream(NamedTuple):
    """Which stream something was put on.

    Memory of CuPy's pool goes back to the stream that it was taken on, whoever used it last; so
    what this engine keeps is used on that stream alone, or the streams are put in order.
    """

    address: int
    thread: int
    """The thread, where each has a stream of its own at this address; else 0."""


def current_stream(xp: ModuleType) -> tuple[Stream, Any]:
    """CuPy's current stream on the current device."""
    stream = xp.cuda.get_current_stream()
    thread = threading.get_ident() if stream.ptr == _PER_THREAD else 0
    return Stream(stream.ptr, thread), stream


def follow(xp: ModuleType, earlier: Stream) -> None:
    """Let work that is put on ``earlier`` from now on wait for what the current stream has."""
    now, stream = current_stream(xp)
    if now == earlier:
        return
    if earlier.thread:  # which another thread cannot name
        stream.synchronize()
        return
    event = xp.cuda.Event(disable_timing=True)
    event.record(stream)
    xp.cuda.ExternalStream(earlier.address).wait_event(event)


class Session:
    """A stretch of work on one device, in the caller's thread and on CuPy's current stream.

    Use as a context: the device is the current one inside, whatever it was before.

    Attributes:
        library: the C library.
        xp: the module ``cupy``.
        handle: this thread's handle, with the current stream set.
        stream: the current stream; ``on`` tells which one it is.
    """

    __slots__ = ("_before", "device", "handle", "library", "on", "stream", "xp")

    def __init__(self, device: int) -> None:
        self.device = device

    def __enter__(self) -> Session:
        self.xp: ModuleType = load_cupy()
        self.library: Library = load()
        cuda = self.xp.cuda
        self._before: Any = None
        if cuda.runtime.getDevice() != self.device:
            self._before = cuda.Device(self.device)
            self._before.__enter__()
        try:
            self.handle = current_handle(self.library, self.device)
            self.on, self.stream = current_stream(self.xp)
            self.library.cudnnSetStream(self.handle, self.stream.ptr)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            self._before.__exit__(*error)

    def bytes(self, size: int) -> Array:
        """Uninitialised device memory, uint8; at least one byte, so that it has an address."""
        return self.xp.empty(max(size, 1), "uint8")
