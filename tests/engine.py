"""The engines that tests run on: what computes, and where its arrays live."""

from __future__ import annotations

import dataclasses
import functools
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.arrays import numpy_dtype

__all__ = ["Engine", "each_engine"]


@dataclasses.dataclass(frozen=True)
class Engine:
    """An engine by name, and the module of its arrays."""

    name: str
    xp: ModuleType

    @property
    def on_host(self) -> bool:
        return self.name == "numpy"

    def put(self, array: Any) -> Any:
        """An array (or None) where the engine computes; itself where it is there."""
        return None if array is None else self.xp.asarray(array)

    def get(self, array: Any) -> Any:
        """A result (or None) as a NumPy array; of a ``Packed`` its data."""
        if isinstance(array, v2.Packed):
            array = array.data
        return array.get() if hasattr(array, "get") else array

    def shares(self, a: Any, b: Any) -> bool:
        """Whether arrays have memory in common; on the GPU: whether their bounds overlap."""
        if self.on_host:
            return bool(np.shares_memory(a, b))
        (low, high), (other_low, other_high) = _bounds(a), _bounds(b)
        return bool(low < other_high and other_low < high)

    def holds(self, dtype: str) -> bool:
        """Whether its arrays may have this dtype: CuPy has bfloat16 from version 14 on."""
        return _holds(self.xp, dtype)

    def needs(self, dtype: str) -> None:
        """Skip the test where its arrays cannot have this dtype."""
        if not self.holds(dtype):
            pytest.skip(f"{self.xp.__name__} {self.xp.__version__} has no {dtype} arrays")


def _bounds(array: Any) -> tuple[int, int]:
    """Where the memory of a CuPy array starts and ends."""
    low = high = int(array.data.ptr)
    if not array.size:
        return low, low
    for length, stride in zip(array.shape, array.strides, strict=True):
        low, high = low + min(0, (length - 1) * stride), high + max(0, (length - 1) * stride)
    return low, high + int(array.itemsize)


@functools.cache
def _holds(xp: ModuleType, dtype: str) -> bool:
    try:
        xp.asarray(np.zeros(1, numpy_dtype(dtype)))
    except Exception:  # which one is a matter of CuPy's version
        return False
    return True


each_engine = [
    pytest.param("numpy", id="numpy"),
    pytest.param("cudnn", id="cudnn", marks=pytest.mark.gpu),
]
"""Parameters of the fixture ``engine``."""
