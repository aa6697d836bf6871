"""`CuDNNError`, with the status numbers that old code compares with: those of cuDNN 8."""

from __future__ import annotations

from typing import Final

from cudnn_compat.cudnn.constants import STATUS_8, STATUS_9
from cudnn_compat.errors import CompatError, LibraryError, UnsupportedError

__all__ = ["CuDNNError", "from_error"]

_NAMES: Final = {code: name for name, code in STATUS_8.items()}

_OLD: Final = {code: STATUS_8[name] for name, code in STATUS_9.items() if name in STATUS_8} | {
    1003: STATUS_8["CUDNN_STATUS_VERSION_MISMATCH"],
    1004: STATUS_8["CUDNN_STATUS_NOT_SUPPORTED"],
    1008: STATUS_8["CUDNN_STATUS_NOT_INITIALIZED"],
    4004: STATUS_8["CUDNN_STATUS_ALLOC_FAILED"],
}
"""9.x number to 8.x number."""

_OLD_CATEGORIES: Final = {
    1000: STATUS_8["CUDNN_STATUS_NOT_INITIALIZED"],
    2000: STATUS_8["CUDNN_STATUS_BAD_PARAM"],
    3000: STATUS_8["CUDNN_STATUS_NOT_SUPPORTED"],
    4000: STATUS_8["CUDNN_STATUS_INTERNAL_ERROR"],
    5000: STATUS_8["CUDNN_STATUS_EXECUTION_FAILED"],
}
"""The finer numbers of 9.x."""


class CuDNNError(CompatError, RuntimeError):
    """The library, or this package in its place, refused a call.

    Args:
        status: an 8.x status number.
        new_status: the 9.x number; None takes the one of the same name.
        reason: what is wrong, in words.

    Attributes:
        status: the 8.x number, which old code compares with.
        new_status: the 9.x number; None where 9.x has none.
        reason: what is wrong, in words; may be empty.
    """

    def __init__(self, status: int, new_status: int | None = None, reason: str = "") -> None:
        name = _NAMES.get(status, f"CUDNN_STATUS_{status}")
        super().__init__(f"cuDNN Error: {name}" + (f": {reason}" if reason else ""))
        self.status = status
        self.new_status = STATUS_9.get(name) if new_status is None else new_status
        self.reason = reason
        self._infos: list[str] = []

    def add_info(self, info: str) -> None:
        """Add a line to what is shown."""
        if not isinstance(info, str):
            raise TypeError(f"info is {info!r}; wanted a string")
        self._infos.append(info)

    def add_infos(self, infos: list[str]) -> None:
        """Add several lines to what is shown."""
        for info in infos:
            self.add_info(info)

    def __str__(self) -> str:
        return "\n  ".join([super().__str__(), *self._infos])

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.status, self.new_status, self.reason), {"_infos": self._infos}


def from_error(error: CompatError) -> CuDNNError:
    """What old code is shown in place of an exception of this package."""
    if isinstance(error, LibraryError):
        if STATUS_8.get(error.name) == error.status:  # cuDNN 8 itself
            return CuDNNError(error.status, reason=str(error))
        old = _OLD.get(error.status)
        if old is None:
            old = _OLD_CATEGORIES.get(error.status // 1000 * 1000, 4)
        return CuDNNError(old, error.status, str(error))
    unsupported = isinstance(error, UnsupportedError)
    name = "CUDNN_STATUS_NOT_SUPPORTED" if unsupported else "CUDNN_STATUS_BAD_PARAM"
    return CuDNNError(STATUS_8[name], reason=str(error))
