"""Addresses as arrays, and reserves as the pointers that the dialect gives out.

A :class:`Space` is the memory that a handle's pointers belong to: the host's, or a device's, where
they become CuPy arrays that own nothing.
"""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

import numpy as np

from cudnn_compat.arrays import Array, is_cupy, load_cupy, numpy_dtype
from cudnn_compat.checking import check_integer
from cudnn_compat.errors import ArgumentError, DTypeError

__all__ = [
    "HostPointer",
    "Space",
    "host_integers",
    "pointer_to",
    "reserve_array",
    "write_integer",
]

_ADDRESS_MAX = 2**64 - 1


class _HostMemory:
    """What ``MemoryPointer.mem`` is on a device: who owns the bytes."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.size = int(array.nbytes)
        self.ptr: int = array.__array_interface__["data"][0]


class HostPointer:
    """Host memory in the form of a ``cupy.cuda.MemoryPointer``: ``.ptr`` and ``.mem.size``."""

    def __init__(self, array: Array) -> None:
        self.mem = _HostMemory(array)
        self.ptr = self.mem.ptr

    def __int__(self) -> int:
        return self.ptr


def pointer_to(array: Array) -> Any:
    """The pointer to a flat uint8 array, which keeps its memory alive."""
    return array.data if is_cupy(array) else HostPointer(array)


def reserve_array(pointer: Any, size: int, like: Array) -> Array:
    """The first ``size`` bytes of a reserve, uint8, on the device of ``like``.

    Raises:
        DTypeError: no pointer, or one of another device's.
        ArgumentError: it is too small.
    """
    wanted = load_cupy().cuda.MemoryPointer if is_cupy(like) else HostPointer
    if not isinstance(pointer, wanted):
        kind = f"{type(pointer).__module__}.{type(pointer).__qualname__}"
        raise DTypeError(
            f"reserve_space is a {kind}; wanted the {wanted.__name__} that the training forward "
            "returned"
        )
    room = pointer.mem.size - (pointer.ptr - pointer.mem.ptr)
    if room < size:
        raise ArgumentError(
            f"reserve_space has {room} bytes; this call needs {size}: pass what the training "
            "forward of the same arguments returned"
        )
    if isinstance(pointer, HostPointer):
        return pointer.mem.array[:size]
    return load_cupy().ndarray((size,), "uint8", memptr=pointer)


class Space:
    """The memory of a device (None: the host's)."""

    __slots__ = ("device",)

    def __init__(self, device: int | None) -> None:
        self.device = device

    @property
    def name(self) -> str:
        """As ``device_of`` names it."""
        return "cpu" if self.device is None else f"cuda:{self.device}"

    def view(self, address: int, shape: tuple[int, ...], dtype: str) -> Array | None:
        """What lies at ``address``; None for NULL."""
        if not address:
            return None
        size = math.prod(shape) * numpy_dtype(dtype).itemsize
        if self.device is not None:
            cupy = load_cupy()
            memory = cupy.cuda.UnownedMemory(int(address), size, None, self.device)
            return cupy.ndarray(shape, dtype, memptr=cupy.cuda.MemoryPointer(memory, 0))
        if not size:
            return np.empty(shape, dtype)
        address = check_integer("address", address, 0, _ADDRESS_MAX)
        data: Any = (ctypes.c_uint8 * size).from_address(address)
        return np.frombuffer(data, dtype).reshape(shape)

    def needed(self, name: str, address: int, shape: tuple[int, ...], dtype: str) -> Array:
        """What lies at ``address``, which must not be NULL.

        Raises:
            ArgumentError: it is.
        """
        found = self.view(address, shape, dtype)
        if found is None:
            raise ArgumentError(f"{name} is NULL; wanted an address")
        return found


def host_integers(name: str, address: int, count: int, kind: Any = ctypes.c_int) -> tuple[int, ...]:
    """A C array of integers in host memory.

    Raises:
        ArgumentError: the address is NULL.
    """
    address = check_integer(name, address, 0, _ADDRESS_MAX)
    if not address:
        raise ArgumentError(f"{name} is NULL; wanted the address of an array of {count} integers")
    return tuple(_array_type(kind, count).from_address(address))


def write_integer(address: int, value: int, kind: Any = ctypes.c_int) -> None:
    """Write to host memory; nothing where the address is NULL."""
    if address:
        kind.from_address(address).value = value


@functools.lru_cache(maxsize=256)
def _array_type(kind: Any, count: int) -> Any:
    return kind * count
