"""Scratch memory of recorded calls: a graph has the addresses, so it must stay where it is.

Calls take scratch from CuPy's allocator. To be recorded they take it from one stretch of memory
instead, piece behind piece, whose size a call before has shown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from cudnn_compat.engines.cudnn.device import POOL_UNIT, memory_at

__all__ = ["Counted", "blas_bytes", "counting", "scratch_at"]


def blas_bytes(capability: int) -> int:
    """What cuBLAS takes by itself (its documentation, ``cublasSetWorkspace``).

    With less it might choose other kernels, and so other bits.
    """
    return (32 if capability >= 90 else 4) << 20


def _rounded(size: int) -> int:
    return -(-size // POOL_UNIT) * POOL_UNIT


class Counted:
    """How much has been taken.

    Attributes:
        bytes: all pieces together.
    """

    def __init__(self) -> None:
        self.bytes = 0


@contextlib.contextmanager
def counting(xp: ModuleType) -> Iterator[Counted]:
    """Counts what this thread takes from CuPy's allocator."""
    allocate, counted = xp.cuda.get_allocator(), Counted()

    def take(size: int) -> Any:
        counted.bytes += _rounded(size)
        return allocate(size)

    with xp.cuda.using_allocator(take):
        yield counted


@contextlib.contextmanager
def scratch_at(
    xp: ModuleType, device: int, address: int, size: int, *, recorded: bool
) -> Iterator[Counted]:
    """Lets this thread take its memory from ``size`` bytes at ``address``, which others keep.

    What does not fit comes from CuPy's allocator, unless the call is being ``recorded``.
    """
    counted, allocate = Counted(), xp.cuda.get_allocator()

    def take(wanted: int) -> Any:
        start = address + counted.bytes
        counted.bytes += _rounded(wanted)
        if counted.bytes > size:
            if recorded:
                raise MemoryError(f"own kernels took more scratch than the {size} bytes known")
            return allocate(wanted)
        return memory_at(xp, device, start, wanted)

    with xp.cuda.using_allocator(take):
        yield counted
