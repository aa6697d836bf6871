"""Pages of the matrix: records of many environments, joined and shown.

Read in this order:

``records``    one record: what the JSON says, checked
``merge``      records joined: groups, lines and cells, in whatever order the files came
``summary``    the short answers: which version of what works with what
``html``       the page, by ``page.html.j2`` and ``page.css``; needs jinja2 (extra ``cli``)
``markdown``   the same, shorter, for places that show no HTML; ``docs/matrix.md`` is made by it
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from cudnn_compat.errors import LibraryNotFound
from cudnn_compat.matrix.page.merge import Matrix, merge

__all__ = ["Matrix", "merge", "write_html", "write_markdown"]

FilePath: TypeAlias = str | os.PathLike[str]


def write_html(paths: Iterable[FilePath], out: FilePath) -> Matrix:
    """Make one page of records.

    The page needs no network and no JavaScript. The same records make the same bytes.

    Args:
        paths: files that ``cudnn-compat matrix --json`` wrote, in any order.
        out: the file to write.

    Returns:
        What the page shows.

    Raises:
        ArgumentError: a file is no record of the matrix or of another schema, or two are of one
            environment. Nothing is written.
        LibraryNotFound: jinja2 is not installed (extra ``cli``).
        OSError: the page cannot be written.
    """
    try:
        from cudnn_compat.matrix.page.html import render_html
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise LibraryNotFound(
            "the page is made with jinja2, which is not installed here: "
            "pip install 'cudnn-compat[cli]'"
        ) from error
    matrix = merge(map(Path, paths))
    Path(out).write_text(render_html(matrix), encoding="utf-8", newline="\n")
    return matrix


def write_markdown(paths: Iterable[FilePath], out: FilePath) -> Matrix:
    """Like :func:`write_html`, in Markdown: the summary, and the reason of every gap."""
    from cudnn_compat.matrix.page.markdown import render_markdown

    matrix = merge(map(Path, paths))
    Path(out).write_text(render_markdown(matrix), encoding="utf-8", newline="\n")
    return matrix
