"""The calls of one plan as graphs: recorded when a shape has come back, then replayed.

A replay computes what the plain call would, bit for bit, on arrays of the graph's own, so the
caller's may be anywhere, and outputs are always fresh. Where a replay is not possible (the caller
captures the stream, all slots are in use, memory is short) the plain call runs.
"""

from __future__ import annotations

import os
import time
from typing import Final

from cudnn_compat.arrays import Array
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.graphs.recording import (
    Addresses,
    Call,
    Own,
    Place,
    Recording,
    Scratch,
)
from cudnn_compat.engines.cudnn.graphs.slots import BLAS, Slot, Store
from cudnn_compat.engines.cudnn.graphs.stages import FORWARD, Arrays, Key, Stage, addresses, key_of
from cudnn_compat.engines.cudnn.staging import ALIGNMENT
from cudnn_compat.errors import LibraryError

__all__ = ["Replays", "graphs"]

_SLOTS: Final = 8
"""Slots of one plan and stream: as many forwards may wait for their backward."""


def graphs() -> str:
    """``CUDNN_COMPAT_GRAPHS``: ``"on"``, ``"off"``, or ``"always"``.

    With ``always`` the first call of a shape already comes out of a graph (of own kernels the
    second, as the first shows how much scratch they take); for tests.
    """
    said = os.environ.get("CUDNN_COMPAT_GRAPHS", "on").strip().lower()
    if said in ("off", "0", "no", "false"):
        return "off"
    return "always" if said == "always" else "on"


