"""Rules for every test: the engines it runs on, what needs a GPU, and who may use old names."""

from __future__ import annotations

import functools
import importlib
import os
from pathlib import Path

import pytest
from hypothesis import settings

from cudnn_compat.environment import collect
from tests.engine import Engine, each_engine

TESTS = Path(__file__).parent

# What is measured here is for nobody's file; tests of measuring name one of their own.
os.environ["CUDNN_COMPAT_TUNING"] = "off"

OLD_NAMES_ALLOWED = (TESTS / "legacy", TESTS / "downstream", TESTS.parent / "docs" / "guides")
"""Where old names are what is tested or told about; everywhere else their warning is an error."""

# No deadline: busy machines would miss it by chance. CI draws the same examples each time.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="session", params=each_engine)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each test that takes it runs on every engine that this machine has."""
    module = "cupy" if request.param == "cudnn" else "numpy"
    return Engine(request.param, importlib.import_module(module))


@functools.cache
def why_no_gpu() -> str | None:
    """Why tests marked ``gpu`` cannot run on this machine; None where they can."""
    facts = collect()
    if not facts["cupy"]["available"]:
        return f"needs a GPU and CuPy: {facts['cupy']['reason']}"
    # Whether the library is there: that the engine works is what the tests are about.
    if not facts["cudnn"]["available"]:
        return f"needs cuDNN: {facts['cudnn']['reason']}"
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Here, and not by a mark, so that thousands of tests are one line of pytest's summary.
    if item.get_closest_marker("gpu") and (reason := why_no_gpu()):
        pytest.skip(reason)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    legacy_is_an_error = pytest.mark.filterwarnings("error::cudnn_compat.legacy.LegacyAPIWarning")
    for item in items:
        if not any(item.path.is_relative_to(folder) for folder in OLD_NAMES_ALLOWED):
            # First, because pytest lets later marks win: a test's own filter still does.
            item.add_marker(legacy_is_an_error, append=False)
