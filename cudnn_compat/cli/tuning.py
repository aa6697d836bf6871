"""``cudnn-compat tuning``: what ``algo="auto"`` has learnt, and where it is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from cudnn_compat.cli.console import make_console
from cudnn_compat.engines.tuning import (
    VARIABLE,
    clear_tuning,
    merge_tuning,
    read_tuning,
    tuning_file,
    way_name,
)

__all__ = ["tuning"]


@click.command(short_help='What algo="auto" has learnt, and where it is kept.')
@click.option("--json", "as_json", is_flag=True, help="Print what is known as JSON.")
@click.option("--clear", is_flag=True, help="Delete the file.")
@click.option(
    "--add",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take over what FILE, from another machine with the same GPU and cuDNN, knows.",
    metavar="FILE",
)
def tuning(as_json: bool, clear: bool, add: Path | None) -> None:
    """Show what algo="auto" has learnt about speed on GPUs, and where it is kept.

    The environment variable CUDNN_COMPAT_TUNING names another file, or says "off": then nothing is
    measured, read or written, and rules decide.
    """
    path = tuning_file()
    if path is None:
        if clear or add:
            raise click.UsageError(f"{VARIABLE} says off, so there is no file")
        click.echo(json.dumps({"file": None, "best": {}}) if as_json else f"off, by {VARIABLE}")
        return
    if clear:
        try:
            clear_tuning()
        except OSError as error:
            raise click.UsageError(f"{path} cannot be deleted: {error.strerror}") from error
    if add is not None and not merge_tuning(add):
        raise click.UsageError(f"{add} holds nothing that cudnn-compat has learnt")
    known = read_tuning()
    if as_json:
        click.echo(json.dumps({"file": str(path), "best": known}, indent=2, ensure_ascii=False))
        return
    console = make_console()
    where_it_is = f"{path}{'' if path.exists() else ' (not there)'}"
    console.print(where_it_is, soft_wrap=True, markup=False)
    for where, shapes in known.items():
        table = Table(title=escape(where), title_justify="left", box=None, pad_edge=False)
        table.add_column("T×B×I×H", overflow="fold")
        table.add_column("best")
        table.add_column("µs", overflow="fold")
        for shape, entry in shapes.items():
            best = way_name(entry["algo"], entry["graph"])
            table.add_row(*map(escape, (shape, best, _times(entry))))
        console.print(table)


def _times(entry: dict[str, Any]) -> str:
    times = entry.get("us")
    if not isinstance(times, dict):
        return ""
    return ", ".join(
        f"{name} {time:g}" if isinstance(time, int | float) else f"{name} ?"
        for name, time in times.items()
    )
