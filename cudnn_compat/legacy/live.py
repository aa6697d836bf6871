"""Which forwards still need the weights that a descriptor has now."""

from __future__ import annotations

import threading
import weakref
from typing import TypeGuard

from cudnn_compat.v2 import RNNOutput

__all__ = ["LiveOutputs"]


class LiveOutputs:
    """The forwards whose backward may still read a descriptor's ``params``; keeps none alive."""

    def __init__(self) -> None:
        self._outputs: list[weakref.ref[RNNOutput]] = []
        self._limit = 64
        # No append may fall between the two halves of a replacement.
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._outputs)

    def add(self, out: RNNOutput) -> None:
        """Remember a training forward."""
        with self._lock:
            self._outputs.append(weakref.ref(out))
            if len(self._outputs) > self._limit:
                self._outputs = [known for known in self._outputs if _to_come(known())]
                self._limit = 64 + 2 * len(self._outputs)

    def take(self) -> list[RNNOutput]:
        """Those whose backward is still to come; forgets them."""
        with self._lock:
            known, self._outputs = self._outputs, []
        return [out for out in (reference() for reference in known) if _to_come(out)]


def _to_come(out: RNNOutput | None) -> TypeGuard[RNNOutput]:
    return out is not None and out.can_backward
