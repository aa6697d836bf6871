"""Records, the pages made of them, and a browser to look at them with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cudnn_compat.matrix.page import write_html
from tests.matrix_page.browser import Browser, start
from tests.matrix_page.made import Write, records


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write(record, "name")`` writes a file of JSON."""

    def write_(data: Any, name: str | None = None) -> Path:
        stem = name or data["combination"]["id"]
        path = tmp_path / f"{stem}.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        return path

    return write_


@pytest.fixture(scope="session")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of :func:`records`."""
    folder = tmp_path_factory.mktemp("records")
    for made in records():
        path = folder / f"{made['combination']['id']}.json"
        path.write_text(json.dumps(made), encoding="utf-8")
    return sorted(folder.glob("*.json"))


@pytest.fixture(scope="session")
def page(paths: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of them."""
    out = tmp_path_factory.mktemp("page") / "matrix.html"
    write_html(paths, out)
    return out


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all tests; a page is opened anew by each."""
    started = start()
    yield started
    started.close()
