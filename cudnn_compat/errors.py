"""Every exception and warning class of the package.

Each message says what was given, what was wanted and what to do. All exceptions share the base
:class:`CompatError`; those that have a counterpart in Python derive from it as well, so that
``except ValueError`` goes on working.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = [
    "ArgumentError",
    "CompatError",
    "DTypeError",
    "IneffectiveOptionWarning",
    "LibraryBadParameter",
    "LibraryError",
    "LibraryExecutionFailed",
    "LibraryInternalError",
    "LibraryMismatch",
    "LibraryNotFound",
    "LibraryNotInitialized",
    "LibraryNotSupported",
    "LibraryOutOfMemory",
    "LibraryVersionError",
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
    """A library that the call needs is not installed or not loadable; lists where it was sought.

    Attributes:
        sought: every place in the order of the search, each a dict with ``place``, ``found_by``
            (what named the place) and ``result`` (what happened); empty for a Python package.
    """

    def __init__(self, message: str, sought: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(message)
        self.sought = [dict(each) for each in sought]

    def __reduce__(self) -> tuple[type[LibraryNotFound], tuple[str, list[dict[str, str]]]]:
        return type(self), (str(self), self.sought)


class LibraryVersionError(LibraryNotFound, UnsupportedError):
    """The only cuDNN that is here is of a version that this release cannot work with."""


class LibraryError(CompatError, RuntimeError):
    """The C library refused a call. Its subclasses tell what can be done about it.

    Attributes:
        status: the status code that the library returned.
        name: the code's name in the library's header (``"CUDNN_STATUS_BAD_PARAM"``).
        call: the function that returned it.
    """

    def __init__(self, message: str, status: int, name: str = "", call: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.name = name
        self.call = call

    def __reduce__(self) -> tuple[type[LibraryError], tuple[str, int, str, str]]:
        return type(self), (str(self), self.status, self.name, self.call)


class LibraryNotInitialized(LibraryError):
    """cuDNN cannot start: no GPU, no driver or one that is too old for the library's CUDA."""


class LibraryOutOfMemory(LibraryError, MemoryError):
    """cuDNN got no memory from the host or the GPU."""


class LibraryBadParameter(LibraryError, ValueError):
    """cuDNN found a parameter wrong. That the package passed it on is a defect of the package."""


class LibraryNotSupported(LibraryError, UnsupportedError):
    """What was asked for is well-formed, but this cuDNN has no way to do it on this GPU."""


class LibraryExecutionFailed(LibraryError):
    """A program failed on the GPU, now or in an earlier call. Often only a new process helps."""


class LibraryInternalError(LibraryError):
    """Something failed inside cuDNN, for which the caller can do nothing."""


class LibraryMismatch(LibraryError):
    """The parts of the installation do not belong together.

    Sub-libraries of another version or from another folder, a driver or CUDA runtime that does not
    fit, a library that is needed at run time and missing, a licence. The message has the paths.
    """


class IneffectiveOptionWarning(UserWarning):
    """An option was given that has no effect in this combination (dropout with one layer)."""
