"""Times of the calls of one way to compute, taken while they serve."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from cudnn_compat.engines.cudnn.device import Session

__all__ = ["Trial"]


_MOST = 64
"""Samples of a stage: while kernels are compiled, the guess may serve for long."""


class _Sample(NamedTuple):
    host: float
    """Seconds."""
    before: Any
    after: Any


class Trial:
    """Collects the times of the calls of one plan, by stage. Nothing waits for the device.

    Several threads may time, and one may look meanwhile.
    """

    def __init__(self) -> None:
        self._samples: dict[str, list[_Sample]] = {}

    def begin(self, session: Session) -> tuple[float, Any]:
        """Before a call: what :meth:`end` is to be given."""
        before = session.xp.cuda.Event()
        before.record(session.stream.cupy)
        return time.perf_counter(), before

    def end(self, session: Session, stage: str, begun: tuple[float, Any]) -> None:
        """Behind the call."""
        start, before = begun
        host = time.perf_counter() - start
        after = session.xp.cuda.Event()
        after.record(session.stream.cupy)
        part = self._samples.setdefault(stage, [])
        if len(part) < _MOST:
            part.append(_Sample(host, before, after))

    @property
    def forwards(self) -> int:
        """Forward calls that were timed."""
        return len(self._samples.get("forward", ()))

    @property
    def done(self) -> bool:
        """Whether the device has come past all that was timed."""
        return all(sample.after.done for part in self._parts().values() for sample in part)

    def times(self, session: Session) -> dict[str, float]:
        """µs of the shortest call of each stage: the host's or the device's, whichever is longer.

        A call that the host is slow to launch is slow even where the device idles meanwhile, and a
        queue of work hides one of the two. To be asked for once it is :attr:`done`.
        """
        elapsed = session.xp.cuda.get_elapsed_time
        return {
            stage: min(max(one.host * 1e6, elapsed(one.before, one.after) * 1e3) for one in past)
            for stage, part in self._parts().items()
            if (past := [one for one in part if one.after.done])
        }

    def _parts(self) -> dict[str, tuple[_Sample, ...]]:
        return {stage: tuple(part) for stage, part in tuple(self._samples.items())}
