"""The plain integers of the dialect, and the objects that they stand for.

Old code holds handles and descriptors as integers, as the C library gives them out. Here each
stands for an object that says in Python what was set; the engines make the library's own.
"""

from __future__ import annotations

import itertools
from typing import Any, Final, TypeVar

from cudnn_compat.checking import check_integer
from cudnn_compat.errors import ArgumentError

__all__ = ["find", "give_number", "is_live", "release"]

_T = TypeVar("_T")

_objects: Final[dict[int, Any]] = {}
# Numbers are never given out twice, so that what was destroyed is found to be so.
_numbers: Final = itertools.count(0x7C00_0000_0010, 16)


def give_number(thing: object) -> int:
    """A new number for ``thing``, which lives until it is released."""
    number = next(_numbers)
    _objects[number] = thing
    return number


def find(kind: type[_T], number: int) -> _T:
    """The object of that kind with that number.

    Raises:
        ArgumentError: there is none: it was never made, or has been destroyed.
        DTypeError: ``number`` is no integer.
    """
    found = _objects.get(number)
    if not isinstance(found, kind):
        number = check_integer(kind.__name__, number, -(2**63), 2**64)
        what = "NULL" if number == 0 else f"a {type(found).__name__}" if found else "none"
        raise ArgumentError(
            f"{number:#x} is {what}; wanted a {kind.__name__} that was created and not destroyed"
        )
    return found


def is_live(number: int) -> bool:
    """Whether something has this number now."""
    return number in _objects


def release(kind: type, number: int) -> None:
    """Forget a number; what still uses its object keeps it.

    Raises:
        ArgumentError: there is no object of that kind with that number.
    """
    find(kind, number)
    del _objects[number]
