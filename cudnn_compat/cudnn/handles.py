"""Handles: one for each thread and device, handed on when a thread ends.

A handle serves one thread at a time. Destroying one waits for its device, so the handle of a thread
that has ended goes back to a pool, from which the next new thread takes it: there are never more
handles than threads that were alive together. What is idle is destroyed when the interpreter exits.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading

from cudnn_compat.cudnn.library import Library

__all__ = ["SpareHandle", "current_handle", "handle_count"]

_Key = tuple[Library, int]


class _Pool:
    """Handles that no living thread holds."""

    def __init__(self) -> None:
        # Reentrant: the garbage collector may give a handle back in the middle of anything.
        self.lock = threading.RLock()
        self.idle: dict[_Key, list[int]] = {}
        self.made = 0
        self.closed = False

    def take(self, key: _Key) -> int:
        with self.lock:
            idle = self.idle.get(key)
            if idle:
                return idle.pop()
        made = ctypes.c_void_p()
        key[0].cudnnCreate(ctypes.byref(made))
        assert made.value is not None
        with self.lock:
            self.made += 1
        return made.value

    def give_back(self, handles: dict[_Key, int]) -> None:
        with self.lock:
            if not self.closed:
                for key, handle in handles.items():
                    self.idle.setdefault(key, []).append(handle)

    def close(self) -> None:
        """Destroy what is idle; threads that still run keep theirs until the process is gone."""
        with self.lock:
            self.closed = True
            idle, self.idle = self.idle, {}
        for (library, _), handles in idle.items():
            for handle in handles:
                # The context may be gone or broken by now; nobody is left who could act on it.
                with contextlib.suppress(Exception):
                    library.cudnnDestroy(handle)

    def forget(self) -> None:
        """In a forked child: CUDA does not survive a fork, so none of the handles is usable."""
        self.lock = threading.RLock()
        self.idle, self.made = {}, 0


class _Held:
    """The handles of one thread; its end gives them back."""

    def __init__(self) -> None:
        self.handles: dict[_Key, int] = {}

    def __del__(self) -> None:
        # The module's names may be gone when the interpreter shuts down.
        try:  # noqa: SIM105
            _pool.give_back(self.handles)
        except Exception:
            pass


class _ThreadHandles(threading.local):
    def __init__(self) -> None:
        self.held = _Held()


_pool = _Pool()
_of_thread = _ThreadHandles()


def current_handle(library: Library, device: int) -> int:
    """This thread's ``cudnnHandle_t`` for ``device``, which must be the current device.

    Raises:
        LibraryError: ``cudnnCreate`` failed (no GPU, no driver, no memory); in words.
    """
    handles = _of_thread.held.handles
    key = (library, device)
    handle = handles.get(key)
    if handle is None:
        handle = handles[key] = _pool.take(key)
    return handle


class SpareHandle:
    """A handle that belongs to no thread: whoever has it keeps threads from meeting at it.

    Attributes:
        value: the ``cudnnHandle_t``.
    """

    def __init__(self, library: Library, device: int) -> None:
        """``device`` must be the current device.

        Raises:
            LibraryError: ``cudnnCreate`` failed; in words.
        """
        self._key = (library, device)
        self._process = os.getpid()
        self.value = _pool.take(self._key)

    def __del__(self) -> None:
        # The module's names may be gone when the interpreter shuts down.
        try:
            if self._process == os.getpid():  # a forked child cannot use it
                _pool.give_back({self._key: self.value})
        except Exception:
            pass


def handle_count() -> int:
    """Handles made so far in this process."""
    return _pool.made


@atexit.register
def _at_exit() -> None:
    held, _of_thread.held = _of_thread.held, _Held()
    _pool.give_back(held.handles)
    held.handles = {}
    _pool.close()


def _after_fork() -> None:
    _pool.forget()
    _of_thread.held.handles = {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
