"""What a run found, as a dict that becomes a JSON file. The keys are stable.

``schema``
    1. It rises when a key changes its meaning or disappears.
``created``
    UTC, ISO 8601.
``engine``
    ``"cudnn"`` or ``"numpy"``: what this package computed with.
``about``
    The machine and the versions: ``gpu``, ``driver``, ``cuda``, ``cpus``, ``python``, ``numpy``,
    ``cupy``, ``cudnn``, ``torch``, ``cudnn_compat``; null where there is none.
``settings``
    ``parts``, ``only``, ``rounds``, ``round_ms``, ``warm_up``, ``threads`` (of a CPU side), and
    ``budget`` (seconds, or null).
``torch``
    null, or why PyTorch was not measured.
``not_run``
    Part to the reason why it was not run here.
``left_out``
    What no time was left for.
``parts``
    ``grid`` (with what ``raw`` found): ``rows`` and ``geometric_mean`` (mode to mean speed-up);
    ``scaling``: ``rows`` and ``cliffs`` (in words); ``first`` and ``host``: ``rows``. A row that
    has ``error`` has no times.
``aims``
    Of a run of the whole grid on a GPU: each with ``aim``, ``wanted``, ``found`` (in words) and
    ``met``.
``seconds``
    How long it took.

A row of ``grid`` has ``workload``, ``mode`` and the workload's fields; ``ours_us`` and ``torch_us``
(µs by the device's clock) and ``ours_wall_us``, ``torch_wall_us`` (by the host's); ``speed_up``
(theirs over ours) and ``speed_up_of_rounds`` (least and most); ``difference`` (largest, of the
outputs); ``choice`` (the algorithm that ran); with raw calls ``raw`` (``way``, ``us``, ``refused``
of each), ``best_raw``, ``best_raw_us``, ``ours_beside_raw_us`` and ``ours_over_best_raw`` (ours in
the turns with these calls, which are apart from PyTorch's); on a known GPU ``floor_us``,
``floor_by``, ``floors_us``, ``ours_over_floor``. A row of ``scaling`` has these and ``axis`` (T, B,
H or L) and ``value``. A row of ``first`` has ``first_us``, ``slowest_following_us``, ``following``,
``standard_us``, ``allowed_us``, ``met``; one of ``host`` has ``call``, ``call_us``, ``bare_us``,
``more_us``, ``allowed_us``, ``met``.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cudnn_compat.bench.timing import Pace
from cudnn_compat.errors import ArgumentError

__all__ = ["SCHEMA", "Record", "about", "errors", "new_record", "read", "write"]

SCHEMA: Final = 1

Record = dict[str, Any]


def new_record(
    engine: str,
    facts: dict[str, Any],
    pace: Pace,
    *,
    parts: Sequence[str],
    only: str = "",
    threads: int | None = None,
    budget: float | None = None,
) -> Record:
    """A record of nothing yet."""
    now = datetime.datetime.now(datetime.UTC)
    chosen = dataclasses.asdict(pace)
    return {
        "schema": SCHEMA,
        "created": now.isoformat(timespec="seconds"),
        "engine": engine,
        "about": about(facts),
        "settings": {
            "parts": list(parts),
            "only": only,
            "rounds": chosen["rounds"],
            "round_ms": chosen["round_ms"],
            "warm_up": chosen["warm_up"],
            "threads": threads,
            "budget": budget,
        },
        "torch": None,
        "not_run": {},
        "left_out": [],
        "parts": {},
        "aims": [],
        "seconds": 0.0,
    }


def about(facts: dict[str, Any]) -> dict[str, Any]:
    """The machine and the versions, from what ``environment.collect`` knows; no places in it."""
    gpu = facts["gpu"]
    return {
        "gpu": gpu["devices"][0]["name"] if gpu["devices"] else None,
        "driver": gpu["driver"],
        "cuda": gpu["cuda"],
        "cpus": facts["platform"]["cpus"],
        "python": facts["python"]["version"],
        "numpy": facts["numpy"]["version"],
        "cupy": facts["cupy"]["version"],
        "cudnn": facts["cudnn"]["version"],
        "torch": facts["packages"]["torch"],
        "cudnn_compat": facts["cudnn_compat"]["version"],
    }


def errors(record: Record) -> list[str]:
    """In words, what could not be measured."""
    return [
        f"{part}: {_what(row)}: {row['error']}"
        for part, found in record["parts"].items()
        for row in found["rows"]
        if "error" in row
    ]


def _what(row: dict[str, Any]) -> str:
    names = ("workload", "mode") if "workload" in row else ("call", "cell")
    return " ".join(row[name] for name in names)


def write(record: Record, path: Path) -> None:
    """Write the file; whoever reads it meanwhile finds the old one whole."""
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def read(path: Path) -> Record:
    """A record that was written before; also the ``bench`` part of a record of `make gpu`.

    Raises:
        OSError: the file cannot be read.
        ArgumentError: it holds no record, or one of another schema; says which.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ArgumentError(f"{path.name} is not JSON: {error}") from error
    if isinstance(content, dict) and isinstance(content.get("parts"), dict):
        content = content["parts"].get("bench", {}).get("result", content)
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise ArgumentError(
            f"{path.name} has schema {schema!r}; wanted {SCHEMA}, as 'cudnn-compat bench --json' "
            "of this release writes it"
        )
    missing = {"about", "engine", "settings", "parts"} - set(content)
    if missing:
        raise ArgumentError(
            f"{path.name} is no record of 'cudnn-compat bench': it has no {sorted(missing)[0]!r}"
        )
    record: Record = content
    return record
