"""Kinds of arrays that are NumPy's, and yet not plain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest


class Mine(np.ndarray):
    """A subclass that multiplies as a matrix does."""

    def __mul__(self, other: Any) -> Any:
        return self @ other


def mapped(array: np.ndarray, folder: Path) -> np.ndarray:
    file = np.memmap(folder / f"{id(array)}", array.dtype, "w+", shape=array.shape)
    file[...] = array
    return file


Subclass = Callable[[np.ndarray, Path], Any]

AS: dict[str, Subclass] = {
    "np.matrix": lambda array, _: np.matrix(array),
    "np.memmap": mapped,
    "own": lambda array, _: array.view(Mine),
}


def each_subclass(test: Any) -> Any:
    """Run a test with ``subclass``, which makes such an array of a plain one, in a folder."""
    test = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")(test)
    return pytest.mark.parametrize("subclass", AS.values(), ids=AS)(test)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape)
