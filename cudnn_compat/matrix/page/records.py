"""Records of the matrix, read from the JSON that ``cudnn-compat matrix --json`` writes.

A record is the answer of one environment. What is no record is refused in words, with the file's
name, because whoever merges a dozen files must know which one is meant. Keys that are not known
here are passed over: a newer release may have added them.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cudnn_compat.errors import ArgumentError
from cudnn_compat.matrix.format import SCHEMA, STATUSES

__all__ = [
    "COMPONENTS",
    "MEANINGS",
    "NOT_TESTED",
    "SCHEMA",
    "STATUSES",
    "Capability",
    "Reason",
    "Record",
    "read_record",
    "read_records",
]

NOT_TESTED: Final = "not tested here"

MEANINGS: Final = {
    "works": "computed, and within the tolerance",
    "works differently": "the same, and something is not as it was, or works in some cases only",
    "refused": "an error says that this engine, library or version cannot",
    "not offered": "the old library had it; an error says what to use instead",
    NOT_TESTED: "was not run in this environment, which says nothing of whether it works",
    "failed": "ran, and is wrong",
}
"""What can become of a capability, and what that means."""

COMPONENTS: Final = ("python", "numpy", "cupy", "cudnn")
"""What an environment is made of, beside its GPU."""

HERE: Final = "here"
"""The id of any run outside the table of environments: the file's name tells such records apart."""

REMEDY: Final = "cudnn-compat matrix --json FILE writes records"


@dataclass(frozen=True)
class Reason:
    """Why rows of a capability are not ``works``.

    Attributes:
        status: of those rows.
        text: in words.
        rows: how many.
    """

    status: str
    text: str
    rows: int


@dataclass(frozen=True)
class Capability:
    """What became of one feature of one API on one engine, in one environment.

    Attributes:
        id: ``"v2/layers_2/numpy"``: the same in every record.
        api, feature, engine: its parts; engine is None where none takes part.
        entry_points: public names that its rows call.
        status: one of :data:`STATUSES`.
        counts: status to number of rows.
        error, tolerance: of the row nearest to its tolerance; None where none was computed.
        reasons: of every row that is not ``works``.
    """

    id: str
    api: str
    feature: str
    engine: str | None
    entry_points: tuple[str, ...]
    status: str
    counts: Mapping[str, int]
    error: float | None
    tolerance: float | None
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Record:
    """The answer of one environment.

    Attributes:
        id: of the environment; unique among the records of a page.
        label: of the environment, for people.
        asked: component (:data:`COMPONENTS`) to the version that was asked for; None where the
            environment has none.
        versions: component to the version that was there.
        gpu: the GPU that computed; None where there was none.
        tested: whether anything was run.
        reason: why nothing was.
        created: when it was made.
        package: version of cudnn_compat that made it; None where nothing was run.
        capabilities: by id, in the order of the record.
    """

    id: str
    label: str
    asked: Mapping[str, str | None]
    versions: Mapping[str, str | None]
    gpu: str | None
    tested: bool
    reason: str | None
    created: datetime.datetime
    package: str | None
    capabilities: Mapping[str, Capability]


def read_records(paths: Iterable[Path]) -> list[Record]:
    """Read files that make one page.

    Raises:
        ArgumentError: there is none, one is no record or of another schema, or two are of one
            environment.
    """
    found: dict[str, tuple[Path, Record]] = {}
    for path in paths:
        record = read_record(path)
        if record.id in found:
            raise ArgumentError(
                f"{found[record.id][0]} and {path} are both of the environment {record.id!r}; "
                "a page has one column for each environment: give one of the two"
            )
        found[record.id] = (path, record)
    if not found:
        raise ArgumentError(f"no record was given to make a page of; {REMEDY}")
    return [record for _, record in found.values()]


