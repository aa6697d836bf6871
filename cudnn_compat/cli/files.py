"""Files of Python code: finding them, showing how they change, writing them in one step."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path

import click

__all__ = ["echo_bytes", "find_sources", "print_diff", "write_over"]

SKIPPED = frozenset(("__pycache__", "node_modules", "site-packages"))
"""Folders that hold nobody's own code; so do hidden ones and virtual environments."""


def find_sources(paths: Iterable[Path]) -> Iterator[Path]:
    """Files as they are named, and the ``*.py`` below folders, in order; each once."""
    seen: set[Path] = set()
    for path in paths:
        for found in _below(path) if path.is_dir() else [path]:
            real = found.resolve()
            if real not in seen:
                seen.add(real)
                yield found


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_skipped(Path(place, name)))
        found = (Path(place, name) for name in sorted(files) if name.endswith(".py"))
        # A dangling link is told; a pipe would be waited for.
        yield from (path for path in found if path.is_file() or not path.exists())


def _is_skipped(folder: Path) -> bool:
    is_environment = (folder / "pyvenv.cfg").exists()
    return folder.name.startswith(".") or folder.name in SKIPPED or is_environment


def print_diff(path: str, before: bytes, after: bytes) -> None:
    """Print a unified diff, which ``patch -p1`` and ``git apply`` take.

    It is made of the files' own bytes: whatever their encoding, it fits them.
    """
    name = os.fsencode(Path(path).as_posix().removeprefix("./"))
    old, new = (BytesIO(each).readlines() for each in (before, after))
    lines = difflib.diff_bytes(difflib.unified_diff, old, new, b"a/" + name, b"b/" + name)
    for line in lines:
        ended = line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
        echo_bytes(ended)


def echo_bytes(text: bytes) -> None:
    """Print bytes as they are, or decoded on a stdout that takes text alone."""
    takes_bytes = sys.stdout is None or hasattr(sys.stdout, "buffer")
    click.echo(text if takes_bytes else text.decode("utf-8", "backslashreplace"), nl=False)


def write_over(path: Path, content: bytes) -> None:
    """Replace a file's content in one step: readers see the old or the new, never a part.

    The permissions stay, and so does a symbolic link.
    """
    target = path.resolve()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
