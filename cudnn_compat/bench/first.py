"""What the first call of a new shape costs, and the calls that follow it."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable
from typing import Any, Final

from cudnn_compat import v2
from cudnn_compat.arrays import load_cupy
from cudnn_compat.bench.grid import GRID, MODES, Workload
from cudnn_compat.bench.grid_rows import failed, head
from cudnn_compat.bench.sides import Inputs
from cudnn_compat.bench.timing import Call, host_timer, undisturbed
from cudnn_compat.spec import RNNSpec

__all__ = ["ALLOWED_MORE_US", "ALLOWED_TIMES", "allowed", "new_shapes", "rows_of_shape"]

ALLOWED_TIMES: Final = 3
ALLOWED_MORE_US: Final = 50_000
"""A first call may take so many times a warm call of STANDARD, and so much more."""

FOLLOWING: Final = 30
"""Calls after the first: in one of these another way may be tried."""

Row = dict[str, Any]


def new_shapes(workloads: Iterable[Workload] = GRID) -> tuple[Workload, ...]:
    """Workloads at three quarters of their sizes, which nothing before has seen."""

    def less(size: int) -> int:
        return max(1, size * 3 // 4)

    return tuple(
        dataclasses.replace(
            w,
            input=less(w.input),
            hidden=less(w.hidden),
            proj=None if w.proj is None else less(w.proj),
        )
        for w in workloads
    )


def allowed(standard_us: float) -> float:
    """The longest that a call may take, by what a warm one of STANDARD takes."""
    return ALLOWED_TIMES * standard_us + ALLOWED_MORE_US


def rows_of_shape(workload: Workload) -> list[Row]:
    """A row for each mode, on the GPU: host µs of single calls, each waited for."""
    rows = []
    for mode in MODES:
        try:
            with undisturbed():
                rows.append(head(workload, mode) | _measured(workload, mode))
        except Exception as error:  # the other shapes are still worth measuring
            rows.append(failed(workload, mode, error))
    return rows


def _measured(workload: Workload, mode: str) -> Row:
    inputs = Inputs(workload)
    auto = host_timer(_call(inputs, mode, inputs.spec))
    load_cupy().cuda.Device().synchronize()
    first, *following = (auto(1).wall for _ in range(1 + FOLLOWING))
    standard = host_timer(_call(inputs, mode, workload.spec(algo="standard")))
    standard(2)
    warm = statistics.median(standard(1).wall for _ in range(9))
    limit = allowed(warm)
    return {
        "first_us": first,
        "slowest_following_us": max(following),
        "following": FOLLOWING,
        "standard_us": warm,
        "allowed_us": limit,
        "met": max(first, *following) <= limit,
    }


def _call(inputs: Inputs, mode: str, spec: RNNSpec) -> Call:
    xp = load_cupy()
    w, x, dy = inputs.on(xp)
    following, stream = inputs.counter(), xp.cuda.get_current_stream()

    def call() -> None:
        out = v2.rnn_forward(spec, w, x, lengths=following(), training=mode == "training")
        if mode == "training":
            v2.rnn_backward(out, dy)
        stream.synchronize()

    return call
