"""The two calls of the library backward."""

from __future__ import annotations

from cudnn_compat.arrays import Array
from cudnn_compat.cudnn import constants as c
from cudnn_compat.engines.cudnn.device import Session, address
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
    workspace = session.bytes(geometry.workspace)
    library.cudnnRNNBackwardData_v8(
        session.handle,
        plan.network.descriptor,
        address(geometry.lengths),
        geometry.y,
        address(y_in),
        address(dy_in),
        geometry.x,
        address(dx_out),
        geometry.h,
        address(hx_in),
        address(dhy_in),
        address(dhx_out),
        geometry.c,
        address(cx_in),
        address(dcy_in),
        address(dcx_out),
        plan.weight_bytes,
        address(w),
        geometry.workspace,
        address(workspace),
        geometry.reserve,
        address(reserve),
    )
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
    workspace = session.bytes(geometry.workspace)
    library.cudnnRNNBackwardWeights_v8(
        session.handle,
        plan.network.descriptor,
        c.CUDNN_WGRAD_MODE_ADD,
        address(geometry.lengths),
        geometry.x,
        address(x_in),
        geometry.h,
        address(hx_in),
        geometry.y,
        address(y_in),
        plan.weight_bytes,
        address(total),
        geometry.workspace,
        address(workspace),
        geometry.reserve,
        address(reserve),
    )
    put_back(total, dw)
