"""Handles, descriptors and settings of the high-level module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cudnn_compat.arrays import Array, check_array, load_cupy
from cudnn_compat.legacy.cupy import constants as c
from cudnn_compat.legacy.cupy import handles
from cudnn_compat.legacy.cupy.described import RNN, Dropout, Filter, Tensor
from cudnn_compat.legacy.cupy.entry import old_name, quiet
from cudnn_compat.legacy.cupy.low.networks import set_rnn
from cudnn_compat.legacy.cupy.low.operations import set_dropout
from cudnn_compat.legacy.cupy.registry import find, give_number, release
from cudnn_compat.legacy.cupy.translate import data_type_of, float_name

__all__ = [
    "Descriptor",
    "create_dropout_descriptor",
    "create_filter_descriptor",
    "create_rnn_descriptor",
    "create_tensor_descriptor",
    "create_tensor_nd_descriptor",
    "get_data_type",
    "get_handle",
    "get_max_workspace_size",
    "is_tensor_core_available",
    "make_descriptor",
    "set_dropout_descriptor",
    "set_max_workspace_size",
]

_max_workspace_size = 8 * 1024 * 1024


class Descriptor:
    """Owns a descriptor that is a plain integer: destroyed with this object.

    Args:
        descriptor: the integer; 0 is none.
        destroyer: what destroys it, called with it; None where there is nothing to destroy.

    Attributes:
        value: the integer.
    """

    @old_name("cudnn")
    def __init__(self, descriptor: int, destroyer: Callable[[int], Any] | None) -> None:
        self.value = descriptor
        self._destroy = None if destroyer is None else quiet(destroyer)

    def __del__(self) -> None:
        destroy, self._destroy = getattr(self, "_destroy", None), None
        if destroy is not None and self.value:
            # At interpreter exit the names of modules may be gone, contextlib among them.
            try:  # noqa: SIM105
                destroy(self.value)
            except Exception:  # nobody is left who could act on it
                pass


def make_descriptor(described: object) -> Descriptor:
    """A :class:`Descriptor` of something described, for our own use."""
    kind = type(described)
    return _own(give_number(described), lambda number: release(kind, number))


def _own(number: int, destroy: Callable[[int], Any] | None) -> Descriptor:
    made = Descriptor.__new__(Descriptor)
    quiet(Descriptor.__init__)(made, number, destroy)
    return made


@old_name("cudnn")
def get_handle() -> int:
    """The handle of the current device, made at first use; all threads share it."""
    return handles.shared_handle()


@old_name("cudnn")
def get_data_type(dtype: Any) -> int:
    """``CUDNN_DATA_*`` of a dtype: float32 0, float64 1, float16 2.

    Raises:
        TypeError: another dtype.
    """
    return data_type_of(dtype)


@old_name("cudnn")
def create_tensor_descriptor(arr: Array, format: int = c.CUDNN_TENSOR_NCHW) -> Descriptor:
    """A descriptor of an array.

    Raises:
        ValueError: it is not C-contiguous, or the format is unknown.
        TypeError: no array, or a dtype that cuDNN's RNNs do not have.
    """
    dtype = _checked(arr)
    if format not in (c.CUDNN_TENSOR_NCHW, c.CUDNN_TENSOR_NHWC):
        raise ValueError(f"format is {format!r}; wanted CUDNN_TENSOR_NCHW or CUDNN_TENSOR_NHWC")
    return make_descriptor(_tensor(dtype, arr.shape))


@old_name("cudnn")
def create_tensor_nd_descriptor(arr: Array) -> Descriptor:
    """A descriptor of an array; of an array without elements none (``value`` 0).

    Raises:
        ValueError: the array is not C-contiguous.
        TypeError: no array, or a dtype that cuDNN's RNNs do not have.
    """
    check_array("arr", arr)
    if arr.size == 0:
        return _own(0, None)
    return make_descriptor(_tensor(_checked(arr), arr.shape))


@old_name("cudnn")
def create_filter_descriptor(arr: Array, format: int = c.CUDNN_TENSOR_NCHW) -> Descriptor:
    """A descriptor of weights, such as a flat weight space ``(n, 1, 1)``.

    Raises:
        TypeError: no array, or a dtype that cuDNN's RNNs do not have.
    """
    check_array("arr", arr)
    return make_descriptor(Filter(float_name(arr), tuple(arr.shape), format))


@old_name("cudnn")
def create_dropout_descriptor(
    handle: int, dropout: float, states: int, state_size_in_bytes: int, seed: int
) -> Descriptor:
    """A dropout descriptor, with a generator that starts from ``seed``.

    Args:
        states: 0 makes none, for networks without dropout. Any other address starts one; the
            generator's memory is the engine's, so nothing is written there.
    """
    made = make_descriptor(Dropout())
    set_dropout(find(Dropout, made.value), dropout, states, seed)
    return made


@old_name("cudnn")
def set_dropout_descriptor(desc: Descriptor, handle: int, dropout: float) -> None:
    """Change the ratio of the calls to come; the generator goes on."""
    set_dropout(find(Dropout, desc.value), dropout, 0, 0)


@old_name("cudnn")
def create_rnn_descriptor(
    hidden_size: int,
    num_layers: int,
    dropout_desc: Descriptor | None,
    input_mode: int,
    direction: int,
    mode: int,
    data_type: int,
    algo: int | None = None,
) -> Descriptor:
    """A descriptor of a network. Its input size comes later, with an array or a descriptor of x."""
    made = make_descriptor(RNN())
    set_rnn(
        find(RNN, made.value),
        hidden_size,
        num_layers,
        0 if dropout_desc is None else dropout_desc.value,
        input_mode,
        direction,
        mode,
        c.CUDNN_RNN_ALGO_STANDARD if algo is None else algo,
        data_type,
    )
    return made


@old_name("cudnn")
def get_max_workspace_size() -> int:
    """What :func:`set_max_workspace_size` was given, 8 MiB at first."""
    return _max_workspace_size


@old_name("cudnn")
def set_max_workspace_size(size: int) -> None:
    """Remember a size. It was a limit for convolutions; RNNs take what they need."""
    global _max_workspace_size
    _max_workspace_size = size


@old_name("cudnn")
def is_tensor_core_available(dtype: Any) -> bool:
    """Whether the current GPU has tensor cores for that dtype: float16, from Volta on."""
    device = handles.current_device()
    if device is None or np.dtype(dtype).char != "e":
        return False
    return int(load_cupy().cuda.Device(device).compute_capability) >= 70


def _checked(arr: Array) -> str:
    check_array("arr", arr)
    if not arr.flags.c_contiguous:
        raise ValueError(f"arr of shape {arr.shape} is not C-contiguous; pass a copy of it")
    return float_name(arr)


def _tensor(dtype: str, shape: tuple[int, ...]) -> Tensor:
    strides, stride = [], 1
    for dim in reversed(shape):
        strides.append(stride)
        stride *= dim
    return Tensor(dtype, tuple(shape), tuple(reversed(strides)))
