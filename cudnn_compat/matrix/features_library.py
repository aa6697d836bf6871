"""The features of the C library itself, as far as they can be seen without a GPU."""

from __future__ import annotations

from typing import Any, Final

from cudnn_compat.cudnn.prototypes import PROTOTYPES
from cudnn_compat.matrix.features import LIBRARY, Feature
from cudnn_compat.matrix.shapes import Item, Shape
from cudnn_compat.spec import CELLS, DTYPES

__all__ = ["LIBRARY_CALLS"]


def _library(name: str, check: str, **rest: Any) -> Feature:
    shapes: tuple[Shape | None, ...] = rest.pop("shapes", (None,))
    kept: dict[str, Any] = {"cells": (None,), "dtypes": (None,), "engines": (LIBRARY,)}
    return Feature("cudnn", name, check, shapes, **(kept | rest))


LIBRARY_CALLS: Final[tuple[Feature, ...]] = (
    _library("loaded", "loaded"),
    _library(
        "symbols",
        "symbol",
        shapes=tuple(
            Item(name) for name in sorted({n for names in PROTOTYPES.values() for n in names})
        ),
    ),
    _library("tensor_descriptors", "tensors", dtypes=DTYPES),
    _library("RNN_descriptors", "networks", cells=CELLS, dtypes=DTYPES),
    _library("RNN_data_descriptors", "data", dtypes=DTYPES),
    _library("status_names", "status_names"),
    _library("refusals", "refusals"),
    _library("steps_of_one_call", "long_sequences"),
)
"""All of them, with what their rows are run with."""
