"""What is remembered of a training forward until its backward: its dropout ratio, and its stage.

One descriptor of dropout serves every network and ``dropout`` itself, and each call rewrites its
ratio, so backward must not ask it. The reserve's address is the key, because low-level callers hand
over nothing else; a later forward on the same memory takes the place of the earlier one.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Final

from cudnn_compat.errors import TapeError

__all__ = ["Forward", "begin_data", "begin_weights", "recall", "remember"]

_MOST: Final = 16_384


@dataclasses.dataclass(slots=True, eq=False)
class Forward:
    """A training forward whose reserve is in use."""

    ratio: float
    stage: str = "forward"
    """``"forward"``, then ``"data"``."""


_forwards: Final[OrderedDict[tuple[int | str | None, int], Forward]] = OrderedDict()


def remember(device: str, address: int, ratio: float) -> None:
    """A forward has filled the reserve at ``address``."""
    if address:
        key = (device, address)
        _forwards[key] = Forward(ratio)
        _forwards.move_to_end(key)
        if len(_forwards) > _MOST:
            _forwards.popitem(last=False)


def recall(device: str, address: int) -> Forward | None:
    """The forward of a reserve; None where it is not known (memory that was copied)."""
    return _forwards.get((device, address))


def begin_data(forward: Forward | None) -> None:
    """Backward data begins, which changes the reserve.

    Raises:
        TapeError: it has had it; a second one would give wrong numbers.
    """
    if forward is not None:
        if forward.stage != "forward":
            raise TapeError(
                "a training forward serves one backward, and this reserve has had it: "
                "call the training forward again"
            )
        forward.stage = "data"


def begin_weights(forward: Forward | None) -> None:
    """Backward weights begins.

    Raises:
        TapeError: backward data has not run.
    """
    if forward is not None and forward.stage == "forward":
        raise TapeError("weights come after data: call the backward-data function first")
