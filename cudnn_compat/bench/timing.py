"""Times of calls: by the device's clock and by the host's, the sides in turns."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cudnn_compat.arrays import load_cupy

__all__ = [
    "QUICK",
    "Call",
    "Pace",
    "Timer",
    "Timing",
    "cuda_timer",
    "host_timer",
    "median",
    "spread",
    "take_turns",
    "undisturbed",
]

Call = Callable[[], Any]


class Timing(NamedTuple):
    """µs of one call.

    Attributes:
        device: between two events on the GPU; on a CPU the same as ``wall``.
        wall: by the host's clock, with the wait for the device at the end.
    """

    device: float
    wall: float


Timer = Callable[[int], Timing]
"""Makes so many calls, one behind the other, and gives the time of one."""


@dataclasses.dataclass(frozen=True)
class Pace:
    """How long is measured.

    Attributes:
        rounds: turns of every side; a result is their median.
        round_ms: length of a turn, in which as many calls are made as fit.
        warm_up: seconds of calls, on each side, that do not count.
        warm_up_calls: calls that do not count, on each side, however long they take: the first
            ones of a new shape may measure which way is fastest.
        rest: seconds of nothing between turns, for threads that spin on for a while.
    """

    rounds: int = 9
    round_ms: float = 25
    warm_up: float = 0.1
    warm_up_calls: int = 12
    rest: float = 0

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"rounds is {self.rounds}; wanted at least 1")


QUICK = Pace(rounds=3, round_ms=5, warm_up=0.02, warm_up_calls=6)

_MOST_CALLS = 500
"""In one turn: a GPU's queue holds about a thousand."""


def host_timer(call: Call) -> Timer:
    """For calls that have done their work when they return."""

    def timed(count: int) -> Timing:
        start = time.perf_counter()
        for _ in range(count):
            call()
        each = (time.perf_counter() - start) * 1e6 / count
        return Timing(each, each)

    return timed


def cuda_timer(call: Call, stream: Any = None) -> Timer:
    """For calls that put work on a CuPy stream; None is the current one."""
    cuda = load_cupy().cuda

    def timed(count: int) -> Timing:
        before, after = cuda.Event(), cuda.Event()
        start = time.perf_counter()
        before.record(stream)
        for _ in range(count):
            call()
        after.record(stream)
        after.synchronize()
        wall = time.perf_counter() - start
        device = cuda.get_elapsed_time(before, after)
        return Timing(device * 1e3 / count, wall * 1e6 / count)

    return timed


def take_turns(timers: Mapping[str, Timer], pace: Pace) -> dict[str, list[Timing]]:
    """Times of all sides, one for each round; the order turns around from round to round."""
    counts = {side: _calls_in_a_turn(timer, pace) for side, timer in timers.items()}
    times: dict[str, list[Timing]] = {side: [] for side in timers}
    for number in range(pace.rounds):
        for side in list(timers)[:: -1 if number % 2 else 1]:
            times[side].append(timers[side](counts[side]))
            if pace.rest:
                time.sleep(pace.rest)
    return times


def _calls_in_a_turn(timer: Timer, pace: Pace) -> int:
    """Warm up, and see how many calls fill a turn."""
    end = time.perf_counter() + pace.warm_up
    warm = timer(max(1, pace.warm_up_calls))
    while time.perf_counter() < end:
        timer(1)
    if warm.wall >= pace.round_ms * 1e3:
        return 1
    once = max(timer(2).wall, 1e-3)
    return max(1, min(_MOST_CALLS, round(pace.round_ms * 1e3 / once)))


def median(times: Sequence[Timing]) -> Timing:
    """Clock by clock."""
    return Timing(*(statistics.median(clock) for clock in zip(*times, strict=True)))


def spread(ours: Sequence[Timing], theirs: Sequence[Timing]) -> tuple[float, float]:
    """The smallest and the largest speed-up of a round: their time over ours."""
    ratios = [b.device / a.device for a, b in zip(ours, theirs, strict=True)]
    return min(ratios), max(ratios)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Inside, Python's garbage collector does not run."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
