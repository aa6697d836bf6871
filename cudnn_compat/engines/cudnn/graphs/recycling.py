"""Results that nobody has any more, handed out again instead of new ones.

Making an array of CuPy's takes the host a microsecond and its memory another, which is most of a
short call. CPython counts who has an object: where only this module has the arrays of an earlier
call, and their memory, nobody can tell them from new ones; and CuPy's pool would give that memory
out again just so, on the same stream. (CPython's ``zip`` does the same with its tuples.)
"""

from __future__ import annotations

import collections
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Final
from weakref import getweakrefcount

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.engines.cudnn.device import POOL_UNIT, fresh

__all__ = ["Recycled"]

Shapes = tuple[tuple[int, ...] | None, ...]

_MOST_BYTES: Final = 4 << 20
"""Of the results of one call. A call that has larger ones takes so long that the host's time does
not matter."""
_SETS: Final = 2
"""A loop that hands its state on still has the last results while it asks for the next."""
_MISSES: Final = 8
"""Calls in a row that found all results in somebody's hands, after which …"""
_PAUSE: Final = 256
"""… so many do not look: their caller keeps what he is given."""

_count = sys.getrefcount
_ONE: Final = next(map(_count, (object(),)))
"""What is counted, as it is counted here, of an object that one tuple has."""


def _counts_say_who_has_an_object() -> bool:
    with_gil: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
    return sys.implementation.name == "cpython" and with_gil


class _Set:
    """The results of one call.

    Attributes:
        arrays: what is handed out.
    """

    __slots__ = ("_allocator", "_alone", "_attributes", "_made", "_shapes", "_watched", "arrays")

    def __init__(self, arrays: tuple[Array | None, ...], allocator: object) -> None:
        made = tuple([array for array in arrays if array is not None])
        pointers = tuple([array.data for array in made])
        memory = collections.Counter(id(pointer.mem) for pointer in pointers)
        memories = {id(pointer.mem): pointer.mem for pointer in pointers}
        self.arrays = arrays
        self._allocator = allocator
        self._made = made
        self._shapes = [array.shape for array in made]
        self._attributes = tuple([getattr(array, "__dict__", None) for array in made])
        self._watched = (*made, *pointers, *memories.values())
        # Arrays are had by three tuples of this object; pointers by one, and by their arrays;
        # memory by one, and by its pointers.
        self._alone = [_ONE + 2] * len(made) + [_ONE + 1] * len(made)
        self._alone += [_ONE + memory[key] for key in memories]

    def is_free(self, allocator: object) -> bool:
        """Whether nobody else has them, and who got them could not tell them from new ones."""
        return (
            list(map(_count, self._watched)) == self._alone
            and allocator is self._allocator
            and [array.shape for array in self._made] == self._shapes
            and not any(self._attributes)
            and not any(map(getweakrefcount, self._made))
        )


class Recycled:
    """The last results of one kind of call on one stream.

    Args:
        shapes: of the results; None for one that there is not.
    """

    def __init__(self, shapes: Shapes, kind: np.dtype) -> None:
        self._shapes = shapes
        self._kind = kind
        sizes = [
            int(np.prod(shape, dtype=np.int64)) * kind.itemsize
            for shape in shapes
            if shape is not None
        ]
        self._bytes = sum(-(-max(size, 1) // POOL_UNIT) * POOL_UNIT for size in sizes)
        self._wanted = self._bytes <= _MOST_BYTES and _counts_say_who_has_an_object()
        self._sets: list[_Set] = []
        self._misses = 0
        self._lock = threading.Lock()

    def arrays(
        self, xp: ModuleType, shapes: Shapes, admit: Callable[[int], bool]
    ) -> list[Array | None]:
        """Results on the current device: such that nobody has any more, else fresh ones.

        Args:
            admit: whether so many bytes more may be kept.
        """
        if not self._wanted or (shapes is not self._shapes and shapes != self._shapes):
            return fresh(xp, shapes, self._kind)
        if self._misses >= _MISSES:
            self._misses = 0 if self._misses >= _MISSES + _PAUSE else self._misses + 1
            return fresh(xp, shapes, self._kind)
        allocator = xp.cuda.get_allocator()
        with self._lock:
            for one in self._sets:
                if one.is_free(allocator):
                    self._misses = 0
                    return list(one.arrays)
        self._misses += 1
        return self._fresh(xp, allocator, admit)

    def _fresh(
        self, xp: ModuleType, allocator: object, admit: Callable[[int], bool]
    ) -> list[Array | None]:
        """Fresh ones, which are kept in the place of those that have been there longest."""
        one = _Set(tuple(fresh(xp, self._shapes, self._kind)), allocator)
        arrays = list(one.arrays)
        with self._lock:
            if len(self._sets) >= _SETS:
                self._sets.pop(0)
            elif not admit(self._bytes):
                self._wanted = False
                return arrays
            self._sets.append(one)
        return arrays
