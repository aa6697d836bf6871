"""CuPy, handles and streams: where and in which order a call runs."""

from __future__ import annotations

import functools
import math
import operator
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import numpy as np

from cudnn_compat.arrays import Array, load_cupy
from cudnn_compat.cudnn.handles import current_handle
from cudnn_compat.cudnn.library import Library, load
from cudnn_compat.errors import UnsupportedError

__all__ = [
    "POOL_UNIT",
    "Session",
    "Stream",
    "address",
    "contiguity",
    "current_stream",
    "device_index",
    "follow",
    "fresh",
    "is_captured",
    "is_current",
    "memory_at",
]

_LENGTHS_ARE_SENT = (
    "the lengths of a batch go to the GPU the first time they come on a stream, which cannot be "
    "captured; make the same call on this stream once before the capture begins"
)

POOL_UNIT: Final = 512
"""Bytes to a multiple of which CuPy's pool rounds up."""
_SMALL = 256 << 10
"""Bytes of an array up to which it may share an allocation, …"""
_MOST_SHARE = 3
"""… with so many in all."""

_PER_THREAD = 2
"""``cudaStreamPerThread``: one address for a stream of each thread."""


@functools.lru_cache(maxsize=64)
def device_index(device: str) -> int:
    """N of ``"cuda:N"``."""
    return int(device.removeprefix("cuda:"))


def address(array: Array | None) -> int | None:
    """Where an array begins in device memory; None of None, which the library takes for NULL."""
    return None if array is None else array.data.ptr


class Stream:
    """Which stream something was put on; keeps it alive, so that its address stays its own.

    Memory of CuPy's pool goes back to the stream that it was taken on, whoever used it last; so
    what this engine keeps is used on that stream alone, or the streams are put in order.

    Attributes:
        cupy: CuPy's object.
    """

    __slots__ = ("_key", "cupy", "is_per_thread")

    def __init__(self, stream: Any) -> None:
        self.cupy = stream
        self.is_per_thread = stream.ptr == _PER_THREAD
        thread = threading.get_ident() if self.is_per_thread else 0
        self._key = (stream.ptr, thread)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def current_stream(xp: ModuleType) -> Stream:
    """CuPy's current stream on the current device."""
    return Stream(xp.cuda.get_current_stream())


class _Active(threading.local):
    """The session that this thread is in, if any."""

    session: Session | None = None


_active = _Active()


class Session:
    """A stretch of work on one device, in the caller's thread and on CuPy's current stream.

    Use as a context: the device is the current one inside, whatever it was before. Within a session
    of the same device it is that session, so that what a call needs is looked up once.

    Attributes:
        library: the C library.
        xp: the module ``cupy``.
        handle: this thread's handle, with the current stream set; replays need none.
        stream: the current stream.
    """

    __slots__ = ("_before", "_handle", "_outer", "device", "library", "stream", "xp")

    def __init__(self, device: int) -> None:
        self.device = device

    def __enter__(self) -> Session:
        outer = self._outer = _active.session
        if outer is not None and outer.device == self.device:
            return outer
        self.xp: ModuleType = load_cupy()
        self.library: Library = load()
        cuda = self.xp.cuda
        self._before: Any = None
        if cuda.runtime.getDevice() != self.device:
            self._before = cuda.Device(self.device)
            self._before.__enter__()
        self._handle: int | None = None
        try:
            self.stream = current_stream(self.xp)
        except BaseException:
            self._leave()
            raise
        _active.session = self
        return self

    def __exit__(self, *error: object) -> None:
        if _active.session is self:
            _active.session = self._outer
            self._leave()

    def _leave(self) -> None:
        if self._before is not None:
            self._before.__exit__()

    @property
    def handle(self) -> int:
        """See the class.

        Raises:
            LibraryError: ``cudnnCreate`` failed (no GPU, no driver, no memory); in words.
        """
        if self._handle is None:
            handle = current_handle(self.library, self.device)
            self.library.cudnnSetStream(handle, self.stream.cupy.ptr)
            self._handle = handle
        return self._handle

    @property
    def capturing(self) -> bool:
        """Whether somebody captures the current stream into a graph of his own."""
        return is_captured(self.xp, self.stream.cupy.ptr)

    def sent(self, values: np.ndarray) -> Array:
        """A copy on the device of a batch's lengths, or of indices made of them.

        Raises:
            UnsupportedError: see :meth:`check_sending`.
        """
        self.check_sending()
        return self.xp.asarray(values)

    def check_sending(self, message: str = _LENGTHS_ARE_SENT) -> None:
        """Refuse to send anything to the device where the stream is being captured.

        The graph would copy, at each launch, from memory of the host that is gone by then.

        Raises:
            UnsupportedError: it is captured.
        """
        if self.capturing:
            raise UnsupportedError(message)

    def outlive(self, kept: object) -> None:
        """Never let go of what has memory that a graph of the caller's will read.

        Without a capture this does nothing.
        """
        if self.capturing:
            _in_graphs.add(kept)

    def bytes(self, size: int) -> Array:
        """Uninitialised device memory, uint8; at least one byte, so that it has an address."""
        return self.xp.empty(max(size, 1), _UINT8)


