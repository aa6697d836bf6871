"""The rewriter needs libcst; what runs moved programs must find no old API."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WITHOUT_LEGACY = """\
import runpy, sys
sys.modules["cudnn_compat.legacy"] = None  # importing it fails
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""

RunPython = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def python() -> RunPython:
    """Runs ``python …`` in a folder, with this package importable and Python's own warnings."""
    settings = ("PYTHONWARNINGS", "CUDNN_COMPAT_DEPRECATIONS", "PYTHONIOENCODING", "COLUMNS")
    environment = {name: value for name, value in os.environ.items() if name not in settings}
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    environment["OPENBLAS_NUM_THREADS"] = "1"

    def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    return run
