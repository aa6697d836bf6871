"""Notebooks are not read, and that is said: nothing of them would be changed in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("libcst", reason="needs libcst (extra migrate)")

from tests.migrate.conftest import RunPython

PROGRAM = "from cudnn_compat.legacy import RNNDesc\ndesc = RNNDesc(2, 3, 4)\n"


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    path = tmp_path / "nb.ipynb"
    cell = {"cell_type": "code", "source": PROGRAM.splitlines(keepends=True)}
    path.write_text(json.dumps({"cells": [cell], "nbformat": 4}), encoding="utf-8")
    return path


@pytest.mark.parametrize("option", ["--diff", "--check", "--write"])
def test_a_notebook_is_said_not_to_be_read(
    option: str, notebook: Path, python: RunPython, tmp_path: Path
) -> None:
    before = notebook.read_bytes()
    done = python("-m", "cudnn_compat", "migrate", "nb.ipynb", option, cwd=tmp_path)
    assert done.returncode == 3
    assert "nb.ipynb: not read: notebooks are not moved; jupyter nbconvert" in done.stderr
    assert "0 files read, 0 " in done.stderr
    assert done.stdout == ""
    assert notebook.read_bytes() == before


@pytest.mark.usefixtures("notebook")
def test_a_program_beside_a_notebook_is_moved(python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(PROGRAM, encoding="utf-8")
    done = python("-m", "cudnn_compat", "migrate", "nb.ipynb", "old.py", "--write", cwd=tmp_path)
    assert done.returncode == 3
    assert "1 files read, 1 changed" in done.stderr
    assert "Network(" in (tmp_path / "old.py").read_text(encoding="utf-8")
