"""Records of `cudnn-compat bench` that were made up, so that what follows from them is known."""

from __future__ import annotations

import copy
from typing import Any

from cudnn_compat.bench.grid import GRID, MODES
from cudnn_compat.bench.grid_rows import geometric_means, head
from cudnn_compat.bench.record import SCHEMA
from cudnn_compat.bench.scaling import cliffs, points

Record = dict[str, Any]


def grid_row(workload: Any, mode: str, ours: float, torch: float, raw: float) -> Record:
    """A row with these µs."""
    return head(workload, mode) | {
        "difference": 1e-4,
        "ours_us": ours,
        "ours_wall_us": ours + 5,
        "choice": "standard graph",
        "torch_us": torch,
        "torch_wall_us": torch + 5,
        "speed_up": torch / ours,
        "speed_up_of_rounds": [torch / ours * 0.9, torch / ours * 1.1],
        "raw": [
            {"way": "standard", "us": raw * 2, "refused": None},
            {"way": "standard graph", "us": raw, "refused": None},
            {"way": "persist_static", "us": None, "refused": "CUDNN_STATUS_NOT_SUPPORTED"},
        ],
        "best_raw": "standard graph",
        "best_raw_us": raw,
        "ours_beside_raw_us": ours,
        "ours_over_best_raw": ours / raw,
        "floors_us": {"arithmetic": 1.0, "memory": 2.0, "exchange": ours / 4},
        "floor_us": ours / 4,
        "floor_by": "exchange",
        "ours_over_floor": 4.0,
    }


def full_record() -> Record:
    """Of a whole run in which every aim was met."""
    rows = [
        grid_row(workload, mode, ours=1000, torch=3000 if number % 2 else 1500, raw=980)
        for number, workload in enumerate(GRID)
        for mode in MODES
    ]
    swept = [
        {"axis": point.axis, "value": point.value}
        | grid_row(point.workload, mode, 10.0 * point.value, 25.0 * point.value, 9.0)
        for point in points()
        for mode in MODES
    ]
    first = [
        head(GRID[0], mode)
        | {
            "first_us": 20_000.0,
            "slowest_following_us": 9_000.0,
            "following": 30,
            "standard_us": 2_000.0,
            "allowed_us": 56_000.0,
            "met": True,
        }
        for mode in MODES
    ]
    host = [
        {
            "call": call,
            "cell": "lstm",
            "batch": 64,
            "input": 256,
            "hidden": 256,
            "call_us": 70.0,
            "bare_us": 45.0,
            "more_us": 25.0,
            "allowed_us": 30,
            "met": True,
        }
        for call in ("legacy.forward", "cupy.cudnn.rnn_forward_inference")
    ]
    return {
        "schema": SCHEMA,
        "created": "2026-11-30T12:00:00+00:00",
        "engine": "cudnn",
        "about": {
            "gpu": "NVIDIA H200",
            "driver": "580.1",
            "cuda": "13.0",
            "cpus": 16,
            "python": "3.12.3",
            "numpy": "2.4.6",
            "cupy": "14.2.0",
            "cudnn": "9.19.0",
            "torch": "2.11.0",
            "cudnn_compat": "2.0.0",
        },
        "settings": {
            "parts": ["grid", "raw", "scaling", "first", "host"],
            "only": "",
            "rounds": 5,
            "round_ms": 25.0,
            "warm_up": 0.1,
            "threads": None,
            "budget": None,
        },
        "torch": None,
        "not_run": {},
        "left_out": [],
        "parts": {
            "grid": {"rows": rows, "geometric_mean": geometric_means(rows)},
            "scaling": {"rows": swept, "cliffs": cliffs(swept)},
            "first": {"rows": first},
            "host": {"rows": host},
        },
        "aims": [],
        "seconds": 100.0,
    }


def changed(record: Record, part: str, index: int, **values: Any) -> Record:
    """A copy in which one row of a part has other values."""
    record = copy.deepcopy(record)
    record["parts"][part]["rows"][index].update(values)
    return record
