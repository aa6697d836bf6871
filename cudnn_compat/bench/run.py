"""Measure what was asked for, and make the record of it."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from cudnn_compat.bench import first, grid_rows, host, scaling
from cudnn_compat.bench.aims import aims_of
from cudnn_compat.bench.floors import machine
from cudnn_compat.bench.grid import GRID, Workload
from cudnn_compat.bench.record import Record, new_record
from cudnn_compat.bench.stands import OnCpu, OnGpu, Stand
from cudnn_compat.bench.timing import QUICK, Pace

__all__ = ["PARTS", "Settings", "measure", "pace_for"]

PARTS: Final = {
    "grid": "this package and PyTorch, on every workload",
    "raw": "the library's own calls for the same, each algorithm, plain and as a graph",
    "scaling": "time against T, B, H and layers",
    "first": "the first calls of new shapes",
    "host": "what an old call of one step costs the host",
}
"""Name to what is measured."""

_GPU_ONLY: Final = {
    "raw": "the library's own calls need a GPU",
    "first": "nothing is compiled or chosen by the NumPy engine",
    "host": "on a CPU the host computes; see benchmarks/legacy_overhead.py",
}

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to measure.

    Attributes:
        engine: ``"cudnn"`` or ``"numpy"``.
        pace: how long.
        parts: names of :data:`PARTS`.
        workloads: of the grid.
        threads: of each side on a CPU.
        budget: seconds after which nothing more is begun; None: everything is.
        only: what the workloads were chosen by, for the record.
    """

    engine: str
    pace: Pace
    parts: tuple[str, ...] = tuple(PARTS)
    workloads: tuple[Workload, ...] = GRID
    threads: int = 1
    budget: float | None = None
    only: str = ""


class _Task(NamedTuple):
    part: str
    name: str
    rows: Callable[[], list[Row]]


def pace_for(engine: str, *, quick: bool = False, rounds: int | None = None) -> Pace:
    """How long to measure on an engine where nobody says."""
    if engine == "cudnn":
        pace = QUICK if quick else Pace()
    elif quick:
        pace = Pace(rounds=3, round_ms=20, warm_up=0, warm_up_calls=1, rest=0.05)
    else:
        pace = Pace(rounds=5, round_ms=500, warm_up=0, warm_up_calls=1, rest=0.25)
    return pace if rounds is None else dataclasses.replace(pace, rounds=rounds)


def measure(
    settings: Settings,
    facts: dict[str, Any],
    *,
    begun: Callable[[str, int, int], None] = lambda name, number, of: None,
    done: Callable[[Record], None] = lambda record: None,
) -> Record:
    """Run the parts, one workload after the other.

    Args:
        settings: what to measure.
        facts: what ``environment.collect`` knows of this machine.
        begun: called with the name of what begins, how much is done, and how much there is.
        done: called with the record after each of them, and at the end: a run that is cut off
            leaves what it had.

    Returns:
        The record; see :mod:`~cudnn_compat.bench.record`.
    """
    start = time.monotonic()
    record = new_record(
        settings.engine,
        facts,
        settings.pace,
        parts=settings.parts,
        only=settings.only,
        threads=None if settings.engine == "cudnn" else settings.threads,
        budget=settings.budget,
    )
    record["torch"] = why_no_torch(settings.engine, facts)
    if settings.engine != "cudnn":
        record["not_run"] = {p: why for p, why in _GPU_ONLY.items() if p in settings.parts}
    wanted = [part for part in settings.parts if part not in record["not_run"]]
    with _stand(settings, wanted, torch=record["torch"] is None) as stand:
        tasks = list(_tasks(settings, wanted, stand, record["about"]["gpu"]))
        for number, task in enumerate(tasks):
            record["seconds"] = round(time.monotonic() - start, 1)
            if settings.budget is not None and record["seconds"] > settings.budget:
                record["left_out"] = [f"{left.part}: {left.name}" for left in tasks[number:]]
                break
            begun(f"{task.part}: {task.name}", number, len(tasks))
            part = record["parts"].setdefault(task.part, {"rows": []})
            part["rows"] += task.rows()
            _sum_up(record)
            done(record)
    if settings.engine == "cudnn" and not settings.only:
        record["aims"] = aims_of(record["parts"])
    record["seconds"] = round(time.monotonic() - start, 1)
    done(record)
    return record


def why_no_torch(engine: str, facts: dict[str, Any]) -> str | None:
    """Why PyTorch cannot be the other side; None where it can."""
    if facts["packages"]["torch"] is None:
        return "PyTorch is not installed (extra peers)"
    try:
        import torch

        if engine == "cudnn" and not torch.cuda.is_available():
            return f"PyTorch {torch.__version__} cannot use the GPU"
    except Exception as error:  # a half-installed CUDA raises all kinds
        return f"PyTorch cannot be imported: {type(error).__name__}: {error}"
    return None


@contextlib.contextmanager
def _stand(settings: Settings, wanted: Sequence[str], *, torch: bool) -> Iterator[Stand | None]:
    """Where the sides are, for the parts that compare any."""
    if not {"grid", "scaling"} & set(wanted):
        yield None
        return
    stand: Stand
    if settings.engine == "cudnn":
        stand = OnGpu(torch=torch)
    else:
        stand = OnCpu(torch=torch, threads=settings.threads)
    try:
        yield stand
    finally:
        stand.close()


def _tasks(
    settings: Settings, wanted: Sequence[str], stand: Stand | None, gpu: str | None
) -> Iterator[_Task]:
    """In the order in which they are worth having, should the time be short."""
    known = machine(gpu) if settings.engine == "cudnn" else None
    if "grid" in wanted or "raw" in wanted:
        for workload in settings.workloads:

            def rows(workload: Workload = workload) -> list[Row]:
                return grid_rows.rows_of(
                    workload,
                    stand if "grid" in wanted else None,
                    settings.pace,
                    raw="raw" in wanted,
                    machine=known,
                )

            yield _Task("grid", workload.name, rows)
    if "host" in wanted:
        for call in host.CALLS:
            yield _Task("host", call, lambda call=call: host.rows_of_call(call))  # type: ignore[misc]
    if "first" in wanted:
        for shape in first.new_shapes(settings.workloads):
            yield _Task("first", shape.name, lambda shape=shape: first.rows_of_shape(shape))  # type: ignore[misc]
    if "scaling" in wanted and stand is not None:
        pace = dataclasses.replace(
            settings.pace,
            rounds=min(settings.pace.rounds, 3),
            round_ms=min(settings.pace.round_ms, 100),
            warm_up=0,
        )
        if settings.engine == "cudnn":
            pace = dataclasses.replace(pace, round_ms=min(pace.round_ms, 5))
        for point in scaling.coarse_first():

            def swept(point: scaling.Point = point) -> list[Row]:
                return scaling.rows_of_point(point, stand, pace)

            yield _Task("scaling", f"{point.axis} = {point.value}", swept)


def _sum_up(record: Record) -> None:
    """What follows from the rows."""
    parts = record["parts"]
    if "grid" in parts:
        parts["grid"]["geometric_mean"] = grid_rows.geometric_means(parts["grid"]["rows"])
    if "scaling" in parts:
        rows = scaling.in_order(parts["scaling"]["rows"])
        parts["scaling"] |= {"rows": rows, "cliffs": scaling.cliffs(rows)}
