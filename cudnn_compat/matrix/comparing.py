"""What a check of the matrix works with: one row's network and arrays, and comparisons."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from types import ModuleType
from typing import Any

import numpy as np

from cudnn_compat.arrays import Array, is_cupy, numpy_dtype
from cudnn_compat.errors import UnsupportedError
from cudnn_compat.matrix.layouts import join_rows
from cudnn_compat.matrix.problems import Problem, problem
from cudnn_compat.matrix.rows import Row
from cudnn_compat.matrix.shapes import HIDDEN, INPUT, SequenceShape
from cudnn_compat.matrix.tolerances import tolerance
from cudnn_compat.spec import RNNSpec

__all__ = ["Case", "Comparison", "to_host"]


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """One thing that was computed, and what it should be.

    Attributes:
        name: what it is, as a reader of the matrix knows it.
        got: an array of any library, a number, or None.
        wanted: the same, exact.
        what: ``"output"`` or ``"gradient"``: the kind of tolerance; ``"exact"``: none.
        allowed: a tolerance of its own, for what is not rounding (a frequency).
    """

    name: str
    got: Any
    wanted: Any
    what: str = "output"
    allowed: float | None = None

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
        return difference, None


def to_host(values: Any) -> Array:
    """An array of any library and dtype, or a number, as float64 on the host."""
    host = values.get() if is_cupy(values) else values
    return np.asarray(host).astype(np.float64)


class Case:
    """One row, with its network and its data in the row's dtype, where its engine computes.

    Arrays on the host are read-only, so that a call that writes to an argument fails.

    Attributes:
        row: the row.
        spec: the network; of an old call, the one-layer network that it computes.
    """

    def __init__(self, row: Row) -> None:
        self.row = row
        options = dict(row.feature.spec)
        if row.feature.api == "legacy":
            # The old code knew no TF32.
            options["math"] = "full"
        width = HIDDEN if options.get("input_mode") == "skip" else INPUT
        self.spec = RNNSpec(row.cell, width, HIDDEN, dtype=row.dtype, **options)

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
        dtype = numpy_dtype(self.row.dtype)
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
        return self.row.engine

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
        host = np.array(values, dtype=numpy_dtype(self.row.dtype))
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
        return tolerance(
            self.spec.dtype,
            self.spec.math,
            engine=self.engine,
            algo=self.spec.algo,
            clip=self.spec.clip is not None,
            what=comparison.what,
        )
