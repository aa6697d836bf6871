"""The Python that has Chainer 7.8.1: an environment of its own, which `make chainer` makes."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

VARIABLE = "CHAINER_PYTHON"


def chainer_python() -> str:
    """The interpreter; skips the test where there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    made = Path(sys.prefix) / "chainer" / "bin" / "python"
    if made.exists():
        return str(made)
    if importlib.util.find_spec("chainer") is not None:
        return sys.executable
    pytest.skip(f"needs Chainer 7.8.1: make chainer, or a Python that has it in {VARIABLE}")
