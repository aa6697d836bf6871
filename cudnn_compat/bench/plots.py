"""A record as a picture. Needs matplotlib (extra ``plots``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from cudnn_compat.bench.grid import MODES
from cudnn_compat.bench.record import Record
from cudnn_compat.bench.scaling import AXES
from cudnn_compat.bench.table import heading
from cudnn_compat.errors import UnsupportedError

__all__ = ["check_plots", "draw"]

COLOURS: Final = {"inference": "#1f77b4", "training": "#e07b39"}
NAMES: Final = {"T": "steps T", "B": "batch B", "H": "hidden size H", "L": "layers"}
DASHES: Final = {"ours": "-", "torch": ":"}

Row = dict[str, Any]


def check_plots() -> None:
    """Refuse where matplotlib is missing; before anything is measured.

    Raises:
        UnsupportedError: says what to install.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(
            f"a plot needs matplotlib ({error}): pip install 'cudnn-compat[plots]'"
        ) from None


def draw(record: Record, path: Path) -> None:
    """Write the picture: speed-ups by workload above, time against T, B, H and layers below.

    Args:
        record: with part ``grid`` or ``scaling``; what it lacks is left out.
        path: the file; its ending says the format (``.png``, ``.svg``, ``.pdf``).

    Raises:
        UnsupportedError: matplotlib is missing, or does not know the format.
        OSError: the file cannot be written.
    """
    check_plots()
    from matplotlib.figure import Figure

    parts = record["parts"]
    grid = [row for row in parts.get("grid", {}).get("rows", []) if "speed_up" in row]
    swept = [row for row in parts.get("scaling", {}).get("rows", []) if "ours_us" in row]
    axes = [axis for axis in AXES if any(row["axis"] == axis for row in swept)]
    if not grid and not axes:
        raise UnsupportedError(
            "the record has nothing to draw: no workload was measured against PyTorch, and no "
            "scaling; run the parts grid and scaling, with PyTorch installed"
        )
    workloads = list(dict.fromkeys(row["workload"] for row in grid))
    heights = [1.4 + 0.36 * len(workloads)] * bool(grid) + [3.6] * bool(axes)
    figure = Figure(figsize=(12, sum(heights) + 0.5), layout="constrained", dpi=120)
    rows = list(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])
    if grid:
        _speed_ups(rows.pop(0).subplots(), grid, workloads, parts["grid"]["geometric_mean"])
    if axes:
        places = rows.pop(0).subplots(1, len(axes), squeeze=False)[0]
        for place, axis in zip(places, axes, strict=True):
            _growth(place, axis, [row for row in swept if row["axis"] == axis])
        places[0].set_ylabel("µs")
        places[0].legend(fontsize="small")
    figure.suptitle(heading(record), fontsize=8)
    try:
        figure.savefig(path)
    except ValueError as error:
        raise UnsupportedError(f"{path.name} cannot be drawn: {error}") from error


def _speed_ups(place: Any, grid: list[Row], workloads: list[str], means: dict[str, float]) -> None:
    """A bar for each workload and mode."""
    thick = 0.8 / len(MODES)
    for index, mode in enumerate(MODES):
        of_mode = {row["workload"]: row["speed_up"] for row in grid if row["mode"] == mode}
        known = [name for name in workloads if name in of_mode]
        where = [workloads.index(name) + (index - 0.5) * thick for name in known]
        values = [of_mode[name] for name in known]
        label = f"{mode}, geometric mean {means[mode]:.2f}" if mode in means else mode
        bars = place.barh(where, values, height=thick, color=COLOURS[mode], label=label)
        place.bar_label(bars, fmt="%.2f", fontsize=7, padding=2)
    place.set_yticks(range(len(workloads)), workloads, fontsize=8)
    place.invert_yaxis()
    place.axvline(1, color="black", linewidth=1)
    place.set_xlabel("times as fast as PyTorch (T×B×I×H, layers)")
    place.margins(x=0.06, y=0.01)
    place.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, fontsize="small")


def _growth(place: Any, axis: str, rows: list[Row]) -> None:
    """Time against one size: ours in full lines, PyTorch's dotted."""
    for mode in MODES:
        for side, dash in DASHES.items():
            key = f"{side}_us"
            line = [(r["value"], r[key]) for r in rows if r["mode"] == mode and key in r]
            if line:
                label = f"{'this package' if side == 'ours' else 'PyTorch'}, {mode}"
                style = {"color": COLOURS[mode], "linestyle": dash, "label": label}
                place.plot(*zip(*line, strict=True), marker=".", **style)
    place.set_xscale("log", base=2)
    place.set_yscale("log")
    place.xaxis.set_major_formatter("{x:.0f}")
    place.set_xlabel(NAMES[axis])
    place.grid(alpha=0.3)
