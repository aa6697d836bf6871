r"""Warnings of old names, and how to be told about every call.

Each entry point warns with the text of its row in :mod:`cudnn_compat.legacy.table`, at the caller's
own line. Python's filters decide what is shown, so by default a line in ``__main__`` is reported
once and library code is silent. To choose otherwise::

    warnings.filterwarnings("ignore", message=r"\[CC012\]")                 # one name, by its code
    warnings.filterwarnings("ignore", category=legacy.RemovedIn3Warning)  # by removal version
    warnings.filterwarnings("ignore", category=legacy.LegacyAPIWarning)   # all of them
    python -W 'ignore:[CC012]' program.py                                 # one name, no edit

A class in ``-W`` or ``PYTHONWARNINGS`` works only where this package is found by ``PYTHONPATH``:
Python looks it up before installed packages can be imported. In pytest's settings it works. Or set
the environment variable ``CUDNN_COMPAT_DEPRECATIONS`` before ``cudnn_compat.legacy`` is imported:

``ignore``
    nothing is shown or raised, whatever the filters say;
``default``
    as ``warnings.filterwarnings("default", category=LegacyAPIWarning)`` at import: each call site
    is shown once, in library code too; filters set later still win;
``error``
    every legacy call raises its warning as an exception, whatever the filters say.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Final, cast

from cudnn_compat.errors import IneffectiveOptionWarning
from cudnn_compat.legacy.table import LegacyName, find

__all__ = [
    "ENVIRONMENT_VARIABLE",
    "CallRecorder",
    "LegacyAPIWarning",
    "RemovedIn3Warning",
    "record_calls",
    "warner",
]

ENVIRONMENT_VARIABLE: Final = "CUDNN_COMPAT_DEPRECATIONS"


class LegacyAPIWarning(DeprecationWarning):
    """An old name was used. Each removal version has a subclass."""


class RemovedIn3Warning(LegacyAPIWarning):
    """The name goes with version 3.0."""


CATEGORIES: Final = {"3.0": RemovedIn3Warning}
"""The class of each removal version."""

Site = tuple[str, str, int]
"""(code, file name, line number)."""


class CallRecorder:
    """What :func:`record_calls` counts.

    Attributes:
        calls: legacy calls so far, by (code, file name, line number) of the caller.
    """

    def __init__(self) -> None:
        self.calls: dict[Site, int] = {}


_recorders: tuple[CallRecorder, ...] = ()
# Reentrant, because showing a warning runs code of others (warnings.showwarning).
_lock = threading.RLock()


@contextmanager
def record_calls() -> Iterator[CallRecorder]:
    """Count every legacy call of every thread while the block runs, shown or not.

    Yields:
        A :class:`CallRecorder`. Recorders may be nested; each counts for itself.
    """
    global _recorders
    recorder = CallRecorder()
    with _lock:
        _recorders = (*_recorders, recorder)
    try:
        yield recorder
    finally:
        with _lock:
            _recorders = tuple(other for other in _recorders if other is not recorder)


def _record(code: str, frame: FrameType | None) -> None:
    """Count one call. A call straight from C has no line: Python names that ("sys", 1)."""
    site = (code, "sys", 1) if frame is None else (code, frame.f_code.co_filename, frame.f_lineno)
    with _lock:
        for recorder in _recorders:
            recorder.calls[site] = recorder.calls.get(site, 0) + 1


def _chosen_action() -> str | None:
    action = os.environ.get(ENVIRONMENT_VARIABLE, "").strip()
    if action not in ("", "ignore", "default", "error"):
        warnings.warn(
            f"{ENVIRONMENT_VARIABLE} is {action!r}; wanted ignore, default or error: "
            "it has no effect, Python's own warning filters decide",
            IneffectiveOptionWarning,
            stacklevel=2,
        )
        return None
    return action or None


_ACTION: Final = _chosen_action()
_OVERRULED: Final = _ACTION in ("ignore", "error")
"""Python's filters are not asked."""
if _ACTION == "default":
    warnings.filterwarnings("default", category=LegacyAPIWarning)

_HERE: Final = os.path.dirname(_record.__code__.co_filename) + os.sep
"""Frames of files under this folder are ours, not the caller's."""


