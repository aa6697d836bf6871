"""Rules for every test: what needs a GPU, and who may use old names."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
from hypothesis import settings

from cudnn_compat.environment import collect

TESTS = Path(__file__).parent

OLD_NAMES_ALLOWED = (TESTS / "legacy", TESTS / "downstream", TESTS.parent / "docs" / "guides")
"""Where old names are what is tested or told about; everywhere else their warning is an error."""

# No deadline: busy machines would miss it by chance. CI draws the same examples each time.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@functools.cache
def why_no_gpu() -> str | None:
    """Why tests marked ``gpu`` cannot run on this machine; None where they can."""
    cupy = collect()["cupy"]
    return None if cupy["available"] else f"needs a GPU and CuPy: {cupy['reason']}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    legacy_is_an_error = pytest.mark.filterwarnings("error::cudnn_compat.legacy.LegacyAPIWarning")
    for item in items:
        if not any(item.path.is_relative_to(folder) for folder in OLD_NAMES_ALLOWED):
            # First, because pytest lets later marks win: a test's own filter still does.
            item.add_marker(legacy_is_an_error, append=False)
        if item.get_closest_marker("gpu") and (reason := why_no_gpu()):
            item.add_marker(pytest.mark.skip(reason=reason))
