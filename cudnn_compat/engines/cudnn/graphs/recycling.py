"""Results that nobody has any more, handed out again instead of new ones.

Making an array of CuPy's takes the host a microsecond and its memory another, which is most of a
short call. CPython counts who has an object: where only this module has the arrays of an earlier
call, and their memory, nobody can tell them from new ones; and CuPy's pool would give that memory
out again just so, on the same stream. (CPython's ``zip`` does the same with its tuples.)
"""

from __future__ import annotations

import collections
import math
import operator
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Final, NamedTuple
from weakref import getweakrefcount

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.engines.cudnn.device import POOL_UNIT, fresh
from cudnn_compat.engines.cudnn.graphs.recording import Addresses
from cudnn_compat.engines.cudnn.graphs.stages import addresses
from cudnn_compat.engines.cudnn.staging import ALIGNMENT

__all__ = ["Recycled", "Results"]

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

_shape = operator.attrgetter("shape")
_count = sys.getrefcount
_ONE: Final = next(map(_count, (object(),)))
"""What is counted, as it is counted here, of an object that one tuple has."""


def _counts_say_who_has_an_object() -> bool:
    with_gil: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
    return sys.implementation.name == "cpython" and with_gil


class Results(NamedTuple):
    """Arrays for what a call computes: None for what there is not, whose address is 0.

    Who gets them takes the arrays out before anybody else may ask: only then are they counted.
    """

    arrays: tuple[Array | None, ...]
    addresses: Addresses


class _Set:
    """The results of one call, which may come again.

    Attributes:
        results: what is handed out.
    """

    __slots__ = ("_allocator", "_alone", "_attributes", "_made", "_shapes", "_watched", "results")

    def __init__(self, results: Results, allocator: object) -> None:
        made = tuple([array for array in results.arrays if array is not None])
        pointers = tuple([array.data for array in made])
        shared = collections.Counter(id(pointer.mem) for pointer in pointers)
        memories = {id(pointer.mem): pointer.mem for pointer in pointers}
        attributes = [getattr(array, "__dict__", None) for array in made]
        self.results = results
        self._allocator = allocator
        self._made = made
        self._shapes = list(map(_shape, made))
        self._attributes = tuple([one for one in attributes if one is not None])
        self._watched = (*made, *pointers, *memories.values())
        # Arrays are had by three tuples of this object; pointers by one, and by their arrays;
        # memory by one, and by its pointers.
        self._alone = [_ONE + 2] * len(made) + [_ONE + 1] * len(made)
        self._alone += [_ONE + shared[key] for key in memories]

    def is_free(self, allocator: object) -> bool:
        """Whether nobody else has them, and who got them could not tell them from new ones."""
        return (
            list(map(_count, self._watched)) == self._alone
            and allocator is self._allocator
            and list(map(_shape, self._made)) == self._shapes
            and not any(self._attributes)
            and not any(map(getweakrefcount, self._made))
        )


class Recycled:
    """The last results of one kind of call on one stream. One thread asks at a time.

    Args:
        shapes: of the results; None for one that there is not.
    """

    def __init__(self, xp: ModuleType, shapes: Shapes, kind: np.dtype) -> None:
        self._xp = xp
        self._allocator_now = xp.cuda.get_allocator
        self._shapes = shapes
        self._kind = kind
        sizes = [math.prod(shape) * kind.itemsize for shape in shapes if shape is not None]
        self._bytes = sum(-(-max(size, 1) // POOL_UNIT) * POOL_UNIT for size in sizes)
        self._wanted = self._bytes <= _MOST_BYTES and _counts_say_who_has_an_object()
        self._sets: list[_Set] = []
        self._misses = 0

    def results(self, shapes: Shapes, admit: Callable[[int], bool]) -> Results | None:
        """Results on the current device: such that nobody has any more, else fresh ones.

        Args:
            admit: whether so many bytes more may be kept.

        Returns:
            None where an allocator of the caller's has put them where graphs cannot write.
        """
        if not self._wanted or (shapes is not self._shapes and shapes != self._shapes):
            return _fresh(self._xp, shapes, self._kind)
        if self._misses >= _MISSES:
            self._misses = 0 if self._misses >= _MISSES + _PAUSE else self._misses + 1
            return _fresh(self._xp, shapes, self._kind)
        allocator = self._allocator_now()
        for one in self._sets:
            if one.is_free(allocator):
                self._misses = 0
                return one.results
        self._misses += 1
        results = _fresh(self._xp, shapes, self._kind)
        if results is not None:
            self._keep(_Set(results, allocator), admit)
        return results

    def _keep(self, one: _Set, admit: Callable[[int], bool]) -> None:
        """In the place of those that have been there longest."""
        if len(self._sets) >= _SETS:
            self._sets.pop(0)
        elif not admit(self._bytes):
            self._wanted = False
            return
        self._sets.append(one)


def _fresh(xp: ModuleType, shapes: Shapes, kind: np.dtype) -> Results | None:
    arrays = tuple(fresh(xp, shapes, kind))
    places = addresses(arrays)
    return None if any(place % ALIGNMENT for place in places) else Results(arrays, places)
