"""Dropout, softmax and activations as plain operations.

Dropout also serves networks that are run layer by layer. Arrays are contiguous and aligned.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, Final

from cudnn_compat.arrays import Array
from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.descriptors import Descriptor, tensor_descriptor
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cudnn.device import Session, address
from cudnn_compat.engines.cudnn.dropout import generator_of, scratch_descriptor
from cudnn_compat.engines.cudnn.settings import DTYPE_CODES

__all__ = [
    "activation_backward",
    "activation_forward",
    "dropout_backward",
    "dropout_forward",
    "dropout_reserve_bytes",
    "softmax_backward",
    "softmax_forward",
]

_FUNCTIONS: Final = {
    "sigmoid": c.CUDNN_ACTIVATION_SIGMOID,
    "relu": c.CUDNN_ACTIVATION_RELU,
    "tanh": c.CUDNN_ACTIVATION_TANH,
    "clipped_relu": c.CUDNN_ACTIVATION_CLIPPED_RELU,
    "elu": c.CUDNN_ACTIVATION_ELU,
}
_ALGORITHMS: Final = {
    "fast": c.CUDNN_SOFTMAX_FAST,
    "accurate": c.CUDNN_SOFTMAX_ACCURATE,
    "log": c.CUDNN_SOFTMAX_LOG,
}
_MODES: Final = {
    "instance": c.CUDNN_SOFTMAX_MODE_INSTANCE,
    "channel": c.CUDNN_SOFTMAX_MODE_CHANNEL,
}


_BLOCK = 1 << 30
"""Elements of one call of the library, which counts them with 32 bits."""


def dropout_reserve_bytes(session: Session, dtype: str, size: int) -> int:
    """Bytes of the mask of ``size`` elements."""
    return sum(_mask_bytes(session, dtype, stop - start) for start, stop in _blocks(size))


def dropout_forward(
    session: Session,
    state: DropoutState,
    ratio: float,
    dtype: str,
    x: Array,
    y: Array,
    reserve: Array,
) -> None:
    """Fill y with x under a fresh mask, which is kept in the reserve; both contiguous."""
    with state.lock:
        generator = generator_of(state, session.device)
        with generator.in_order(session):
            dropout = generator.descriptor(session, ratio)
            _apply(session, session.library.cudnnDropoutForward, dropout, dtype, x, y, reserve)


def dropout_backward(
    session: Session, ratio: float, dtype: str, dy: Array, dx: Array, reserve: Array
) -> None:
    """Fill dx with dy under the mask of the reserve; both contiguous."""
    dropout = scratch_descriptor(session, ratio)
    _apply(session, session.library.cudnnDropoutBackward, dropout, dtype, dy, dx, reserve)


def _apply(
    session: Session,
    function: Callable[..., Any],
    dropout: Descriptor,
    dtype: str,
    given: Array,
    out: Array,
    reserve: Array,
) -> None:
    """One pass, block by block."""
    given, out, taken = given.reshape(-1), out.reshape(-1), 0
    for start, stop in _blocks(given.size):
        flat = _flat(session, _dropped_as(dtype), stop - start)
        mask = reserve[taken : taken + _mask_bytes(session, dtype, stop - start)]
        taken += mask.size
        source, target = given[start:stop], out[start:stop]
        if _dropped_as(dtype) != dtype:
            # The factors of the elements, 0 or 1 / (1 - ratio), are drawn on ones.
            source = session.xp.ones(stop - start, _dropped_as(dtype))
            target = source
        function(
            session.handle,
            dropout,
            flat,
            address(source),
            flat,
            address(target),
            address(mask),
            mask.nbytes,
        )
        if _dropped_as(dtype) != dtype:
            out[start:stop] = given[start:stop].astype(target.dtype) * target


def _dropped_as(dtype: str) -> str:
    """The dtype that the library drops in: its dropout has no bfloat16 (9.19)."""
    return "float32" if dtype == "bfloat16" else dtype


def softmax_forward(session: Session, x: Array, y: Array, algorithm: str, mode: str) -> None:
    """Fill y."""
    described, (one, zero) = _by_channels(session, x), _factors(x)
    session.library.cudnnSoftmaxForward(
        session.handle,
        _ALGORITHMS[algorithm],
        _MODES[mode],
        one,
        described,
        address(x),
        zero,
        described,
        address(y),
    )


def softmax_backward(
    session: Session, y: Array, dy: Array, dx: Array, algorithm: str, mode: str
) -> None:
    """Fill dx."""
    described, (one, zero) = _by_channels(session, y), _factors(y)
    session.library.cudnnSoftmaxBackward(
        session.handle,
        _ALGORITHMS[algorithm],
        _MODES[mode],
        one,
        described,
        address(y),
        described,
        address(dy),
        zero,
        described,
        address(dx),
    )


def activation_forward(session: Session, x: Array, y: Array, function: str, coef: float) -> None:
    """Fill y."""
    described, (one, zero) = _flat(session, x.dtype.name, x.size), _factors(x)
    session.library.cudnnActivationForward(
        session.handle,
        _activation(session, function, coef),
        one,
        described,
        address(x),
        zero,
        described,
        address(y),
    )


def activation_backward(
    session: Session, x: Array, y: Array, dy: Array, dx: Array, function: str, coef: float
) -> None:
    """Fill dx."""
    described, (one, zero) = _flat(session, x.dtype.name, x.size), _factors(x)
    session.library.cudnnActivationBackward(
        session.handle,
        _activation(session, function, coef),
        one,
        described,
        address(y),
        described,
        address(dy),
        described,
        address(x),
        zero,
        described,
        address(dx),
    )


def _activation(session: Session, function: str, coef: float) -> Descriptor:
    made = Descriptor(session.library, "Activation")
    session.library.cudnnSetActivationDescriptor(
        made, _FUNCTIONS[function], c.CUDNN_NOT_PROPAGATE_NAN, coef
    )
    return made


def _factors(array: Array) -> tuple[Any, Any]:
    """1 and 0 for ``one * result + zero * before``, in the type that the library wants them in."""
    number = ctypes.c_double if array.dtype.itemsize == 8 else ctypes.c_float
    return ctypes.byref(number(1)), ctypes.byref(number(0))


def _blocks(size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + _BLOCK, size)) for start in range(0, size, _BLOCK))


def _mask_bytes(session: Session, dtype: str, size: int) -> int:
    mask = ctypes.c_size_t()
    session.library.cudnnDropoutGetReserveSpaceSize(_flat(session, dtype, size), ctypes.byref(mask))
    # The next mask begins where a GPU reads whole words.
    return -(-mask.value // 16) * 16


def _flat(session: Session, dtype: str, size: int) -> Descriptor:
    return tensor_descriptor(session.library, DTYPE_CODES[dtype], (1, 1, 1, size))


def _by_channels(session: Session, array: Array) -> Descriptor:
    """``(N, C, …)`` with the axes behind C as one."""
    rows, channels = array.shape[:2]
    dims = (rows, channels, array.size // (rows * channels), 1)
    return tensor_descriptor(session.library, DTYPE_CODES[array.dtype.name], dims)
