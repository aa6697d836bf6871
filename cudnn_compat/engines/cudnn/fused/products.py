"""Matrix products by cuBLAS, whose precision depends on the spec alone.

CuPy's ``matmul`` takes its precision from an environment variable and from what was last set on its
handle; here every call says it. The calls go to the library itself, because CuPy's refuse to be
captured in a graph.
"""

from __future__ import annotations

import ctypes
import functools
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from cudnn_compat.errors import LibraryError

__all__ = ["Matrix", "Products"]

_TYPES: Final = {"float32": 0, "float16": 2, "bfloat16": 14}
"""``cudaDataType``"""

_FULL, _TF32 = 68, 77
"""``CUBLAS_COMPUTE_32F`` and ``CUBLAS_COMPUTE_32F_FAST_TF32``"""

_ONE, _ZERO = (np.array(value, "float32") for value in (1, 0))
_ONE_AT, _ZERO_AT = _ONE.ctypes.data, _ZERO.ctypes.data

_INT, _ADDRESS = ctypes.c_int, ctypes.c_void_p
_PROTOTYPES: Final = {
    "cublasGetMathMode": (_ADDRESS, _ADDRESS),
    "cublasSetMathMode": (_ADDRESS, _INT),
    "cublasSetStream_v2": (_ADDRESS, _ADDRESS),
    "cublasSetWorkspace_v2": (_ADDRESS, _ADDRESS, ctypes.c_size_t),
    "cublasGemmEx": (
        *(_ADDRESS, _INT, _INT, _INT, _INT, _INT, _ADDRESS),
        *(_ADDRESS, _INT, _INT, _ADDRESS, _INT, _INT, _ADDRESS),
        *(_ADDRESS, _INT, _INT, _INT, _INT),
    ),
}


class Matrix(NamedTuple):
    """A row-major matrix in device memory.

    Attributes:
        address: where it begins.
        row: elements from one row to the next.
        dtype: of its elements.
        transposed: whether the product takes its transpose.
    """

    address: int
    row: int
    dtype: str = "float32"
    transposed: bool = False


class Products:
    """Products on the current device and stream; a context, inside which precision is known.

    Raises:
        LibraryError: cuBLAS refused a call.
    """

    def __init__(self, xp: ModuleType, *, quick: bool, workspace: tuple[int, int]) -> None:
        """Choose the precision.

        Args:
            quick: whether float32 factors may be rounded to TF32.
            workspace: address and bytes of scratch; an address of 0 leaves it to cuBLAS.
        """
        self._handle: int = xp.cuda.device.get_cublas_handle()
        self._library = _cublas(xp.cuda.runtime.runtimeGetVersion() // 1000)
        self._stream: int = xp.cuda.get_current_stream().ptr
        self._compute = _TF32 if quick else _FULL
        self._mode = _INT()
        self._workspace = workspace

    def __enter__(self) -> Products:
        library, handle = self._library, self._handle
        library.cublasSetStream_v2(handle, self._stream)
        if self._workspace[0]:
            library.cublasSetWorkspace_v2(handle, *self._workspace)
        # The handle is CuPy's, and others may have allowed TF32 on it.
        library.cublasGetMathMode(handle, ctypes.byref(self._mode))
        if self._mode.value:
            library.cublasSetMathMode(handle, 0)
        return self

    def __exit__(self, *error: object) -> None:
        if self._mode.value:
            self._library.cublasSetMathMode(self._handle, self._mode.value)
        if self._workspace[0]:
            # Forgets the workspace, and the stream, which may be one that captures. CuPy says at
            # each of its own calls which stream it means.
            self._library.cublasSetStream_v2(self._handle, None)

    def __call__(
        self, a: Matrix, b: Matrix, out: Matrix, rows: int, columns: int, inner: int, *, add: bool
    ) -> None:
        """``out = a @ b``, or ``out += a @ b``: ``(rows, inner) @ (inner, columns)``.

        a and b have one dtype; sums are float32.
        """
        # To cuBLAS, which counts by columns, every row-major matrix is its transpose.
        self._library.cublasGemmEx(
            self._handle,
            b.transposed,
            a.transposed,
            columns,
            rows,
            inner,
            _ONE_AT,
            b.address,
            _TYPES[b.dtype],
            b.row,
            a.address,
            _TYPES[a.dtype],
            a.row,
            _ONE_AT if add else _ZERO_AT,
            out.address,
            _TYPES[out.dtype],
            out.row,
            self._compute if a.dtype == "float32" else _FULL,
            -1,
        )


@functools.cache
def _cublas(major: int) -> Any:
    """The cuBLAS that CuPy has loaded: it is found by its name alone."""
    windows = hasattr(ctypes, "WinDLL")
    library = ctypes.CDLL(f"cublas64_{major}.dll" if windows else f"libcublas.so.{major}")
    for name, prototype in _PROTOTYPES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = prototype, _INT
        function.errcheck = functools.partial(_check, name)
    return library


def _check(name: str, status: int, function: object, arguments: object) -> None:
    if status:
        raise LibraryError(f"{name} of cuBLAS returned status {status}", status, call=name)
