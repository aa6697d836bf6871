"""What the engines have prepared and keep: for those who measure, or count their memory."""

from __future__ import annotations

import dataclasses

from cudnn_compat.engines.choose import loaded_engines
from cudnn_compat.spec import RNNSpec

__all__ = ["PlanInfo", "clear_plans", "plans"]


@dataclasses.dataclass(frozen=True)
class PlanInfo:
    """One plan: what was prepared for one kind of call.

    Attributes:
        engine: the engine that made it.
        spec: the description of the network.
        layout, steps, batch: of x; steps is T with padding.
        ragged: whether lengths differ; which ones they are is not part of a plan.
        training: whether it keeps what backward needs.
        device: ``"cpu"`` or ``"cuda:N"``.
        algo: the algorithm that runs; ``"numpy"`` on the NumPy engine.
        settled: whether that stays so; not while ``algo="auto"`` still measures.
    """

    engine: str
    spec: RNNSpec
    layout: str
    steps: int
    batch: int
    ragged: bool
    training: bool
    device: str
    algo: str
    settled: bool


def plans() -> tuple[PlanInfo, ...]:
    """The plans that are kept, those used last at the end; each engine keeps at most 256."""
    return tuple(
        PlanInfo(
            engine.name,
            plan.spec,
            plan.layout,
            plan.steps,
            plan.batch,
            plan.ragged,
            plan.training,
            plan.device,
            plan.algo,
            plan.settled,
        )
        for engine in loaded_engines()
        for plan in engine.plans.entries()
    )


def clear_plans() -> None:
    """Let go of all plans; what is still in use (tapes) lives on until it has served."""
    for engine in loaded_engines():
        engine.clear()
