"""Memory that recorded calls work on, and how much of it is kept."""

from __future__ import annotations

import operator
import threading
import time
import weakref
from collections import OrderedDict
from typing import Any, Final, Protocol

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.engines.cudnn.device import Session, Stream, memory_at
from cudnn_compat.engines.cudnn.graphs.recording import Recorder, Recording
from cudnn_compat.engines.cudnn.graphs.recycling import Recycled, Results, Shapes

__all__ = ["BLAS", "Lease", "Slot", "Store"]

BLAS: Final = "scratch of cuBLAS"
"""Name of an array of a slot that is one for all slots of a stream. Each of them counts it."""

_SHARE: Final = 8
"""One part in so many of a device's memory is kept at most."""
_REST: Final = 5.0
"""Seconds that a slot was not used before another may take its place: recording costs about as much
as a call, so that shapes that take turns in too little memory had better not record at all."""
_RECORDERS: Final = 16
"""Streams that are recorded for at one time; others run plainly."""
_MOST_SLOTS: Final = 1024
_RECORDINGS: Final = 12


class Owner(Protocol):
    """Whose calls a slot serves."""

    store: Store


class Slot:
    """One set of arrays, and the graphs that were recorded on it. It serves one call at a time.

    Attributes:
        owner: whose calls it serves; None once that is gone.
        stream: where all its work goes, one call behind the other.
        device: of its arrays.
        xp: the module ``cupy``.
        reserve: where its reserve is; 0 where it has none.
        held: what its arrays hold of a forward whose backward is to come: name to the address of
            the caller's array that it is equal to.
        leased: whether its reserve belongs to a tape.
        busy: whether a thread is at it.
        bytes: what it has taken of the store.
        used: when it was used last.
    """

    def __init__(
        self, recorder: Recorder, session: Session, home: list[Slot], owner: Owner
    ) -> None:
        self.recorder = recorder
        self.owner = weakref.ref(owner)
        self.stream = session.stream
        self.device = session.device
        self.xp = session.xp
        self.home = home
        self.reserve = 0
        self.held: dict[str, int] = {}
        self.leased = False
        self.busy = False
        self.bytes = 0
        self.used = time.monotonic()
        self._arrays: dict[str, Array] = {}
        self._recycled: dict[str, Recycled] = {}
        self._recordings: OrderedDict[Any, Recording] = OrderedDict()

    def missing(self, sizes: dict[str, int]) -> int:
        """Bytes that :meth:`grow` would take."""
        return sum(size for name, size in sizes.items() if name not in self._arrays)

    def grow(self, session: Session, sizes: dict[str, int]) -> None:
        """Make the arrays that are not there yet. They belong to the slot's stream."""
        for name, size in sizes.items():
            if name not in self._arrays:
                shared = name == BLAS
                made = self.recorder.share_blas(session, size) if shared else session.bytes(size)
                self._arrays[name] = made
                if name == "reserve":
                    self.reserve = self.address(name)

    def workspace(self, size: int) -> str:
        """The name of scratch of so many bytes: one that is there, if it is large enough.

        One is enough for all calls, as a slot serves one at a time; but those that are recorded
        have its address, so a larger one comes beside it.
        """
        there = [int(name) for name in self._arrays if name.isdigit()]
        return str(min((one for one in there if one >= size), default=size))

    def array(self, name: str) -> Array:
        """An array that has been made."""
        return self._arrays[name]

    def address(self, name: str) -> int:
        """Where an array is; 0 where it has not been made."""
        array = self._arrays.get(name)
        return 0 if array is None else int(array.data.ptr)

    def results(self, stage: str, shapes: Shapes, kind: np.dtype) -> Results | None:
        """Arrays for the results of a stage, on the slot's device and stream, the current ones.

        They are the caller's; who has let go of an earlier call's results may get them again.
        The slot is busy. None where graphs cannot write to them.
        """
        recycled = self._recycled.get(stage)
        if recycled is None:
            recycled = self._recycled[stage] = Recycled(self.xp, shapes, kind)
        return recycled.results(shapes, self._admit)

    def forget_results(self) -> None:
        """Let go of those that could come again: they are counted no more."""
        self._recycled = {}

    def _admit(self, size: int) -> bool:
        """Whether it may take so many bytes more."""
        owner = self.owner()
        if owner is None:
            return False
        store = owner.store
        with store.lock:
            # What has been let go, and lives on with a tape, is counted no more.
            return self in self.home and store.admit(self, size)

    def find(self, key: Any) -> Recording | None:
        """What was recorded under ``key``."""
        return self._recordings.get(key)

    def keep(self, key: Any, recording: Recording) -> None:
        """Keep one more; of many, the first goes."""
        self._recordings[key] = recording
        if len(self._recordings) > _RECORDINGS:
            self._recordings.popitem(last=False)

    def lend(self, session: Session, size: int) -> Array:
        """The reserve, as an array that keeps the slot from serving others while it lives."""
        return self.lease().as_array(session, size)

    def lease(self) -> Lease:
        """The reserve, in the form that an engine's calls need of an array; quicker to make."""
        self.leased = True
        return Lease(self)


