"""Rules for every test: what needs a GPU, and who may use old names."""

from __future__ import annotations

import functools
import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent

OLD_NAMES_ALLOWED = (TESTS / "legacy", TESTS / "downstream")
"""Where a legacy warning is what is being tested; everywhere else it is an error."""

# No deadline: busy machines would miss it by chance. CI draws the same examples each time.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@functools.cache
def why_no_gpu() -> str | None:
    """Why tests marked ``gpu`` cannot run on this machine; None where they can."""
    if importlib.util.find_spec("cupy") is None:
        return "needs a GPU: CuPy is not installed (extras cuda12, cuda13)"
    try:
        import cupy

        devices = cupy.cuda.runtime.getDeviceCount()
        # A driver that is too old, or no compiler, shows only when something is computed.
        works = devices > 0 and int((cupy.arange(3) + 1).sum()) == 6
    except Exception as error:  # whatever a half-installed CUDA raises is the reason itself
        return f"needs a GPU: CuPy cannot use one: {type(error).__name__}: {error}"
    return None if works else f"needs a GPU: CuPy sees {devices}, none computes"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    legacy_is_an_error = pytest.mark.filterwarnings("error::cudnn_compat.legacy.LegacyAPIWarning")
    for item in items:
        if not any(item.path.is_relative_to(folder) for folder in OLD_NAMES_ALLOWED):
            # First, because pytest lets later marks win: a test's own filter still does.
            item.add_marker(legacy_is_an_error, append=False)
        if item.get_closest_marker("gpu") and (reason := why_no_gpu()):
            item.add_marker(pytest.mark.skip(reason=reason))
