"""Scratch memory of recorded calls: a graph has the addresses, so it must stay where it is.

Calls take scratch from CuPy's allocator. To be recorded they take it from one stretch of memory
instead, piece behind piece, whose size a call before has shown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

__all__ = ["Counted", "blas_bytes", "counting", "scratch_at"]

_UNIT: Final = 512
"""Bytes to a multiple of which CuPy's pool rounds up."""


def blas_bytes(capability: int) -> int:
    """What cuBLAS takes by itself (its documentation, ``cublasSetWorkspace``).

    With less it might choose other kernels, and so other bits.
    """
    return (32 if capability >= 90 else 4) << 20


def _rounded(size: int) -> int:
    return -(-size // _UNIT) * _UNIT


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
def scratch_at(xp: ModuleType, device: int, address: int, size: int) -> Iterator[None]:
    """Lets this thread take its memory from ``size`` bytes at ``address``, which others keep."""
    cuda, taken = xp.cuda, 0

    def take(wanted: int) -> Any:
        nonlocal taken
        start = address + taken
        taken += _rounded(wanted)
        if taken > size:
            raise MemoryError(
                f"a call of own kernels takes more scratch than the {size} bytes it took"
            )
        memory = cuda.UnownedMemory(start, wanted, None, device)
        return cuda.MemoryPointer(memory, 0)

    with cuda.using_allocator(take):
        yield
