"""Dropout as a plain operation, for networks that are run layer by layer."""

from __future__ import annotations

import ctypes

from cudnn_compat.arrays import Array
from cudnn_compat.cudnn.descriptors import Descriptor, tensor_descriptor
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cudnn.device import Session, address
from cudnn_compat.engines.cudnn.dropout import generator_of, scratch_descriptor
from cudnn_compat.engines.cudnn.settings import DTYPE_CODES

__all__ = ["dropout_backward", "dropout_forward", "dropout_reserve_bytes"]


def dropout_reserve_bytes(session: Session, dtype: str, size: int) -> int:
    """Bytes of the mask of ``size`` elements."""
    mask = ctypes.c_size_t()
    session.library.cudnnDropoutGetReserveSpaceSize(_flat(session, dtype, size), ctypes.byref(mask))
    return mask.value


def dropout_forward(
    session: Session,
    state: DropoutState,
    ratio: float,
    dtype: str,
    x: Array,
    y: Array,
    reserve: Array,
) -> None:
    """Fill y with x under a fresh mask, which is kept in the reserve."""
    flat = _flat(session, dtype, x.size)
    with state.lock:
        generator = generator_of(state, session.device)
        generator.begin(session)
        session.library.cudnnDropoutForward(
            session.handle,
            generator.descriptor(session, ratio),
            flat,
            address(x),
            flat,
            address(y),
            address(reserve),
            reserve.nbytes,
        )
        generator.end(session)


def dropout_backward(
    session: Session, ratio: float, dtype: str, dy: Array, dx: Array, reserve: Array
) -> None:
    """Fill dx with dy under the mask of the reserve."""
    flat = _flat(session, dtype, dy.size)
    session.library.cudnnDropoutBackward(
        session.handle,
        scratch_descriptor(session, ratio),
        flat,
        address(dy),
        flat,
        address(dx),
        address(reserve),
        reserve.nbytes,
    )


def _flat(session: Session, dtype: str, size: int) -> Descriptor:
    return tensor_descriptor(session.library, DTYPE_CODES[dtype], (1, 1, 1, size))
