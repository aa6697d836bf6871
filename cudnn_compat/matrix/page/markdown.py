"""The matrix in Markdown, for places that show no HTML: the summary, and the reason of every gap.

What works everywhere is counted, not listed: the page in HTML has every cell.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

from cudnn_compat.cudnn.symbols import read_manifest
from cudnn_compat.matrix.page import summary
from cudnn_compat.matrix.page.merge import Group, Matrix
from cudnn_compat.matrix.page.records import MEANINGS
from cudnn_compat.matrix.page.summary import Answer

__all__ = ["render_markdown"]


def render_markdown(matrix: Matrix) -> str:
    """The page."""
    return "\n".join(_lines(matrix)).rstrip() + "\n"


def _lines(matrix: Matrix) -> Iterator[str]:
    tested = sum(record.tested for record in matrix.records)
    packages = sorted({record.package for record in matrix.records if record.package})
    measured = f"cudnn_compat {', '.join(packages)}, measured" if packages else "Recorded"
    verdict = summary.verdict(matrix)
    yield "# Which version of what works with what"
    yield ""
    yield (
        f"{_text(measured)} on {summary.dates(matrix)} in {tested} of {len(matrix.records)} "
        f"environments. **{verdict.text}** What was found, and nothing else:"
    )
    yield ""
    yield from _table(
        ["part", "versions"],
        (
            [part, "; ".join(f"{_text(each.name)}: {_said(each.answer)}" for each in members)]
            for part, members in summary.versions(matrix).items()
        ),
    )
    if verdict.reasons:
        yield from (f"- **failed**: {_text(text)}" for text, _ in verdict.reasons)
        yield ""
    yield "A version works if nothing failed in any environment that has it and was run."
    yield ""
    yield "## Which environments were run"
    yield ""
    families = summary.families(matrix)
    notices = summary.notices(matrix)
    yield from _table(
        ["", "environment", *(family.title for family in families), "made"],
        (
            [
                str(number),
                _text(", ".join(summary.parts(record))),
                *(_word(summary.answer(family.groups, record.id)) for family in families),
                "; ".join(
                    [record.created.date().isoformat(), *map(_text, notices.get(record.id, []))]
                ),
            ]
            for number, record in enumerate(matrix.records, 1)
        ),
    )
    yield from (f"- **{status}**: {meaning}" for status, meaning in MEANINGS.items())
    yield ""
    yield "## Every gap and its reason"
    yield ""
    numbers = {record.id: place for place, record in enumerate(matrix.records, 1)}
    for group in matrix.groups:
        yield from _group(group, numbers)
    yield from _functions()


def _said(answer: Answer) -> str:
    """An answer, with its reason where there is one."""
    (reason, _), *more = answer.reasons or [("", 0)]
    return _word(answer) + (f" ({_text(reason)})" if reason and not more else "")


def _word(answer: Answer) -> str:
    return f"**{answer.text}**" if answer.status == "failed" else answer.text


def _group(group: Group, numbers: dict[str, int]) -> Iterator[str]:
    yield f"### {_text(group.title)}"
    yield ""
    shown = [id_ for id_ in group.environments if id_ not in group.untested]
    full = sum(
        all(line.cells[id_].status == "works" for id_ in shown) for line in group.lines if shown
    )
    if shown:
        where_ = summary.in_numbers(numbers[id_] for id_ in shown)
        every = "every one of the environments" if len(shown) > 1 else "the environment"
        yield f"{full} of {len(group.lines)} capabilities work fully in {every} {where_}."
    gaps: dict[tuple[str, str], dict[str, list[int]]] = {}
    for line in group.lines:
        for id_ in shown:
            for reason in line.cells[id_].reasons:
                where = gaps.setdefault((reason.status, reason.text), {})
                where.setdefault(line.capability.feature, []).append(numbers[id_])
    untested: dict[str, list[int]] = {}
    for id_, reason_ in group.untested.items():
        untested.setdefault(reason_, []).append(numbers[id_])
    if untested:
        yield ""
        for reason_, places in untested.items():
            yield f"- **not tested here** in {summary.in_numbers(places)}: {_text(reason_)}"
    yield ""
    if gaps:
        summary_ = "The reason of its gaps" if len(gaps) == 1 else f"{len(gaps)} reasons of gaps"
        yield f"<details><summary>{summary_}</summary>"
        yield ""
        for (status, text), where in gaps.items():
            places = sorted({place for each in where.values() for place in each})
            features = ", ".join(map(_text, where))
            everywhere = len(places) == len(shown)
            inside = "" if everywhere else f" in {summary.in_numbers(places)}"
            yield f"- {features}: **{status}**{inside}: {_text(text)}"
        yield ""
        yield "</details>"
        yield ""


def _functions() -> Iterator[str]:
    yield "## Which cuDNN has which function of RNNs"
    yield ""
    yield "Read from the libraries themselves: the newest patch of each minor version."
    yield ""
    yield from _table(
        ["cuDNN", "functions"],
        (
            [words, " ".join(f"`{name}`" for name in names)]
            for words, names in summary.symbol_spans(read_manifest()).items()
        ),
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def _text(text: str) -> str:
    """Text that stays text, on one line, in a table too."""
    plain = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))", r"\\\1", plain)
