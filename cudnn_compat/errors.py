"""Every exception and warning class of the package.

Each message says what was given, what was wanted and what to do. All exceptions share the base
:class:`CompatError`; those that have a counterpart in Python derive from it as well, so that
``except ValueError`` goes on working.
"""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "CompatError",
    "DTypeError",
    "IneffectiveOptionWarning",
    "LibraryError",
    "LibraryNotFound",
    "TapeError",
    "UnsupportedError",
]


class CompatError(Exception):
    """Base of every exception that this package raises on purpose."""


class ArgumentError(CompatError, ValueError):
    """An argument has a wrong value, shape or length; the message names it."""


class DTypeError(CompatError, TypeError):
    """An argument has a wrong type or dtype; the message lists the dtype of each argument."""


class UnsupportedError(CompatError, NotImplementedError):
    """What was asked for is well-formed, but this engine or library cannot do it."""


class TapeError(CompatError, RuntimeError):
    """Backward was asked of a forward that cannot serve it (inference, spent, wrong order)."""


class LibraryNotFound(CompatError, ImportError):
    """A library that the call needs is not installed or not loadable; lists where it was sought."""


class LibraryError(CompatError, RuntimeError):
    """The C library refused a call.

    Attributes:
        status: the status code that the library returned.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[type[LibraryError], tuple[str, int]]:
        return type(self), (str(self), self.status)


class IneffectiveOptionWarning(UserWarning):
    """An option was given that has no effect in this combination (dropout with one layer)."""
