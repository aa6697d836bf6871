"""The two calls of the library backward, one by one and both at once."""

from __future__ import annotations

from cudnn_compat.arrays import Array
from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.library import Library
from cudnn_compat.engines.cudnn.device import Session, address
from cudnn_compat.engines.cudnn.dispatch import by_library, dispatch
from cudnn_compat.engines.cudnn.graphs import BACKWARD, DATA, WEIGHTS, Arrays, Stage
from cudnn_compat.engines.cudnn.graphs.recording import Addresses, Call, On
from cudnn_compat.engines.cudnn.plan import CudnnPlan, Geometry
from cudnn_compat.engines.cudnn.staging import Moves, input_array, output_array, put_back
from cudnn_compat.sequences import Sequences

__all__ = ["run_both", "run_data", "run_weights"]


def run_both(
    session: Session,
    plan: CudnnPlan,
    sequences: Sequences,
    w: Array,
    x: Array,
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
    dw: Array,
) -> None:
    """Fill dx, dhx, dcx, and dw, which is a fresh array. There is something to compute."""
    geometry = plan.geometry(session, sequences)
    moves = geometry.moves
    reads = (
        input_array(w),
        moves.data(x),
        moves.state(hx),
        moves.state(cx),
        moves.data(y),
        _needed(session, moves, dy, y),
        moves.state(dhy),
        moves.state(dcy),
        reserve,
    )
    dx_out, dhx_out = moves.data_target(dx), moves.state_target(dhx)
    dcx_out, dw_out = moves.state_target(dcx), output_array(dw)
    geometry.clear_padding(session, dx_out)
    of = (session.library, plan, geometry)
    data, weights = _data(*of), _weights(*of)
    memset, weight_bytes = session.xp.cuda.runtime.memsetAsync, plan.weight_bytes

    def call(on: On, reads: Addresses, writes: Addresses) -> None:
        w, x, hx, cx, y, dy, dhy, dcy, _ = reads
        dx, dhx, dcx, dw, reserve = writes
        memset(dw, 0, weight_bytes, on.stream)  # the library adds
        data(on, (w, hx, cx, y, dy, dhy, dcy, reserve), (dx, dhx, dcx, reserve))
        weights(on, (x, hx, y, reserve, dw), (dw,))

    writes = (dx_out, dhx_out, dcx_out, dw_out, reserve)
    _dispatch(session, plan, BACKWARD, geometry, call, reads, writes)
    moves.data_back(dx_out, dx)
    moves.state_back(dhx_out, dhx, dhy)
    moves.state_back(dcx_out, dcx, dcy)
    put_back(dw_out, dw)


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
    moves = geometry.moves
    w = input_array(w)
    hx_in, cx_in, y_in = moves.state(hx), moves.state(cx), moves.data(y)
    dy_in = _needed(session, moves, dy, y)
    dhy_in, dcy_in = moves.state(dhy), moves.state(dcy)
    dx_out, dhx_out = moves.data_target(dx), moves.state_target(dhx)
    dcx_out = moves.state_target(dcx)
    geometry.clear_padding(session, dx_out)
    call = _data(session.library, plan, geometry)
    reads = (w, hx_in, cx_in, y_in, dy_in, dhy_in, dcy_in, reserve)
    writes = (dx_out, dhx_out, dcx_out, reserve)
    _dispatch(session, plan, DATA, geometry, call, reads, writes)
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
    moves = geometry.moves
    x_in, hx_in, y_in = moves.data(x), moves.state(hx), moves.data(y)
    total = output_array(dw)
    if total is not dw:
        total[...] = dw
    call = _weights(session.library, plan, geometry)
    reads = (x_in, hx_in, y_in, reserve, total)
    _dispatch(session, plan, WEIGHTS, geometry, call, reads, (total,))
    put_back(total, dw)


def _needed(session: Session, moves: Moves, dy: Array | None, y: Array) -> Array:
    """dy: the library takes NULL for dhy and dcy, but not for it."""
    return session.xp.zeros(y.shape, y.dtype) if dy is None else moves.data(dy)


def _dispatch(
    session: Session,
    plan: CudnnPlan,
    stage: Stage,
    geometry: Geometry,
    call: Call,
    reads: Arrays,
    writes: Arrays,
) -> None:
    network, size = plan.network.descriptor, geometry.workspace
    plainly = by_library(session, size, call, reads, writes)
    dispatch(session, plan, stage, network, size, call, reads, writes, plainly)


def _data(library: Library, plan: CudnnPlan, geometry: Geometry) -> Call:
    """``cudnnRNNBackwardData_v8`` on the arrays of ``DATA``; keeps nothing of the plan."""
    network, weight_bytes = plan.network.descriptor, plan.weight_bytes

    def call(on: On, reads: Addresses, writes: Addresses) -> None:
        w, hx, cx, y, dy, dhy, dcy, _ = reads
        dx, dhx, dcx, reserve = writes
        library.cudnnRNNBackwardData_v8(
            on.handle,
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
            weight_bytes,
            w,
            geometry.workspace,
            on.workspace,
            geometry.reserve,
            reserve,
        )

    return call


def _weights(library: Library, plan: CudnnPlan, geometry: Geometry) -> Call:
    """``cudnnRNNBackwardWeights_v8`` on the arrays of ``WEIGHTS``: it adds into dw."""
    network, weight_bytes = plan.network.descriptor, plan.weight_bytes

    def call(on: On, reads: Addresses, writes: Addresses) -> None:
        x, hx, y, reserve, _ = reads
        (dw,) = writes
        library.cudnnRNNBackwardWeights_v8(
            on.handle,
            network,
            c.CUDNN_WGRAD_MODE_ADD,
            address(geometry.lengths),
            geometry.x,
            x,
            geometry.h,
            hx,
            geometry.y,
            y,
            weight_bytes,
            dw,
            geometry.workspace,
            on.workspace,
            geometry.reserve,
            reserve,
        )

    return call
