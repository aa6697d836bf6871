"""Dropout as a plain operation, for networks that are run layer by layer."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from cudnn_compat.arrays import Array
from cudnn_compat.cudnn.descriptors import Descriptor, tensor_descriptor
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cudnn.device import Session, address
from cudnn_compat.engines.cudnn.dropout import generator_of, scratch_descriptor
from cudnn_compat.engines.cudnn.settings import DTYPE_CODES

__all__ = ["dropout_backward", "dropout_forward", "dropout_reserve_bytes"]


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
            for flat, x_part, y_part, mask in _parts(session, dtype, x, y, reserve):
                session.library.cudnnDropoutForward(
                    session.handle,
                    dropout,
                    flat,
                    address(x_part),
                    flat,
                    address(y_part),
                    address(mask),
                    mask.nbytes,
                )


def dropout_backward(
    session: Session, ratio: float, dtype: str, dy: Array, dx: Array, reserve: Array
) -> None:
    """Fill dx with dy under the mask of the reserve; both contiguous."""
    dropout = scratch_descriptor(session, ratio)
    for flat, dy_part, dx_part, mask in _parts(session, dtype, dy, dx, reserve):
        session.library.cudnnDropoutBackward(
            session.handle,
            dropout,
            flat,
            address(dy_part),
            flat,
            address(dx_part),
            address(mask),
            mask.nbytes,
        )


def _blocks(size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + _BLOCK, size)) for start in range(0, size, _BLOCK))


def _parts(
    session: Session, dtype: str, a: Array, b: Array, reserve: Array
) -> Iterator[tuple[Descriptor, Array, Array, Array]]:
    """Descriptor, elements and mask of each block."""
    a, b, taken = a.reshape(-1), b.reshape(-1), 0
    for start, stop in _blocks(a.size):
        size = _mask_bytes(session, dtype, stop - start)
        mask = reserve[taken : taken + size]
        taken += size
        yield _flat(session, dtype, stop - start), a[start:stop], b[start:stop], mask


def _mask_bytes(session: Session, dtype: str, size: int) -> int:
    mask = ctypes.c_size_t()
    session.library.cudnnDropoutGetReserveSpaceSize(_flat(session, dtype, size), ctypes.byref(mask))
    # The next mask begins where a GPU reads whole words.
    return -(-mask.value // 16) * 16


def _flat(session: Session, dtype: str, size: int) -> Descriptor:
    return tensor_descriptor(session.library, DTYPE_CODES[dtype], (1, 1, 1, size))
