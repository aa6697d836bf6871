"""How descriptors of ``cupy.cuda.cudnn`` are compared: what is set is told, and is destroyed."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final

from cudnn_compat.legacy.cupy import libcudnn
from cudnn_compat.matrix.addresses import call, integers
from cudnn_compat.matrix.comparing import Case, Found, same
from cudnn_compat.matrix.old_network import TYPES

__all__ = ["CHECKS", "gone"]


def tensors(case: Case) -> Found:
    """Three ways to set a tensor descriptor, and what it tells; nothing is left of a destroyed one.

    A descriptor without a value is refused with the status number of old.
    """
    dtype, made = TYPES[case.dtype], libcudnn.createTensorDescriptor()
    contiguous, spread = (60, 20, 5, 1), (120, 40, 10, 2)
    libcudnn.setTensor4dDescriptor(made, 0, dtype, 2, 3, 4, 5)
    told = libcudnn.getTensor4dDescriptor(made)
    yield same("of setTensor4dDescriptor", told, (dtype, 2, 3, 4, 5, *contiguous))
    libcudnn.setTensor4dDescriptorEx(made, dtype, 2, 3, 4, 5, *spread)
    told = libcudnn.getTensor4dDescriptor(made)
    yield same("of setTensor4dDescriptorEx", told, (dtype, 2, 3, 4, 5, *spread))
    dims, strides = integers((5, 4, 3, 2)), integers((24, 6, 2, 1))
    addresses = (ctypes.addressof(dims), ctypes.addressof(strides))
    libcudnn.setTensorNdDescriptor(made, dtype, 4, *addresses)
    told = libcudnn.getTensor4dDescriptor(made)
    yield same("of setTensorNdDescriptor", told, (dtype, 5, 4, 3, 2, 24, 6, 2, 1))
    libcudnn.destroyTensorDescriptor(made)
    yield from gone(lambda: libcudnn.getTensor4dDescriptor(made))


def gone(use: Callable[[], Any]) -> Found:
    """A number that was destroyed is refused as of old: bad parameter."""
    try:
        use()
        status = None
    except libcudnn.CuDNNError as error:
        status = error.status
    yield same("status of a destroyed one", status, libcudnn.CUDNN_STATUS_BAD_PARAM)


def filters(case: Case) -> Found:
    """Two ways to set a filter descriptor, and what it tells."""
    dtype, made = TYPES[case.dtype], libcudnn.createFilterDescriptor()
    libcudnn.setFilter4dDescriptor_v4(made, dtype, 0, 2, 3, 4, 5)
    told = libcudnn.getFilterNdDescriptor(made, 4)
    yield same("of setFilter4dDescriptor_v4", told, (dtype, 0, 4, (2, 3, 4, 5)))
    dims = integers((7, 1, 1))
    libcudnn.setFilterNdDescriptor_v4(made, dtype, 0, 3, ctypes.addressof(dims))
    told = libcudnn.getFilterNdDescriptor(made, 3)
    yield same("of setFilterNdDescriptor_v4", told, (dtype, 0, 3, (7, 1, 1)))
    libcudnn.destroyFilterDescriptor(made)
    yield from gone(lambda: libcudnn.getFilterNdDescriptor(made, 3))


def data_descriptors(case: Case) -> Found:
    """What was set is written to host memory, for every layout."""
    dtype, lengths = TYPES[case.dtype], (3, 5, 1, 4)
    for layout in (0, 1, 2):
        made, given = libcudnn.createRNNDataDescriptor(), integers(lengths)
        libcudnn.setRNNDataDescriptor(made, dtype, layout, 5, 4, 3, ctypes.addressof(given), 0)
        told = [ctypes.c_int(-1) for _ in range(5)]
        out, fill = integers((0,) * 4), ctypes.c_double(9)
        names = ("dataType", "layout", "maxSeqLength", "batchSize", "vectorSize")
        known = dict(zip(names, map(ctypes.addressof, told), strict=True)) | {
            "RNNDataDesc": made,
            "arrayLengthRequested": 4,
            "seqLengthArray": ctypes.addressof(out),
            "paddingFill": ctypes.addressof(fill),
        }
        call("getRNNDataDescriptor", known)
        numbers = [each.value for each in told]
        yield same(f"of layout {layout}", numbers, [dtype, layout, 5, 4, 3])
        yield same(f"lengths of layout {layout}", tuple(out), lengths)
        libcudnn.destroyRNNDataDescriptor(made)
        yield from gone(functools.partial(libcudnn.destroyRNNDataDescriptor, made))


def padding_fill(case: Case) -> Found:
    """A value for the padding that is not zero is refused."""
    given, fill = integers((2, 1)), ctypes.c_double(1.0)
    made = libcudnn.createRNNDataDescriptor()
    addresses = (ctypes.addressof(given), ctypes.addressof(fill))
    libcudnn.setRNNDataDescriptor(made, TYPES[case.dtype], 0, 2, 2, 3, *addresses)
    yield same("whether another padding than zero is refused", False, True)


CHECKS: Final[dict[str, Callable[[Case], Found]]] = {
    function.__name__: function for function in (tensors, filters, data_descriptors, padding_fill)
}
