"""The matrix as one page of HTML: ``page.html.j2`` filled in. Needs jinja2 (extra ``cli``).

What the template gets is ready to be shown: which cell has which note, what a note says, what
stands in the summary. jinja2 escapes every text, so that whatever an error message holds is text.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cudnn_compat.cudnn.symbols import read_manifest
from cudnn_compat.matrix.page import summary
from cudnn_compat.matrix.page.merge import Cell, Group, Line, Matrix
from cudnn_compat.matrix.page.records import MEANINGS, STATUSES, Reason

__all__ = ["render_html"]

FOLDER: Final = Path(__file__).parent

SHOWN_AT_ONCE: Final = 3
"""So many reasons are shown beside a cell; the note has all."""


@dataclass(frozen=True)
class Note:
    """Why cells are not, or not in all rows, ``works``. Cells for one reason share a note."""

    number: int
    reasons: tuple[Reason, ...]

    @property
    def first(self) -> tuple[Reason, ...]:
        """What is shown beside the cell."""
        return self.reasons[:SHOWN_AT_ONCE]

    @property
    def more(self) -> int:
        """How many reasons are not."""
        return len(self.reasons) - len(self.first)


class Notes:
    """The notes of a page, numbered as they are first needed."""

    def __init__(self) -> None:
        self._found: dict[tuple[tuple[str, str], ...], Note] = {}

    def __call__(self, cell: Cell) -> Note | None:
        """The note of a cell; None where everything works."""
        if not cell.reasons:
            return None
        key = tuple((each.status, each.text) for each in cell.reasons)
        return self._found.setdefault(key, Note(len(self._found) + 1, cell.reasons))

    def __iter__(self) -> Iterator[Note]:
        yield from self._found.values()


def render_html(matrix: Matrix) -> str:
    """The page."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    notes = Notes()
    return environment.get_template("page.html.j2").render(
        # The page's own, and nothing in it ends the element.
        style=Markup(style),
        style_hash=digest,
        matrix=matrix,
        records={record.id: record for record in matrix.records},
        numbers={record.id: place for place, record in enumerate(matrix.records, 1)},
        families=summary.families(matrix),
        versions=summary.versions(matrix),
        verdict=summary.verdict(matrix),
        notices=summary.notices(matrix),
        packages=sorted({record.package for record in matrix.records if record.package}),
        dates=summary.dates(matrix),
        spans=summary.symbol_spans(read_manifest()),
        answer=summary.answer,
        parts=summary.parts,
        counts=_counts,
        partly=_partly,
        worst=_worst,
        entry_points=_entry_points,
        kind=_kind,
        notes=notes,
        meanings=MEANINGS,
    )


def _kind(status: str) -> str:
    """A class of the style sheet."""
    return f"s{STATUSES.index(status)}"


def _counts(group: Group) -> list[tuple[str, int]]:
    """How many cells of the table have each status."""
    counts = Counter(line.cells[each].status for line in group.lines for each in group.environments)
    return [(status, counts[status]) for status in STATUSES if counts[status]]


def _partly(cell: Cell) -> str | None:
    """How many rows of a cell work, where some do and others do not."""
    rows, works = sum(cell.counts.values()), cell.counts.get("works", 0)
    return f"{works} of {rows} rows work" if 0 < works < rows else None


def _worst(line: Line) -> str | None:
    """The measured error of the newest record, and what is allowed."""
    error, allowed = line.capability.error, line.capability.tolerance
    if error is None or allowed is None:
        return None
    if not allowed:
        return "exact" if not error else f"error {error:.1e}, none is allowed"
    return f"error {error:.1e} of {allowed:.1e}"


def _entry_points(line: Line) -> list[str]:
    """The public names that its rows call, without what all of them begin with."""
    return [name.removeprefix("cudnn_compat.") for name in sorted(line.capability.entry_points)]
