"""The only file that knows which array library an argument comes from.

Detection looks at ``sys.modules``: an array of a library can only exist where that library has
been imported, so asking never imports anything.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from cudnn_compat.errors import DTypeError, LibraryNotFound, UnsupportedError

__all__ = [
    "Array",
    "array_module",
    "check_array",
    "device_of",
    "dtype_name",
    "is_cupy",
    "kind_of",
    "load_cupy",
    "numpy_dtype",
    "on_device_of",
    "plain",
    "splits_elements",
]

Array: TypeAlias = Any
"""A NumPy or CuPy array."""


_cupy_class: type | None = None
"""``cupy.ndarray``, once an array of it has been seen: the question is asked often."""


def is_cupy(value: object) -> bool:
    """Whether ``value`` is a CuPy array; does not import CuPy."""
    kind = type(value)
    if kind is np.ndarray:
        return False
    if kind is _cupy_class:
        return True
    return _is_of_cupy(value, kind)


def _is_of_cupy(value: object, kind: type) -> bool:
    global _cupy_class
    known = getattr(sys.modules.get("cupy"), "ndarray", None)
    if known is None or not isinstance(value, known):
        return False
    if kind is known:
        _cupy_class = kind
    return True


def check_array(name: str, value: object) -> None:
    """Refuse what is not a plain NumPy or CuPy array, and say what to pass.

    Raises:
        DTypeError: naming ``name``, the type that came and how to convert it.
    """
    if type(value) is np.ndarray or is_cupy(value):
        return
    if isinstance(value, np.ma.MaskedArray):
        raise DTypeError(
            f"{name} is a masked array, whose mask would be lost; pass {name}.filled(…)"
        )
    if isinstance(value, np.ndarray):
        return
    if value is None:
        raise DTypeError(f"{name} is a NoneType; wanted a NumPy or CuPy array")
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    hint = f"numpy.asarray({name})"
    if hasattr(value, "__dlpack__"):
        hint = f"numpy.from_dlpack({name}) or cupy.from_dlpack({name}), which share its memory"
    raise DTypeError(f"{name} is a {kind}; wanted a NumPy or CuPy array: pass {hint}")


def plain(value: Any) -> Any:
    """A NumPy array of a subclass (``np.matrix``, ``np.memmap``) as a plain view; else as it is."""
    if type(value) is not np.ndarray and isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    return value


def array_module(value: Array) -> ModuleType:
    """``cupy`` for CuPy arrays, ``numpy`` otherwise."""
    return sys.modules["cupy"] if is_cupy(value) else np


def device_of(value: Array) -> str:
    """``"cpu"`` for NumPy arrays, ``"cuda:N"`` for CuPy arrays."""
    return _cuda(value.data.device_id) if is_cupy(value) else "cpu"


@functools.lru_cache(maxsize=64)
def _cuda(index: int) -> str:
    return f"cuda:{index}"


def splits_elements(array: Array) -> bool:
    """Whether elements begin at addresses that are no multiples of their size.

    GPUs neither read nor write such elements.
    """
    size = array.itemsize
    start = array.data.ptr if is_cupy(array) else array.__array_interface__["data"][0]
    return bool(start % size or any(stride % size for stride in array.strides))


_NO_DEVICE: AbstractContextManager[None] = contextlib.nullcontext()


def on_device_of(value: Array) -> AbstractContextManager[Any]:
    """Makes the device of a CuPy array the current one; does nothing for NumPy arrays."""
    return value.device if is_cupy(value) else _NO_DEVICE


def load_cupy() -> ModuleType:
    """CuPy, imported.

    Raises:
        LibraryNotFound: there is none, or it does not import; says what to install.
    """
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        return cupy
    try:
        return importlib.import_module("cupy")
    except Exception as error:  # a half-installed CUDA raises all kinds
        raise LibraryNotFound(
            "computing on a GPU needs CuPy, which does not import here "
            f"({type(error).__name__}: {error}): pip install 'cudnn-compat[cuda13]' "
            "(or [cuda12], as the driver allows)"
        ) from error


def kind_of(array: Array) -> tuple[type | None, np.dtype, int | None]:
    """Type, dtype and, on a GPU, device: what a plain array has in common with its like.

    The type is None for subclasses, which are unlike all others.
    """
    if is_cupy(array):
        plain = type(array) is _cupy_class
        return type(array) if plain else None, array.dtype, array.data.device_id
    return np.ndarray if type(array) is np.ndarray else None, array.dtype, None


def dtype_name(value: Array) -> str:
    """An array's dtype in words: ``"float32"``, and ``">f4"`` where bytes are swapped."""
    return str(value.dtype.name if value.dtype.isnative else value.dtype)


@functools.lru_cache(maxsize=16)
def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype called ``name``; bfloat16 comes from ``ml_dtypes``.

    Raises:
        UnsupportedError: bfloat16 without ``ml_dtypes``.
    """
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise UnsupportedError(
            "bfloat16 arrays on the host need the package ml_dtypes: pip install ml_dtypes"
        ) from None
    bfloat16: np.dtype = np.dtype(ml_dtypes.bfloat16)
    return bfloat16
