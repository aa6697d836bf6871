"""Tensor and filter descriptors."""

from __future__ import annotations

import math

from cudnn_compat.errors import ArgumentError
from cudnn_compat.legacy.cupy import constants as c
from cudnn_compat.legacy.cupy.described import Filter, Tensor, code_of_dtype, dtype_of
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.memory import host_integers
from cudnn_compat.legacy.cupy.registry import find, give_number, release

__all__ = [
    "createFilterDescriptor",
    "createTensorDescriptor",
    "destroyFilterDescriptor",
    "destroyTensorDescriptor",
    "getFilterNdDescriptor",
    "getTensor4dDescriptor",
    "setFilter4dDescriptor_v4",
    "setFilterNdDescriptor_v4",
    "setTensor4dDescriptor",
    "setTensor4dDescriptorEx",
    "setTensorNdDescriptor",
]

_MOST_DIMS = 8


@old_name("libcudnn")
def createTensorDescriptor() -> int:
    """A tensor descriptor, to be set."""
    return give_number(Tensor())


@old_name("libcudnn")
def destroyTensorDescriptor(tensorDesc: int) -> None:
    """Forget a tensor descriptor."""
    release(Tensor, tensorDesc)


@old_name("libcudnn")
def setTensor4dDescriptor(
    tensorDesc: int, format: int, dataType: int, n: int, c: int, h: int, w: int
) -> None:
    """Four dimensions of contiguous memory, as NCHW or NHWC."""
    shape = (n, c, h, w)
    strides = (c * h * w, h * w, w, 1)
    if format == 1:  # CUDNN_TENSOR_NHWC
        strides = (h * w * c, 1, w * c, c)
    elif format != 0:
        raise ArgumentError(f"format is {format}; wanted 0 (NCHW) or 1 (NHWC)")
    _set(tensorDesc, dataType, shape, strides)


@old_name("libcudnn")
def setTensor4dDescriptorEx(
    tensorDesc: int,
    dataType: int,
    n: int,
    c: int,
    h: int,
    w: int,
    nStride: int,
    cStride: int,
    hStride: int,
    wStride: int,
) -> None:
    """Four dimensions with their strides, in elements."""
    _set(tensorDesc, dataType, (n, c, h, w), (nStride, cStride, hStride, wStride))


@old_name("libcudnn")
def setTensorNdDescriptor(
    tensorDesc: int, dataType: int, nbDims: int, dimA: int, strideA: int
) -> None:
    """Dimensions and strides, in elements, from host arrays of C ints at two addresses."""
    _check_count(nbDims)
    dims = host_integers("dimA", dimA, nbDims)
    _set(tensorDesc, dataType, dims, host_integers("strideA", strideA, nbDims))


@old_name("libcudnn")
def getTensor4dDescriptor(tensorDesc: int) -> tuple[int, ...]:
    """``(dataType, n, c, h, w, nStride, cStride, hStride, wStride)``."""
    tensor = find(Tensor, tensorDesc)
    if tensor.shape is None or len(tensor.shape) != 4:
        raise ArgumentError(f"the tensor descriptor has the dimensions {tensor.shape}; wanted four")
    code = code_of_dtype(tensor.dtype)
    assert code is not None
    return (code, *tensor.shape, *tensor.strides)


@old_name("libcudnn")
def createFilterDescriptor() -> int:
    """A filter descriptor, to be set."""
    return give_number(Filter())


@old_name("libcudnn")
def destroyFilterDescriptor(filterDesc: int) -> None:
    """Forget a filter descriptor."""
    release(Filter, filterDesc)


@old_name("libcudnn")
def setFilter4dDescriptor_v4(
    filterDesc: int, dataType: int, format: int, k: int, c: int, h: int, w: int
) -> None:
    """Weights of four dimensions."""
    _set_filter(filterDesc, dataType, format, (k, c, h, w))


@old_name("libcudnn")
def setFilterNdDescriptor_v4(
    filterDesc: int, dataType: int, format: int, nbDims: int, filterDimA: int
) -> None:
    """Weights, with their dimensions in a host array of C ints at an address."""
    _check_count(nbDims)
    _set_filter(filterDesc, dataType, format, host_integers("filterDimA", filterDimA, nbDims))


@old_name("libcudnn")
def getFilterNdDescriptor(
    wDesc: int, nbDimsRequested: int
) -> tuple[int, int, int, tuple[int, ...]]:
    """``(dataType, format, number of dimensions, the first so many of them)``."""
    described = find(Filter, wDesc)
    described.size("wDesc")  # it is set
    assert described.shape is not None
    code = code_of_dtype(described.dtype)
    assert code is not None
    shape = described.shape
    return code, described.format, len(shape), shape[:nbDimsRequested]


def _check_count(count: int) -> None:
    if not 1 <= count <= _MOST_DIMS:
        raise ArgumentError(f"nbDims is {count}; wanted 1 to {_MOST_DIMS}")


def _check_dims(shape: tuple[int, ...]) -> None:
    if min(shape) < 1 or math.prod(shape) > 2**40:
        raise ArgumentError(f"the dimensions are {shape}; wanted 1 or more")


def _set(number: int, data_type: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    tensor = find(Tensor, number)
    _check_dims(shape)
    tensor.dtype, tensor.shape, tensor.strides = dtype_of(data_type), shape, strides


def _set_filter(number: int, data_type: int, format: int, shape: tuple[int, ...]) -> None:
    described = find(Filter, number)
    if format not in (c.CUDNN_TENSOR_NCHW, c.CUDNN_TENSOR_NHWC):
        raise ArgumentError(f"format is {format}; wanted 0 (NCHW) or 1 (NHWC)")
    _check_dims(shape)
    described.dtype, described.shape, described.format = dtype_of(data_type), shape, format
