"""Where the commands print."""

from __future__ import annotations

import io
import sys

from rich.console import Console

__all__ = ["make_console"]

WIDTH_OF_A_FILE = 120
"""Columns where the output is no terminal and has no width of its own."""


def make_console(*, stderr: bool = False) -> Console:
    """A console on stdout or stderr that never fails over a character it cannot encode."""
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=stderr, highlight=False, width=WIDTH_OF_A_FILE)
    return console
