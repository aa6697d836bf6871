"""Status codes of both majors, mapped to one set of exceptions.

cuDNN 8 has fifteen codes. cuDNN 9 has five categories (``code // 1000 * 1000``) with finer codes in
each, and goes on adding some: a code that is not known here is mapped by its category.
"""

from __future__ import annotations

from cudnn_compat.cudnn.constants import STATUS_8, STATUS_9
from cudnn_compat.errors import (
    LibraryBadParameter,
    LibraryError,
    LibraryExecutionFailed,
    LibraryInternalError,
    LibraryMismatch,
    LibraryNotInitialized,
    LibraryNotSupported,
    LibraryOutOfMemory,
)

__all__ = ["HINTS", "exception_class", "library_error", "status_name"]

_BY_NAME: dict[str, type[LibraryError]] = {
    "NOT_INITIALIZED": LibraryNotInitialized,
    "ALLOC_FAILED": LibraryOutOfMemory,
    "INTERNAL_ERROR_HOST_ALLOCATION_FAILED": LibraryOutOfMemory,
    "INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED": LibraryOutOfMemory,
    "BAD_PARAM": LibraryBadParameter,
    "INVALID_VALUE": LibraryBadParameter,
    "NOT_SUPPORTED": LibraryNotSupported,
    "ARCH_MISMATCH": LibraryNotSupported,
    "DEPRECATED": LibraryNotSupported,
    "INTERNAL_ERROR": LibraryInternalError,
    "MAPPING_ERROR": LibraryInternalError,
    "EXECUTION_FAILED": LibraryExecutionFailed,
    "RUNTIME_IN_PROGRESS": LibraryExecutionFailed,
    "RUNTIME_FP_OVERFLOW": LibraryExecutionFailed,
    "LICENSE_ERROR": LibraryMismatch,
    "VERSION_MISMATCH": LibraryMismatch,
    "SUBLIBRARY_VERSION_MISMATCH": LibraryMismatch,
    "SERIALIZATION_VERSION_MISMATCH": LibraryMismatch,
    "SUBLIBRARY_LOADING_FAILED": LibraryMismatch,
    "RUNTIME_PREREQUISITE_MISSING": LibraryMismatch,
    "NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER": LibraryMismatch,
    "NOT_SUPPORTED_INCOMPATIBLE_CUDART": LibraryMismatch,
    "NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING": LibraryMismatch,
    "NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE": LibraryMismatch,
}
"""Whatever is not here is what its category of cuDNN 9 is; nothing of cuDNN 8 is missing."""

_BY_CATEGORY: dict[int, type[LibraryError]] = {
    1000: LibraryMismatch,
    2000: LibraryBadParameter,
    3000: LibraryNotSupported,
    4000: LibraryInternalError,
    5000: LibraryExecutionFailed,
}

HINTS: dict[type[LibraryError], str] = {
    LibraryNotInitialized: (
        "is there a GPU, and a driver that is new enough for this cuDNN? "
        "(`cudnn-compat info` tells)"
    ),
    LibraryOutOfMemory: "free memory on the GPU (other arrays, other processes), or ask for less",
    LibraryExecutionFailed: "the cause may be an earlier call; CUDA_LAUNCH_BLOCKING=1 shows which",
    LibraryMismatch: "driver, CUDA and all parts of cuDNN must belong together "
    "(`cudnn-compat info` tells which were found)",
}
"""What the user can do, where it is always the same."""


def _names(table: dict[str, int]) -> dict[int, str]:
    # Aliases stand last in the header, and the first name of a code is the right one.
    return {code: name for name, code in reversed(table.items())}


_NAMES = {8: _names(STATUS_8), 9: _names(STATUS_9)}


def status_name(major: int, code: int) -> str | None:
    """Name of a code in the header of that major; None if it has none."""
    return _NAMES[major].get(code)


def exception_class(major: int, code: int) -> type[LibraryError]:
    """The exception for a code other than success, also for one that no header had."""
    name = (status_name(major, code) or "").removeprefix("CUDNN_STATUS_")
    if name in _BY_NAME:
        return _BY_NAME[name]
    if major == 8:
        return LibraryError
    return _BY_CATEGORY.get(code // 1000 * 1000, LibraryError)


def library_error(
    call: str, major: int, code: int, *, text: str = "", reason: str = ""
) -> LibraryError:
    """The exception to raise for a call that returned ``code``.

    Args:
        call: name of the function.
        text: what ``cudnnGetErrorString`` says of the code.
        reason: what ``cudnnGetLastErrorString`` said (cuDNN 9), empty if nothing.
    """
    kind = exception_class(major, code)
    known = status_name(major, code)
    name = known or (text if text.startswith("CUDNN_STATUS_") else f"CUDNN_STATUS_{code}")
    parts = [f"{call}: {name} ({code})"]
    if text and text not in (name, "CUDNN_UNKNOWN_STATUS"):
        parts.append(text)
    if reason:
        parts.append(reason)
    message = ": ".join(parts)
    if hint := HINTS.get(kind):
        message = f"{message}; {hint}"
    return kind(message, code, name, call)
