"""`DropoutState`: a random generator that calls, layers and engines can share.

The state belongs to nobody: each engine keeps its own realisation of it (a NumPy generator, a
block of device memory) under a key, made at first use, so that one object serves arrays on every
device. Masks of different engines need not agree.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from cudnn_compat.checking import check_integer
from cudnn_compat.errors import DTypeError

__all__ = ["MAX_SEED", "DropoutState", "check_seed", "resolve_seed"]

_T = TypeVar("_T")

MAX_SEED = 2**64 - 1
"""Seeds are unsigned 64-bit integers, as cuDNN's are."""


class DropoutState:
    """A dropout generator that advances from call to call.

    Args:
        seed: a non-negative integer below 2**64. Two states with one seed give the same masks to
            the same calls on the same engine and device.

    May be shared between threads: an engine takes :attr:`lock` while it draws.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = _checked_seed(seed)
        self.lock = threading.RLock()
        self._realised: dict[Hashable, Any] = {}

    def realise(self, key: Hashable, make: Callable[[int], _T]) -> _T:
        """The realisation under ``key``, made by ``make(seed)`` at first use."""
        with self.lock:
            if key not in self._realised:
                self._realised[key] = make(self.seed)
            realised: _T = self._realised[key]
            return realised

    def restart(self, seed: int | None = None) -> None:
        """Start again, from ``seed`` or from the seed that it was made with."""
        with self.lock:
            self.seed = self.seed if seed is None else _checked_seed(seed)
            self._realised.clear()

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            return {"seed": self.seed, "realised": copy.deepcopy(self._realised)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.seed = state["seed"]
        self.lock = threading.RLock()
        self._realised = dict(state.get("realised", {}))

    def __repr__(self) -> str:
        return f"DropoutState(seed={self.seed})"


class _ThreadState(threading.local):
    """The generator of this thread, used by calls that name no other."""

    def __init__(self) -> None:
        import secrets

        self.state = DropoutState(secrets.randbits(64))


def resolve_seed(seed: int | DropoutState | None) -> DropoutState:
    """The state that a ``seed`` argument means.

    None is the generator of this thread, which goes on; an integer restarts that generator; a
    :class:`DropoutState` is itself.
    """
    if isinstance(seed, DropoutState):
        return seed
    state = _of_thread.state
    if seed is not None:
        state.restart(seed)
    return state


def check_seed(seed: Any) -> None:
    """Refuse a ``seed`` argument that is neither None, an integer nor a state."""
    if seed is not None and not isinstance(seed, DropoutState):
        _checked_seed(seed)


def _checked_seed(seed: Any) -> int:
    try:
        return check_integer("seed", seed, 0, MAX_SEED)
    except DTypeError:
        raise DTypeError(f"seed is {seed!r}; wanted None, an integer or a DropoutState") from None


_of_thread = _ThreadState()
