"""The calls of own kernels, as those of the library are in ``forward`` and ``backward``."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.engines.cudnn.device import Session, is_captured, memory_at
from cudnn_compat.engines.cudnn.dispatch import dispatch
from cudnn_compat.engines.cudnn.fused import FusedNetwork
from cudnn_compat.engines.cudnn.fused.rows import Rows
from cudnn_compat.engines.cudnn.fused.scratch import counting, scratch_at
from cudnn_compat.engines.cudnn.fused_plan import FusedPlan
from cudnn_compat.engines.cudnn.graphs import (
    BACKWARD,
    DATA,
    FORWARD,
    WEIGHTS,
    Arrays,
    Lease,
    Stage,
)
from cudnn_compat.engines.cudnn.graphs.recording import Addresses, On
from cudnn_compat.engines.cudnn.staging import input_array, output_array, put_back
from cudnn_compat.sequences import Sequences

__all__ = ["run_both", "run_data", "run_forward", "run_weights"]

Run = Callable[[Arrays, Arrays, int], None]
"""The kernels' part of a call: on what it reads and what it writes, with scratch for cuBLAS."""


def run_forward(
    session: Session,
    plan: FusedPlan,
    sequences: Sequences,
    w: Array,
    x: Array,
    hx: Array | None,
    cx: Array | None,
    y: Array,
    hy: Array | None,
    cy: Array | None,
    reserve: Any,
) -> None:
    """Fill y, hy, cy and, in training, the reserve. There is something to compute."""
    network, rows = plan.network, plan.rows_of(session, sequences)

    def run(reads: Arrays, writes: Arrays, blas: int) -> None:
        w, x, hx, cx = reads
        y, hy, cy, reserve = writes
        network.forward(rows, w, x, hx, cx, y=y, hy=hy, cy=cy, reserve=reserve, blas=blas)

    outs = (y, hy, cy)
    targets = _writable(*outs)
    writes = (*targets, _array(session, reserve))
    _dispatch(session, plan, FORWARD, run, _readable(w, x, hx, cx), writes)
    _put_back(targets, outs)


def run_data(
    session: Session,
    plan: FusedPlan,
    sequences: Sequences,
    w: Array,
    cx: Array | None,
    reserve: Any,
    dy: Array | None,
    dhy: Array | None,
    dcy: Array | None,
    dx: Array,
    dhx: Array,
    dcx: Array | None,
) -> None:
    """Fill dx, dhx, dcx; changes the reserve in place. There is something to compute."""
    run = _data(plan.network, plan.rows_of(session, sequences))
    reserve, outs = _array(session, reserve), (dx, dhx, dcx)
    targets = _writable(*outs)
    reads = (*_readable(w, None, cx, None, dy, dhy, dcy), reserve)
    _dispatch(session, plan, DATA, run, reads, (*targets, reserve))
    _put_back(targets, outs)


def run_weights(
    session: Session, plan: FusedPlan, sequences: Sequences, x: Array, reserve: Any, dw: Array
) -> None:
    """Add the weight gradients into dw. There is something to compute."""
    run = _weights(plan.network, plan.rows_of(session, sequences))
    total = output_array(dw)
    if total is not dw:
        total[...] = dw
    reads = (*_readable(x, None, None), _array(session, reserve), total)
    _dispatch(session, plan, WEIGHTS, run, reads, (total,))
    put_back(total, dw)


def run_both(
    session: Session,
    plan: FusedPlan,
    sequences: Sequences,
    w: Array,
    x: Array,
    cx: Array | None,
    reserve: Any,
    dy: Array | None,
    dhy: Array | None,
    dcy: Array | None,
    dx: Array,
    dhx: Array,
    dcx: Array | None,
    dw: Array,
) -> None:
    """The two in one: fill dx, dhx, dcx, and dw, which is not added to."""
    of = (plan.network, plan.rows_of(session, sequences))
    data, weights = _data(*of), _weights(*of)

    def run(reads: Arrays, writes: Arrays, blas: int) -> None:
        w, x, _, cx, _, dy, dhy, dcy, reserve = reads
        dx, dhx, dcx, dw, _ = writes
        data((w, None, cx, None, dy, dhy, dcy, reserve), (dx, dhx, dcx, reserve), blas)
        assert dw is not None
        dw.data.memset_async(0, dw.nbytes)
        weights((x, None, None, reserve, dw), (dw,), blas)

    reserve, outs = _array(session, reserve), (dx, dhx, dcx, dw)
    targets = _writable(*outs)
    reads = (*_readable(w, x, None, cx, None, dy, dhy, dcy), reserve)
    _dispatch(session, plan, BACKWARD, run, reads, (*targets, reserve))
    _put_back(targets, outs)


