"""The short answers of a page: which version of what works with what.

Made of a :class:`~cudnn_compat.matrix.page.merge.Matrix`, read by the page in HTML and by that in
Markdown, so that the two cannot tell different things.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cudnn_compat.cudnn.prototypes import PROTOTYPES
from cudnn_compat.cudnn.symbols import Manifest
from cudnn_compat.matrix.page.merge import Group, Matrix, version_order
from cudnn_compat.matrix.page.records import COMPONENTS, NOT_TESTED, STATUSES, Record

__all__ = [
    "Answer",
    "Family",
    "Version",
    "answer",
    "dates",
    "families",
    "in_numbers",
    "notices",
    "parts",
    "symbol_spans",
    "verdict",
    "versions",
]

NAMES: Final = {"python": "Python", "numpy": "NumPy", "cupy": "CuPy", "cudnn": "cuDNN"}

OLD_DAYS: Final = 90
"""A record is called old when it was made so long before the newest of its page."""


@dataclass(frozen=True)
class Answer:
    """What became of several capabilities together.

    Attributes:
        status: one of STATUSES: that of all of them, or ``"works differently"`` where some work
            and others do not, or ``"failed"`` where one failed.
        text: in words, with numbers where they differ.
        reasons: distinct reasons of what does not work, with the number of capabilities of each,
            the most frequent first.
    """

    status: str
    text: str
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Family:
    """A column of the summary: APIs that one program uses together, on one engine."""

    title: str
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Version:
    """One version of a part of the environments, and what became of those that have it."""

    name: str
    answer: Answer
    environments: tuple[str, ...]


FAMILIES: Final = {
    ("v2", "numpy"): "v2 on NumPy",
    ("v2", "cudnn"): "v2 on cuDNN",
    ("legacy", "numpy"): "RNNDesc on NumPy",
    ("legacy", "cudnn"): "RNNDesc on cuDNN",
    ("legacy.cupy", "numpy"): "cupy.cudnn on NumPy",
    ("legacy.cupy", "cudnn"): "cupy.cudnn on cuDNN",
    ("cudnn", "library"): "the C library",
}


def families(matrix: Matrix) -> list[Family]:
    """The columns of the summary; every group is in one of them."""
    members: dict[str, list[Group]] = {title: [] for title in FAMILIES.values()}
    for group in matrix.groups:
        api = "legacy.cupy" if group.api.startswith("legacy.cupy") else group.api
        # What no engine computes works where NumPy does.
        engine = group.engine or ("library" if api == "cudnn" else "numpy")
        members.setdefault(FAMILIES.get((api, engine), group.title), []).append(group)
    return [Family(title, tuple(groups)) for title, groups in members.items() if groups]


def answer(groups: Iterable[Group], environment: str) -> Answer:
    """What became of groups in an environment."""
    cells = [line.cells[environment] for group in groups for line in group.lines]
    counts = Counter(cell.status for cell in cells)
    reasons = Counter(text for cell in cells for text in {each.text for each in cell.reasons})
    ordered = tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
    if len(counts) == 1:
        (status,) = counts
        return Answer(status, status, ordered)
    order = ["failed", *STATUSES[:-1]]
    text = ", ".join(
        f"{counts[each]} {_verb(each, counts[each])}" for each in order if counts[each]
    )
    return Answer("failed" if counts["failed"] else "works differently", text, ordered)


def _verb(status: str, number: int) -> str:
    return status.replace("works", "work", 1) if number > 1 else status


def versions(matrix: Matrix) -> dict[str, list[Version]]:
    """Every version of Python, NumPy, CuPy and cuDNN, and every GPU, that a record has."""
    found = {}
    for part in (*COMPONENTS, "gpu"):
        members: dict[str, list[Record]] = {}
        for record in matrix.records:
            version = record.gpu if part == "gpu" else _asked(record, part)
            if version is not None:
                members.setdefault(version, []).append(record)
        _leave_out_what_was_asked_and_is_there(members)
        if members:
            found[NAMES.get(part, "GPU")] = [
                Version(
                    name,
                    _as_far(part, members[name], _together(matrix, members[name])),
                    tuple(r.id for r in members[name]),
                )
                for name in sorted(members, key=version_order)
            ]
    return found


def _as_far(part: str, records: list[Record], found: Answer) -> Answer:
    """What serves a GPU alone says more than it shows where no GPU was."""
    if part in ("cupy", "cudnn") and found.status == "works" and not any(r.gpu for r in records):
        return dataclasses.replace(found, text="works as far as it goes without a GPU")
    return found


def _leave_out_what_was_asked_and_is_there(members: dict[str, list[Record]]) -> None:
    """What was asked for, as "14", where it could not be made and 14.2 was tested."""
    tested = {name for name, records in members.items() if any(each.tested for each in records)}
    for name in set(members) - tested:
        if any(each.startswith(f"{name}.") for each in tested):
            del members[name]


def _asked(record: Record, name: str) -> str | None:
    """The version in two numbers: what is between two patches is no question of compatibility."""
    there, asked = record.versions[name], record.asked[name]
    if there is not None:
        return there if name == "cudnn" else ".".join(there.split(".")[:2])
    return asked if not record.tested and asked != "newest" else None


def _together(matrix: Matrix, records: Iterable[Record]) -> Answer:
    """What became of everything that was tested in some environments."""
    tested = [record for record in records if record.tested]
    if not tested:
        reasons = sorted({record.reason or "" for record in records})
        return Answer(NOT_TESTED, NOT_TESTED, tuple((reason, 1) for reason in reasons))
    lines = [
        {line.cells[record.id].status for record in tested}
        for group in matrix.groups
        for line in group.lines
    ]
    if failed := sum("failed" in statuses for statuses in lines):
        return Answer("failed", f"{failed} failed", ())
    found = set().union(*lines)
    status = next((each for each in STATUSES if each in found and each != NOT_TESTED), NOT_TESTED)
    return Answer(status, status, ())


def verdict(matrix: Matrix) -> Answer:
    """The first sentence of a page: whether anything failed; then what, and where."""
    failed = []
    for group in matrix.groups:
        for line in group.lines:
            where = [
                number
                for number, record in enumerate(matrix.records, 1)
                if line.cells[record.id].status == "failed"
            ]
            if where:
                name = f"{group.title}: {line.capability.feature}"
                environments = "environment" if len(where) == 1 else "environments"
                failed.append((f"{name}, in {environments} {in_numbers(where)}", len(where)))
    if not failed:
        return Answer("works", "Nothing failed.", ())
    number = "1 capability" if len(failed) == 1 else f"{len(failed)} capabilities"
    return Answer("failed", f"{number} failed.", tuple(failed))


def in_numbers(numbers: Iterable[int]) -> str:
    """Environments by their places in the table: ``"1-3, 7"``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def parts(record: Record, *, short: bool = False) -> list[str]:
    """What an environment is made of, in words: what was there, or was to be.

    Args:
        record: the environment.
        short: two numbers of a version are enough.
    """
    found = []
    for name in COMPONENTS:
        if version := record.versions[name] or record.asked[name]:
            numbers = version.split(".")[: 2 if short else None]
            found.append(f"{NAMES[name]} {'.'.join(numbers)}")
    if record.gpu:
        found.append(record.gpu)
    return found or [record.label]


