"""A call on its way to what computes it: plainly or as a graph, and timed where that is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.graphs import Arrays, Replays, Stage, addresses
from cudnn_compat.engines.cudnn.graphs.recording import Call, On
from cudnn_compat.engines.cudnn.trial import Trial

__all__ = ["Dispatched", "by_library", "dispatch"]


class Dispatched(Protocol):
    """What is asked of a plan here."""

    trial: Trial | None
    replays: Replays | None


def dispatch(
    session: Session,
    plan: Dispatched,
    stage: Stage,
    network: object,
    workspace: int | None,
    call: Call,
    reads: Arrays,
    writes: Arrays,
    plainly: Callable[[], None],
) -> None:
    """Compute on the current stream.

    Args:
        network: what ``call`` computes with: a descriptor, or own kernels.
        workspace: bytes of scratch that ``call`` takes; None: it cannot be recorded.
        call: what may be recorded.
        reads, writes: its arrays as ``stage`` names them, aligned and contiguous; None where one is
            absent.
        plainly: the same without a graph.
    """
    trial, replays = plan.trial, plan.replays
    if trial is None or session.capturing:
        _compute(session, replays, stage, network, workspace, call, reads, writes, plainly)
        return
    recorded = replays.recorded if replays is not None else 0
    begun = trial.begin(session)
    _compute(session, replays, stage, network, workspace, call, reads, writes, plainly)
    if replays is None or replays.recorded == recorded:  # recording is done once
        trial.end(session, stage.name, begun)


def by_library(
    session: Session, workspace: int, call: Call, reads: Arrays, writes: Arrays
) -> Callable[[], None]:
    """``call`` as it is, with this thread's handle and scratch of its own."""

    def plainly() -> None:
        scratch = session.bytes(workspace)  # named, so that it lives until the call has returned
        on = On(session.handle, scratch.data.ptr, session.stream.cupy.ptr)
        call(on, addresses(reads), addresses(writes))

    return plainly


def _compute(
    session: Session,
    replays: Replays | None,
    stage: Stage,
    network: object,
    workspace: int | None,
    call: Call,
    reads: Arrays,
    writes: Arrays,
    plainly: Callable[[], None],
) -> None:
    done = False
    if replays is not None and workspace is not None:
        done = replays.run(session, stage, network, workspace, call, reads, writes)
    if not done:
        plainly()
