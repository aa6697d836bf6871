"""The two calls of the library backward."""

from __future__ import annotations

from cudnn_compat.arrays import Array
from cudnn_compat.cudnn import constants as c
from cudnn_compat.engines.cudnn.device import Session, address
from cudnn_compat.engines.cudnn.dispatch import dispatch
from cudnn_compat.engines.cudnn.graphs import DATA, WEIGHTS
from cudnn_compat.engines.cudnn.graphs.recording import Addresses
from cudnn_compat.engines.cudnn.plan import CudnnPlan
from cudnn_compat.engines.cudnn.staging import input_array, output_array, put_back
from cudnn_compat.sequences import Sequences

__all__ = ["run_data", "run_weights"]


def run_data(
    session: Session,
    plan: CudnnPlan,
    sequences: Sequences,
    w: Array,
    hx: Array | None,
    cx: Array | None,
    y: Array,
    reserve: Array,
    dy: Array | None,
    dhy: Array | None,
    dcy: Array | None,
    dx: Array,
    dhx: Array,
    dcx: Array | None,
) -> None:
    """Fill dx, dhx, dcx; changes the reserve in place. There is something to compute."""
    geometry = plan.geometry(session, sequences)
    moves, library = geometry.moves, session.library
    w = input_array(w)
    hx_in, cx_in, y_in = moves.state(hx), moves.state(cx), moves.data(y)
    # The library takes NULL for dhy and dcy, but not for dy.
    dy_in = session.xp.zeros(y.shape, y.dtype) if dy is None else moves.data(dy)
    dhy_in, dcy_in = moves.state(dhy), moves.state(dcy)
    dx_out, dhx_out = moves.data_target(dx), moves.state_target(dhx)
    dcx_out = moves.state_target(dcx)
    if geometry.clear:
        dx_out.data.memset_async(0, dx_out.nbytes)
    network = plan.network.descriptor

    def call(handle: int, workspace: int, reads: Addresses, writes: Addresses) -> None:
        w, hx, cx, y, dy, dhy, dcy, _ = reads
        dx, dhx, dcx, reserve = writes
        library.cudnnRNNBackwardData_v8(
            handle,
            network,
            address(geometry.lengths),
            geometry.y,
            y,
            dy,
            geometry.x,
            dx,
            geometry.h,
            hx,
            dhy,
            dhx,
            geometry.c,
            cx,
            dcy,
            dcx,
            plan.weight_bytes,
            w,
            geometry.workspace,
            workspace,
            geometry.reserve,
            reserve,
        )

    reads = (w, hx_in, cx_in, y_in, dy_in, dhy_in, dcy_in, reserve)
    writes = (dx_out, dhx_out, dcx_out, reserve)
    dispatch(session, plan, DATA, network, geometry.workspace, call, reads, writes)
    moves.data_back(dx_out, dx)
    moves.state_back(dhx_out, dhx, dhy)
    moves.state_back(dcx_out, dcx, dcy)


def run_weights(
    session: Session,
    plan: CudnnPlan,
    sequences: Sequences,
    x: Array,
    hx: Array | None,
    y: Array,
    reserve: Array,
    dw: Array,
) -> None:
    """Add the weight gradients into dw. There is something to compute."""
    geometry = plan.geometry(session, sequences)
    moves, library = geometry.moves, session.library
    x_in, hx_in, y_in = moves.data(x), moves.state(hx), moves.data(y)
    total = output_array(dw)
    if total is not dw:
        total[...] = dw
    network = plan.network.descriptor

    def call(handle: int, workspace: int, reads: Addresses, writes: Addresses) -> None:
        x, hx, y, reserve, _ = reads
        (dw,) = writes
        library.cudnnRNNBackwardWeights_v8(
            handle,
            network,
            c.CUDNN_WGRAD_MODE_ADD,
            address(geometry.lengths),
            geometry.x,
            x,
            geometry.h,
            hx,
            geometry.y,
            y,
            plan.weight_bytes,
            dw,
            geometry.workspace,
            workspace,
            geometry.reserve,
            reserve,
        )

    reads = (x_in, hx_in, y_in, reserve, total)
    dispatch(session, plan, WEIGHTS, network, geometry.workspace, call, reads, (total,))
    put_back(total, dw)
