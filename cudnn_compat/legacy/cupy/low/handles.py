"""Version, handles and streams."""

from __future__ import annotations

from cudnn_compat.checking import check_integer
from cudnn_compat.cudnn.library import load
from cudnn_compat.errors import LibraryNotFound
from cudnn_compat.legacy.cupy import handles
from cudnn_compat.legacy.cupy.described import Handle
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.registry import find, release

__all__ = ["create", "destroy", "getStream", "getVersion", "setStream"]

_LAST_OLD_VERSION = 8907
"""The last cuDNN that had the old calls, 8.9.7."""


@old_name("libcudnn")
def getVersion() -> int:
    """The number of the library that is loaded (91900 is 9.19.0), 8907 where none can be."""
    try:
        return int(load().cudnnGetVersion())
    except LibraryNotFound:
        return _LAST_OLD_VERSION


@old_name("libcudnn")
def create() -> int:
    """A handle of the current device; where no GPU is usable, one of the host.

    Pointers given with a host handle are host addresses, and the NumPy engine computes.
    """
    return handles.make_handle(handles.current_device())


@old_name("libcudnn")
def destroy(handle: int) -> None:
    """Forget a handle."""
    release(Handle, handle)


@old_name("libcudnn")
def setStream(handle: int, stream: int) -> None:
    """Note a stream. Calls set CuPy's current stream first, as they did in CuPy."""
    find(Handle, handle).stream = check_integer("stream", stream, 0, 2**64)


@old_name("libcudnn")
def getStream(handle: int) -> int:
    """The stream that was set last, by the program or by a call."""
    return find(Handle, handle).stream
