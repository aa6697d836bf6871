"""What is put into a descriptor of the real library comes out of it: no GPU is needed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from packaging.version import Version

from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.library import Library
from cudnn_compat.errors import LibraryBadParameter, LibraryError, LibraryNotSupported

DTYPES = [
    c.CUDNN_DATA_FLOAT,
    c.CUDNN_DATA_DOUBLE,
    c.CUDNN_DATA_HALF,
    c.CUDNN_DATA_BFLOAT16,
]

BFLOAT16_SINCE = Version("9.13")
"""Measured: 9.12.0 refuses it, 9.13.0 takes it."""


@contextmanager
def descriptor(library: Library, kind: str) -> Iterator[ctypes.c_void_p]:
    made = ctypes.c_void_p()
    getattr(library, f"cudnnCreate{kind}Descriptor")(ctypes.byref(made))
    assert made.value
    yield made
    getattr(library, f"cudnnDestroy{kind}Descriptor")(made)


def read(function: Any, made: ctypes.c_void_p, *types: type) -> list[Any]:
    """What a getter writes to its pointers."""
    out = [kind() for kind in types]
    function(made, *map(ctypes.byref, out))
    return [each.value for each in out]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_keeps_dtype_dimensions_and_strides(each_library: Library, dtype: int) -> None:
    dims, strides = (ctypes.c_int * 4)(2, 3, 4, 5), (ctypes.c_int * 4)(60, 20, 5, 1)
    got_dims, got_strides = (ctypes.c_int * 4)(), (ctypes.c_int * 4)()
    got_dtype, count, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    with descriptor(each_library, "Tensor") as made:
        each_library.cudnnSetTensorNdDescriptor(made, dtype, 4, dims, strides)
        each_library.cudnnGetTensorNdDescriptor(
            made, 4, ctypes.byref(got_dtype), ctypes.byref(count), got_dims, got_strides
        )
        each_library.cudnnGetTensorSizeInBytes(made, ctypes.byref(size))
        assert (got_dtype.value, count.value) == (dtype, 4)
        assert (list(got_dims), list(got_strides)) == (list(dims), list(strides))
        item = {c.CUDNN_DATA_FLOAT: 4, c.CUDNN_DATA_DOUBLE: 8}.get(dtype, 2)
        assert size.value == 120 * item
        each_library.cudnnSetTensor4dDescriptor(made, c.CUDNN_TENSOR_NCHW, dtype, 6, 7, 8, 9)
        fields = read(each_library.cudnnGetTensor4dDescriptor, made, *[ctypes.c_int] * 9)
        assert fields == [dtype, 6, 7, 8, 9, 504, 72, 9, 1]


def test_a_network_keeps_all_that_was_set(each_library: Library) -> None:
    put = [
        c.CUDNN_RNN_ALGO_STANDARD,
        c.CUDNN_LSTM,
        c.CUDNN_RNN_SINGLE_REC_BIAS,
        c.CUDNN_BIDIRECTIONAL,
        c.CUDNN_SKIP_INPUT,
        c.CUDNN_DATA_HALF,
        c.CUDNN_DATA_FLOAT,
        c.CUDNN_TENSOR_OP_MATH,
        11,
        13,
        7,
        3,
        None,
        c.CUDNN_RNN_PADDED_IO_ENABLED,
    ]
    i, i32 = ctypes.c_int, ctypes.c_int32
    types = [*[i] * 8, *[i32] * 4, ctypes.c_void_p, ctypes.c_uint32]
    with descriptor(each_library, "RNN") as made:
        each_library.cudnnSetRNNDescriptor_v8(made, *put)
        assert read(each_library.cudnnGetRNNDescriptor_v8, made, *types) == put


@pytest.mark.parametrize("algo", [1, 2, 3])
def test_projection_with_a_persistent_algorithm_is_refused_already_here(
    each_library: Library, algo: int
) -> None:
    with descriptor(each_library, "RNN") as made, pytest.raises(LibraryNotSupported):
        each_library.cudnnSetRNNDescriptor_v8(made, algo, 2, 2, 0, 0, 0, 0, 0, 4, 8, 5, 1, None, 0)


def test_a_dropout_descriptor_is_created_without_a_gpu(each_library: Library) -> None:
    with descriptor(each_library, "Dropout"):
        pass


def test_the_clip_is_kept_by_the_call_of_either_major(each_library: Library) -> None:
    mode, low, high = ctypes.c_int(), ctypes.c_double(), ctypes.c_double()
    nan = ctypes.c_int()
    with descriptor(each_library, "RNN") as made:
        each_library.cudnnSetRNNDescriptor_v8(made, 0, 2, 2, 0, 0, 0, 0, 3, 4, 5, 5, 1, None, 0)
        each_library.cudnnRNNSetClip_v8(made, c.CUDNN_RNN_CLIP_MINMAX, 1, -1.5, 2.5)
        each_library.cudnnRNNGetClip_v8(made, *map(ctypes.byref, (mode, nan, low, high)))
        assert (mode.value, low.value, high.value) == (c.CUDNN_RNN_CLIP_MINMAX, -1.5, 2.5)
        if each_library.has("cudnnRNNSetClip_v9"):
            each_library.cudnnRNNSetClip_v9(made, c.CUDNN_RNN_CLIP_MINMAX, -3.5, 4.5)
            each_library.cudnnRNNGetClip_v9(made, *map(ctypes.byref, (mode, low, high)))
            assert (mode.value, low.value, high.value) == (c.CUDNN_RNN_CLIP_MINMAX, -3.5, 4.5)


@pytest.mark.parametrize(
    ("layout", "lengths"),
    [
        (c.CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, [2, 5, 0, 3]),
        (c.CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, [5, 1, 1, 4]),
        (c.CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, [5, 3, 2, 1]),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_data_keeps_layout_lengths_and_padding(
    each_library: Library, layout: int, lengths: list[int], dtype: int
) -> None:
    put, got = (ctypes.c_int * 4)(*lengths), (ctypes.c_int * 4)()
    fill, got_fill = ctypes.c_double(0), ctypes.c_double(9)
    fields = [ctypes.c_int() for _ in range(5)]
    if dtype == c.CUDNN_DATA_BFLOAT16 and each_library.version < BFLOAT16_SINCE:
        pytest.skip(f"cuDNN {each_library.version} has no bfloat16 in networks")
    with descriptor(each_library, "RNNData") as made:
        each_library.cudnnSetRNNDataDescriptor(
            made, dtype, layout, 5, 4, 6, put, ctypes.byref(fill)
        )
        each_library.cudnnGetRNNDataDescriptor(
            made, *map(ctypes.byref, fields), 4, got, ctypes.byref(got_fill)
        )
        assert [each.value for each in fields] == [dtype, layout, 5, 4, 6]
        assert list(got) == lengths


def test_more_than_65535_steps_are_refused(each_library: Library) -> None:
    lengths = (ctypes.c_int * 1)(65_535)
    fixed = (1, 6, lengths, None)
    layout = c.CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED
    with descriptor(each_library, "RNNData") as made:
        each_library.cudnnSetRNNDataDescriptor(made, 0, layout, 65_535, *fixed)
        lengths[0] = 65_536
        with pytest.raises(LibraryError):
            each_library.cudnnSetRNNDataDescriptor(made, 0, layout, 65_536, *fixed)


def test_an_activation_is_kept(each_library: Library) -> None:
    with descriptor(each_library, "Activation") as made:
        put = [c.CUDNN_ACTIVATION_CLIPPED_RELU, c.CUDNN_PROPAGATE_NAN, 6.5]
        each_library.cudnnSetActivationDescriptor(made, *put)
        types = (ctypes.c_int, ctypes.c_int, ctypes.c_double)
        assert read(each_library.cudnnGetActivationDescriptor, made, *types) == put


def test_bytes_for_the_mask_of_dropout_are_told_without_a_gpu(each_library: Library) -> None:
    size = ctypes.c_size_t()
    with descriptor(each_library, "Tensor") as made:
        each_library.cudnnSetTensor4dDescriptor(made, c.CUDNN_TENSOR_NCHW, 0, 10, 10, 10, 1)
        each_library.cudnnDropoutGetReserveSpaceSize(made, ctypes.byref(size))
    assert size.value >= 1000 // 8


@pytest.mark.parametrize(
    "call",
    ["cudnnGetRNNWeightSpaceSize", "cudnnGetRNNTempSpaceSizes", "cudnnDropoutGetStatesSize"],
)
def test_what_needs_a_handle_refuses_none_with_an_error(each_library: Library, call: str) -> None:
    function = getattr(each_library, call)
    nulls = [None if hasattr(kind, "contents") else 0 for kind in function.argtypes]
    with pytest.raises(LibraryBadParameter):
        function(*nulls)
