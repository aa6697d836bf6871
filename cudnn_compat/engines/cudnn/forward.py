"""One call of the library, forward."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cudnn_compat.arrays import Array
from cudnn_compat.cudnn.descriptors import Descriptor
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cudnn.device import Session, address
from cudnn_compat.engines.cudnn.dispatch import by_library, dispatch
from cudnn_compat.engines.cudnn.dropout import generator_of
from cudnn_compat.engines.cudnn.graphs import FORWARD
from cudnn_compat.engines.cudnn.graphs.recording import Addresses, On
from cudnn_compat.engines.cudnn.plan import CudnnPlan
from cudnn_compat.engines.cudnn.staging import input_array
from cudnn_compat.sequences import Sequences

__all__ = ["run"]


def run(
    session: Session,
    plan: CudnnPlan,
    sequences: Sequences,
    w: Array,
    x: Array,
    hx: Array | None,
    cx: Array | None,
    y: Array,
    hy: Array | None,
    cy: Array | None,
    reserve: Array | None,
    dropout: DropoutState | None,
) -> None:
    """Fill y, hy, cy and, in training, the reserve. There is something to compute."""
    geometry = plan.geometry(session, sequences)
    moves, library = geometry.moves, session.library
    # By themselves: a recording, which lives on, must not keep the plan whose it is.
    mode, weight_bytes = plan.mode, plan.weight_bytes
    w = input_array(w)
    x_in, hx_in, cx_in = moves.data(x), moves.state(hx), moves.state(cx)
    y_out, hy_out, cy_out = moves.data_target(y), moves.state_target(hy), moves.state_target(cy)
    geometry.clear_padding(session, y_out)
    reads, writes = (w, x_in, hx_in, cx_in), (y_out, hy_out, cy_out, reserve)
    with _network(session, plan, dropout) as network:

        def call(on: On, reads: Addresses, writes: Addresses) -> None:
            w, x, hx, cx = reads
            y, hy, cy, reserve = writes
            library.cudnnRNNForward(
                on.handle,
                network,
                mode,
                address(geometry.lengths),
                geometry.x,
                x,
                geometry.y,
                y,
                geometry.h,
                hx,
                hy,
                geometry.c,
                cx,
                cy,
                weight_bytes,
                w,
                geometry.workspace,
                on.workspace,
                geometry.reserve,
                reserve,
            )

        size = geometry.workspace
        plainly = by_library(session, size, call, reads, writes)
        dispatch(session, plan, FORWARD, network, size, call, reads, writes, plainly)
    moves.data_back(y_out, y)
    moves.state_back(hy_out, hy, hx)
    moves.state_back(cy_out, cy, cx)


@contextlib.contextmanager
def _drawing(session: Session, plan: CudnnPlan, dropout: DropoutState) -> Iterator[Descriptor]:
    with dropout.lock:
        generator = generator_of(dropout, plan.index)
        with generator.in_order(session):
            yield plan.network.drawing(session, generator)


def _network(
    session: Session, plan: CudnnPlan, dropout: DropoutState | None
) -> contextlib.AbstractContextManager[Descriptor]:
    """The descriptor to compute with; inside, nobody else draws from the generators."""
    if plan.drops and dropout is not None:
        return _drawing(session, plan, dropout)
    return contextlib.nullcontext(plan.network.descriptor)
