"""One workload of the grid: both sides, the library's own calls, and the floor, in one go."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from cudnn_compat.bench import raw_scan
from cudnn_compat.bench.floors import Machine, floor_of, floors_of
from cudnn_compat.bench.grid import MODES, Workload
from cudnn_compat.bench.raw import RawHandle
from cudnn_compat.bench.raw_scan import Way
from cudnn_compat.bench.sides import Inputs
from cudnn_compat.bench.stands import Stand
from cudnn_compat.bench.timing import (
    Pace,
    Timer,
    Timing,
    median,
    spread,
    take_turns,
    undisturbed,
)

__all__ = ["failed", "geometric_means", "head", "rows_of"]

Row = dict[str, Any]


def rows_of(
    workload: Workload,
    stand: Stand | None,
    pace: Pace,
    *,
    raw: bool = False,
    machine: Machine | None = None,
) -> list[Row]:
    """A row for each mode; a failure is a row that says so.

    Args:
        stand: where the two sides are; None measures the library's own calls alone.
        raw: measure those too.
        machine: the ceilings of the GPU, where they are known.
    """
    try:
        largest = None if stand is None else stand.put(workload)
        inputs = Inputs(workload) if raw else None
    except Exception as error:  # the other workloads are still worth measuring
        return [failed(workload, mode, error) for mode in MODES]
    rows = []
    for mode in MODES:
        try:
            with undisturbed():
                row = _measured(mode, stand, pace, inputs)
        except Exception as error:  # so is the other mode
            rows.append(failed(workload, mode, error))
            continue
        rows.append(head(workload, mode) | {"difference": largest} | row)
        if machine is not None:
            rows[-1] |= _floor(workload, mode, machine, rows[-1])
    return rows


def head(workload: Workload, mode: str) -> Row:
    """What a row is about."""
    fields = dataclasses.asdict(workload)
    if workload.lengths is not None:
        fields["lengths"] = list(workload.lengths)  # as JSON has it
    return {"workload": workload.name, "mode": mode, **fields}


def failed(workload: Workload, mode: str, error: Exception) -> Row:
    """The row of what could not be measured."""
    return head(workload, mode) | {"error": f"{type(error).__name__}: {error}"}


def _measured(mode: str, stand: Stand | None, pace: Pace, raw: Inputs | None) -> Row:
    """What the sides take, in turns; then, for ``raw`` inputs, ours and the library's own calls.

    These are apart from PyTorch's turns. It goes back in a second thread, behind which this one may
    run more slowly for some time; that matters where the host is what a call waits for.
    """
    timers = {} if stand is None else stand.timers(mode)
    row = _of_sides(stand, mode, take_turns(timers, pace))
    if raw is None:
        return row
    with RawHandle() as handle:
        ways = raw_scan.scan(handle, raw, mode)
        best = {f"raw {way.name}": way for way in raw_scan.fastest(ways)}
        named: dict[str, Timer] = {n: timer for n, timer in timers.items() if n == "ours"}
        named |= {name: way.timer for name, way in best.items() if way.timer}
        return row | _of_raw(ways, best, take_turns(named, pace))


def _of_sides(stand: Stand | None, mode: str, times: Mapping[str, list[Timing]]) -> Row:
    if stand is None:
        return {}
    mine = median(times["ours"])
    row: Row = {"ours_us": mine.device, "ours_wall_us": mine.wall, "choice": stand.choice(mode)}
    if "torch" in times:
        its = median(times["torch"])
        row |= {
            "torch_us": its.device,
            "torch_wall_us": its.wall,
            "speed_up": its.device / mine.device,
            "speed_up_of_rounds": list(spread(times["ours"], times["torch"])),
        }
    return row


def _of_raw(ways: Iterable[Way], best: Mapping[str, Way], times: Mapping[str, list[Timing]]) -> Row:
    row: Row = {"raw": [way.as_json() for way in ways]}
    if not best:
        return row
    medians = {name: median(times[name]).device for name in best}
    name = min(medians, key=medians.__getitem__)
    row |= {"best_raw_us": medians[name], "best_raw": best[name].name}
    if "ours" in times:
        row["ours_beside_raw_us"] = ours = median(times["ours"]).device
        row["ours_over_best_raw"] = ours / medians[name]
    return row


def _floor(workload: Workload, mode: str, machine: Machine, row: Row) -> Row:
    floor = floor_of(workload, mode, machine)
    found: Row = {
        "floors_us": floors_of(workload, mode, machine),
        "floor_us": floor.us,
        "floor_by": floor.by,
    }
    if "ours_us" in row:
        found["ours_over_floor"] = row["ours_us"] / floor.us
    return found


def geometric_means(rows: Iterable[Row]) -> dict[str, float]:
    """The mean speed-up of each mode that has any."""
    means = {}
    for mode in MODES:
        ratios = [row["speed_up"] for row in rows if row["mode"] == mode and "speed_up" in row]
        if ratios:
            means[mode] = math.exp(statistics.fmean(map(math.log, ratios)))
    return means
