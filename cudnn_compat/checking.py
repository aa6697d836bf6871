"""Checks of plain arguments, one wording for all: what it is, what was given, what was wanted."""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

from cudnn_compat.errors import ArgumentError, DTypeError

__all__ = ["INT_MAX", "check_flag", "check_integer", "check_name", "warn_caller"]

INT_MAX = 2**31 - 1
"""The largest size that cuDNN, which counts in C ints, can be told."""


def _is_bool(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")


def check_integer(name: str, value: Any, low: float = 0, high: float = INT_MAX) -> int:
    """``value`` as a Python int from ``low`` to ``high``.

    Raises:
        DTypeError: no integer (True and False are none).
        ArgumentError: out of range.
    """
    try:
        if _is_bool(value):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise DTypeError(f"{name} is {value!r}; wanted an integer") from None
    if not low <= number <= high:
        top = " or more" if high == INT_MAX and number < low else f" to {high}"
        raise ArgumentError(f"{name} is {number}; wanted {low}{top}")
    return number


def check_name(name: str, value: Any, known: Sequence[str]) -> None:
    """``value`` is one of the names ``known``.

    Raises:
        ArgumentError: it is not.
    """
    if not isinstance(value, str) or value not in known:
        listed = [repr(one) for one in known]
        wanted = " or ".join(listed) if len(listed) == 2 else f"one of {', '.join(listed)}"
        raise ArgumentError(f"{name} is {value!r}; wanted {wanted}")


def check_flag(name: str, value: Any) -> bool:
    """``value`` as True or False.

    Raises:
        DTypeError: it is neither (numbers and strings are not).
    """
    if not _is_bool(value):
        raise DTypeError(f"{name} is {value!r}; wanted True or False")
    return bool(value)


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the first line that is outside this package."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in ("cudnn_compat", "dataclasses")
