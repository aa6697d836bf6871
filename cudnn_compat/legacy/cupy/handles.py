"""Handles: for each device one that all threads share, and those that a program makes itself."""

from __future__ import annotations

import functools
import threading
from typing import Final

from cudnn_compat.arrays import load_cupy
from cudnn_compat.cudnn.library import load
from cudnn_compat.errors import LibraryNotFound
from cudnn_compat.legacy.cupy.described import Handle
from cudnn_compat.legacy.cupy.memory import Space
from cudnn_compat.legacy.cupy.registry import find, give_number, is_live

__all__ = ["current_device", "current_space", "make_handle", "shared_handle", "space_of"]

_shared: Final[dict[int | None, int]] = {}
_lock: Final = threading.Lock()


@functools.cache
def _gpu_is_usable() -> bool:
    try:
        cupy = load_cupy()
    except LibraryNotFound:
        return False
    try:
        return bool(cupy.cuda.is_available())
    except Exception:  # what CuPy 13 raises where there is no driver, or one that is too old
        return False


def current_device() -> int | None:
    """The current device; None where no GPU is usable: handles are host handles then."""
    if not _gpu_is_usable():
        return None
    return int(load_cupy().cuda.runtime.getDevice())


def make_handle(device: int | None) -> int:
    """A new handle.

    Raises:
        LibraryNotFound: there is a GPU, but no cuDNN.
    """
    if device is not None:
        load()
    return give_number(Handle(device))


def shared_handle() -> int:
    """The handle of the current device, made at first use."""
    device = current_device()
    number = _shared.get(device)
    if number is None or not is_live(number):  # a program may have destroyed it
        with _lock:
            number = _shared.get(device)
            if number is None or not is_live(number):
                number = _shared[device] = make_handle(device)
    return number


def space_of(number: int) -> Space:
    """The memory that pointers given with this handle belong to.

    Work is put on CuPy's current stream, as CuPy itself did; the handle then has that stream.

    Raises:
        ArgumentError: there is no such handle.
    """
    handle = find(Handle, number)
    if handle.device is not None:
        handle.stream = int(load_cupy().cuda.get_current_stream().ptr)
    return Space(handle.device)


def current_space() -> Space:
    """The memory of the current device, or the host's where no GPU is usable."""
    return Space(current_device())