class Lease:
    """A slot's reserve, which is another's to use again when this is gone.

    Attributes:
        slot: whose reserve it is.
    """

    __slots__ = ("slot",)

    def __init__(self, slot: Slot) -> None:
        self.slot = slot

    @property
    def data(self) -> Any:
        """As of an array."""
        return self.slot.array("reserve").data

    @property
    def nbytes(self) -> int:
        """As of an array."""
        return int(self.slot.array("reserve").nbytes)

    def as_array(self, session: Session, size: int) -> Array:
        """The first ``size`` bytes, as an array that keeps the lease."""
        memory = memory_at(session.xp, session.device, self.slot.reserve, size, self)
        return session.xp.ndarray((size,), "uint8", memory)

    def __del__(self) -> None:
        self.slot.held = {}
        self.slot.leased = False


class Store:
    """The slots of all plans of an engine: those used last, up to a part of a device's memory.

    Attributes:
        lock: taken while one looks for a slot, or takes or gives room.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._slots: dict[Slot, None] = {}
        self._bytes: dict[int, int] = {}
        self._limits: dict[int, int] = {}
        self._recorders: OrderedDict[tuple[int, Stream], Recorder] = OrderedDict()

    def recorder(self, session: Session) -> Recorder | None:
        """What records for the current stream; None where too many streams are in use.

        Raises:
            LibraryError: there is no handle to be had.
        """
        key = (session.device, session.stream)
        found = self._recorders.get(key)
        if found is None:
            if len(self._recorders) >= _RECORDERS and not self._retire():
                return None
            found = self._recorders[key] = Recorder(session)
        self._recorders.move_to_end(key)
        return found

    def _retire(self) -> bool:
        """Let go of a stream that has rested, and of all that was recorded for it."""
        rested = time.monotonic() - _REST
        for key, recorder in self._recorders.items():
            slots = [slot for slot in self._slots if slot.recorder is recorder]
            if all(slot.used < rested and not (slot.busy or slot.leased) for slot in slots):
                for slot in slots:
                    self.drop(slot)
                del self._recorders[key]
                return True
        return False

    def admit(self, slot: Slot, size: int) -> bool:
        """Whether a slot may take ``size`` bytes more; idle ones that rested give way to it.

        Its device is the current one.
        """
        device = slot.device
        if device not in self._limits:
            self._limits[device] = slot.xp.cuda.runtime.memGetInfo()[1] // _SHARE
        for orphan in [one for one in self._slots if one.owner() is None]:
            self.drop(orphan)
        while len(self._slots) >= _MOST_SLOTS:
            before = len(self._slots)
            self.drop(min(self._slots, key=operator.attrgetter("used")))
            if len(self._slots) == before:
                return False
        rested = time.monotonic() - _REST
        for idle in sorted(self._slots, key=operator.attrgetter("used")):
            if self._bytes.get(device, 0) + size <= self._limits[device]:
                break
            if idle.device == device and idle is not slot and idle.used < rested:
                self.drop(idle)
        if self._bytes.get(device, 0) + size > self._limits[device]:
            return False
        self._bytes[device] = self._bytes.get(device, 0) + size
        slot.bytes += size
        self._slots[slot] = None
        return True

    def give_back(self, slot: Slot, size: int) -> None:
        """A slot did not get the memory that it was admitted with."""
        slot.bytes -= size
        self._bytes[slot.device] -= size

    def drop(self, slot: Slot) -> None:
        """Let go of a slot that nobody uses."""
        if slot.busy or slot.leased:
            return
        self._forget(slot)

    def clear(self) -> None:
        """Let go of everything; what is lent lives on with its tape."""
        with self.lock:
            for slot in list(self._slots):
                self._forget(slot)
            self._recorders.clear()

    @property
    def bytes(self) -> int:
        """Bytes on all devices."""
        with self.lock:
            return sum(self._bytes.values())

    def _forget(self, slot: Slot) -> None:
        if slot in self._slots:
            del self._slots[slot]
            self._bytes[slot.device] -= slot.bytes
            slot.bytes = 0
            slot.forget_results()
        if slot in slot.home:
            slot.home.remove(slot)
