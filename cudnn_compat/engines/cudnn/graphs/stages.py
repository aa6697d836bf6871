"""The calls that may be recorded, and by what one recording is told from another."""

from __future__ import annotations

from typing import Final, NamedTuple

from cudnn_compat.arrays import Array
from cudnn_compat.engines.cudnn.graphs.recording import Addresses

__all__ = [
    "BACKWARD",
    "DATA",
    "FORWARD",
    "WEIGHTS",
    "Arrays",
    "Key",
    "Stage",
    "addresses",
    "key_of",
]


class Stage(NamedTuple):
    """One of the calls: names of the arrays that it reads and writes, in their order."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


FORWARD: Final = Stage("forward", ("w", "x", "hx", "cx"), ("y", "hy", "cy", "reserve"))
DATA: Final = Stage(
    "data",
    ("w", "hx", "cx", "y", "dy", "dhy", "dcy", "reserve"),
    ("dx", "dhx", "dcx", "reserve"),
)
WEIGHTS: Final = Stage("weights", ("x", "hx", "y", "reserve", "dw"), ("dw",))
BACKWARD: Final = Stage(
    "backward",
    ("w", "x", "hx", "cx", "y", "dy", "dhy", "dcy", "reserve"),
    ("dx", "dhx", "dcx", "dw", "reserve"),
)
"""The two in one, with a dw that begins at zero."""

Arrays = tuple[Array | None, ...]


Key = tuple[str, object, int]
"""What a recording is found by."""


def addresses(arrays: Arrays) -> Addresses:
    """Where arrays begin; 0 of None, which the library takes for NULL."""
    return tuple([0 if array is None else array.data.ptr for array in arrays])


def key_of(stage: Stage, network: object, given: Addresses, wanted: Addresses) -> Key:
    """The call, what computes it, and which arrays there are, in bits."""
    there = 0
    for place in (*given, *wanted):
        there = 2 * there + (place != 0)
    return stage.name, network, there
