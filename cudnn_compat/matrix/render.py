"""The matrix as text. Needs rich (extra ``cli``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cudnn_compat.matrix.features import LIBRARY
from cudnn_compat.matrix.format import STATUSES, Status
from cudnn_compat.matrix.run import Result, why_not_here
from cudnn_compat.spec import DTYPES

__all__ = ["print_results"]

STYLES: Final[dict[Status, str]] = {
    "works": "green",
    "works differently": "cyan",
    "refused": "yellow",
    "not offered": "yellow",
    "not tested here": "dim",
    "failed": "bold red",
}

PLACES: Final = {None: "", LIBRARY: " (the C library)"}
"""How a heading names what is no engine."""

Groups = list[tuple[tuple[Any, ...], list[Result]]]


def print_results(
    console: Console,
    results: Sequence[Result],
    environment: dict[str, Any],
    *,
    only_failed: bool = False,
) -> None:
    """Print errors for each API and engine, the engines side by side, what failed, and a summary.

    Args:
        console: where to print.
        results: of any rows.
        environment: facts about the machine; its engines are the columns of the last table, and
            those that were not run say why.
        only_failed: leave out the tables.
    """
    if not only_failed:
        tested = [result for result in results if result.status != "not tested here"]
        for (engine, api), group in _groups(tested, "engine", "api"):
            place = PLACES.get(engine, f" on the {engine} engine")
            heading = f"{api}{place}: largest absolute errors"
            console.print(Text(heading, "bold"), soft_wrap=True)
            console.print(_by_feature(group))
        _print_reasons(console, results, environment)
        computed = [result for result in results if result.row.engine in environment["engines"]]
        if computed and len(environment["engines"]) > 1:
            console.print(Text("each engine", "bold"))
            console.print(_side_by_side(computed, environment["engines"]))
    failed = [result for result in results if result.status == "failed"]
    if failed:
        console.print(_failed(failed))
    for name, engine_facts in environment["engines"].items():
        if not engine_facts["available"]:
            console.print(f"engine {name} was not run: {engine_facts['reason']}", markup=False)
    if reason := why_not_here(environment).get(LIBRARY):
        console.print(f"the C library was not looked at: {reason}", markup=False)
    console.print(_summary(results))


def _side_by_side(results: Sequence[Result], engines: Iterable[str]) -> Table:
    """One line for each feature, one column for each engine, also for those that were not run."""
    table = Table()
    table.add_column("api")
    table.add_column("feature", overflow="fold")
    names = list(engines)
    for name in names:
        table.add_column(name)
    for (api, feature), group in _groups(results, "api", "feature"):
        of_engines = ([r for r in group if r.row.engine == name] for name in names)
        table.add_row(api, feature, *(_statuses(each) or Text("not run") for each in of_engines))
    return table


def _groups(results: Iterable[Result], *keys: str) -> Groups:
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        row = result.row
        names = {"engine": row.engine, "api": row.feature.api, "feature": row.feature.name}
        groups.setdefault(tuple(names[key] for key in keys), []).append(result)
    return list(groups.items())


def _by_feature(results: Sequence[Result]) -> Table:
    """One line for each feature: the largest errors, and how near they came to their tolerance."""
    table = Table()
    dtypes = [dtype for dtype in DTYPES if any(result.row.dtype == dtype for result in results)]
    table.add_column("feature", overflow="fold")
    table.add_column("rows", justify="right")
    for dtype in dtypes:
        table.add_column(f"{dtype}\n{_usual_tolerance(results, dtype)}", justify="right")
    table.add_column("worst, of\nits tolerance", justify="right")
    table.add_column("status")
    for (feature,), group in _groups(results, "feature"):
        table.add_row(
            feature,
            str(len(group)),
            *(_largest([each for each in group if each.row.dtype == dtype]) for dtype in dtypes),
            _share(max(group, key=lambda result: result.severity)),
            _statuses(group),
        )
    return table


def _usual_tolerance(results: Iterable[Result], dtype: str) -> str:
    """The tolerance that most rows of a dtype have; those of a few features differ."""
    allowed = Counter(
        result.tolerance for result in results if result.row.dtype == dtype and result.tolerance
    )
    return f"<= {_number(allowed.most_common(1)[0][0])}" if allowed else ""


def _largest(results: Sequence[Result]) -> Text:
    """The error of the row that came nearest to its tolerance."""
    if not results:
        return Text("")
    worst = max(results, key=lambda result: result.severity)
    return Text(_number(worst.error), STYLES["failed"] if worst.status == "failed" else "")


def _share(result: Result) -> str:
    if result.error is None:
        return ""
    if not result.tolerance:
        return "exact" if result.error == 0 else "not exact"
    return f"{result.severity:.1%}" if result.severity < 10 else "> 1000%"


def _statuses(results: Sequence[Result]) -> Text:
    counts: Counter[str] = Counter(result.status for result in results)
    return Text(", ").join(
        Text(status if counts[status] == len(results) else f"{counts[status]} {status}", style)
        for status, style in STYLES.items()
        if counts[status]
    )


def _failed(failed: Iterable[Result]) -> Table:
    table = Table(title="Failed", title_justify="left")
    table.add_column("row", overflow="fold")
    table.add_column("error", justify="right")
    table.add_column("tolerance", justify="right")
    table.add_column("reason", overflow="fold")
    for result in failed:
        error, allowed = _number(result.error), _number(result.tolerance)
        table.add_row(result.row.id, error, allowed, Text(result.reason or ""))
    return table


def _print_reasons(
    console: Console, results: Iterable[Result], environment: dict[str, Any]
) -> None:
    """Why something does not simply work: a line for each feature and status.

    Engines that are not here are told once, at the end.
    """
    absent = why_not_here(environment)
    told = [
        result
        for result in results
        if result.status not in ("works", "failed") and result.row.engine not in absent
    ]
    groups: dict[tuple[str, str, Status, str | None], list[str]] = {}
    for result in told:
        row = result.row
        key = (row.feature.api, row.feature.name, result.status, row.engine)
        groups.setdefault(key, []).append(result.reason or "")
    for (api, feature, status, engine), reasons in groups.items():
        rows = "1 row" if len(reasons) == 1 else f"{len(reasons)} rows"
        place = f" on {engine}" if engine else ""
        line = f"{api}: {feature} {status}{place} ({rows}): {reasons[0]}"
        if others := len(set(reasons)) - 1:
            line += f" (and {others} more like it)"
        console.print(line, style=STYLES[status], markup=False)


def _summary(results: Sequence[Result]) -> Text:
    counts = Counter(result.status for result in results)
    parts = (
        Text(f"{counts[status]} {status}", STYLES[status] if counts[status] else "")
        for status in STATUSES
    )
    return Text(f"{len(results)} rows: ") + Text(", ").join(parts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}" if value else "0"
