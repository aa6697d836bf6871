"""What the matrix is made of: every public name, old and new, and every feature, as data.

A feature names a small function in one of the modules ``checks_…`` and gives it options; a row is
one combination of feature, cell, dtype, shape and engine. To add a feature, add an entry to one of
the modules ``features_…``, and a function to the checks if none of them compares what has to be
compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cudnn_compat.matrix.features import ENGINES, Feature, Row, rows_of
from cudnn_compat.matrix.features_addresses import ADDRESSES
from cudnn_compat.matrix.features_arrays import ARRAYS
from cudnn_compat.matrix.features_library import LIBRARY_CALLS
from cudnn_compat.matrix.features_names import NAMES
from cudnn_compat.matrix.features_rnndesc import RNNDESC
from cudnn_compat.matrix.features_v2 import V2

__all__ = ["ENGINES", "FEATURES", "Feature", "Row", "all_rows"]

FEATURES: Final[tuple[Feature, ...]] = (
    *V2,
    *RNNDESC,
    *ARRAYS,
    *ADDRESSES,
    *NAMES,
    *LIBRARY_CALLS,
)
"""All features, v2 first."""


def all_rows(
    engines: Iterable[str | None] = ENGINES, features: Iterable[Feature] | None = None
) -> Iterator[Row]:
    """All rows of the engines named, feature by feature.

    Args:
        engines: ``"numpy"``, ``"cudnn"``, ``"library"``, and None: the rows without an engine.
        features: None is :data:`FEATURES`.
    """
    for engine in engines:
        for feature in FEATURES if features is None else features:
            yield from rows_of(feature, engine)
