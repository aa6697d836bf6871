"""A bounded cache of things that are costly to make: plans, and what they share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["BoundedCache"]

_T = TypeVar("_T")


def _weightless(entry: object) -> int:
    return 0


class BoundedCache(Generic[_T]):
    """Keeps the entries that were used last. Safe to use from many threads.

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
        self._entries: OrderedDict[Hashable, _T] = OrderedDict()
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
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def _keep(self, key: Hashable, entry: _T) -> None:
        weight = self._weigh(entry)
        if weight > self.most:
            return
        with self._lock:
            self._entries[key] = entry
            self._weight += weight
            while len(self._entries) > self.maxsize or self._weight > self.most:
                _, evicted = self._entries.popitem(last=False)
                self._weight -= self._weigh(evicted)

    def discard(self, key: Hashable) -> None:
        """Let go of one entry, if it is there."""
        with self._lock:
            gone = self._entries.pop(key, None)
            if gone is not None:
                self._weight -= self._weigh(gone)

    def entries(self) -> tuple[_T, ...]:
        """What it holds, least recently used first."""
        with self._lock:
            return tuple(self._entries.values())

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._entries.clear()
            self._weight = 0
