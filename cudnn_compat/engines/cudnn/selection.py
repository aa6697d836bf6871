"""The plan of a shape: the algorithm that runs, plainly or as a graph, or a choice of ways."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from cudnn_compat.engines.cudnn.algorithms import (
    Networks,
    blas_is_configured,
    fused_may_win,
    may_be_recorded,
    ways,
)
from cudnn_compat.engines.cudnn.choice import Choice, Times, Way
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.dropout import forget_scratch
from cudnn_compat.engines.cudnn.fused_plan import FusedPlan
from cudnn_compat.engines.cudnn.graphs import Replays, Store, graphs
from cudnn_compat.engines.cudnn.plan import CudnnPlan, Shape, geometry_cache
from cudnn_compat.engines.tuning import Tuning, tuning_is_on
from cudnn_compat.errors import UnsupportedError

__all__ = ["Selection"]


class Selection:
    """Makes plans, and keeps what they share: networks, lengths, graphs, and what was learnt."""

    def __init__(self) -> None:
        self.store = Store()
        self.tuning = Tuning()
        self._networks = Networks()
        self._geometries = geometry_cache()

    def clear(self) -> None:
        """Let go of everything; what was learnt is read anew from its file."""
        self.store.clear()
        self.tuning.forget()
        self._networks.clear()
        self._geometries.clear()
        forget_scratch()

    def select(self, session: Session, shape: Shape) -> CudnnPlan | FusedPlan | Choice:
        """The plan where there is one way only, else the choice.

        Raises:
            UnsupportedError: the algorithm that the spec names is refused.
        """
        if shape.spec.algo == "fused":
            way = Way("fused", may_be_recorded(shape, "fused"))
            return self._fused_plan(session, shape, way, wait=True)
        guesses, others = ways(shape)
        first = self._first_that_runs(session, shape, guesses)
        skipped = [way.algo for way in guesses[: guesses.index(first)]]
        others = tuple(way for way in others if way.algo not in skipped)
        if shape.spec.deterministic or not tuning_is_on() or graphs() == "always":
            rule = Way(first.algo, True)
            return self._cudnn_plan(session, shape, rule if rule in others else first, 1)
        if fused_may_win(session, shape):
            others += (Way("fused", may_be_recorded(shape, "fused")),)
        if not others:
            return self._cudnn_plan(session, shape, first, 0)
        where, what = _where(session.xp, session.device, str(session.library.version)), _name(shape)
        known, best = self.tuning.find(where, what), None
        # What was learnt before own kernels were tried for such a shape does not speak of them.
        own = {way.name for way in others if way.algo == "fused"}
        if known is not None and own <= set(known.get("us", own)):
            best = Way(known["algo"], known["graph"])
        if best == first:
            return self._cudnn_plan(session, shape, first, 0)
        if best in others and best.algo != "fused":
            with contextlib.suppress(UnsupportedError):  # else it drops out of the choice
                return self._cudnn_plan(session, shape, best, 1)
            best = None

        def make(way: Way) -> CudnnPlan | FusedPlan:
            with Session(shape.index) as inside:
                if way.algo == "fused":
                    return self._fused_plan(inside, shape, way, wait=False)
                return self._cudnn_plan(inside, shape, way, 0)

        def learnt(best: Way, times: Times) -> None:
            rounded = {n: None if time is None else round(time, 1) for n, time in times.items()}
            entry = {"algo": best.algo, "graph": best.graph, "us": rounded}
            self.tuning.learn(where, what, entry)

        if best in others:  # the kernels have to be loaded, perhaps compiled
            return Choice(shape, (first, best), make, None)
        return Choice(shape, (first, *others), make, learnt)

    def refuse(self, session: Session, plan: CudnnPlan, reason: str) -> None:
        """Remember that the library refused a call although a trial had shown that it runs."""
        self._networks.refuse(session, plan, reason)

    def _first_that_runs(self, session: Session, shape: Shape, guesses: tuple[Way, ...]) -> Way:
        for way in guesses[:-1]:
            try:
                self._networks.find(session, shape, way.algo)
            except UnsupportedError:
                continue
            return way
        return guesses[-1]

    def _fused_plan(self, session: Session, shape: Shape, way: Way, *, wait: bool) -> FusedPlan:
        return FusedPlan(session, shape, self.store if way.graph else None, wait=wait)

    def _cudnn_plan(self, session: Session, shape: Shape, way: Way, patience: int) -> CudnnPlan:
        network = self._networks.find(session, shape, way.algo)
        replays = Replays(self.store, network.descriptor, patience) if way.graph else None
        return CudnnPlan(shape, network, self._geometries, replays)


@functools.lru_cache(maxsize=64)
def _where(xp: Any, device: int, library: str) -> str:
    """A GPU and a library, as ``tuning`` knows them."""
    name = xp.cuda.runtime.getDeviceProperties(device)["name"]
    return f"{name.decode() if isinstance(name, bytes) else name}, cuDNN {library}"


def _about(steps: int) -> str:
    """Steps, from 16 on up to the next number of two binary digits: the best way is the same."""
    if steps <= 16:
        return str(steps)
    unit = 1 << (steps.bit_length() - 2)
    return f"≤{-(-steps // unit) * unit}"


def _name(shape: Shape) -> str:
    """What matters to the speed of a shape, in one line."""
    spec = shape.spec
    steps = _about(shape.steps)
    parts = [
        f"{spec.cell} {steps}×{shape.batch}×{spec.input_size}×{spec.hidden_size}",
        f"layers={spec.num_layers}",
        f"{spec.dtype} math={spec.math} bias={spec.bias} input={spec.input_mode}",
        shape.layout,
        "training" if shape.training else "inference",
    ]
    if shape.ragged:
        parts.append("ragged")
    if spec.bidirectional:
        parts.append("bidirectional")
    if spec.proj_size is not None:
        parts.append(f"proj={spec.proj_size}")
    if spec.clip is not None:
        parts.append("clip")
    if spec.drops and shape.training:
        parts.append("dropout")
    if graphs() == "off":
        parts.append("no graphs")
    elif blas_is_configured():
        parts.append("cuBLAS configured")
    if spec.algo != "auto":
        parts.append(f"algo={spec.algo}")
    return ", ".join(parts)
