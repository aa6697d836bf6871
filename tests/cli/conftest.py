"""Programs for the command to run, and ways to run the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

Run = Callable[..., subprocess.CompletedProcess[str]]

LEGACY_PROGRAM = """\
import sys
import numpy as np
from cudnn_compat.legacy import CUDNN_GRU, RNNDesc, forward, setweights

desc = RNNDesc(CUDNN_GRU, 3, 4)
ones = np.ones((12, 4), "float32")
setweights(desc, ones[:, :3], ones, ones[:, 0])
h = np.zeros((4, 2), "float32")
x = np.ones((3, 2), "float32")
for _ in range(5):
    y, h = forward(desc, x, h)
y, h = forward(desc, x, h)
print(sys.argv[1:], y.shape)
"""
"""Old calls: RNNDesc once in line 5, setweights once in line 7, forward in lines 11 and 12."""


@pytest.fixture
def environment() -> dict[str, str]:
    """For processes: this package importable, warnings and encodings as Python has them."""
    settings = ("PYTHONWARNINGS", "CUDNN_COMPAT_DEPRECATIONS", "PYTHONIOENCODING", "COLUMNS")
    kept = {name: value for name, value in os.environ.items() if name not in settings}
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.fixture
def python(environment: dict[str, str], tmp_path: Path) -> Run:
    """Runs Python in ``tmp_path``: ``python("file.py", "argument", VARIABLE="value")``."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    return run


@pytest.fixture
def command(python: Run) -> Run:
    """Runs ``python -m cudnn_compat`` in ``tmp_path``."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return python("-m", "cudnn_compat", *arguments, **variables)

    return run


@pytest.fixture
def legacy_program(tmp_path: Path) -> Path:
    """A small program that uses the old API."""
    path = tmp_path / "old.py"
    path.write_text(LEGACY_PROGRAM, encoding="utf-8")
    return path
