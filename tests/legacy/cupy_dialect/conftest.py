"""Old names are used on purpose here; only the tests of the warnings look at them."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    silent = pytest.mark.filterwarnings("ignore::cudnn_compat.legacy.LegacyAPIWarning")
    for item in items:
        if item.path.parent == HERE and item.path.name != "test_dialect_warnings.py":
            # First, so that a test's own filter still decides.
            item.add_marker(silent, append=False)