def read_record(path: Path) -> Record:
    """Read one file.

    Raises:
        ArgumentError: it cannot be read, is no record of the matrix, or is of another schema.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ArgumentError(f"{path} is no JSON ({error}); {REMEDY}") from error
    whole = _Part(str(path), "", data)
    if not isinstance(data, dict) or "schema" not in data:
        older = isinstance(data, dict) and {"created", "summary", "rows"} <= data.keys()
        what = "a record of a development version" if older else "no record of the matrix"
        raise ArgumentError(f"{path} is {what}: it has no 'schema'; {REMEDY}")
    if (schema := data["schema"]) != SCHEMA or isinstance(schema, bool):
        raise ArgumentError(
            f"{path} is a record of schema {schema!r}, and this release of cudnn_compat reads "
            f"schema {SCHEMA}: make the record anew, or read it with the release that made it"
        )
    return _record(whole, path.stem)


@dataclass(frozen=True)
class _Part:
    """An object of the JSON, and where it stands."""

    file: str
    place: str
    data: Any

    def get(self, key: str, wanted: str, *kinds: type) -> Any:
        """A value of one of some types."""
        if not isinstance(self.data, dict) or key not in self.data:
            raise self._wrong(key, "is missing", wanted)
        value = self.data[key]
        # True is an int to Python and none to JSON.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self._wrong(key, f"is {json.dumps(value)[:60]}", wanted)
        return value

    def text(self, key: str) -> str:
        value: str = self.get(key, "a text", str)
        return value

    def text_or_none(self, key: str) -> str | None:
        value: str | None = self.get(key, "a text or null", str, type(None))
        return value

    def status(self, key: str) -> str:
        value = self.text(key)
        if value not in STATUSES:
            raise self._wrong(key, f"is {value!r}", f"one of {', '.join(STATUSES)}")
        return value

    def number_or_none(self, key: str) -> float | None:
        value: float | None = self.get(key, "a number or null", int, float, type(None))
        return value

    def part(self, key: str) -> _Part:
        return _Part(self.file, f"{self.place}{key}.", self.get(key, "an object", dict))

    def parts(self, key: str) -> list[_Part]:
        return [
            _Part(self.file, f"{self.place}{key}[{index}].", each)
            for index, each in enumerate(self.get(key, "a list", list))
        ]

    def _wrong(self, key: str, found: str, wanted: str) -> ArgumentError:
        return ArgumentError(
            f"{self.file} is no record of the matrix: {self.place}{key} {found}; wanted {wanted}"
        )


def _record(whole: _Part, stem: str) -> Record:
    combination = whole.part("combination")
    tested = combination.get("tested", "true or false", bool)
    id_, label = combination.text("id"), combination.text("label")
    if id_ == HERE:
        id_, label = f"{HERE}-{stem}", f"{label} ({stem})"
    versions = combination.part("versions")
    capabilities = [_capability(each) for each in whole.parts("capabilities")]
    found = {each.id: each for each in capabilities}
    if len(found) < len(capabilities):
        ids = [each.id for each in capabilities]
        twice = next(each for each in ids if ids.count(each) > 1)
        raise ArgumentError(f"{whole.file} is no record of the matrix: it has {twice!r} twice")
    package = None
    if tested:
        package = whole.part("environment").part("cudnn_compat").text("version")
        if not capabilities:
            raise ArgumentError(
                f"{whole.file} says that its environment was tested and has no capability"
            )
    return Record(
        id=id_,
        label=label,
        asked={name: combination.text_or_none(name) for name in COMPONENTS},
        versions={name: versions.text_or_none(name) for name in COMPONENTS},
        gpu=combination.text_or_none("gpu"),
        tested=tested,
        reason=combination.text_or_none("reason"),
        created=_created(whole),
        package=package,
        capabilities=found,
    )


def _created(whole: _Part) -> datetime.datetime:
    text = whole.text("created")
    try:
        created = datetime.datetime.fromisoformat(text)
    except ValueError:
        created = None
    if created is None or created.tzinfo is None:
        raise ArgumentError(
            f"{whole.file} is no record of the matrix: created is {text!r}; wanted a date and time "
            "with its zone, as in '2026-11-30T11:30:00+00:00'"
        )
    return created.astimezone(datetime.UTC)


def _capability(part: _Part) -> Capability:
    counts = part.part("counts")
    return Capability(
        id=part.text("id"),
        api=part.text("api"),
        feature=part.text("feature"),
        engine=part.text_or_none("engine"),
        entry_points=tuple(map(str, part.get("entry_points", "a list", list))),
        status=part.status("status"),
        counts={key: counts.get(key, "a number of rows", int) for key in counts.data},
        error=part.number_or_none("error"),
        tolerance=part.number_or_none("tolerance"),
        reasons=tuple(
            Reason(each.status("status"), each.text("reason"), each.get("rows", "a number", int))
            for each in part.parts("reasons")
        ),
    )
