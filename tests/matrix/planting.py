"""Planting errors: one function of the package is replaced by one that is a little wrong."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import pytest

from cudnn_compat import v2
from cudnn_compat.legacy.cupy import libcudnn
from cudnn_compat.matrix.rows import Row, all_rows

ROWS = list(all_rows(["numpy", "library", None]))

Plant = Callable[[pytest.MonkeyPatch], None]


def off(part: str, module: Any = v2, name: str = "rnn_forward") -> Plant:
    """An attribute of what a function returns is off by 1e-3."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(module, name)

        def wrong(*arguments: Any, **named: Any) -> Any:
            out = right(*arguments, **named)
            value = getattr(out, part)
            if isinstance(value, v2.Packed):
                changed: Any = v2.Packed(value.data + 1e-3, value.lengths)
            else:
                changed = None if value is None else value + 1e-3
            setattr(out, part, changed)
            return out

        patch.setattr(module, name, wrong)

    return plant


def changed(module: Any, name: str, change: Callable[..., Any]) -> Plant:
    """``change(result, *arguments)`` is returned in place of the result of a function."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(module, name)

        def wrong(*arguments: Any, **named: Any) -> Any:
            return change(right(*arguments, **named), *arguments)

        patch.setattr(module, name, wrong)

    return plant


def replaced(module: Any, name: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(module, name, value)


def wrote(name: str, parameter: str) -> Plant:
    """The first double that a function of ``libcudnn`` wrote is off by 1e-3."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(libcudnn, name)

        @functools.wraps(right)
        def wrong(**named: Any) -> None:
            right(**named)
            ctypes.c_double.from_address(named[parameter]).value += 1e-3

        patch.setattr(libcudnn, name, wrong)

    return plant


def told(module: Any, name: str, change: Callable[..., Any]) -> Plant:
    """Like :func:`changed`, and the signature stays."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(module, name)

        @functools.wraps(right)
        def wrong(*arguments: Any, **named: Any) -> Any:
            return change(right(*arguments, **named))

        patch.setattr(module, name, wrong)

    return plant


def silent(name: str, module: Any = libcudnn) -> Plant:
    """A function that does nothing."""
    return lambda patch: patch.setattr(module, name, lambda *arguments, **named: 1)


def part(index: int) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """One part of a tuple of arrays is off by 1e-3."""

    def change(found: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*found[:index], found[index] + 1e-3, *found[index + 1 :])

    return change


def silent_with_signature(name: str) -> Plant:
    """A function of ``libcudnn`` that does nothing, with the parameters that it has."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(libcudnn, name)

        @functools.wraps(right)
        def nothing(*arguments: Any, **named: Any) -> None:
            return None

        patch.setattr(libcudnn, name, nothing)

    return plant


def replaced_by_one(module: Any, name: str) -> Plant:
    return lambda patch: patch.setattr(module, name, 1, raising=False)


def row_of(api: str, check: str) -> Row:
    """A row in float64 of an LSTM, where there is one."""
    rows = [row for row in ROWS if (row.feature.api, row.feature.check) == (api, check)]
    rows = [row for row in rows if row.dtype == "float64"] or rows
    return next((row for row in rows if row.cell == "lstm"), rows[0])