def _caller() -> FrameType | None:
    """The first frame that is not ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame


def warner(old: str) -> Callable[[], None]:
    """The function that a legacy entry point calls first: records the call, and warns.

    Args:
        old: the entry point's name in the table.
    """
    row: LegacyName | None = find(old)
    assert row is not None, f"{old} is not in the table"
    code, text, category = row.code, row.message, CATEGORIES[row.removal]
    settled: dict[tuple[int, int], CodeType] = {}
    _filters.emptied_when_they_change.append(settled)

    def warn() -> None:
        if _recorders:
            _record(code, _caller())
        if _OVERRULED:
            if _ACTION == "error":
                raise category(text)
            return
        try:
            caller: FrameType | None = sys._getframe(2)
        except ValueError:  # called straight from C
            caller = None
        filters, count, first = _filters.seen
        if (
            caller is not None
            and warnings.filters is filters
            and len(filters) == count
            and filters[0] is first
            and (id(caller.f_code), caller.f_lasti) in settled
        ):
            return
        # One thread at a time, or two at one line would both be the first.
        with _lock:
            if sys.version_info >= (3, 12):
                warnings.warn(text, category, skip_file_prefixes=(_HERE,))
            else:
                warnings.warn(text, category, stacklevel=_levels_to_caller())
            if caller is not None and _filters.settle(text, category, caller):
                # The code object is kept so that no other one gets its id.
                settled[id(caller.f_code), caller.f_lasti] = caller.f_code

    return warn


def _levels_to_caller() -> int:
    """What ``stacklevel`` must be in the function that calls this one."""
    level, frame = 1, cast("FrameType | None", sys._getframe(1))
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        level, frame = level + 1, frame.f_back
    return level


class _Filters:
    """Python's warning filters as they were when a call site was found to have nothing to show.

    ``warnings.warn`` would find that out again at each call, which costs as much as all the rest of
    a legacy call. So each entry point keeps its settled sites until the filters change.
    """

    def __init__(self) -> None:
        self.seen: tuple[Any, int, Any] = ([], 0, None)
        """The list of filters, its length and its first entry: each public way to change filters
        makes a new list, adds to it, or puts a new entry first."""
        self.emptied_when_they_change: list[dict[tuple[int, int], CodeType]] = []
        self._sites = 0
        # Where each context has filters of its own, those in warnings.filters decide nothing.
        self._off = bool(getattr(sys.flags, "context_aware_warnings", False))

    def settle(self, text: str, category: type[Warning], caller: FrameType) -> bool:
        """Whether nothing more is to be shown at the caller's line while the filters stay."""
        filters = cast("list[Any]", warnings.filters)
        # A caller of our own stands for many callers of its own.
        if self._off or not filters or caller.f_code.co_filename.startswith(_HERE):
            return False
        if _action_for(text, category, caller) == "always":
            return False
        seen, count, first = self.seen
        self._sites += 1
        if filters is not seen or len(filters) != count or filters[0] is not first:
            self._forget((filters, len(filters), filters[0]))
        elif self._sites > 10_000:  # code that is made at run time
            self._forget(self.seen)
        return True

    def _forget(self, seen: tuple[Any, int, Any]) -> None:
        for sites in self.emptied_when_they_change:
            sites.clear()
        self.seen, self._sites = seen, 1


def _action_for(text: str, kind: type[Warning], caller: FrameType) -> str:
    """What the filters say about a warning at the caller's line, by Python's own rules."""

    def says(pattern: Any, value: str) -> bool:
        if pattern is None or isinstance(pattern, str):
            return pattern is None or pattern == value
        return pattern.match(value) is not None

    module, line = caller.f_globals.get("__name__") or "<string>", caller.f_lineno
    for action, message, category, of_module, of_line in cast("list[Any]", warnings.filters):
        if (
            says(message, text)
            and issubclass(kind, category)
            and says(of_module, module)
            and of_line in (0, line)
        ):
            return str(action)
    return str(warnings.defaultaction)  # type: ignore[attr-defined]  # documented, not in the stubs


_filters = _Filters()
