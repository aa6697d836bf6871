"""What handles and descriptors stand for: what was set, checked, and nothing of the library's."""

from __future__ import annotations

import dataclasses
import math
from typing import Final

from cudnn_compat.dropout import DropoutState
from cudnn_compat.errors import ArgumentError, UnsupportedError
from cudnn_compat.legacy.cupy import constants as c

__all__ = [
    "DTYPES",
    "RNN",
    "Activation",
    "Dropout",
    "Filter",
    "Handle",
    "PersistentPlan",
    "RNNData",
    "Tensor",
    "code_of_dtype",
    "dtype_of",
]

DTYPES: Final = {
    c.CUDNN_DATA_FLOAT: "float32",
    c.CUDNN_DATA_DOUBLE: "float64",
    c.CUDNN_DATA_HALF: "float16",
}
_CODES: Final = {name: code for code, name in DTYPES.items()}


def dtype_of(code: int) -> str:
    """The dtype of a ``CUDNN_DATA_*`` number.

    Raises:
        UnsupportedError: RNNs of the old API had no such type.
    """
    try:
        return DTYPES[code]
    except KeyError:
        raise UnsupportedError(
            f"data type {code} is none of the old RNNs: 0 float32, 1 float64, 2 float16"
        ) from None


def code_of_dtype(name: str) -> int | None:
    """The ``CUDNN_DATA_*`` number of a dtype; None: the dialect has none."""
    return _CODES.get(name)


@dataclasses.dataclass(slots=True, eq=False)
class Handle:
    """A handle: the device that pointers given with it belong to (None: host addresses)."""

    device: int | None
    stream: int = 0


@dataclasses.dataclass(slots=True, eq=False)
class Tensor:
    """A tensor descriptor; ``shape`` is None until it is set."""

    dtype: str = ""
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] = ()

    def dims(self, name: str) -> tuple[int, ...]:
        """The dimensions.

        Raises:
            ArgumentError: it has not been set, or does not describe contiguous memory.
        """
        if self.shape is None:
            raise ArgumentError(f"{name} has been created but not set; pass 0 for none")
        stride = 1
        for dim, given in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if dim != 1 and given != stride:  # the stride of an axis of length 1 says nothing
                raise ArgumentError(
                    f"{name} has dimensions {self.shape} and strides {self.strides}; "
                    "wanted those of contiguous memory"
                )
            stride *= dim
        return self.shape

    def size(self, name: str) -> int:
        """Number of elements."""
        return math.prod(self.dims(name))


@dataclasses.dataclass(slots=True, eq=False)
class Filter:
    """A filter descriptor: weights, or a part of them."""

    dtype: str = ""
    shape: tuple[int, ...] | None = None
    format: int = c.CUDNN_TENSOR_NCHW

    def size(self, name: str) -> int:
        """Number of elements.

        Raises:
            ArgumentError: it has not been set.
        """
        if self.shape is None:
            raise ArgumentError(f"{name} has been created but not set")
        return math.prod(self.shape)


@dataclasses.dataclass(slots=True, eq=False)
class Dropout:
    """A dropout descriptor: a generator, which may be shared, and the ratio of the next call."""

    state: DropoutState | None = None
    ratio: float = 0.0


@dataclasses.dataclass(slots=True, eq=False)
class RNN:
    """An RNN descriptor; ``dtype`` is empty until it is set."""

    hidden_size: int = 0
    num_layers: int = 0
    dropout: Dropout | None = None
    input_mode: int = c.CUDNN_LINEAR_INPUT
    direction: int = c.CUDNN_UNIDIRECTIONAL
    mode: int = c.CUDNN_RNN_RELU
    algo: int = c.CUDNN_RNN_ALGO_STANDARD
    dtype: str = ""
    padding: int = c.CUDNN_RNN_PADDED_IO_DISABLED


@dataclasses.dataclass(slots=True, eq=False)
class RNNData:
    """An RNN data descriptor: x or y of the calls with Ex."""

    dtype: str = ""
    layout: int = 0
    steps: int = 0
    batch: int = 0
    features: int = 0
    lengths: tuple[int, ...] | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Activation:
    """An activation descriptor."""

    mode: int | None = None
    nan: int = c.CUDNN_NOT_PROPAGATE_NAN
    coef: float = 0.0


@dataclasses.dataclass(slots=True, eq=False)
class PersistentPlan:
    """A plan of the persistent algorithm. The engine makes its own; this one is only held."""

    batch: int
