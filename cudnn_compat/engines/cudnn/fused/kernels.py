"""The kernels, compiled for a network and a cut, once for each device."""

from __future__ import annotations

import ctypes
import functools
import importlib.resources
import threading
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from cudnn_compat.engines.cudnn.fused.blocks import Blocks
from cudnn_compat.errors import UnsupportedError

__all__ = ["BACKWARD", "FORWARD", "Struct", "helpers", "recurrence"]

_CELLS: Final = {"relu": 0, "tanh": 1, "lstm": 2, "gru": 3}
_SCALARS: Final = {"float32": 0, "float16": 1, "bfloat16": 2}
_FILES: Final = {
    "forward": ("machine", "common", "forward_args", "forward"),
    "forward_tensor": ("machine", "common", "forward_args", "forward_tensor"),
    "backward": ("machine", "common", "backward_cell", "backward"),
    "backward_tensor": ("machine", "common", "backward_cell", "backward_tensor"),
    "rows": ("machine", "common", "rows"),
}
"""The parts of each program, in order."""

_NON_PORTABLE: Final = 14
"""``CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED``"""

_PORTABLE: Final = 8
"""The largest cluster that every GPU with clusters has."""

Struct = np.dtype


def _struct(*fields: str) -> np.dtype:
    """A structure of addresses and sizes, then five 32-bit values, as the kernels declare them."""
    last = [(name, "i4") for name in ("gate_row", "batch", "steps", "clips")]
    bounds = [("low", "f4"), ("high", "f4")]
    return np.dtype([*((name, "u8") for name in fields), *last, *bounds], align=True)


FORWARD: Final = _struct(
    *("R", "bias_x", "bias_h", "next_matrix", "next_bias", "gates", "next_gates", "cells"),
    *("before", "next_rows", "y", "y_row", "hx", "cx", "hy", "cy", "lengths", "starts"),
    *("batch_stride", "step_stride"),
)
"""``ForwardArgs`` of ``forward.cu``."""

BACKWARD: Final = _struct(
    *("R", "next_matrix", "gates", "next_gates", "cells", "before", "next_rows", "dy", "dy_row"),
    *("cx", "dhy", "dcy", "dhx", "dcx", "lengths", "starts", "batch_stride", "step_stride"),
)
"""``BackwardArgs`` of ``backward.cu``."""


class _Key(NamedTuple):
    file: str
    cell: str
    dtype: str
    hidden: int
    cut: Blocks | None
    training: bool
    device: int


_kernels: dict[_Key, Any] = {}
_lock = threading.Lock()


def recurrence(
    xp: ModuleType,
    device: int,
    file: str,
    cell: str,
    dtype: str,
    hidden: int,
    cut: Blocks,
    *,
    training: bool,
) -> Any:
    """The kernel ``file`` (``"forward"`` or ``"backward"``), called with (grid, block, args)."""
    if cut.tiles:
        file += "_tensor"
    key = _Key(file, cell, dtype, hidden, cut, training, device)
    kernel = _kernels.get(key)
    if kernel is None:
        with _lock:
            kernel = _kernels.get(key)
            if kernel is None:
                kernel = _kernels[key] = _recurrence(xp, key, cut)
    return kernel


def _recurrence(xp: ModuleType, key: _Key, cut: Blocks) -> Any:
    sizes = {"H": key.hidden, **cut.sizes(), "TRAIN": int(key.training)}
    kernel = _module(xp, key, sizes).get_function(key.file)
    if cut.room:
        kernel.max_dynamic_shared_size_bytes = cut.room
    if cut.blocks > _PORTABLE:
        # CuPy has no word for this attribute.
        driver = ctypes.CDLL("nvcuda.dll" if _is_windows() else "libcuda.so.1")
        status = driver.cuFuncSetAttribute(ctypes.c_void_p(kernel.kernel.ptr), _NON_PORTABLE, 1)
        if status:
            raise UnsupportedError(
                f"this GPU refuses clusters of {cut.blocks} blocks (CUDA error {status}); "
                "use algo='auto'"
            )
    return kernel


def _is_windows() -> bool:
    return hasattr(ctypes, "WinDLL")


def helpers(xp: ModuleType, device: int, name: str, cell: str, dtype: str) -> Any:
    """A kernel of ``rows.cu``."""
    key = _Key(f"rows {name}", cell, dtype, 0, None, False, device)
    kernel = _kernels.get(key)
    if kernel is None:
        with _lock:
            sizes = {"H": 4, "HP": 4, "C": 1, "KL": 4, "UT": 1, "SC": 1, "NC": 1, "THREADS": 4}
            sizes["KS"] = 0
            module = _module(xp, key._replace(file="rows"), {**sizes, "TRAIN": 0})
            kernel = _kernels[key] = module.get_function(name)
    return kernel


def _module(xp: ModuleType, key: _Key, sizes: dict[str, int]) -> Any:
    names = {"CELL": _CELLS[key.cell], "SCALAR": _SCALARS[key.dtype], **sizes}
    return xp.RawModule(
        code="".join(map(_source, _FILES[key.file])),
        options=("-std=c++17", *(f"-D{name}={value}" for name, value in names.items())),
    )


@functools.lru_cache(maxsize=8)
def _source(name: str) -> str:
    here = importlib.resources.files("cudnn_compat.engines.cudnn.fused")
    return here.joinpath(f"{name}.cu").read_text(encoding="utf-8")
