"""RNN data descriptors: x and y of the calls with Ex."""

from __future__ import annotations

from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.checking import check_integer
from cudnn_compat.errors import ArgumentError, UnsupportedError
from cudnn_compat.legacy.cupy.described import RNNData, code_of_dtype, dtype_of
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.memory import Space, host_integers, write_integer
from cudnn_compat.legacy.cupy.registry import find, give_number, release
from cudnn_compat.legacy.cupy.translate import LAYOUTS, choice

__all__ = [
    "createRNNDataDescriptor",
    "destroyRNNDataDescriptor",
    "getRNNDataDescriptor",
    "setRNNDataDescriptor",
]

_HOST = Space(None)


@old_name("libcudnn")
def createRNNDataDescriptor() -> int:
    """An RNN data descriptor, to be set."""
    return give_number(RNNData())


@old_name("libcudnn")
def destroyRNNDataDescriptor(RNNDataDesc: int) -> None:
    """Forget an RNN data descriptor."""
    release(RNNData, RNNDataDesc)


@old_name("libcudnn")
def setRNNDataDescriptor(
    RNNDataDesc: int,
    dataType: int,
    layout: int,
    maxSeqLength: int,
    batchSize: int,
    vectorSize: int,
    seqLengthArray: int,
    paddingFill: int,
) -> None:
    """Describe a batch of sequences.

    Args:
        layout: ``CUDNN_RNN_DATA_LAYOUT_*``.
        seqLengthArray: address of a host array of batchSize C ints (int32), the steps of each
            sequence.
        paddingFill: address of a host value of the data type, or 0. Padding comes out as zero, so
            the value must be zero.
    """
    data = find(RNNData, RNNDataDesc)
    dtype = dtype_of(dataType)
    choice("layout", layout, LAYOUTS)
    steps = check_integer("maxSeqLength", maxSeqLength, 1)
    batch = check_integer("batchSize", batchSize, 1)
    features = check_integer("vectorSize", vectorSize, 1)
    lengths = host_integers("seqLengthArray", seqLengthArray, batch)
    if min(lengths) < 0 or max(lengths) > steps:
        raise ArgumentError(f"seqLengthArray has {lengths}; wanted lengths of 0 to {steps}")
    if layout == 1 and max(lengths) != steps:  # packed
        raise ArgumentError(f"maxSeqLength is {steps}; the longest sequence has {max(lengths)}")
    if paddingFill and (fill := _HOST.needed("paddingFill", paddingFill, (1,), dtype)[0]) != 0:
        raise UnsupportedError(f"paddingFill points to {fill}; padding comes out as zero here")
    data.dtype, data.layout, data.steps = dtype, layout, steps
    data.batch, data.features, data.lengths = batch, features, lengths


@old_name("libcudnn")
def getRNNDataDescriptor(
    RNNDataDesc: int,
    dataType: int,
    layout: int,
    maxSeqLength: int,
    batchSize: int,
    vectorSize: int,
    arrayLengthRequested: int,
    seqLengthArray: int,
    paddingFill: int,
) -> None:
    """Write what was set to host memory: C ints, so many lengths, and a padding value of zero.

    Addresses that are 0 get nothing.
    """
    data = find(RNNData, RNNDataDesc)
    if data.lengths is None:
        raise ArgumentError("the RNN data descriptor has been created but not set")
    code = code_of_dtype(data.dtype)
    assert code is not None
    write_integer(dataType, code)
    write_integer(layout, data.layout)
    write_integer(maxSeqLength, data.steps)
    write_integer(batchSize, data.batch)
    write_integer(vectorSize, data.features)
    if seqLengthArray:
        for index, length in enumerate(data.lengths[: max(arrayLengthRequested, 0)]):
            write_integer(seqLengthArray + 4 * index, length)
    if paddingFill:
        shape = (numpy_dtype(data.dtype).itemsize // 2,)
        _HOST.needed("paddingFill", paddingFill, shape, "float16")[...] = 0
