"""A bar that says how far a command is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cudnn_compat.cli.console import make_console

__all__ = ["progress"]

Advance = Callable[[str, int, int], None]
"""Takes what is done now, how many such things are done, and how many there are."""


@contextmanager
def progress(what: str) -> Iterator[Advance]:
    """A bar on stderr where that is a terminal; ``what`` stands before it at the beginning."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = make_console(stderr=True)
    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None)

        def advance(description: str, done: int, total: int) -> None:
            bar.update(task, description=description, completed=done, total=total)

        yield advance
