"""What a check of the matrix works with: one row's network and arrays, and comparisons."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from cudnn_compat.arrays import Array, is_cupy, numpy_dtype
from cudnn_compat.errors import UnsupportedError
from cudnn_compat.matrix.features import Row
from cudnn_compat.matrix.layouts import join_rows
from cudnn_compat.matrix.problems import Problem, problem
from cudnn_compat.matrix.shapes import HIDDEN, INPUT, SequenceShape
from cudnn_compat.matrix.tolerances import tolerance
from cudnn_compat.spec import RNNSpec

__all__ = ["Case", "Comparison", "Found", "NotOffered", "NotTestedHere", "same", "to_host"]


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """One thing that was computed, and what it should be.

    Attributes:
        name: what it is, as a reader of the matrix knows it.
        got: an array of any library, a number, or None.
        wanted: the same, exact.
        what: ``"output"`` or ``"gradient"``: the kind of tolerance; ``"exact"``: none.
        allowed: a tolerance of its own, for what is not rounding (a frequency).
        words: what is wrong where it differs, if a number does not tell it.
    """

    name: str
    got: Any
    wanted: Any
    what: str = "output"
    allowed: float | None = None
    words: str | None = None

    def error(self) -> tuple[float, str | None]:
        """The largest absolute difference, and what is wrong beside the values.

        The difference is NaN where the two cannot be compared.
        """
        if self.got is None or self.wanted is None:
            same = self.got is self.wanted
            return (0.0, None) if same else (np.nan, f"{self.name} is {self.got}")
        got, wanted = to_host(self.got), np.asarray(self.wanted, dtype=np.float64)
        if got.shape != wanted.shape:
            return np.nan, f"{self.name} has shape {got.shape}; wanted {wanted.shape}"
        if not got.size:
            return 0.0, None
        difference = float(np.abs(got - wanted).max())
        if np.isnan(difference):
            return difference, f"{self.name} has values that are not numbers"
        return difference, self.words if difference else None


Found = Iterator[Comparison]
"""What a check yields."""


class NotOffered(Exception):
    """The old library had it and this package has it not; says what to use."""


class NotTestedHere(Exception):
    """Something that the row needs is not here; says what."""


def same(name: str, got: Any, wanted: Any) -> Comparison:
    """A comparison of things that are no numbers: names, types, texts."""
    words = f"{name}: {got!r}; wanted {wanted!r}"
    return Comparison(name, float(got == wanted), 1.0, "exact", words=words)


def to_host(values: Any) -> Array:
    """An array of any library and dtype, or a number, as float64 on the host."""
    host = values.get() if is_cupy(values) else values
    return np.asarray(host).astype(np.float64)


class Case:
    """One row, with its network and its data in the row's dtype, where its engine computes.

    Arrays on the host are read-only, so that a call that writes to an argument fails.

    Attributes:
        row: the row.
    """

    def __init__(self, row: Row) -> None:
        self.row = row

    @functools.cached_property
    def spec(self) -> RNNSpec:
        """The network; of an old call, that which it computes."""
        options = dict(self.row.feature.spec) | {"math": self.math}
        width = HIDDEN if options.get("input_mode") == "skip" else INPUT
        return RNNSpec(self.cell, width, HIDDEN, dtype=self.dtype, **options)

    @property
    def math(self) -> str:
        """What precision is asked for. The old code knew no TF32, and had float16 throughout."""
        row = self.row
        if row.feature.api == "v2":
            return str(row.feature.spec.get("math", "default"))
        dialect = row.feature.api.startswith("legacy.cupy")
        return "half" if dialect and (row.dtype, row.engine) == ("float16", "cudnn") else "full"

    @property
    def cell(self) -> str:
        """The row's cell."""
        assert self.row.cell is not None
        return self.row.cell

    @property
    def dtype(self) -> str:
        """The row's dtype."""
        assert self.row.dtype is not None
        return self.row.dtype

    @property
    def options(self) -> dict[str, Any]:
        """Options of the check."""
        return dict(self.row.feature.options)

    @functools.cached_property
    def xp(self) -> ModuleType:
        """The array module of the row's engine.

        Raises:
            UnsupportedError: it has no arrays of the row's dtype (CuPy 13 has no bfloat16).
        """
        dtype = numpy_dtype(self.dtype)
        module = importlib.import_module("cupy" if self.row.engine == "cudnn" else "numpy")
        try:
            module.asarray(np.zeros(1, dtype))
        except (TypeError, ValueError) as error:
            raise UnsupportedError(
                f"{module.__name__} {module.__version__} has no {self.row.dtype} arrays: {error}"
            ) from error
        return module

    @property
    def engine(self) -> str:
        """The engine to name in v2 calls."""
        assert self.row.engine is not None
        return self.row.engine

    @property
    def on_host(self) -> bool:
        """Whether arrays and addresses are the host's."""
        return self.row.engine != "cudnn"

    @property
    def shape(self) -> SequenceShape:
        """The shape of a v2 row."""
        assert isinstance(self.row.shape, SequenceShape)
        return self.row.shape

    @functools.cached_property
    def problem(self) -> Problem:
        """Data and right answers of a v2 row."""
        return problem(self.spec, self.shape)

    def array(self, values: Array) -> Array:
        """``values`` in the row's dtype, on the device of its engine; None stays None."""
        if values is None:
            return None
        host = np.array(values, dtype=numpy_dtype(self.dtype))
        if self.xp is not np:
            return self.xp.asarray(host)
        host.flags.writeable = False
        return host

    def x(self, layout: str = "time_major", *, padding: float = 0.0) -> Array:
        """x in a layout."""
        return self.array(self.join(self.problem.xs, self.spec.input_size, layout, padding))

    def dy(self, layout: str = "time_major", *, padding: float = 0.0) -> Array:
        """dy in a layout."""
        return self.array(self.join(self.problem.dys, self.spec.output_size, layout, padding))

    def join(
        self,
        sequences: list[Array],
        features: int,
        layout: str = "time_major",
        padding: float = 0.0,
    ) -> Array:
        """Sequences as one float64 array on the host."""
        joined = join_rows(sequences, layout, steps=self.shape.steps, features=features)
        if padding != 0.0:
            by_sequence = joined if layout == "batch_major" else joined.swapaxes(0, 1)
            for place, length in zip(by_sequence, self.shape.known_lengths, strict=True):
                place[length:] = padding
        return joined

    def states(self) -> tuple[Array | None, Array | None]:
        """hx and cx."""
        return self.array(self.problem.hx), self.array(self.problem.cx)

    def state_gradients(self) -> tuple[Array | None, Array | None]:
        """dhy and dcy."""
        return self.array(self.problem.dhy), self.array(self.problem.dcy)

    def tolerance(self, comparison: Comparison) -> float:
        """How far a comparison of this row may be off."""
        if comparison.allowed is not None:
            return comparison.allowed
        if comparison.what == "exact":
            return 0.0
        options = self.row.feature.spec
        return tolerance(
            self.dtype,
            self.math,
            engine=self.engine,
            algo=options.get("algo", "auto"),
            clip="clip" in options,
            what=comparison.what,
        )