class Replays:
    """The graphs of one plan.

    Args:
        own: the network's descriptor for calls that draw no masks, or what else computes.
        patience: calls forward that run plainly before one is recorded.
        blas: bytes of scratch that its calls of cuBLAS take.

    Attributes:
        refused: why nothing can be recorded; None while nothing speaks against it.
        recorded: calls recorded so far.
        store: where its slots are counted.
        own: see above.
        slots: its slots, by the address of their stream.
    """

    def __init__(self, store: Store, own: object, patience: int, *, blas: int = 0) -> None:
        self.refused: str | None = None
        self.recorded = 0
        self.store = store
        self.own = own
        self.slots: dict[int, list[Slot]] = {}
        self._eager = graphs() == "always"
        self._patience = 0 if self._eager else patience
        self._blas = blas
        self._drawn: object = None

    def reserve(self, session: Session, size: int) -> Array | None:
        """Memory for a forward's reserve that its graphs work on; None where there is none."""
        if self._patience > 0 or self.refused or session.stream.is_per_thread:
            return None
        if session.capturing:
            return None
        with self.store.lock:
            slot = self._idle(session)
            if slot is None or not self._grow(session, slot, {"reserve": size}):
                return None
            return slot.lend(session, size)

    def run(
        self,
        session: Session,
        stage: Stage,
        network: object,
        workspace: int,
        call: Call,
        reads: Arrays,
        writes: Arrays,
    ) -> bool:
        """Compute by a graph, or record one while computing.

        Returns:
            Whether it did; if not, nothing has happened.
        """
        if self.refused or session.stream.is_per_thread or not self._ripe(stage, network):
            return False  # threads that end hand their numbers on, and so their streams' names
        if session.capturing:
            return False
        slot = self._take(session, stage, reads, writes)
        if slot is None:
            return False
        try:
            given, wanted = addresses(reads), addresses(writes)
            key = key_of(stage, network, given, wanted)
            recording = slot.find(key)
            if recording is not None:
                self.launch(slot, stage, recording, given, wanted)
                return True
            slot.held = {}
            if not slot.recorder.lock.acquire(blocking=False):
                return False  # another thread records: the plain call is sooner done
            try:
                return self._first(session, slot, key, stage, workspace, call, reads, writes)
            finally:
                slot.recorder.lock.release()
        finally:
            slot.busy = False

    def launch(
        self, slot: Slot, stage: Stage, recording: Recording, given: Addresses, wanted: Addresses
    ) -> None:
        """Replay, without copies where all arrays are where they have been for some calls.

        ``slot`` is the caller's for the while, and its stream and device are the current ones.
        """
        place = given, wanted
        bound = recording.places.bound.get(place)
        if bound is not None:
            if stage is FORWARD:
                slot.held = {}
            bound.replay(slot.stream.cupy.ptr)
            return
        recording.launch(slot.stream.cupy.ptr, _but_held(slot, stage, given), wanted)
        _hold(slot, stage, given, wanted)
        if recording.places.come_back(place) and slot.recorder.lock.acquire(blocking=False):
            try:
                self._bind(slot, recording, place)
            except Exception:  # the graph that copies serves as well
                recording.places.give_up()
            finally:
                slot.recorder.lock.release()

    def _bind(self, slot: Slot, recording: Recording, place: Place) -> None:
        """Record on the caller's own arrays."""
        nothing = [Own(addresses, (0,) * len(addresses)) for addresses in place]
        with Session(slot.device) as session:
            bound = slot.recorder.record(session, recording.call, recording.scratch, *nothing)
        recording.places.bind(place, bound)
        self.recorded += 1

    def release(self) -> None:
        """Let go of all slots that nobody uses."""
        with self.store.lock:
            for slots in self.slots.values():
                for slot in list(slots):
                    self.store.drop(slot)

    def _ripe(self, stage: Stage, network: object) -> bool:
        """Whether the shape has come back often enough, and the generator with it."""
        if self._patience > 0:
            if stage is FORWARD:
                self._patience -= 1
            return False
        if network is self.own or network is self._drawn:
            return True
        self._drawn = network  # a graph is worth while only for a generator that goes on
        return False

    def _take(self, session: Session, stage: Stage, reads: Arrays, writes: Arrays) -> Slot | None:
        """The slot whose reserve this is, else an idle one; it is busy then."""
        reserve = writes[3] if stage is FORWARD else reads[stage.reads.index("reserve")]
        with self.store.lock:
            slot = None
            if reserve is not None:
                place = reserve.data.ptr
                if place % ALIGNMENT:
                    return None
                for one in self.slots.get(session.stream.cupy.ptr, ()):
                    if one.reserve == place:
                        slot = one
                        break
            if slot is None:
                slot = self._idle(session)
            elif slot.busy:
                slot = None
            if slot is not None:
                slot.busy = True
                slot.used = time.monotonic()
            return slot

    def _idle(self, session: Session) -> Slot | None:
        current = session.stream.cupy.ptr
        slots = self.slots.get(current)
        if slots is None:
            for stream in [one for one, slots in self.slots.items() if not slots]:
                del self.slots[stream]
            slots = self.slots[current] = []
        for slot in slots:
            if not (slot.busy or slot.leased):
                return slot
        if len(slots) >= _SLOTS:
            return None
        try:
            recorder = self.store.recorder(session)
        except LibraryError:  # no handle: the plain call has one
            return None
        if recorder is None:
            return None
        slot = Slot(recorder, session, slots, self)
        slots.append(slot)
        return slot

    def _grow(self, session: Session, slot: Slot, sizes: dict[str, int]) -> bool:
        more = slot.missing(sizes)
        if more:
            if slot not in slot.home:  # let go of in the meantime
                return False
            if not self.store.admit(slot, more):
                return False
            try:
                slot.grow(session, sizes)
            except MemoryError:  # the plain call takes less
                self.store.give_back(slot, slot.missing(sizes))
                return False
        return True

    def _first(
        self,
        session: Session,
        slot: Slot,
        key: Key,
        stage: Stage,
        workspace: int,
        call: Call,
        reads: Arrays,
        writes: Arrays,
    ) -> bool:
        """Compute plainly, and record what is to be replayed; whether it computed."""
        workplace = slot.workspace(workspace)
        sizes = {workplace: workspace}
        if self._blas:
            sizes[BLAS] = self._blas
        for names, arrays in ((stage.reads, reads), (stage.writes, writes)):
            for name, array in zip(names, arrays, strict=True):
                if array is not None:
                    sizes[name] = array.nbytes
        with self.store.lock:
            if not self._grow(session, slot, sizes):
                return False
        scratch = Scratch(slot.address(workplace), slot.address(BLAS))
        given, wanted = addresses(reads), addresses(writes)
        if not self._eager:
            slot.recorder.run(session, call, scratch, given, wanted)
        recording = self._record(session, slot, key, stage, call, scratch, sizes, given, wanted)
        if self._eager and recording is not None:
            recording.launch(session.stream.cupy.ptr, given, wanted)
        return recording is not None or not self._eager

    def _record(
        self,
        session: Session,
        slot: Slot,
        key: Key,
        stage: Stage,
        call: Call,
        scratch: Scratch,
        sizes: dict[str, int],
        given: Addresses,
        wanted: Addresses,
    ) -> Recording | None:
        """Capture the call on the slot's arrays; None where that fails.

        But for want of memory, nothing is tried again then.
        """
        own = [
            Own(
                tuple(slot.address(n) if a else 0 for n, a in zip(names, places, strict=True)),
                tuple(sizes.get(n, 0) for n in names),
            )
            for names, places in ((stage.reads, given), (stage.writes, wanted))
        ]
        # Ready to record by a run whose results are overwritten; masks cannot be drawn again.
        if self._eager and stage is FORWARD and key[1] is self.own:
            slot.recorder.run(session, call, scratch, *(arrays.addresses for arrays in own))
        try:
            made = slot.recorder.record(session, call, scratch, *own)
        except MemoryError:  # the next call may have it, or know how much it is
            return None
        except Exception as error:  # the plain call serves as well, so nobody has to know
            self.refused = f"{type(error).__name__}: {error}"
            return None
        slot.keep(key, made)
        self.recorded += 1
        return made


def _but_held(slot: Slot, stage: Stage, given: Addresses) -> Addresses:
    """Addresses to copy from: 0 for what the slot has from the forward of this backward."""
    held = slot.held
    if not held or stage is FORWARD:
        return given
    return tuple([0 if held.get(n) == a else a for n, a in zip(stage.reads, given, strict=True)])


def _hold(slot: Slot, stage: Stage, given: Addresses, wanted: Addresses) -> None:
    """Remember what a forward, whose reserve is the slot's own, has left in the slot."""
    if stage is FORWARD:
        slot.held = {}
        if wanted[3] and wanted[3] == slot.reserve:
            slot.held = dict(zip(stage.reads, given, strict=True), y=wanted[0])
