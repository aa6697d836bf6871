"""A bounded cache of things that are costly to make: plans, and what they share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["BoundedCache"]

_T = TypeVar("_T")


class BoundedCache(Generic[_T]):
    """Keeps the ``maxsize`` entries that were used last. Safe to use from many threads.

    What is evicted or cleared lives on with whoever still uses it.
    """

    def __init__(self, maxsize: int) -> None:
        self.maxsize = maxsize
        self._entries: OrderedDict[Hashable, _T] = OrderedDict()
        # Reentrant: making a plan may ask for the plans of its parts.
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The entry under ``key``, made at first use; making is done by one thread at a time."""
        # The common case takes no lock: each of the two operations is atomic by itself.
        found = self._entries.get(key)
        if found is not None:
            try:  # noqa: SIM105  contextlib.suppress would cost more than all the rest
                self._entries.move_to_end(key)
            except KeyError:  # evicted by another thread in between
                pass
            return found
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                found = make()
                self._entries[key] = found
                while len(self._entries) > self.maxsize:
                    self._entries.popitem(last=False)
            return found

    def entries(self) -> tuple[_T, ...]:
        """What it holds, least recently used first."""
        with self._lock:
            return tuple(self._entries.values())

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._entries.clear()
