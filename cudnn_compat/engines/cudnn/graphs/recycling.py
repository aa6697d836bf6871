"""Results that nobody has any more, handed out again instead of new ones.

Making an array of CuPy's takes the host a microsecond and its memory another, which is half of a
short call. CPython counts who has an object: where only this module has the arrays of an earlier
call, and their memory, they are as good as new ones; and CuPy's pool would give that memory out
again just so, on the same stream. (CPython's ``zip`` does the same with its tuples.) Only a weak
reference can tell: it lives on with the array until other results take its place.
"""

from __future__ import annotations

import collections
import itertools
import math
import operator
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, NamedTuple
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
_place = operator.attrgetter("ptr")
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

    __slots__ = ("_as_made", "_made", "_memories", "_pointers", "_unshared", "_watched", "results")

    def __init__(self, results: Results) -> None:
        made = tuple([array for array in results.arrays if array is not None])
        pointers = tuple([array.data for array in made])
        shared = collections.Counter(id(pointer.mem) for pointer in pointers)
        memories = {id(pointer.mem): pointer.mem for pointer in pointers}
        self.results = results
        self._made = made
        self._pointers = pointers
        self._memories = tuple(memories.values())
        self._watched = (*made, *pointers, *self._memories)
        # What is counted where nobody else has them. Here three tuples have an array, and two a
        # pointer, which its array has too; two have memory, which its pointers have too. Then no
        # array has weak references.
        self._unshared = [_ONE + 2] * (2 * len(made))
        self._unshared += [_ONE + 1 + shared[key] for key in memories]
        self._unshared += [0] * len(made)
        self._as_made = self._state()

    def _state(self) -> list[Any]:
        """What who has an array can change of it, and leaves changed behind."""
        arrays, pointers = self._made, self._pointers
        return [
            *map(_shape, arrays),
            *map(type, arrays),
            *map(_place, pointers),
            *map(_place, self._memories),
        ]

    def is_free(self) -> bool:
        """Whether nobody else has them, and they are as they were made."""
        # In one call, in which no other thread runs: who has a weak reference can count as nobody,
        # and as one who has an array, and make one of the other in between.
        counts = itertools.chain(map(_count, self._watched), map(getweakrefcount, self._made))
        return list(counts) == self._unshared and self._state() == self._as_made


class Recycled:
    """The last results of one kind of call on one stream. One thread asks at a time.

    Args:
        xp: the module ``cupy``.
        shapes: of the results; None for one that there is not.
        kind: their dtype.
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
        self._admitted = 0
        self._source = 0
        self._misses = 0
        self._pause = 0

    def results(self, shapes: Shapes, admit: Callable[[int], bool]) -> Results | None:
        """Results on the current device: such that nobody has any more, else fresh ones.

        Args:
            admit: whether so many bytes more may be kept.

        Returns:
            None where an allocator of the caller's has put them where graphs cannot write.
        """
        if not self._wanted or (shapes is not self._shapes and shapes != self._shapes):
            return _fresh(self._xp, shapes, self._kind)
        if self._pause:
            self._pause -= 1
            return _fresh(self._xp, shapes, self._kind)
        allocator = self._allocator_now()
        # Which pool, by its number: it is not kept, as whoever made it may want it to end. (That
        # another gets the number would do no harm: what is here is whole, but not of that pool.)
        source = id(getattr(allocator, "__self__", allocator))
        if source != self._source:
            self._sets.clear()
            self._source = source
        for one in self._sets:
            if one.is_free():
                self._misses = 0
                return one.results
        self._misses += 1
        if self._misses == _MISSES:
            self._misses, self._pause = 0, _PAUSE
        results = _fresh(self._xp, shapes, self._kind)
        if results is not None and not any(hasattr(a, "__dict__") for a in results.arrays):
            self._keep(_Set(results), admit)
        return results

    def _keep(self, one: _Set, admit: Callable[[int], bool]) -> None:
        """With the others, or in the place of those that have been there longest."""
        if len(self._sets) == self._admitted:
            if self._admitted < _SETS and admit(self._bytes):
                self._admitted += 1
            elif self._sets:
                self._sets.pop(0)
            else:
                return
        self._sets.append(one)


def _fresh(xp: ModuleType, shapes: Shapes, kind: np.dtype) -> Results | None:
    arrays = tuple(fresh(xp, shapes, kind))
    places = addresses(arrays)
    return None if any(place % ALIGNMENT for place in places) else Results(arrays, places)