def notices(matrix: Matrix) -> dict[str, list[str]]:
    """What a reader must know of the age of records: id of the environment to sentences."""
    tested = [record for record in matrix.records if record.tested]
    newest = max((record for record in tested), key=lambda each: each.created, default=None)
    found: dict[str, list[str]] = {}
    for record in tested:
        assert newest is not None
        days = (newest.created.date() - record.created.date()).days
        if days >= OLD_DAYS:
            found.setdefault(record.id, []).append(f"old: {days} days before the newest")
        if record.package != newest.package:
            found.setdefault(record.id, []).append(
                f"of cudnn_compat {record.package}; the newest is of {newest.package}"
            )
    return found


def dates(matrix: Matrix) -> str:
    """The day on which the records were made, or the first and the last."""
    days = sorted({record.created.date().isoformat() for record in matrix.records})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def symbol_spans(manifest: Manifest) -> dict[str, list[str]]:
    """Functions of RNNs, and what else this package calls, by which released cuDNN has them.

    Returns:
        Words, as ``"8.8 and 8.9"``, to names; the fewest releases last.
    """
    called = set().union(*PROTOTYPES.values())
    names = {name for name in manifest.names if "RNN" in name or name in called}
    found: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: (manifest.spans(name), name)):
        found.setdefault(manifest.in_words(name), []).append(name)
    return found
