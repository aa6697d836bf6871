"""What a program called, and what replaces it: as text and as JSON."""

from __future__ import annotations

import dataclasses
import linecache
import os
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from cudnn_compat._version import __version__
from cudnn_compat.cli.console import make_console
from cudnn_compat.legacy.table import TABLE, LegacyName

__all__ = ["OldCalls", "old_calls", "print_report", "report_as_json"]

MOST_LINES = 12
"""Lines of the program that the text lists for one old name; the JSON has all of them."""


@dataclasses.dataclass(frozen=True)
class OldCalls:
    """The calls of one old name.

    Attributes:
        row: its row in the table.
        sites: (file, line, calls), most calls first.
    """

    row: LegacyName
    sites: tuple[tuple[str, int, int], ...]

    @property
    def calls(self) -> int:
        """How often it was called."""
        return sum(count for _, _, count in self.sites)


def old_calls(calls: Mapping[tuple[str, str, int], int]) -> list[OldCalls]:
    """Calls by (code, file, line), gathered by old name: the one called most comes first."""
    sites: dict[str, list[tuple[str, int, int]]] = {}
    for (code, file, line), count in calls.items():
        sites.setdefault(code, []).append((file, line, count))
    found = [
        OldCalls(row, tuple(sorted(sites[row.code], key=lambda site: (-site[2], site))))
        for row in TABLE
        if row.code in sites
    ]
    return sorted(found, key=lambda each: -each.calls)


def report_as_json(
    found: Sequence[OldCalls], program: str, arguments: Sequence[str], status: int
) -> dict[str, Any]:
    """The content of the file that ``--report`` writes. The keys are stable."""
    return {
        "cudnn_compat": __version__,
        "program": program,
        "arguments": list(arguments),
        "status": status,
        "total": sum(each.calls for each in found),
        "calls": [
            {
                "code": each.row.code,
                "old": each.row.old,
                "new": each.row.new,
                "summary": each.row.summary,
                "since": each.row.since,
                "removal": each.row.removal,
                "count": each.calls,
                "sites": [
                    {"file": file, "line": line, "count": count} for file, line, count in each.sites
                ],
            }
            for each in found
        ],
    }


def print_report(found: Sequence[OldCalls], program: str) -> None:
    """Print on stderr what was called, from where, and what replaces it."""
    console = make_console(stderr=True)
    console.print()
    if not found:
        _line(console, f"cudnn-compat: {program} made no old calls")
        return
    total = sum(each.calls for each in found)
    _line(
        console,
        f"cudnn-compat: {program} made {_many(total, 'old call')} of "
        f"{_many(len(found), 'old name')}",
        style="bold",
    )
    for each in found:
        console.print()
        _line(
            console,
            (each.row.code, "bold yellow"),
            f"  {each.row.old}  {_many(each.calls, 'call')}",
        )
        _line(console, "       use ", (each.row.new, "green"), f": {each.row.summary}")
        for file, line, count in each.sites[:MOST_LINES]:
            source = linecache.getline(file, line).strip()
            _line(
                console,
                f"{count:>11,}  ",
                (f"{_short(file)}:{line}", "cyan"),
                (f"  {source}", "dim"),
            )
        if len(each.sites) > MOST_LINES:
            rest = each.sites[MOST_LINES:]
            count = sum(site[2] for site in rest)
            _line(console, f"{count:>11,}  from {_many(len(rest), 'more line')}")
    console.print()
    soonest = min(each.row.removal for each in found)
    codes = " ".join(each.row.code for each in found)
    _line(console, f"All of this works until {soonest}. Before and after, side by side:")
    _line(console, f"  cudnn-compat explain {codes}")


def _line(console: Console, *parts: str | tuple[str, str], style: str = "") -> None:
    """One line that is never broken, so that a path in it can be clicked and searched for."""
    console.print(Text.assemble(*parts, style=style), soft_wrap=True)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _short(file: str) -> str:
    """Relative to the current folder where the file is below it."""
    try:
        relative = os.path.relpath(file)
    except (ValueError, OSError):  # another drive; a folder that is gone
        return file
    return file if relative.startswith(os.pardir) or not os.path.exists(file) else relative
