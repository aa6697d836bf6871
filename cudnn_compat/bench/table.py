"""A record as tables of text: what the terminal, the page of `make gpu` and Markdown all show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cudnn_compat.bench.record import Record

__all__ = ["Table", "heading", "markdown", "notes", "tables"]

Row = dict[str, Any]


class Table(NamedTuple):
    """Rows of cells. Heads that begin with a space are those of numbers."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


_COLUMNS = {
    # head: (key, format)
    " ours": ("ours_us", ".0f"),
    " torch": ("torch_us", ".0f"),
    " speed-up": ("speed_up", ".2f"),
    " raw": ("best_raw_us", ".0f"),
    "best raw": ("best_raw", ""),
    " ours/raw": ("ours_over_best_raw", ".2f"),
    " floor": ("floor_us", ".1f"),
    "choice": ("choice", ""),
}


def tables(record: Record) -> list[Table]:
    """Of all parts that were run."""
    parts = record["parts"]
    made = []
    if "grid" in parts:
        made.append(_grid(parts["grid"]))
    if "host" in parts:
        made.append(_host(parts["host"]["rows"]))
    if "first" in parts:
        made.append(_first(parts["first"]["rows"]))
    if "scaling" in parts:
        made.append(_scaling(parts["scaling"]["rows"]))
    if record["aims"]:
        rows = [(a["aim"], a["wanted"], a["found"], _yes(a["met"])) for a in record["aims"]]
        made.append(Table("Aims", ("aim", "wanted", "found", "met"), rows))
    return [table for table in made if table.rows]


def heading(record: Record) -> str:
    """On what it was measured, and how."""
    about, settings = record["about"], record["settings"]
    where = about["gpu"] if record["engine"] == "cudnn" else f"{about['cpus']} CPUs"
    if settings["threads"]:
        where += f", {settings['threads']} threads"
    names = {"cudnn": "cuDNN", "cupy": "CuPy", "torch": "PyTorch", "numpy": "NumPy"}
    if record["engine"] != "cudnn":
        del names["cudnn"], names["cupy"]
    versions = ", ".join(f"{n} {about[key]}" for key, n in names.items() if about[key])
    rules = ", TF32 allowed on both sides" if record["engine"] == "cudnn" else ""
    return (
        f"{where}; {versions}; medians of {settings['rounds']} rounds of about "
        f"{settings['round_ms']:g} ms{rules}; speed-up above 1: this package is faster"
    )


def notes(record: Record) -> list[str]:
    """What was not measured, and why."""
    found = [f"{part} was not run: {why}" for part, why in record["not_run"].items()]
    if record["torch"]:
        found.insert(0, f"PyTorch was not measured: {record['torch']}")
    if record["left_out"]:
        found.append(f"no time was left for {', '.join(record['left_out'])}")
    return [*found, *record["parts"].get("scaling", {}).get("cliffs", [])]


def markdown(table: Table) -> list[str]:
    """The lines of a table in Markdown."""
    heads = [head.strip() for head in table.heads]
    lines = [heads, ["---"] * len(heads), *([_escaped(c) for c in row] for row in table.rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|")


def _grid(grid: dict[str, Any]) -> Table:
    rows = grid["rows"]
    there = {head: c for head, c in _COLUMNS.items() if any(row.get(c[0]) for row in rows)}
    cells: list[tuple[str, ...]] = []
    for row in rows:
        name = (row["workload"], row["mode"])
        if "error" in row:
            padding = [""] * (len(there) - 1)
            cells.append((*name, _short(row["error"]), *padding) if there else (*name,))
        else:
            cells.append((*name, *(_cell(row, *column) for column in there.values())))
    for mode, mean in grid["geometric_mean"].items():
        means = (f"{mean:.2f}" if head == " speed-up" else "" for head in there)
        cells.append(("geometric mean", mode, *means))
    return Table("Speed, µs a call or step", ("workload", "mode", *(there or ())), cells)


def _cell(row: Row, key: str, form: str) -> str:
    value = row.get(key)
    return "" if value is None else format(value, form)


def _host(rows: list[Row]) -> Table:
    heads = ("call", "cell", " batch", " hidden", " call µs", " bare µs", " more µs", " allowed")
    cells = []
    for row in rows:
        about = (row["call"], row["cell"], str(row["batch"]), str(row["hidden"]))
        if "error" in row:
            cells.append((*about, _short(row["error"]), "", "", ""))
            continue
        keys = ("call_us", "bare_us", "more_us", "allowed_us")
        cells.append((*about, *(f"{row[key]:.1f}" for key in keys)))
    return Table("An old call of one step: host time", heads, cells)


def _first(rows: list[Row]) -> Table:
    heads = (
        "new shape",
        "mode",
        " first ms",
        " slowest of the next ms",
        " warm STANDARD ms",
        "met",
    )
    cells = []
    for row in rows:
        about = (row["workload"], row["mode"])
        if "error" in row:
            cells.append((*about, _short(row["error"]), "", "", ""))
            continue
        keys = ("first_us", "slowest_following_us", "standard_us")
        times = (f"{row[key] / 1000:.2f}" for key in keys)
        cells.append((*about, *times, _yes(row["met"])))
    return Table("First calls", heads, cells)


def _scaling(rows: list[Row]) -> Table:
    heads = ("axis", " value", "mode", " ours", " torch", " speed-up", "choice")
    keys = [("ours_us", ".0f"), ("torch_us", ".0f"), ("speed_up", ".2f"), ("choice", "")]
    cells = []
    for row in rows:
        about = (row["axis"], str(row["value"]), row["mode"])
        if "error" in row:
            cells.append((*about, _short(row["error"]), "", "", ""))
        else:
            cells.append((*about, *(_cell(row, *each) for each in keys)))
    return Table("Time against T, B, H and layers, µs", heads, cells)


def _short(error: str) -> str:
    words = " ".join(error.split())
    return words if len(words) <= 100 else f"{words[:99]}…"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
