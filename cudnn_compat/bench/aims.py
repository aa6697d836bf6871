"""How fast this package means to be on a GPU, and whether a record shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from cudnn_compat.bench.first import ALLOWED_MORE_US, ALLOWED_TIMES
from cudnn_compat.bench.grid import MODES
from cudnn_compat.bench.host import ALLOWED_US

__all__ = ["aims_of"]

MEAN_SPEED_UP: Final = 2.0
LEAST_SPEED_UP: Final = 0.97
NEAR_BEST: Final = 1.05
NEAR_BEST_US: Final = 10
SHORT_US: Final = 100
"""Up to here it is ``NEAR_BEST_US`` that counts, above it ``NEAR_BEST``."""

Aim = dict[str, Any]
Row = dict[str, Any]


def aims_of(parts: dict[str, Any]) -> list[Aim]:
    """Every aim that the parts of a record say something about, in the order of the parts."""
    return [
        *_speed_ups(parts.get("grid", {})),
        *_best_raw(parts.get("grid", {}).get("rows", [])),
        *_cliffs(parts.get("scaling", {})),
        *_calls(parts),
    ]


def _aim(aim: str, wanted: str, found: str, met: bool) -> Aim:
    return {"aim": aim, "wanted": wanted, "found": found, "met": met}


def _name(row: Row) -> str:
    return f"{row['workload']} {row['mode']}"


def _speed_ups(grid: dict[str, Any]) -> Iterator[Aim]:
    for mode in MODES:
        mean = grid.get("geometric_mean", {}).get(mode)
        if mean is not None:
            yield _aim(
                f"geometric mean of the speed-ups over PyTorch, {mode}",
                f"at least {MEAN_SPEED_UP:.2f}",
                f"{mean:.2f}",
                mean >= MEAN_SPEED_UP,
            )
    rows = [row for row in grid.get("rows", []) if "speed_up" in row]
    if rows:
        worst = min(rows, key=lambda row: row["speed_up"])
        yield _aim(
            "speed-up over PyTorch on every workload",
            f"at least {LEAST_SPEED_UP:.2f}",
            f"{worst['speed_up']:.2f} ({_name(worst)})",
            worst["speed_up"] >= LEAST_SPEED_UP,
        )


def _best_raw(rows: list[Row]) -> Iterator[Aim]:
    rows = [row for row in rows if "ours_over_best_raw" in row]
    short = [row for row in rows if row["best_raw_us"] <= SHORT_US]
    if long := [row for row in rows if row["best_raw_us"] > SHORT_US]:
        worst = max(long, key=lambda row: row["ours_over_best_raw"])
        yield _aim(
            f"time over that of the best raw call, above {SHORT_US} µs",
            f"at most {NEAR_BEST:.2f}",
            f"{worst['ours_over_best_raw']:.2f} ({_name(worst)})",
            worst["ours_over_best_raw"] <= NEAR_BEST,
        )
    if short:
        worst = max(short, key=_more)
        yield _aim(
            f"time more than that of the best raw call, up to {SHORT_US} µs",
            f"at most {NEAR_BEST_US} µs",
            f"{_more(worst):.0f} µs ({_name(worst)})",
            _more(worst) <= NEAR_BEST_US,
        )


def _more(row: Row) -> float:
    # Older records have all in turns with each other.
    beside = "ours_beside_raw_us" if "ours_beside_raw_us" in row else "ours_us"
    more: float = row[beside] - row["best_raw_us"]
    return more


def _cliffs(scaling: dict[str, Any]) -> Iterator[Aim]:
    if any("torch_us" in row for row in scaling.get("rows", [])):
        cliffs = scaling["cliffs"]
        yield _aim(
            "cliffs that PyTorch does not have", "none", "; ".join(cliffs) or "none", not cliffs
        )


def _calls(parts: dict[str, Any]) -> Iterator[Aim]:
    first = [row for row in parts.get("first", {}).get("rows", []) if "met" in row]
    if first:
        worst = max(first, key=lambda row: _slowest(row) / row["allowed_us"])
        yield _aim(
            "the first calls of a new shape",
            f"each at most {ALLOWED_TIMES} × a warm call of STANDARD + "
            f"{ALLOWED_MORE_US / 1000:.0f} ms",
            f"{_slowest(worst) / 1000:.1f} ms where {worst['allowed_us'] / 1000:.1f} ms are "
            f"allowed ({_name(worst)})",
            all(row["met"] for row in first),
        )
    rows = [row for row in parts.get("host", {}).get("rows", []) if "met" in row]
    for call in dict.fromkeys(row["call"] for row in rows):
        of_call = [row for row in rows if row["call"] == call]
        worst = max(of_call, key=lambda row: row["more_us"])
        yield _aim(
            f"host time of {call}, one step, more than the bare library call",
            f"at most {ALLOWED_US} µs",
            f"{worst['more_us']:.1f} µs ({worst['cell']}, {worst['batch']} × {worst['hidden']})",
            all(row["met"] for row in of_call),
        )


def _slowest(row: Row) -> float:
    slowest: float = max(row["first_us"], row["slowest_following_us"])
    return slowest
