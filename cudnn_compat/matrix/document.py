"""The JSON of a run: what ``cudnn-compat matrix --json`` writes."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from cudnn_compat.matrix.format import (
    SCHEMA,
    STATUSES,
    Combination,
    Status,
    now,
    overall,
    summary,
)
from cudnn_compat.matrix.run import Result

__all__ = ["as_json", "combination_here"]


def as_json(
    results: Iterable[Result],
    environment: dict[str, Any],
    *,
    combination: Combination | None = None,
    brief: bool = False,
) -> dict[str, Any]:
    """The document of a run.

    Args:
        results: of any rows.
        environment: facts about the machine that they were run on.
        combination: what it was asked to be; None takes what is there.
        brief: of the rows keep only those that failed or were refused.

    Returns:
        The document, ready for :func:`~cudnn_compat.matrix.format.to_text`. An error that is no
        number is null.
    """
    found = list(results)
    asked = combination or combination_here(environment)
    ran_on_gpu = any(r.row.engine == "cudnn" and r.status != "not tested here" for r in found)
    devices = environment.get("gpu", {}).get("devices", [])
    kept = [r for r in found if not brief or r.status in ("refused", "failed")]
    return {
        "schema": SCHEMA,
        "created": now(),
        "combination": dataclasses.asdict(asked)
        | {
            "versions": _versions(environment),
            "gpu": devices[0]["name"] if ran_on_gpu and devices else None,
            "tested": True,
            "reason": None,
        },
        "environment": environment,
        "summary": summary(result.status for result in found),
        "capabilities": [_capability(group) for group in _by_capability(found)],
        "rows_kept": "exceptions" if brief else "all",
        "rows": [_row(result) for result in kept],
    }


def combination_here(environment: dict[str, Any]) -> Combination:
    """Whatever is installed."""
    found = _versions(environment)
    names = {"python": "Python", "numpy": "NumPy", "cupy": "CuPy", "cudnn": "cuDNN"}
    parts = [f"{name} {found[key]}" for key, name in names.items() if found[key]]
    return Combination("here", ", ".join(parts), **found)


def _versions(environment: dict[str, Any]) -> dict[str, str | None]:
    """Of Python, NumPy, CuPy and cuDNN; None where it is not there."""
    keys = ("python", "numpy", "cupy", "cudnn")
    return {key: environment.get(key, {}).get("version") for key in keys}


def _by_capability(results: Iterable[Result]) -> list[list[Result]]:
    groups: dict[tuple[str, str, str | None], list[Result]] = {}
    for result in results:
        row = result.row
        groups.setdefault((row.feature.api, row.feature.name, row.engine), []).append(result)
    return list(groups.values())


def _capability(group: Sequence[Result]) -> dict[str, Any]:
    """One API, feature and engine."""
    first = group[0].row
    computed = [result for result in group if result.error is not None]
    worst = max(computed, key=lambda result: result.severity, default=None)
    counts = Counter(result.status for result in group)
    return {
        "id": f"{first.feature.api}/{first.feature.name}/{first.engine or '-'}",
        "api": first.feature.api,
        "feature": first.feature.name,
        "engine": first.engine,
        "entry_points": list(first.feature.calls),
        "status": overall(counts),
        "counts": {status: counts[status] for status in STATUSES if counts[status]},
        "cells": _statuses_by(group, "cell"),
        "dtypes": _statuses_by(group, "dtype"),
        "error": None if worst is None else _finite(worst.error),
        "tolerance": None if worst is None else worst.tolerance,
        "reasons": _reasons(group),
    }


def _statuses_by(group: Iterable[Result], key: str) -> dict[str, Status]:
    found: dict[str, list[Status]] = {}
    for result in group:
        value = getattr(result.row, key)
        if value is not None:
            found.setdefault(value, []).append(result.status)
    return {value: overall(statuses) for value, statuses in found.items()}


def _reasons(group: Iterable[Result]) -> list[dict[str, Any]]:
    """Each status and reason of rows that do not simply work, with how many and which first."""
    rows: dict[tuple[Status, str | None], list[str]] = {}
    for result in group:
        if result.status != "works":
            rows.setdefault((result.status, result.reason), []).append(result.row.id)
    return [
        {"status": status, "reason": reason, "rows": len(ids), "example": ids[0]}
        for (status, reason), ids in rows.items()
    ]


def _row(result: Result) -> dict[str, Any]:
    row = result.row
    return {
        "id": row.id,
        "api": row.feature.api,
        "feature": row.feature.name,
        "cell": row.cell,
        "dtype": row.dtype,
        "shape": None if row.shape is None else row.shape.label,
        "engine": row.engine,
        "status": result.status,
        "error": _finite(result.error),
        "tolerance": result.tolerance,
        "reason": result.reason,
    }


def _finite(error: float | None) -> float | None:
    return error if error is not None and math.isfinite(error) else None
