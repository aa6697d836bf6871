"""The four modes of the old API, and the cell of each."""

from __future__ import annotations

from typing import Any, Final

from cudnn_compat.checking import check_integer
from cudnn_compat.errors import CompatError

__all__ = ["CELLS", "CUDNN_GRU", "CUDNN_LSTM", "CUDNN_RNN_RELU", "CUDNN_RNN_TANH", "cell_of"]

CUDNN_RNN_RELU: Final = 0
CUDNN_RNN_TANH: Final = 1
CUDNN_LSTM: Final = 2
CUDNN_GRU: Final = 3

CELLS: Final = ("relu", "tanh", "lstm", "gru")
"""The cell of each mode."""

_MODES: Final = "CUDNN_RNN_RELU 0, CUDNN_RNN_TANH 1, CUDNN_LSTM 2 or CUDNN_GRU 3"


def cell_of(mode: Any) -> str:
    """The cell of a mode.

    Raises:
        ArgumentError, DTypeError: there is no such mode.
    """
    try:
        return CELLS[check_integer("mode", mode, 0, len(CELLS) - 1)]
    except CompatError as error:
        raise type(error)(f"mode is {mode!r}; wanted {_MODES}") from None
