"""Generators of dropout masks on a device."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from cudnn_compat.arrays import Array
from cudnn_compat.cudnn.descriptors import Descriptor, dropout_descriptor
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cudnn.device import Session, Stream
from cudnn_compat.errors import UnsupportedError

__all__ = ["Generator", "forget_scratch", "generator_of", "scratch_descriptor"]

_MOST_DESCRIPTORS = 16


class Generator:
    """The library's generators of one :class:`DropoutState` on one device.

    They live in device memory and every use advances them, so uses on different streams are put in
    order. Copies and pickles go on with the same masks. Use it while holding the state's lock.
    """

    def __init__(self, device: int, seed: int) -> None:
        self.device = device
        self.seed = seed
        self._states: Array | None = None
        self._saved: Any = None  # the states on the host, in a copy that has not been used
        self._descriptors: OrderedDict[Hashable, Descriptor] = OrderedDict()
        self._used: Any = None  # the event of the last use, and the stream that it was on
        self._on: Stream | None = None
        self._taken_on: Stream | None = None  # the stream that the states belong to

    def descriptor(self, session: Session, ratio: float) -> Descriptor:
        """A dropout descriptor over these generators."""
        return self.kept(("ratio", ratio), lambda: self._describe(session, ratio))

    def kept(self, key: Hashable, make: Callable[[], Descriptor]) -> Descriptor:
        """A descriptor that refers to these generators, from a bounded store."""
        found = self._descriptors.get(key)
        if found is None:
            found = self._descriptors[key] = make()
            if len(self._descriptors) > _MOST_DESCRIPTORS:
                self._descriptors.popitem(last=False)
        else:
            self._descriptors.move_to_end(key)
        return found

    def _describe(self, session: Session, ratio: float) -> Descriptor:
        if self._states is not None:
            return self._over(session, self._states, ratio, initialise=False)
        size = ctypes.c_size_t()
        session.library.cudnnDropoutGetStatesSize(session.handle, ctypes.byref(size))
        states, saved = session.bytes(size.value), self._saved
        if saved is not None:
            if saved.nbytes != size.value:
                raise UnsupportedError(
                    f"this copy of a DropoutState has {saved.nbytes} bytes, from another kind of "
                    f"GPU; cuDNN {session.library.version} keeps {size.value} bytes here. "
                    "Start again: state.restart()"
                )
            states.set(saved)
        made = self._over(session, states, ratio, initialise=saved is None)
        # Only now, so that nothing half made is ever taken for the generators.
        self._states, self._saved, self._taken_on = states, None, session.stream
        return made

    def _over(
        self, session: Session, states: Array, ratio: float, *, initialise: bool
    ) -> Descriptor:
        made = dropout_descriptor(
            session.library,
            session.handle,
            ratio=ratio,
            states=int(states.data.ptr),
            size=states.nbytes,
            seed=self.seed,
            initialise=initialise,
        )
        made.keeps = states
        return made

    @contextlib.contextmanager
    def in_order(self, session: Session) -> Iterator[None]:
        """Work inside comes behind earlier uses on other streams, and before later ones."""
        if self._used is not None and self._on != session.stream:
            session.stream.cupy.wait_event(self._used)
        try:
            yield
        finally:
            if self._used is None:
                self._used = session.xp.cuda.Event(disable_timing=True)
            self._used.record(session.stream.cupy)
            self._on = session.stream

    def __del__(self) -> None:
        # The states go back to the stream that they were taken on. At interpreter exit the names
        # of modules may be gone.
        try:
            if self._used is not None and self._on != self._taken_on:
                self._used.synchronize()
        except Exception:  # nobody is left who could act on it
            pass

    def __getstate__(self) -> dict[str, Any]:
        saved = self._saved
        if self._states is not None:
            if self._used is not None:
                self._used.synchronize()
            saved = self._states.get()
        return {"device": self.device, "seed": self.seed, "saved": saved}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["device"], state["seed"])  # type: ignore[misc]
        self._saved = state["saved"]


def generator_of(state: DropoutState, device: int) -> Generator:
    """The generators of a state on a device, made at first use."""
    return state.realise(("cudnn", device), lambda seed: Generator(device, seed))


_scratch: dict[int, Generator] = {}
_scratch_lock = threading.Lock()


def scratch_descriptor(session: Session, ratio: float) -> Descriptor:
    """A dropout descriptor for calls that draw nothing: sizes, and backward, whose masks are kept.

    One for each device, so that backward depends on no state of the caller's.
    """
    with _scratch_lock:
        generator = _scratch.setdefault(session.device, Generator(session.device, 0))
        with generator.in_order(session):
            return generator.descriptor(session, ratio)


def forget_scratch() -> None:
    """Let go of what :func:`scratch_descriptor` keeps."""
    with _scratch_lock:
        _scratch.clear()
