"""Which way of calling the library is the fastest for a workload: every one of them, timed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from cudnn_compat.bench.raw import ALGORITHMS, RawCalls, RawHandle, RawNetwork, Replay
from cudnn_compat.bench.sides import Inputs
from cudnn_compat.bench.timing import Call, Pace, Timer, cuda_timer, median, take_turns
from cudnn_compat.errors import CompatError

__all__ = ["GLANCE", "Way", "fastest", "scan"]

GLANCE = Pace(rounds=3, round_ms=3, warm_up=0, warm_up_calls=1)
"""Enough to see which ways are worth a closer look."""

_HOPELESS = 3.0
"""A way whose single call takes so many times the best is not called again."""

_NO_GRAPH = "a graph holds the lengths that it was captured with, and each call has new ones"


@dataclasses.dataclass
class Way:
    """One algorithm, plain or replayed as a graph.

    Attributes:
        us: of one call at a glance; None where it was refused.
        refused: why, in the library's words.
        timer: to time it again.
    """

    algo: str
    replay: bool
    us: float | None = None
    refused: str | None = None
    timer: Timer | None = None

    @property
    def name(self) -> str:
        """As it stands in tables."""
        return f"{self.algo} graph" if self.replay else self.algo

    def as_json(self) -> dict[str, Any]:
        """The keys are stable."""
        return {"way": self.name, "us": self.us, "refused": self.refused}


def scan(handle: RawHandle, inputs: Inputs, mode: str, pace: Pace = GLANCE) -> list[Way]:
    """Time all ways at a glance.

    Only those that are no slower than three times the best keep a timer, and with it their memory.
    """
    ways: list[Way] = []
    for algo in ALGORITHMS:
        for way, call in _calls(handle, inputs, mode, algo):
            ways.append(way)
            if call is None:
                continue
            timer = cuda_timer(call, handle.stream)
            timer(1)
            way.us = timer(1).device
            best = min(each.us for each in ways if each.us is not None)
            if way.us <= _HOPELESS * best:
                way.us = median(take_turns({"": timer}, pace)[""]).device
                way.timer = timer
    return ways


def fastest(ways: list[Way], count: int = 2) -> list[Way]:
    """The fastest of those that ran, which are worth measuring again."""
    ran = [way for way in ways if way.timer is not None and way.us is not None]
    return sorted(ran, key=lambda way: way.us or 0)[:count]


def _calls(
    handle: RawHandle, inputs: Inputs, mode: str, algo: str
) -> Iterator[tuple[Way, Call | None]]:
    """Both ways of an algorithm; without a call where it was refused."""
    workload = inputs.workload
    plain, graph = Way(algo, replay=False), Way(algo, replay=True)
    try:
        network = RawNetwork(handle, inputs.spec, algo, padded=True, batch=workload.batch)
        w, x, dy = inputs.on(handle.xp)
        calls = RawCalls(
            handle,
            network,
            steps=workload.steps,
            batch=workload.batch,
            w=w,
            x=x,
            dy=dy if mode == "training" else None,
            lengths=inputs.lengths[0],
        )
        calls.step()
        handle.stream.synchronize()
    except CompatError as error:
        plain.refused = graph.refused = str(error)
        yield plain, None
        yield graph, None
        return
    yield plain, calls.following(inputs.counter())
    if workload.lengths is not None:
        graph.refused = _NO_GRAPH
        yield graph, None
        return
    try:
        replay = Replay(handle, calls)
    except Exception as error:  # CuPy's own as well: not every call can be captured everywhere
        graph.refused = f"{type(error).__name__}: {error}"
        yield graph, None
        return
    yield graph, replay
