"""A bounded cache of things that are costly to make: plans, and what they share."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["BoundedCache"]

_T = TypeVar("_T")


def _weightless(entry: object) -> int:
    return 0


class _Entry(Generic[_T]):
    """Something that is kept, and when it was used: a number that grows from use to use."""

    __slots__ = ("used", "value")

    def __init__(self, value: _T, used: int) -> None:
        self.value = value
        self.used = used


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
        self._entries: dict[Hashable, _Entry[_T]] = {}
        self._uses = itertools.count()
        self._lock = threading.Lock()
        # Reentrant: making a plan may ask for the plans of its parts.
        self._making = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The entry under ``key``, made at first use; making is done by one thread at a time."""
        found = self.find(key)
        if found is not None:
            return found
        with self._making:
            found = self.find(key)
            if found is None:
                found = make()
                self._keep(key, found)
            return found

    def find(self, key: Hashable) -> _T | None:
        """The entry under ``key``; None where there is none."""
        found = self._entries.get(key)
        if found is None:
            return None
        found.used = next(self._uses)
        return found.value

    def _keep(self, key: Hashable, value: _T) -> None:
        weight = self._weigh(value)
        if weight > self.most:
            return
        with self._lock:
            self._entries[key] = _Entry(value, next(self._uses))
            self._weight += weight
            while len(self._entries) > self.maxsize or self._weight > self.most:
                oldest, _ = min(self._entries.items(), key=lambda item: item[1].used)
                self._drop(oldest)

    def discard(self, key: Hashable) -> None:
        """Let go of one entry, if it is there."""
        with self._lock:
            if key in self._entries:
                self._drop(key)

    def _drop(self, key: Hashable) -> None:
        self._weight -= self._weigh(self._entries.pop(key).value)

    def entries(self) -> tuple[_T, ...]:
        """What it holds, least recently used first."""
        with self._lock:
            kept = sorted(self._entries.values(), key=lambda entry: entry.used)
            return tuple(entry.value for entry in kept)

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._entries.clear()
            self._weight = 0
