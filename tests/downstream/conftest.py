"""Makes the frozen programs importable the way they import each other: from their own folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "flux_style"))


@pytest.fixture
def environment() -> dict[str, str]:
    """For programs started by a test: this package importable, warnings as Python has them."""
    settings = ("PYTHONWARNINGS", "CUDNN_COMPAT_DEPRECATIONS")
    kept = {name: value for name, value in os.environ.items() if name not in settings}
    paths = [str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # Products this small gain nothing from threads, and lose much where other work has the cores.
    kept["OPENBLAS_NUM_THREADS"] = "1"
    return kept
