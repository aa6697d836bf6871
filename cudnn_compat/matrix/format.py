"""The form of the JSON of the matrix: its number, its statuses, its text. Loads nothing else.

``docs/guides/matrix.md`` tells every key. One document is one environment.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias, get_args

__all__ = [
    "SCHEMA",
    "STATUSES",
    "Combination",
    "Status",
    "not_tested",
    "now",
    "overall",
    "summary",
    "to_text",
]

SCHEMA: Final = 1
"""Number of the format. It is raised where a key goes or changes its meaning."""

Status: TypeAlias = Literal[
    "works", "works differently", "refused", "not offered", "not tested here", "failed"
]

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
"""All of them, in the order in which they are told."""


@dataclasses.dataclass(frozen=True)
class Combination:
    """Which versions an environment is to have.

    Attributes:
        id: unique in the table of environments; ``"here"`` outside of it.
        label: the same for a reader.
        python, numpy, cupy, cudnn: versions as asked for; ``"newest"`` is possible, None is none.
    """

    id: str
    label: str
    python: str | None
    numpy: str | None
    cupy: str | None = None
    cudnn: str | None = None


def not_tested(combination: Combination, reason: str) -> dict[str, Any]:
    """The document of an environment that could not be made."""
    return {
        "schema": SCHEMA,
        "created": now(),
        "combination": dataclasses.asdict(combination)
        | {
            "versions": dict.fromkeys(("python", "numpy", "cupy", "cudnn")),
            "gpu": None,
            "tested": False,
            "reason": reason,
        },
        "environment": None,
        "summary": summary([]),
        "capabilities": [],
        "rows_kept": "all",
        "rows": [],
    }


def to_text(document: dict[str, Any]) -> str:
    """The document as strict JSON, with one line for each capability and row."""
    lists = {key: document[key] for key in ("capabilities", "rows")}
    text = json.dumps({**document, **dict.fromkeys(lists, 0)}, indent=1, allow_nan=False)
    for key, values in lists.items():
        lines = ",\n  ".join(json.dumps(value, allow_nan=False) for value in values)
        filled = f"[\n  {lines}\n ]" if values else "[]"
        text = text.replace(f'\n "{key}": 0', f'\n "{key}": {filled}')
    return text + "\n"


def overall(statuses: Iterable[Status]) -> Status:
    """One status for several rows.

    "failed" if any failed; else the one that those tested share; where they differ, "works
    differently"; "not tested here" only if none was tested.
    """
    found = set(statuses)
    if "failed" in found:
        return "failed"
    tested = found - {"not tested here"}
    if not tested:
        return "not tested here"
    return tested.pop() if len(tested) == 1 else "works differently"


def summary(statuses: Iterable[Status]) -> dict[str, int]:
    """Number of rows, in all and by status."""
    found = list(statuses)
    return {"rows": len(found), **{status: found.count(status) for status in STATUSES}}


def now() -> str:
    """ISO 8601, UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
