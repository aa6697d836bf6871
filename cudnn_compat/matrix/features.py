"""What a line of the matrix and one of its rows are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cudnn_compat.matrix.shapes import Shape
from cudnn_compat.spec import CELLS, DTYPES

__all__ = ["ENGINES", "LIBRARY", "OLD_DTYPES", "Engines", "Feature", "Row", "rows_of"]

LIBRARY: Final = "library"
"""The "engine" of rows about the C library itself, which need no GPU."""

Engines = tuple[str | None, ...]
"""``"numpy"``, ``"cudnn"``, ``"library"``; None where none takes part."""

ENGINES: Final[Engines] = ("numpy", "cudnn", LIBRARY, None)
"""In the order in which their rows stand."""

OLD_DTYPES: Final = ("float16", "float32", "float64")
"""What the old library had."""


@dataclasses.dataclass(frozen=True)
class Feature:
    """One line of the matrix.

    Attributes:
        api: ``"v2"``, ``"legacy"``, ``"legacy.cupy"``, ``"legacy.cupy.cudnn"``,
            ``"legacy.cupy.libcudnn"``, or ``"cudnn"``: the C library.
        name: of the feature; for an old call, its name.
        check: the function that runs it, in one of the modules ``checks_…``.
        shapes, cells, dtypes: what it is run with; None where there is no such thing.
        spec: options of the :class:`~cudnn_compat.spec.RNNSpec`.
        options: of the function.
        calls: qualified names of what is public and called by its rows.
        engines: on which its rows run.
        differs: what is not as it was, or not as elsewhere, although it works; in words.
        differs_on: the engines where that is so.
    """

    api: str
    name: str
    check: str
    shapes: tuple[Shape | None, ...]
    cells: tuple[str | None, ...] = CELLS
    dtypes: tuple[str | None, ...] = DTYPES
    spec: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    calls: tuple[str, ...] = ()
    engines: Engines = ("numpy", "cudnn")
    differs: str | None = None
    differs_on: Engines = ENGINES


@dataclasses.dataclass(frozen=True)
class Row:
    """One thing to be measured. Its :attr:`id` is stable."""

    feature: Feature
    cell: str | None
    dtype: str | None
    shape: Shape | None
    engine: str | None

    @property
    def id(self) -> str:
        """``"v2/forward/lstm/float32/5x3/numpy"``; ``-`` where there is no such thing."""
        feature, shape = self.feature, None if self.shape is None else self.shape.label
        parts = (feature.api, feature.name, self.cell, self.dtype, shape, self.engine)
        return "/".join(part or "-" for part in parts)

    @property
    def differs(self) -> str | None:
        """In words, what is not as it was or not as elsewhere."""
        return self.feature.differs if self.engine in self.feature.differs_on else None


def rows_of(feature: Feature, engine: str | None) -> Iterator[Row]:
    """The rows of a feature on an engine; none where it does not run there."""
    if engine in feature.engines:
        # dtypes innermost: they share one evaluation of the reference.
        for cell in feature.cells:
            for shape in feature.shapes:
                for dtype in feature.dtypes:
                    yield Row(feature, cell, dtype, shape, engine)
