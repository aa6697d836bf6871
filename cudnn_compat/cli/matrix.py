"""``cudnn-compat matrix``: what works here, measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cudnn_compat.cli.console import make_console

if TYPE_CHECKING:
    from cudnn_compat.matrix.run import Result

__all__ = ["matrix"]


@click.command(short_help="Measure what works here: every old call, every feature, each engine.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write environment and rows to FILE.",
)
@click.option(
    "--select",
    multiple=True,
    metavar="SUBSTRING",
    help="Only rows whose id contains this, as in 'legacy/' or '/lstm/float32/'. "
    "Given several times: that contain all of them.",
)
@click.option("--failed", is_flag=True, help="Print only the rows that failed.")
@click.pass_context
def matrix(
    context: click.Context, json_file: Path | None, select: tuple[str, ...], failed: bool
) -> None:
    """Run the compatibility matrix.

    Every legacy call and every v2 feature, for each cell, dtype and shape, on each engine that can
    compute here, is compared with one slow float64 evaluation. The exit status is 1 when a row
    failed.
    """
    from cudnn_compat.environment import collect
    from cudnn_compat.matrix.render import print_results
    from cudnn_compat.matrix.rows import all_rows
    from cudnn_compat.matrix.run import as_json, run_row

    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise click.BadParameter(
            f"the folder {str(json_file.parent)!r} does not exist", context, param_hint="--json"
        )
    facts = collect()
    engines = [name for name, fact in facts["engines"].items() if fact["available"]]
    rows = [row for row in all_rows(engines) if all(part in row.id for part in select)]
    if not rows:
        raise click.BadParameter(
            f"no row has an id that contains {' and '.join(map(repr, select))}; "
            "ids look like 'v2/forward/lstm/float32/5x3/numpy'",
            context,
            param_hint="--select",
        )
    results: list[Result] = []
    with _progress(len(rows)) as advance:
        for row in rows:
            results.append(run_row(row))
            advance()
    print_results(make_console(), results, facts, only_failed=failed)
    if json_file is not None:
        try:
            json_file.write_text(
                json.dumps(as_json(results, facts), indent=1, allow_nan=False) + "\n"
            )
        except OSError as error:
            raise click.ClickException(f"the rows were not written: {error}") from error
    context.exit(1 if any(result.status == "failed" for result in results) else 0)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr where that is a terminal."""
    from rich.progress import Progress

    console = make_console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("rows", total=total)
        yield lambda: bar.advance(task)