def _data(network: FusedNetwork, rows: Rows) -> Run:
    """The pass on the arrays of ``DATA``; hx and y are not read."""

    def run(reads: Arrays, writes: Arrays, blas: int) -> None:
        w, _, cx, _, dy, dhy, dcy, reserve = reads
        dx, dhx, dcx, _ = writes
        given = {"dy": dy, "dhy": dhy, "dcy": dcy, "dx": dx, "dhx": dhx, "dcx": dcx}
        network.backward_data(rows, w, cx, reserve, **given, blas=blas)

    return run


def _weights(network: FusedNetwork, rows: Rows) -> Run:
    """The pass on the arrays of ``WEIGHTS``, which adds into dw; hx and y are not read."""

    def run(reads: Arrays, writes: Arrays, blas: int) -> None:
        x, _, _, reserve, _ = reads
        (dw,) = writes
        network.backward_weights(rows, x, reserve, dw=dw, blas=blas)

    return run


def _dispatch(
    session: Session, plan: FusedPlan, stage: Stage, run: Run, reads: Arrays, writes: Arrays
) -> None:
    """Let ``run`` compute, plainly or recorded. Arrays are contiguous and aligned."""
    xp, device = session.xp, session.device
    pattern = (stage.name, *[array is None for array in (*reads, *writes)])
    scratch = plan.scratch.get(pattern)
    # A recording lives on: it must keep neither these arrays nor the plan whose it is.
    kinds, results, known = _kinds(reads), _kinds(writes), plan.scratch

    def call(on: On, read: Addresses, written: Addresses) -> None:
        given, targets = _views(xp, device, kinds, read), _views(xp, device, results, written)
        recorded = is_captured(xp, on.stream)
        with scratch_at(xp, device, on.workspace, scratch or 0, recorded=recorded) as counted:
            run(given, targets, on.blas)
        known[pattern] = max(counted.bytes, scratch or 0)

    def plainly() -> None:
        if plan.replays is None or scratch is not None:
            run(reads, writes, 0)
            return
        with counting(xp) as counted:
            run(reads, writes, 0)
        plan.scratch[pattern] = counted.bytes

    dispatch(session, plan, stage, plan.network, scratch, call, reads, writes, plainly)


def _readable(*arrays: Array | None) -> Arrays:
    return tuple([None if array is None else input_array(array) for array in arrays])


def _writable(*arrays: Array | None) -> Arrays:
    return tuple([None if array is None else output_array(array) for array in arrays])


def _put_back(written: Arrays, outs: Arrays) -> None:
    for array, out in zip(written, outs, strict=True):
        if out is not None:
            put_back(array, out)


def _array(session: Session, reserve: Any) -> Any:
    """A reserve as an array: those of graphs are lent in another form."""
    return reserve.as_array(session, reserve.nbytes) if type(reserve) is Lease else reserve


Kinds = list[tuple[tuple[int, ...], np.dtype, int] | None]
"""Shape, dtype and bytes of arrays."""


def _kinds(arrays: Arrays) -> Kinds:
    return [None if a is None else (a.shape, a.dtype, a.nbytes) for a in arrays]


def _views(xp: ModuleType, device: int, kinds: Kinds, places: Addresses) -> Arrays:
    """Arrays of these kinds at these addresses, whose memory others keep."""
    views: list[Array | None] = []
    for kind, place in zip(kinds, places, strict=True):
        if kind is None:
            views.append(None)
            continue
        shape, dtype, nbytes = kind
        views.append(xp.ndarray(shape, dtype, memory_at(xp, device, place, nbytes)))
    return tuple(views)
