"""A bounded cache of things that are costly to make: plans, and what they share."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

__all__ = ["BoundedCache", "Kept"]

_T = TypeVar("_T")


def _weightless(entry: object) -> int:
    return 0


class Kept(Generic[_T]):
    """A place in a cache, for who asks for the same thing again and again.

    Attributes:
        value: what is kept; None once it has been evicted.
        weight: what it weighs.
        used: when it was used last: a number that grows from use to use.
    """

    __slots__ = ("_uses", "used", "value", "weight")

    def __init__(self, value: _T, weight: int, uses: Iterator[int]) -> None:
        if value is None:
            raise TypeError("None says that there is nothing, so it cannot be kept")
        self.value: _T | None = value
        self.weight = weight
        self._uses = uses
        self.used = next(uses)

    def use(self) -> _T | None:
        """The value; None once it has been evicted."""
        self.used = next(self._uses)
        return self.value


class BoundedCache(Generic[_T]):
    """Keeps the entries that were used last. Safe to use from many threads.

    Finding one takes no lock, as most calls only do that: it notes when an entry was used, and
    what was used longest ago is looked for where one has to go.

    What is evicted or cleared lives on with whoever still uses it.

    Args:
        maxsize: the most entries it keeps.
        most: the most that they may weigh together; an entry that weighs more is not kept.
        weigh: the weight of an entry (bytes, say).
    """

    def __init__(
        self, maxsize: int, *, most: int = 0, weigh: Callable[[_T], int] = _weightless
    ) -> None:
        self.maxsize = maxsize
        self.most = most
        self._weigh = weigh
        self._weight = 0
        self._entries: dict[Hashable, Kept[_T]] = {}
        self._uses = itertools.count()
        self._lock = threading.Lock()
        # Reentrant: making a plan may ask for the plans of its parts.
        self._making = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The entry under ``key``, made at first use; making is done by one thread at a time."""
        return self.keep(key, make)[1]

    def keep(self, key: Hashable, make: Callable[[], _T]) -> tuple[Kept[_T], _T]:
        """The same, and its place."""
        there = self._there(key)
        if there is None:
            with self._making:
                there = self._there(key)
                if there is None:
                    made = make()
                    there = self._place(key, made), made
        return there

    def find(self, key: Hashable) -> _T | None:
        """The entry under ``key``; None where there is none."""
        there = self._there(key)
        return None if there is None else there[1]

    def _there(self, key: Hashable) -> tuple[Kept[_T], _T] | None:
        kept = self._entries.get(key)
        found = None if kept is None else kept.use()
        return None if kept is None or found is None else (kept, found)

    def _place(self, key: Hashable, value: _T) -> Kept[_T]:
        kept = Kept(value, self._weigh(value), self._uses)
        if kept.weight > self.most:  # it has no place, but is there for who asked
            return kept
        with self._lock:
            self._entries[key] = kept
            self._weight += kept.weight
            while len(self._entries) > self.maxsize or self._weight > self.most:
                oldest, _ = min(self._entries.items(), key=lambda item: item[1].used)
                self._drop(oldest)
        return kept

    def discard(self, key: Hashable) -> None:
        """Let go of one entry, if it is there."""
        with self._lock:
            if key in self._entries:
                self._drop(key)

    def _drop(self, key: Hashable) -> None:
        gone = self._entries.pop(key)
        self._weight -= gone.weight
        gone.value = None  # whoever has the place does not keep what was there

    def entries(self) -> tuple[_T, ...]:
        """What it holds, least recently used first."""
        with self._lock:
            kept = sorted(self._entries.values(), key=lambda entry: entry.used)
            return tuple([entry.value for entry in kept if entry.value is not None])

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            for key in list(self._entries):
                self._drop(key)
