"""The workloads that speed is measured on: their one definition."""

from __future__ import annotations

import dataclasses
from typing import Any

from cudnn_compat.spec import RNNSpec

__all__ = ["GRID", "MODES", "Workload", "grid_of", "named"]

MODES = ("inference", "training")
"""A forward; and a training step: forward, backward data, backward weights."""


@dataclasses.dataclass(frozen=True)
class Workload:
    """T steps × B batch × I input × H hidden, in so many layers.

    Attributes:
        proj: size of the projected hidden state, or None.
        lengths: None where all sequences have T steps; ``(shortest, longest)`` where every call has
            new lengths, drawn uniformly (T is then the padded length).
    """

    cell: str
    steps: int
    batch: int
    input: int
    hidden: int
    layers: int = 1
    bidirectional: bool = False
    proj: int | None = None
    dtype: str = "float32"
    lengths: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """As it stands in tables."""
        steps = str(self.steps) if self.lengths is None else "{}–{}".format(*self.lengths)
        parts = [f"{self.cell} {steps}×{self.batch}×{self.input}×{self.hidden}"]
        if self.proj is not None:
            parts[0] += f"→{self.proj}"
        if self.layers > 1:
            parts.append(f"×{self.layers}")
        if self.bidirectional:
            parts.append("bi")
        return f"{' '.join(parts)} {self.dtype}"

    @property
    def rows(self) -> float:
        """Steps of all sequences together; with drawn lengths, their mean."""
        if self.lengths is None:
            return self.steps * self.batch
        return sum(self.lengths) / 2 * self.batch

    def spec(self, **options: Any) -> RNNSpec:
        """The network as a ``v2.RNNSpec``; ``options`` are further fields of it."""
        return RNNSpec(
            self.cell,
            self.input,
            self.hidden,
            num_layers=self.layers,
            bidirectional=self.bidirectional,
            proj_size=self.proj,
            dtype=self.dtype,
            **options,
        )

    def draw_lengths(self, rng: Any) -> list[int] | None:
        """Lengths of one call, in no order; None where all are T."""
        if self.lengths is None:
            return None
        shortest, longest = self.lengths
        drawn: list[int] = rng.integers(shortest, longest + 1, self.batch).tolist()
        return drawn


GRID = (
    Workload("lstm", 100, 64, 512, 512),
    Workload("lstm", 100, 64, 512, 512, dtype="float16"),
    Workload("lstm", 100, 64, 512, 512, dtype="bfloat16"),
    Workload("lstm", 100, 64, 1024, 1024, layers=2),
    Workload("lstm", 512, 16, 256, 256),
    Workload("lstm", 512, 16, 256, 256, layers=2, bidirectional=True),
    Workload("lstm", 1000, 1, 128, 128),
    Workload("gru", 100, 32, 256, 256),
    Workload("gru", 100, 32, 256, 256, dtype="float16"),
    Workload("tanh", 100, 64, 256, 256),
    Workload("lstm", 1, 64, 256, 256),
    Workload("lstm", 1, 1, 16, 32),
    Workload("lstm", 20, 8, 64, 64),
    Workload("lstm", 2000, 8, 64, 64),
    Workload("lstm", 200, 32, 256, 256, bidirectional=True, lengths=(20, 200)),
    Workload("lstm", 100, 32, 512, 512, proj=128),
)


def grid_of(engine: str) -> tuple[Workload, ...]:
    """The workloads that an engine is measured on: NumPy's are those in float32.

    NumPy computes the 16-bit dtypes in float32 and converts, which is not meant to be fast.
    """
    return GRID if engine == "cudnn" else tuple(w for w in GRID if w.dtype == "float32")


def named(part: str, grid: tuple[Workload, ...] = GRID) -> tuple[Workload, ...]:
    """The workloads that have ``part`` in their names; ``x`` may stand for ``×``."""
    return tuple(w for w in grid if part in w.name or part in w.name.replace("×", "x"))
