"""``cudnn-compat bench``: how fast it is here, against PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from cudnn_compat.cli.console import make_console
from cudnn_compat.cli.progress import progress

if TYPE_CHECKING:
    from cudnn_compat.bench.record import Record
    from cudnn_compat.bench.run import Settings

__all__ = ["bench"]

_PARTS = ("grid", "raw", "scaling", "first", "host")
"""Those of ``bench.run``, which is not loaded for ``--help``; a test compares them."""

_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


@click.command(short_help="How fast it is here, against PyTorch.")
@click.option(
    "--only",
    default="",
    metavar="SUBSTRING",
    help="Only workloads that have this in their names, as in 'gru' or '×64×64' (x will do for ×).",
)
@click.option("--quick", is_flag=True, help="Short rounds: a look, not a measurement.")
@click.option("--rounds", type=click.IntRange(1), metavar="N", help="Turns of every side.")
@click.option(
    "--engine",
    type=click.Choice(["cudnn", "numpy"]),
    help="What this package computes with. By default cudnn where it can be used, else numpy.",
)
@click.option(
    "--parts",
    metavar="LIST",
    help=f"Of {','.join(_PARTS)}; by default all, and grid,raw with --only.",
)
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Of each side on a CPU.")
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Begin nothing more after this time, and say what was left out.",
)
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Write the record to FILE.")
@click.option("--plot", type=_FILE, metavar="FILE", help="Draw it: FILE.png, .svg or .pdf.")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Measure nothing: show the record in FILE, which --json wrote.",
)
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
@click.pass_context
def bench(
    context: click.Context,
    /,
    json_file: Path | None,
    plot: Path | None,
    source: Path | None,
    markdown: bool,
    **chosen: Any,
) -> None:
    """Measure this package against PyTorch, on one grid of workloads.

    On a GPU it is PyTorch's modules and the library's own calls, on a CPU PyTorch's modules there;
    without PyTorch this package alone. The sides take turns; a time is the median of its rounds.

    \b
    grid      inference and training step of every workload
    raw       the library's own calls for them: each algorithm, plain and as a CUDA graph
    scaling   time against T, B, H and layers
    first     the first calls of new shapes
    host      what an old call of one step costs the host
    \b
    cudnn-compat bench --quick --only lstm
    cudnn-compat bench --json bench.json --plot bench.png
    cudnn-compat bench --from bench.json --plot bench.png

    The exit status is 1 when something could not be measured.
    """  # noqa: D301 (\b is a character, which keeps click from filling the lines)
    from cudnn_compat.bench import record as records

    for name, file in (("--json", json_file), ("--plot", plot)):
        if file is not None and not file.absolute().parent.is_dir():
            raise click.BadParameter(
                f"the folder {str(file.parent)!r} does not exist", context, param_hint=name
            )
    if plot is not None:
        from cudnn_compat.bench.plots import check_plots

        with _told():
            check_plots()
    if source is not None:
        given = [name for name, value in chosen.items() if value]
        if given:
            raise click.UsageError(
                f"--from measures nothing, so --{given[0]} means nothing", context
            )
        with _told():
            record = records.read(source)
    else:
        record = _measured(context, json_file, **chosen)
    with _told():  # first, whatever becomes of the one who reads what is printed
        if json_file is not None:
            records.write(record, json_file)
        if plot is not None:
            from cudnn_compat.bench.plots import draw

            draw(record, plot)
    _show(record, markdown)
    context.exit(1 if records.errors(record) else 0)


def _measured(context: click.Context, json_file: Path | None, **chosen: Any) -> Record:
    from cudnn_compat.bench import record as records
    from cudnn_compat.bench.run import measure
    from cudnn_compat.environment import collect

    facts = collect()
    settings = _settings(context, facts, **chosen)

    def save(record: Record) -> None:
        if json_file is not None:
            records.write(record, json_file)

    with _told(), progress("setting up") as advance:
        return measure(settings, facts, begun=advance, done=save)


def _settings(
    context: click.Context,
    facts: dict[str, Any],
    *,
    only: str,
    quick: bool,
    rounds: int | None,
    engine: str | None,
    parts: str | None,
    threads: int | None,
    budget: float | None,
) -> Settings:
    from cudnn_compat.bench.grid import grid_of, named
    from cudnn_compat.bench.run import Settings, pace_for

    engines = facts["engines"]
    if engine is None:
        engine = "cudnn" if engines["cudnn"]["available"] else "numpy"
    elif not engines[engine]["available"]:
        raise click.BadParameter(
            f"the engine {engine} cannot be used here: {engines[engine]['reason']}",
            context,
            param_hint="--engine",
        )
    wanted = tuple(parts.split(",")) if parts is not None else _PARTS[: 2 if only else None]
    for part in wanted:
        if part not in _PARTS:
            raise click.BadParameter(
                f"there is no part {part!r}; wanted some of {','.join(_PARTS)}",
                context,
                param_hint="--parts",
            )
    grid = grid_of(engine)
    workloads = named(only, grid)
    if not workloads:
        names = ", ".join(workload.name for workload in grid)
        raise click.BadParameter(
            f"no workload of the engine {engine} has {only!r} in its name: {names}",
            context,
            param_hint="--only",
        )
    return Settings(
        engine,
        pace_for(engine, quick=quick, rounds=rounds),
        wanted,
        workloads,
        threads or facts["platform"]["cpus"],
        budget,
        only,
    )


def _show(record: Record, markdown: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from cudnn_compat.bench import record as records
    from cudnn_compat.bench import table as shown

    console = make_console()
    console.print(Text(shown.heading(record)), soft_wrap=markdown)
    for table in shown.tables(record):
        if markdown:
            lines = ["", f"## {table.title}", "", *shown.markdown(table)]
            console.print(Text("\n".join(lines)), soft_wrap=True)
            continue
        made = Table(
            title=table.title,
            title_justify="left",
            title_style="bold",
            box=SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            show_edge=False,
        )
        wide = len(table.heads) > 6  # then its last columns are words that may be broken into lines
        for number, head in enumerate(table.heads):
            justify: Literal["left", "right"] = "right" if head.startswith(" ") else "left"
            made.add_column(head.strip(), justify=justify, no_wrap=number == 0 and wide)
        for row in table.rows:
            made.add_row(*map(Text, row))
        console.print(made)
    for note in dict.fromkeys([*shown.notes(record), *records.errors(record)]):
        console.print(Text(note), soft_wrap=True)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Errors that the user can do something about, without a traceback."""
    from cudnn_compat.errors import CompatError

    try:
        yield
    except (CompatError, OSError) as error:
        raise click.ClickException(str(error)) from error
