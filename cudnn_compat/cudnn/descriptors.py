"""Descriptors as objects: created, set, and destroyed with their object.

Destroying a descriptor touches host memory only, so it may happen in any thread, at any time, also
while work that was described by it is still running on a GPU, and at interpreter exit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from cudnn_compat.checking import INT_MAX
from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.library import Library
from cudnn_compat.errors import UnsupportedError

__all__ = [
    "Descriptor",
    "dropout_descriptor",
    "rnn_data_descriptor",
    "rnn_descriptor",
    "tensor_descriptor",
]

_ZERO = ctypes.c_double(0.0)  # 8 bytes of zero are a zero of every dtype
_PADDING = ctypes.addressof(_ZERO)


class Descriptor:
    """Owns one descriptor of the library, and is passed to its functions as it is.

    ctypes takes the address from ``_as_parameter_`` and holds on to the object during the call, so
    that a descriptor made for one call is not destroyed before it.
    """

    __slots__ = ("_as_parameter_", "_destroy", "keeps")

    def __init__(self, library: Library, kind: str) -> None:
        """``kind`` is the middle of the library's names: ``"Tensor"``, ``"RNN"``, ``"Dropout"``."""
        self._as_parameter_: int | None = None
        self.keeps: Any = None  # what the descriptor refers to and does not own
        self._destroy: Callable[[int], Any] = getattr(library, f"cudnnDestroy{kind}Descriptor")
        made = ctypes.c_void_p()
        getattr(library, f"cudnnCreate{kind}Descriptor")(ctypes.byref(made))
        self._as_parameter_ = made.value

    def __del__(self) -> None:
        value = getattr(self, "_as_parameter_", None)
        if value is not None:
            # At interpreter exit this module's names may be gone, contextlib among them.
            try:  # noqa: SIM105
                self._destroy(value)
            except Exception:  # nobody is left who could act on it
                pass


def tensor_descriptor(library: Library, dtype: int, dims: Sequence[int]) -> Descriptor:
    """A fully packed tensor of 3 to 8 ``dims``, slowest first.

    Raises:
        UnsupportedError: more elements than the library can count, 2**31 - 1.
    """
    strides, stride = [], 1
    for dim in reversed(dims):
        strides.append(stride)
        stride *= dim
    if stride > INT_MAX:  # which ctypes would cut to 32 bits
        raise UnsupportedError(
            f"an array of shape {tuple(dims)} has {stride} elements; cuDNN counts up to {INT_MAX}: "
            "divide the batch"
        )
    made = Descriptor(library, "Tensor")
    array = ctypes.c_int * len(dims)
    library.cudnnSetTensorNdDescriptor(
        made, dtype, len(dims), array(*dims), array(*reversed(strides))
    )
    return made


def rnn_descriptor(
    library: Library,
    *,
    algo: int,
    cell: int,
    bias: int,
    direction: int,
    input_mode: int,
    dtype: int,
    math_precision: int,
    math_type: int,
    input_size: int,
    hidden_size: int,
    proj_size: int,
    num_layers: int,
    dropout: Descriptor | None,
    flags: int,
    clip: tuple[float, float] | None = None,
) -> Descriptor:
    """``cudnnSetRNNDescriptor_v8``, and the clip where there is one.

    Args:
        proj_size: ``hidden_size`` for no projection.
        dropout: a dropout descriptor, which is kept alive, or None.
        clip: ``(low, high)``; the library takes the bounds as float32.
    """
    made = Descriptor(library, "RNN")
    made.keeps = dropout
    library.cudnnSetRNNDescriptor_v8(
        made,
        algo,
        cell,
        bias,
        direction,
        input_mode,
        dtype,
        math_precision,
        math_type,
        input_size,
        hidden_size,
        proj_size,
        num_layers,
        dropout,
        flags,
    )
    if clip is not None:
        low, high = clip
        if library.major >= 9:
            library.cudnnRNNSetClip_v9(made, c.CUDNN_RNN_CLIP_MINMAX, low, high)
        else:
            library.cudnnRNNSetClip_v8(
                made, c.CUDNN_RNN_CLIP_MINMAX, c.CUDNN_PROPAGATE_NAN, low, high
            )
    return made


def rnn_data_descriptor(
    library: Library,
    *,
    dtype: int,
    layout: int,
    steps: int,
    features: int,
    lengths: Sequence[int],
) -> Descriptor:
    """x or y of a batch: ``lengths`` in the library's order, ``steps`` the padded length.

    Padding of what is written comes out as zero.
    """
    made = Descriptor(library, "RNNData")
    library.cudnnSetRNNDataDescriptor(
        made,
        dtype,
        layout,
        steps,
        len(lengths),
        features,
        (ctypes.c_int * len(lengths))(*lengths),
        _PADDING,
    )
    return made


def dropout_descriptor(
    library: Library,
    handle: int,
    *,
    ratio: float,
    states: int,
    size: int,
    seed: int,
    initialise: bool,
) -> Descriptor:
    """A dropout descriptor over generator states in device memory.

    Args:
        states: address of ``size`` bytes (``cudnnDropoutGetStatesSize``).
        initialise: start the generators from ``seed`` (work on the handle's stream); False takes
            them as they are.
    """
    made = Descriptor(library, "Dropout")
    if initialise:
        put = library.cudnnSetDropoutDescriptor
    else:
        put = library.cudnnRestoreDropoutDescriptor
    put(made, handle, ratio, states, size, seed)
    return made
