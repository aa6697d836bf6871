"""``algo="auto"`` for one shape: a first guess, then what was fastest while it served.

Each way to compute serves a few calls of the caller's, one way after the other, and is timed
meanwhile; nothing is computed only to be measured. A way that is not ready (its kernels are being
compiled in the background) waits, and nobody waits for it. What is learnt is kept in ``tuning``.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import NamedTuple

from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.fused_plan import FusedPlan
from cudnn_compat.engines.cudnn.plan import CudnnPlan, Shape, ShapedPlan
from cudnn_compat.engines.cudnn.trial import Trial
from cudnn_compat.engines.tuning import way_name

__all__ = ["Choice", "Way"]

OnePlan = CudnnPlan | FusedPlan

Times = dict[str, float | None]
"""µs by the name of a way; None of a way that is refused."""

_TIMED = 4
"""Calls of each way that are timed, behind one that is not: it may load or record."""
_MOST_SERVED = 4 * _TIMED
"""Calls of a way after which it is judged by those that could be timed."""
_TRAINING = ({"forward", "data", "weights"}, {"forward", "backward"})
"""What must have been timed before a way to train is remembered as the best: one of these."""
_BETTER = 0.97
"""A way must take so much of the first guess's time, or less, to be preferred to it."""


@dataclasses.dataclass(frozen=True)
class Way:
    """An algorithm, called plainly or replayed as a graph."""

    algo: str
    graph: bool

    @property
    def name(self) -> str:
        """See :func:`cudnn_compat.engines.tuning.way_name`."""
        return way_name(self.algo, self.graph)


class _Candidate:
    """A way and what is known of it."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.plan: OnePlan | None = None
        self.trial = Trial()
        self.served = 0

    @property
    def tried(self) -> bool:
        """Whether it has served all calls that it is judged by, or more than enough."""
        return self.trial.forwards >= _TIMED or self.served > _MOST_SERVED


class _Found(NamedTuple):
    """What the times say.

    Attributes:
        best: which of the ways; the first one, unless another is clearly faster, or its graph is
            no slower.
        totals: µs of each.
        complete: whether forward and, in training, backward have been timed.
    """

    best: int
    totals: list[float]
    complete: bool


class Choice(ShapedPlan):
    """The ways to compute one shape, and which of them serves the next call.

    Args:
        ways: the first guess, then what may be faster.
        make: makes the plan of a way; raises where it is refused.
        learnt: is told the best way and the times (µs) of all by name, once they are known; None
            where the best of ``ways``, its last, is known and only to be waited for.

    Attributes:
        settled: whether it has been decided.
    """

    def __init__(
        self,
        shape: Shape,
        ways: tuple[Way, ...],
        make: Callable[[Way], OnePlan],
        learnt: Callable[[Way, Times], None] | None,
    ) -> None:
        super().__init__(shape, ways[0].algo)
        self.settled = False
        self._candidates = [_Candidate(way) for way in ways]
        self._first = self._candidates[0].plan = make(ways[0])
        self._make = make
        self._learnt = learnt
        self._lock = threading.Lock()
        self._decided: OnePlan | None = None
        self._last: OnePlan | None = None
        self._so_far: OnePlan | None = None
        self._refused: list[str] = []
        self._waited = 0
        self._news: tuple[Way, Times] | None = None

    def current(self) -> OnePlan:
        """The plan that serves the next call."""
        decided = self._decided
        if decided is not None:
            return decided
        with Session(self.index) as session:
            if session.capturing:  # nothing can be timed, asked for or tried there
                return self.latest()  # which has seen this batch's lengths, if any has
        with self._lock:
            if self._decided is not None:
                return self._decided
            plan = self._await() if self._learnt is None else self._next()
            self._last = plan
            news, self._news = self._news, None
        if news is not None and self._learnt is not None:
            self._learnt(*news)
        return plan

    def latest(self) -> OnePlan:
        """The plan that served the last call, for what belongs to that call."""
        return self._decided or self._last or self._first

    def _await(self) -> OnePlan:
        plan = self._plan(self._candidates[-1])
        if plan is None:
            return self._settle(self._first)
        return self._settle(plan) if plan.ready else self._first

    def _next(self) -> OnePlan:
        waiting = False
        for candidate in tuple(self._candidates):
            if candidate.tried:
                continue
            plan = self._plan(candidate)
            if plan is None:
                self._candidates.remove(candidate)
                self._refused.append(candidate.way.name)
            elif not plan.ready:
                waiting = True
            else:
                candidate.served += 1
                plan.trial = candidate.trial if candidate.served > 1 else None
                return plan
        return self._meanwhile() if waiting else self._decide()

    def _plan(self, candidate: _Candidate) -> OnePlan | None:
        """The plan of a way; None where it is refused."""
        try:
            if candidate.plan is None:
                candidate.plan = self._make(candidate.way)
            if candidate.plan.ready:  # asked here: it raises what compiling has raised
                return candidate.plan
        except Exception:  # it was only to be tried
            return None
        return candidate.plan

    def _meanwhile(self) -> OnePlan:
        """What was fastest of the ways that were ready, while others are being compiled."""
        if self._so_far is None:
            tried = [candidate for candidate in self._candidates if candidate.tried]
            found = self._fastest(tried)
            if found is None or not found.complete:
                return self._first
            self._so_far = tried[found.best].plan or self._first
            self._so_far.trial = None  # it has been timed
        return self._so_far

    def _fastest(self, candidates: list[_Candidate]) -> _Found | None:
        """Compares what has been timed; None while the device is still at it."""
        if not candidates or not all(candidate.trial.done for candidate in candidates):
            return None
        with Session(self.index) as session:
            times = [candidate.trial.times(session) for candidate in candidates]
        stages = set.intersection(*map(set, times))
        totals = [sum(parts[stage] for stage in stages) for parts in times]
        best = totals.index(min(totals))
        if totals[best] > _BETTER * totals[0]:
            best = self._first_or_its_graph(candidates, totals)
        wanted = _TRAINING if self.training else ({"forward"},)
        complete = any(stages >= one for one in wanted)
        return _Found(best, totals, complete)

    @staticmethod
    def _first_or_its_graph(candidates: list[_Candidate], totals: list[float]) -> int:
        """Where nothing is clearly faster: the graph that is no slower leaves the host its time."""
        algo = candidates[0].way.algo
        for index, candidate in enumerate(candidates):
            if candidate.way == Way(algo, True) and totals[index] <= totals[0]:
                return index
        return 0

    def _decide(self) -> OnePlan:
        found = self._fastest(self._candidates)
        if found is None:
            return self._so_far or self._first
        best, totals, complete = found
        if not complete and self._waited < _MOST_SERVED:
            self._waited += 1  # backward may come late, or never
            return self._so_far or self._first
        for candidate in self._candidates:
            if candidate.plan is not None:
                candidate.plan.trial = None
                if candidate is not self._candidates[best]:
                    candidate.plan.release()
        if complete:
            names = [candidate.way.name for candidate in self._candidates]
            times_by_name: Times = dict(zip(names, totals, strict=True))
            times_by_name.update(dict.fromkeys(self._refused))
            self._news = self._candidates[best].way, times_by_name
        plan = self._candidates[best].plan
        assert plan is not None
        return self._settle(plan)

    def _settle(self, plan: OnePlan) -> OnePlan:
        self._decided = self._first = plan
        self._candidates, self._last, self._so_far = [], None, None
        self.algo = plan.algo
        self.settled = True
        return plan
