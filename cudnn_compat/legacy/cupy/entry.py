"""What every entry point of the dialect does: warn, and raise what old code expects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from cudnn_compat.errors import (
    ArgumentError,
    LibraryError,
    LibraryNotFound,
    TapeError,
    UnsupportedError,
)
from cudnn_compat.legacy.cupy.errors import from_error
from cudnn_compat.legacy.deprecations import warner

__all__ = ["old_name", "quiet"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_REFUSALS: Final = (ArgumentError, LibraryError, TapeError, UnsupportedError)


def old_name(module: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Make a function or method an entry point of ``cudnn`` or ``libcudnn``.

    It warns at its caller's line by its row in the table, and its refusals, and the library's, are
    ``CuDNNError``. What is not installed stays a ``LibraryNotFound``, wrong types a ``TypeError``.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        name = function.__qualname__.removesuffix(".__init__")
        warn = warner(f"cudnn_compat.legacy.cupy.{module}.{name}")

        @functools.wraps(function)
        def entry(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            warn()
            try:
                return function(*args, **kwargs)
            except LibraryNotFound:
                raise
            except _REFUSALS as error:
                raise from_error(error) from error

        return entry

    return decorate


def quiet(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """An entry point for calls of our own: without its warning."""
    return getattr(function, "__wrapped__", function)
