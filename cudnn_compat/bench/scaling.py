"""How time grows with steps, batch, hidden size and layers, and whether it jumps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

from cudnn_compat.bench.floors import products
from cudnn_compat.bench.grid import MODES, Workload
from cudnn_compat.bench.grid_rows import rows_of
from cudnn_compat.bench.stands import Stand
from cudnn_compat.bench.timing import Pace

__all__ = ["AXES", "Point", "cliffs", "coarse_first", "in_order", "points", "rows_of_point"]

BASE: Final = Workload("lstm", 100, 16, 256, 256)
AXES: Final = {
    "T": (1, 5, 20, 50, 100, 200, 500, 1000, 2000),
    "B": (1, 4, 16, 32, 64, 128, 256),
    "H": (32, 64, 128, 192, 256, 384, 512, 768, 1024),
    "L": (1, 2, 4, 8),
}
"""What is varied, one at a time, while the rest stays as in ``BASE``; the input size follows H."""

STEEP: Final = 1.5
"""A cliff: time grows so many times more than the work and than PyTorch's time."""

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Point:
    """One workload on one axis."""

    axis: str
    value: int

    @property
    def workload(self) -> Workload:
        """``BASE``, changed along the axis."""
        changes: dict[str, dict[str, Any]] = {
            "T": {"steps": self.value},
            "B": {"batch": self.value},
            "H": {"hidden": self.value, "input": self.value},
            "L": {"layers": self.value},
        }
        return dataclasses.replace(BASE, **changes[self.axis])


def points() -> Iterator[Point]:
    """All of them."""
    for axis, values in AXES.items():
        for value in values:
            yield Point(axis, value)


def coarse_first() -> list[Point]:
    """All of them, every other one of each axis first: a time that runs out leaves no axis out."""
    return sorted(points(), key=lambda point: AXES[point.axis].index(point.value) % 2)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows in the order of :func:`points`."""
    axes = tuple(AXES)
    return sorted(rows, key=lambda row: (axes.index(row["axis"]), row["value"]))


def rows_of_point(point: Point, stand: Stand, pace: Pace) -> list[Row]:
    """A row for each mode: those of the grid, with ``axis`` and ``value``."""
    where = {"axis": point.axis, "value": point.value}
    return [where | row for row in rows_of(point.workload, stand, pace)]


def cliffs(rows: Iterable[Row]) -> list[str]:
    """In words, where our time jumps and PyTorch's does not; rows in the order of their values."""
    found = []
    kept = [row for row in rows if "torch_us" in row]
    for axis in AXES:
        for mode in MODES:
            line = [row for row in kept if row["axis"] == axis and row["mode"] == mode]
            for before, after in pairwise(line):
                ours, torch = (after[key] / before[key] for key in ("ours_us", "torch_us"))
                a, b = (Point(axis, row["value"]).workload for row in (before, after))
                work = products(b, mode) / products(a, mode)
                if ours > STEEP * max(torch, work):
                    found.append(
                        f"{mode}, {axis} from {before['value']} to {after['value']}: time grows "
                        f"{ours:.1f} times, PyTorch's {torch:.1f}, the work {work:.1f}"
                    )
    return found
