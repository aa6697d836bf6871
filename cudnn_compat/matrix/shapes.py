"""The shapes of x and of the states that rows of the matrix are run with."""

from __future__ import annotations

import dataclasses
from typing import Final, Literal, TypeAlias

__all__ = [
    "HIDDEN",
    "INPUT",
    "PROJECTION",
    "ArrayShape",
    "Item",
    "SequenceShape",
    "Shape",
    "StepShape",
]

INPUT: Final = 3
"""I of every row, but H where x is added to the gates."""

HIDDEN: Final = 4
"""H of every row."""

PROJECTION: Final = 2
"""P of the rows with projection."""


@dataclasses.dataclass(frozen=True)
class SequenceShape:
    """A batch of sequences, as v2 takes them.

    Attributes:
        steps: T.
        batch: B.
        lengths: steps of each sequence, zeros allowed; None: all T.
        states: whether initial states are given (None is zeros).
        same_state: whether all sequences start from the same state.
    """

    steps: int
    batch: int
    lengths: tuple[int, ...] | None = None
    states: bool = True
    same_state: bool = False

    @property
    def known_lengths(self) -> tuple[int, ...]:
        """Steps of each sequence."""
        return (self.steps,) * self.batch if self.lengths is None else self.lengths

    @property
    def label(self) -> str:
        """``"5x3"``: T×B; then what differs from equal lengths and given states."""
        text = f"{self.steps}x{self.batch}"
        if self.lengths is not None:
            text += f",lengths={'-'.join(map(str, self.lengths))}"
        if self.same_state:
            text += ",same-state"
        return text if self.states else f"{text},no-state"


@dataclasses.dataclass(frozen=True)
class StepShape:
    """One step, as the old API takes it: features first.

    Attributes:
        batch: columns of x; None: x is a vector.
        state: h (and c) as a ``"vector"`` (hidden,), a ``"column"`` (hidden, 1) or ``"full"``
            (hidden, batch).
    """

    batch: int | None
    state: Literal["vector", "column", "full"]

    @property
    def columns(self) -> int:
        """B, 1 for a vector."""
        return 1 if self.batch is None else self.batch

    @property
    def x_shape(self) -> tuple[int, ...]:
        """Shape of x."""
        return (INPUT,) if self.batch is None else (INPUT, self.batch)

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Shape of h and c, as they are given."""
        if self.state == "vector":
            return (HIDDEN,)
        return (HIDDEN, 1 if self.state == "column" else self.columns)

    @property
    def label(self) -> str:
        """``"x(3,5),h(4,1)"``."""
        x, h = (",".join(map(str, shape)) for shape in (self.x_shape, self.state_shape))
        return f"x({x}),h({h})"


@dataclasses.dataclass(frozen=True)
class ArrayShape:
    """One array, as an operation on its elements takes it.

    Attributes:
        dims: its shape.
        axis: the axis that the operation runs along, where it has one.
    """

    dims: tuple[int, ...]
    axis: int | None = None

    @property
    def label(self) -> str:
        """``"x(2,3,4)"``, and ``"x(2,3,4),axis=1"``."""
        text = f"x({','.join(map(str, self.dims))})"
        return text if self.axis is None else f"{text},axis={self.axis}"


@dataclasses.dataclass(frozen=True)
class Item:
    """One of several things that are measured alike: a constant, a name, a status code."""

    label: str


Shape: TypeAlias = SequenceShape | StepShape | ArrayShape | Item
