"""A call on its way to the library: plainly or as a graph, and timed where that is wanted."""

from __future__ import annotations

from cudnn_compat.cudnn.descriptors import Descriptor
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.graphs import Arrays, Stage, addresses
from cudnn_compat.engines.cudnn.graphs.recording import Call, On
from cudnn_compat.engines.cudnn.plan import CudnnPlan

__all__ = ["dispatch"]


def dispatch(
    session: Session,
    plan: CudnnPlan,
    stage: Stage,
    network: Descriptor,
    workspace: int,
    call: Call,
    reads: Arrays,
    writes: Arrays,
) -> None:
    """Let the library compute, on the current stream.

    Args:
        network: the descriptor that ``call`` computes with.
        workspace: bytes of scratch that it takes.
        call: the library's call, or calls.
        reads, writes: its arrays as ``stage`` names them, aligned and contiguous; None where one is
            absent.
    """
    trial, replays = plan.trial, plan.replays
    if trial is None or session.capturing:
        _compute(session, plan, stage, network, workspace, call, reads, writes)
        return
    recorded = replays.recorded if replays is not None else 0
    begun = trial.begin(session)
    _compute(session, plan, stage, network, workspace, call, reads, writes)
    if replays is None or replays.recorded == recorded:  # recording is done once
        trial.end(session, stage.name, begun)


def _compute(
    session: Session,
    plan: CudnnPlan,
    stage: Stage,
    network: Descriptor,
    workspace: int,
    call: Call,
    reads: Arrays,
    writes: Arrays,
) -> None:
    replays = plan.replays
    if replays is not None and replays.run(session, stage, network, workspace, call, reads, writes):
        return
    scratch = session.bytes(workspace)  # named, so that it lives until the call has returned
    on = On(session.handle, scratch.data.ptr, session.stream.cupy.ptr)
    call(on, addresses(reads), addresses(writes))