_UINT8 = np.dtype("uint8")

_in_graphs: set[object] = set()
"""What graphs of the caller's read: they have its address, and nobody says when they end."""


def is_captured(xp: ModuleType, stream: int) -> bool:
    """Whether somebody captures a stream, by its address, into a graph."""
    try:
        return bool(xp.cuda.runtime.streamIsCapturing(stream))
    except Exception:  # the null stream, while another stream captures all that meets it
        return True


def contiguity(xp: ModuleType) -> Callable[[Array], bool]:
    """A function that says whether an array is C-contiguous.

    CuPy keeps the answer in the array; ``flags`` is an object that is made for each question.
    """
    kept = "_c_contiguous"
    return operator.attrgetter(kept if hasattr(xp.ndarray, kept) else "flags.c_contiguous")


def memory_at(xp: ModuleType, device: int, address: int, nbytes: int, owner: object = None) -> Any:
    """A pointer of CuPy's to memory that is not its own; it keeps ``owner`` alive."""
    return xp.cuda.MemoryPointer(xp.cuda.UnownedMemory(address, nbytes, owner, device), 0)


def fresh(
    xp: ModuleType, shapes: tuple[tuple[int, ...] | None, ...], kind: np.dtype
) -> list[Array | None]:
    """Uninitialised arrays on the current device, and None for None.

    Small arrays of about the same size share one allocation, as making these is half of the work;
    so one of them that is kept keeps no more than twice its own memory besides.
    """
    made: list[Array | None] = [None] * len(shapes)
    array, allocate = xp.ndarray, xp.cuda.alloc
    for size, members in _allocations(shapes, kind.itemsize):
        memory = allocate(size)
        for place, shape, offset in members:
            made[place] = array(shape, kind, memory + offset)
    return made


@functools.lru_cache(maxsize=512)
def _allocations(
    shapes: tuple[tuple[int, ...] | None, ...], itemsize: int
) -> tuple[tuple[int, tuple[tuple[int, tuple[int, ...], int], ...]], ...]:
    """Allocations: bytes; then of each array its place among ``shapes``, its shape, its offset."""
    made: list[tuple[int, list[tuple[int, tuple[int, ...], int]]]] = []
    open_for: dict[int, int] = {}
    for place, shape in enumerate(shapes):
        if shape is None:
            continue
        unit = max(1, -(-math.prod(shape) * itemsize // POOL_UNIT)) * POOL_UNIT
        if unit in open_for and len(made[open_for[unit]][1]) < _MOST_SHARE:
            total, members = made[open_for[unit]]
            members.append((place, shape, total))
            made[open_for[unit]] = (total + unit, members)
        else:
            if unit <= _SMALL:
                open_for[unit] = len(made)
            made.append((unit, [(place, shape, 0)]))
    return tuple((total, tuple(members)) for total, members in made)


def is_current(stream: Stream, device: int) -> bool:
    """Whether ``stream`` of ``device`` is for certain the current one."""
    cuda = load_cupy().cuda
    if stream.is_per_thread or cuda.get_current_stream().ptr != stream.cupy.ptr:
        return False
    return bool(cuda.runtime.getDevice() == device)


def follow(session: Session, earlier: Stream) -> None:
    """Let work that is put on ``earlier`` from now on wait for what the current stream has."""
    now = session.stream
    if now == earlier:
        return
    if earlier.is_per_thread:  # which another thread cannot name
        now.cupy.synchronize()
        return
    event = session.xp.cuda.Event(disable_timing=True)
    event.record(now.cupy)
    earlier.cupy.wait_event(event)
