"""Records of several environments, joined: what a page shows, whatever it is written in.

Nothing here depends on the order in which the records are given or on today's date, so that the
same records make the same page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cudnn_compat.matrix.page.records import NOT_TESTED, Capability, Reason, Record, read_records

__all__ = ["Cell", "Group", "Line", "Matrix", "merge", "version_order"]

APIS: Final = {
    "v2": "the new API, v2",
    "legacy": "the old API, RNNDesc",
    "legacy.cupy": "the old API, legacy.cupy",
    "legacy.cupy.cudnn": "the old API, cupy.cudnn",
    "legacy.cupy.libcudnn": "the old API, cupy_backends.cuda.libs.cudnn",
    "cudnn": "the C library cuDNN",
}

ENGINES: Final = {
    "numpy": "on NumPy",
    "cudnn": "on cuDNN, on a GPU",
    "library": "loaded without a GPU",
    None: "where no engine takes part",
}


@dataclass(frozen=True)
class Cell:
    """What became of a capability in an environment.

    Attributes:
        status: one of :data:`~cudnn_compat.matrix.page.records.STATUSES`.
        counts: status to number of rows; empty where nothing was run.
        reasons: why it is not, or not in all rows, ``works``.
    """

    status: str
    counts: Mapping[str, int]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Line:
    """A capability in every environment of its group.

    Attributes:
        capability: from the newest record that has it.
        cells: by id of the environment, for each there is.
    """

    capability: Capability
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Group:
    """One API on one engine.

    Attributes:
        api, engine: which.
        title: of it, for people.
        lines: its capabilities.
        environments: ids of those that the table has a column for: those in which something of it
            was tested, or all, where nothing was anywhere.
        untested: ids of those in which nothing of it was tested, each with the reason.
    """

    api: str
    engine: str | None
    title: str
    lines: tuple[Line, ...]
    environments: tuple[str, ...]
    untested: Mapping[str, str]

    @property
    def id(self) -> str:
        """A name that can stand in a link."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.api}-{self.engine or 'any'}".lower())


@dataclass(frozen=True)
class Matrix:
    """Everything that a page shows.

    Attributes:
        records: the environments, by Python, NumPy, CuPy, cuDNN and GPU.
        groups: in the order of the records.
    """

    records: tuple[Record, ...]
    groups: tuple[Group, ...]


def merge(paths: Iterable[Path]) -> Matrix:
    """Join records.

    Args:
        paths: files that ``cudnn-compat matrix --json`` wrote, in any order.

    Raises:
        ArgumentError: one is no record or of another schema, or two are of one environment.
    """
    records = sorted(read_records(paths), key=_place)
    capabilities = _capabilities(records)
    keys = dict.fromkeys((each.api, each.engine) for each in capabilities)
    groups = []
    for api, engine in keys:
        members = [each for each in capabilities if (each.api, each.engine) == (api, engine)]
        groups.append(_group(api, engine, members, records))
    return Matrix(tuple(records), tuple(groups))


def _place(record: Record) -> tuple[Any, ...]:
    """GPUs last, and what is about cuDNN before them; then the oldest of each part first."""
    parts = ("cudnn", "python", "numpy", "cupy")
    return (record.gpu or "", *(version_order(record.asked[name]) for name in parts), record.id)


def version_order(version: str | None) -> list[tuple[bool, int, str]]:
    """``3.9`` before ``3.10`` before what is no number, as ``newest``; None before all."""
    parts = version.split(".") if version else []
    return [(False, int(each), "") if each.isdecimal() else (True, 0, each) for each in parts]


def _capabilities(records: Iterable[Record]) -> list[Capability]:
    """Each once, as the newest record has it; groups and features in the order of the records."""
    newest: dict[str, Capability] = {}
    for record in sorted(records, key=lambda each: (each.created, each.id), reverse=True):
        for id_, capability in record.capabilities.items():
            newest.setdefault(id_, capability)
    return sorted(newest.values(), key=lambda each: _api_order(each.api))


def _api_order(api: str) -> tuple[int, str]:
    known = list(APIS)
    return (known.index(api), "") if api in known else (len(known), api)


def _group(
    api: str, engine: str | None, members: Sequence[Capability], records: Sequence[Record]
) -> Group:
    lines = tuple(
        Line(each, {record.id: _cell(record, each.id) for record in records}) for each in members
    )
    untested = {}
    for record in records:
        cells = [line.cells[record.id] for line in lines]
        if all(cell.status == NOT_TESTED for cell in cells):
            said = Counter(reason.text for cell in cells for reason in cell.reasons)
            untested[record.id] = "; ".join(sorted(said)) or "no reason is given"
    shown = [record.id for record in records if record.id not in untested]
    return Group(
        api=api,
        engine=engine,
        title=f"{APIS.get(api, api)}, {ENGINES.get(engine, f'on {engine}')}",
        lines=lines,
        environments=tuple(shown or untested),
        untested=untested,
    )


def _cell(record: Record, capability: str) -> Cell:
    if not record.tested:
        return _untested(record.reason or "nothing was run in this environment")
    found = record.capabilities.get(capability)
    if found is None:
        return _untested("nothing of it is in this environment's record")
    if found.status != "works" and not found.reasons:
        return Cell(found.status, found.counts, (Reason(found.status, "no reason is given", 0),))
    return Cell(found.status, found.counts, found.reasons)


def _untested(reason: str) -> Cell:
    return Cell(NOT_TESTED, {}, (Reason(NOT_TESTED, reason, 0),))
