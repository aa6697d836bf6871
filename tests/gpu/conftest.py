"""The tests in this folder run on CuPy arrays; each is marked ``gpu``."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


@pytest.fixture
def cupy() -> Any:
    """CuPy, of which these tests can be collected without it."""
    return importlib.import_module("cupy")
