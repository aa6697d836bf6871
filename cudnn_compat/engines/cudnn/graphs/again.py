"""The short way of a call that has been recorded: nothing is asked that cannot have changed.

The long way, :meth:`Replays.run`, learns from the session, the plan and the lengths what a call
needs. Once that is recorded only this may differ: the current device and stream, whether somebody
captures it, where the arrays are, and which slot is idle. Where anything is not as the recording
needs it, the calls here say so and have done nothing. They are written out array by array, because
the host's time is what they are for.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.engines.cudnn.device import contiguity, is_captured
from cudnn_compat.engines.cudnn.graphs.recording import Recording
from cudnn_compat.engines.cudnn.graphs.replays import Replays
from cudnn_compat.engines.cudnn.graphs.slots import Lease, Slot
from cudnn_compat.engines.cudnn.graphs.stages import (
    BACKWARD,
    DATA,
    FORWARD,
    WEIGHTS,
    Arrays,
    Key,
    Stage,
    addresses,
    key_of,
)
from cudnn_compat.engines.cudnn.staging import ALIGNMENT
from cudnn_compat.engines.interface import (
    Gradients,
    GradientShapes,
    NotBegun,
    Outputs,
    Shapes,
)

__all__ = ["Again"]


class Again:
    """What is recorded of one plan, on whatever streams.

    Args:
        device: of the plan.
        kind: dtype of all arrays.
        training: of the plan.
        looks_back: whether backward reads hx and y.
    """

    def __init__(
        self,
        xp: ModuleType,
        replays: Replays,
        device: int,
        kind: np.dtype,
        *,
        training: bool,
        looks_back: bool = True,
    ) -> None:
        self._device_now = xp.cuda.runtime.getDevice
        self._stream_now = xp.cuda.get_current_stream
        self._captured = functools.partial(is_captured, xp)
        self._contiguous = contiguity(xp)
        self._replays = replays
        self._store = replays.store
        self._slots = replays.slots
        self._device = device
        self._kind = kind
        self._training = training
        self._looks_back = looks_back
        self._keys: dict[tuple[bool, ...], Key] = {}

    def forward(
        self, shapes: Shapes, w: Array, x: Array, hx: Array | None, cx: Array | None
    ) -> Outputs | None:
        """A forward into arrays that are the caller's; None: not that way."""
        if self._device_now() != self._device:
            return None
        stream = self._stream_now().ptr
        slots = self._slots.get(stream)
        if not slots:
            return None
        given = (
            w.data.ptr,
            x.data.ptr,
            0 if hx is None else hx.data.ptr,
            0 if cx is None else cx.data.ptr,
        )
        if (given[0] | given[1] | given[2] | given[3]) % ALIGNMENT:
            return None
        contiguous = self._contiguous
        if not (contiguous(w) and contiguous(x)):
            return None
        if not ((hx is None or contiguous(hx)) and (cx is None or contiguous(cx))):
            return None
        if self._captured(stream):
            return None
        present = (hx is None, cx is None, shapes[2] is None)
        key = self._keys.get(present)
        if key is None:  # where results will be does not matter to it
            results = (1, 1, 0 if shapes[2] is None else 1, 1 if self._training else 0)
            key = self._keys[present] = key_of(FORWARD, self._replays.own, given, results)
        found = self._take(slots, key)
        if found is None:
            return None
        slot, recording = found
        try:
            lease = slot.lease() if self._training else None
            made = slot.results(FORWARD.name, shapes, self._kind)
            if made is None:
                return None
            y, hy, cy = made.arrays  # which counts as having them, before others get the slot
            wanted = (*made.addresses, slot.reserve if self._training else 0)
            bound = recording.places.bound.get((given, wanted))
            if bound is None:
                self._replays.launch(slot, FORWARD, recording, given, wanted)
            else:
                slot.held = {}
                bound.replay(stream)
        finally:
            slot.busy = False
        return y, hy, cy, lease, slot.stream if self._training else None

    def gradients(
        self,
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
    ) -> Gradients | None:
        """Both passes backward of a forward that went this way; None: not that way.

        Raises:
            NotBegun: there was no memory for the results.
        """
        if type(reserve) is not Lease or dy is None:
            return None
        slot, looks_back = reserve.slot, self._looks_back
        stream = slot.stream.cupy.ptr
        if self._device_now() != self._device or self._stream_now().ptr != stream:
            return None
        given = (
            w.data.ptr,
            x.data.ptr,
            0 if hx is None or not looks_back else hx.data.ptr,
            0 if cx is None else cx.data.ptr,
            y.data.ptr if looks_back else 0,
            dy.data.ptr,
            0 if dhy is None else dhy.data.ptr,
            0 if dcy is None else dcy.data.ptr,
            slot.reserve,
        )
        # What the forward read or wrote was contiguous and aligned, but for copies of w.
        if (given[0] | given[5] | given[6] | given[7]) % ALIGNMENT:
            return None
        contiguous = self._contiguous
        if not (contiguous(w) and contiguous(dy)):
            return None
        if not ((dhy is None or contiguous(dhy)) and (dcy is None or contiguous(dcy))):
            return None
        if self._captured(stream):
            return None
        present = (hx is None, cx is None, dhy is None, dcy is None, shapes[2] is None)
        key = self._keys.get(present)
        if key is None:  # as above
            results = (1, 1, 0 if shapes[2] is None else 1, 1, 1)
            key = self._keys[present] = key_of(BACKWARD, self._replays.own, given, results)
        found = self._take((slot,), key, slot.reserve)
        if found is None:
            return None
        _, recording = found
        try:
            try:
                made = slot.results(BACKWARD.name, shapes, self._kind)
            except BaseException as error:
                raise NotBegun from error
            if made is None:
                return None
            dx, dhx, dcx, dw = made.arrays
            wanted = (*made.addresses, slot.reserve)
            bound = recording.places.bound.get((given, wanted))
            if bound is None:
                self._replays.launch(slot, BACKWARD, recording, given, wanted)
            else:
                bound.replay(stream)
        finally:
            slot.busy = False
        return dx, dhx, dcx, dw

    def forward_into(
        self,
        w: Array,
        x: Array,
        hx: Array | None,
        cx: Array | None,
        y: Array,
        hy: Array | None,
        cy: Array | None,
        reserve: Any,
    ) -> bool:
        """A forward into arrays that are given; whether it was done."""
        return self._fill(FORWARD, (w, x, hx, cx), (y, hy, cy, reserve), reserve)

    def data(
        self,
        w: Array,
        hx: Array | None,
        cx: Array | None,
        y: Array,
        reserve: Any,
        dy: Array | None,
        dhy: Array | None,
        dcy: Array | None,
        dx: Array,
        dhx: Array,
        dcx: Array | None,
    ) -> bool:
        """The first pass backward by itself; whether it was done."""
        before = (hx, cx, y) if self._looks_back else (None, cx, None)
        reads = (w, *before, dy, dhy, dcy, reserve)
        return self._fill(DATA, reads, (dx, dhx, dcx, reserve), reserve)

    def weights(self, x: Array, hx: Array | None, y: Array, reserve: Any, dw: Array) -> bool:
        """The second pass by itself, which adds into dw; whether it was done."""
        before = (hx, y) if self._looks_back else (None, None)
        return self._fill(WEIGHTS, (x, *before, reserve, dw), (dw,), reserve)

    def _fill(self, stage: Stage, reads: Arrays, writes: Arrays, reserve: Any) -> bool:
        """One call, of any arrays; ``reserve`` is the one among them, None in inference."""
        if self._device_now() != self._device:
            return False
        stream = self._stream_now().ptr
        slots = self._slots.get(stream)
        if not slots:
            return False
        for array in (*reads, *writes):
            if array is None or array is reserve:
                continue
            if array.data.ptr % ALIGNMENT or not self._contiguous(array):
                return False
        if self._captured(stream):
            return False
        given, wanted = addresses(reads), addresses(writes)
        key = key_of(stage, self._replays.own, given, wanted)
        found = self._take(slots, key, 0 if reserve is None else reserve.data.ptr)
        if found is None:
            return False
        slot, recording = found
        try:
            self._replays.launch(slot, stage, recording, given, wanted)
        finally:
            slot.busy = False
        return True

    def _take(
        self, slots: Iterable[Slot], key: Key, reserve: int = 0
    ) -> tuple[Slot, Recording] | None:
        """The slot whose reserve is there, or an idle one, busy then; and what it has recorded."""
        with self._store.lock:
            for slot in slots:
                if slot.busy or (slot.reserve != reserve if reserve else slot.leased):
                    continue
                recording = slot.find(key)
                if recording is None:
                    return None
                slot.busy = True
                slot.used = time.monotonic()
                return slot, recording
        return None
