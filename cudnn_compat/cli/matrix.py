"""``cudnn-compat matrix``: what works here, measured."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cudnn_compat.cli.console import make_console
from cudnn_compat.errors import CompatError

if TYPE_CHECKING:
    from cudnn_compat.matrix.features import Row
    from cudnn_compat.matrix.run import Result

__all__ = ["matrix"]

FILE = click.Path(dir_okay=False, writable=True, path_type=Path)
KEYS = ("api", "feature", "cell", "dtype", "shape", "engine", "calls")


@click.command(short_help="Measure what works here: every old call, every feature, each engine.")
@click.option(
    "--json", "json_file", type=FILE, metavar="FILE", help="Write environment and rows to FILE."
)
@click.option(
    "--brief",
    is_flag=True,
    help="In the JSON, of the single rows keep only those that failed or were refused.",
)
@click.option(
    "--only",
    "--select",
    multiple=True,
    metavar="FILTER",
    help="Only some rows: KEY=PATTERN, as in 'api=legacy.*', 'cell=lstm', 'feature=rnn_*' or "
    f"'calls=*.rnn_forward' (keys: {', '.join(KEYS)}), or a part of their ids, as in "
    "'/lstm/float32/'. Given several times: those that fit all of them.",
)
@click.option("--failed", is_flag=True, help="Print only the rows that failed.")
@click.option(
    "--merge",
    nargs=1,
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="JSON",
    help="Run nothing; put the environments of these files on one page (with --html). More files "
    "may follow as arguments: --merge *.json.",
)
@click.option(
    "--html", "html_file", type=FILE, metavar="FILE", help="Write the page of --merge to FILE."
)
@click.argument("more", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_context
def matrix(
    context: click.Context,
    json_file: Path | None,
    brief: bool,
    only: tuple[str, ...],
    failed: bool,
    merge: tuple[Path, ...],
    html_file: Path | None,
    more: tuple[Path, ...],
) -> None:
    """Run the compatibility matrix, or put the results of several environments on one page.

    Every public name, old and new, and every feature, for each cell, dtype and shape, on each
    engine that can compute here, is compared with one slow float64 evaluation. The exit status is 1
    when a row failed.
    """
    _check_folders(context, {"--json": json_file, "--html": html_file})
    if merge or more or html_file is not None:
        _merge(context, merge, more, html_file, runs=bool(json_file or brief or only or failed))
        return
    from cudnn_compat.environment import collect
    from cudnn_compat.matrix.document import as_json
    from cudnn_compat.matrix.format import to_text
    from cudnn_compat.matrix.render import print_results
    from cudnn_compat.matrix.rows import all_rows
    from cudnn_compat.matrix.run import run_row, why_not_here

    facts = collect()
    missing = why_not_here(facts)
    rows = [row for row in all_rows() if all(_fits(row, each) for each in only)]
    if not rows:
        raise click.BadParameter(
            f"no row fits {' and '.join(map(repr, only))}; ids look like "
            f"'v2/forward/lstm/float32/5x3/numpy', keys are {', '.join(KEYS)}",
            context,
            param_hint="--only",
        )
    results: list[Result] = []
    with _progress(len(rows)) as advance:
        for row in rows:
            results.append(run_row(row, missing))
            advance()
    print_results(make_console(), results, facts, only_failed=failed)
    if json_file is not None:
        try:
            json_file.write_text(to_text(as_json(results, facts, brief=brief)), encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"the rows were not written: {error}") from error
    context.exit(1 if any(result.status == "failed" for result in results) else 0)


def _check_folders(context: click.Context, files: dict[str, Path | None]) -> None:
    """Before anything runs."""
    for option, file in files.items():
        if file is not None and not file.absolute().parent.is_dir():
            raise click.BadParameter(
                f"the folder {str(file.parent)!r} does not exist", context, param_hint=option
            )


def _fits(row: Row, wanted: str) -> bool:
    """Whether a row fits one filter."""
    key, equals, pattern = wanted.partition("=")
    if not equals or key not in KEYS:
        return wanted in row.id
    if key == "calls":
        return any(fnmatch.fnmatchcase(call, pattern) for call in row.feature.calls)
    shape = None if row.shape is None else row.shape.label
    values = {
        "api": row.feature.api,
        "feature": row.feature.name,
        "cell": row.cell,
        "dtype": row.dtype,
        "shape": shape,
        "engine": row.engine,
    }
    return fnmatch.fnmatchcase(values[key] or "-", pattern)


def _merge(
    context: click.Context,
    merge: tuple[Path, ...],
    more: tuple[Path, ...],
    html_file: Path | None,
    *,
    runs: bool,
) -> None:
    """One page of several files; nothing is run."""
    if not merge:
        raise click.UsageError("name the files to put on the page by --merge", context)
    if html_file is None:
        raise click.UsageError("say by --html where the page goes", context)
    if runs:
        raise click.UsageError(
            "--merge runs nothing, so --json, --brief, --only and --failed do not go with it",
            context,
        )
    from cudnn_compat.matrix.page import write_html

    try:
        write_html([*merge, *more], html_file)
    except CompatError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"the page was not written: {error}") from error
    click.echo(f"{len(merge) + len(more)} environments on {html_file}")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr where that is a terminal."""
    from rich.progress import Progress

    console = make_console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("rows", total=total)
        yield lambda: bar.advance(task)
