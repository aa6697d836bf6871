"""The engines that the tests in this folder run on."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2


@dataclasses.dataclass(frozen=True)
class Engine:
    """An engine by name, and where its arrays live."""

    name: str
    xp: ModuleType

    def put(self, array: Any) -> Any:
        """An array (or None) where the engine computes."""
        return None if array is None else self.xp.asarray(array)

    def get(self, array: Any) -> Any:
        """A result (or None) as a NumPy array; of a ``Packed`` its data."""
        if isinstance(array, v2.Packed):
            array = array.data
        return array.get() if hasattr(array, "get") else array


# The cuDNN engine joins as a second parameter, marked gpu.
@pytest.fixture(scope="session", params=["numpy"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each test that takes it runs on every engine that this machine has."""
    return Engine(request.param, np)
