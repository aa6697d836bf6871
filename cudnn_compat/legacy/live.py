"""Which forwards still need the weights that a descriptor has now."""

from __future__ import annotations

import weakref
from collections import deque

from cudnn_compat.v2 import RNNOutput

__all__ = ["LiveOutputs"]


class LiveOutputs:
    """The forwards whose backward may still read a descriptor's ``params``; keeps none alive.

    Threads may add at the same time (each step here is one operation of the deque); taking while
    another thread adds would be setting weights while a forward reads them.
    """

    def __init__(self) -> None:
        self._outputs: deque[weakref.ref[RNNOutput]] = deque()
        self._limit = 64

    def __bool__(self) -> bool:
        return bool(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def add(self, out: RNNOutput) -> None:
        """Remember a training forward."""
        self._outputs.append(weakref.ref(out))
        if len(self._outputs) > self._limit:
            for kept in self.take():
                self._outputs.append(weakref.ref(kept))
            self._limit = 64 + 2 * len(self._outputs)

    def take(self) -> list[RNNOutput]:
        """Those whose backward is still to come; forgets them."""
        found = []
        try:
            while True:
                out = self._outputs.popleft()()
                if out is not None and out.can_backward:
                    found.append(out)
        except IndexError:
            return found
