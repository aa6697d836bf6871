"""The library's weight space against the one that ``cudnn_compat/weights.py`` derives.

The package derives the places of all weights in one file and takes the library's to be the same.
That is asked of the library (``cudnnGetRNNWeightParams``) once for every network.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.cudnn.descriptors import Descriptor
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.errors import UnsupportedError
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import PROJECTION_ID, Slot, linear_slots, weight_layout

__all__ = ["Place", "check_layout", "derived_places", "library_places", "library_weight_bytes"]

_BASE = 1 << 30
"""Any address: the library only adds to it."""

_MOST_DIMS = 8


class Place(NamedTuple):
    """Where a matrix or a bias lies, in elements."""

    offset: int
    size: int


Places = dict[tuple[int, int], tuple[Place | None, Place | None]]
"""Matrix and bias, by pseudo-layer and linear id; None where the network has none."""


def library_weight_bytes(session: Session, network: Descriptor) -> int:
    """Bytes of the weight space."""
    size = ctypes.c_size_t()
    session.library.cudnnGetRNNWeightSpaceSize(session.handle, network, ctypes.byref(size))
    return size.value


def library_places(session: Session, network: Descriptor, spec: RNNSpec) -> Places:
    """What the library says."""
    itemsize = numpy_dtype(spec.dtype).itemsize
    size = library_weight_bytes(session, network)
    matrix, bias = (Descriptor(session.library, "Tensor") for _ in range(2))
    places: Places = {}
    for layer in range(spec.num_pseudo_layers):
        for linear in _linear_ids(spec):
            addresses = ctypes.c_void_p(), ctypes.c_void_p()
            session.library.cudnnGetRNNWeightParams(
                session.handle,
                network,
                layer,
                size,
                _BASE,
                linear,
                matrix,
                ctypes.byref(addresses[0]),
                bias,
                ctypes.byref(addresses[1]),
            )
            found = [
                None
                if address.value is None
                else Place((address.value - _BASE) // itemsize, _elements(session, descriptor))
                for address, descriptor in zip(addresses, (matrix, bias), strict=True)
            ]
            places[layer, linear] = found[0], found[1]
    return places


def derived_places(spec: RNNSpec) -> Places:
    """What ``weights.py`` says."""
    return {
        (layer, linear): (_place(matrix), _place(bias))
        for layer in range(spec.num_pseudo_layers)
        for linear in _linear_ids(spec)
        for matrix, bias in [linear_slots(spec, layer, linear)]
    }


def check_layout(session: Session, network: Descriptor, spec: RNNSpec) -> None:
    """Refuse a library that keeps its weights elsewhere: every number would be wrong.

    Raises:
        UnsupportedError: names the first difference.
    """
    wanted = weight_layout(spec).size * numpy_dtype(spec.dtype).itemsize
    size = library_weight_bytes(session, network)
    if size != wanted:
        raise UnsupportedError(
            f"cuDNN {session.library.version} has a weight space of {size} bytes for this network; "
            f"cudnn_compat knows one of {wanted} bytes"
        )
    derived = derived_places(spec)
    for key, places in library_places(session, network, spec).items():
        if places != derived[key]:
            raise UnsupportedError(
                f"cuDNN {session.library.version} keeps matrix and bias of (pseudo-layer, linear "
                f"id) {key} at {places}; cudnn_compat knows them at {derived[key]}"
            )


def _linear_ids(spec: RNNSpec) -> tuple[int, ...]:
    ids = tuple(range(2 * spec.num_gates))
    return ids if spec.proj_size is None else (*ids, PROJECTION_ID)


def _place(slot: Slot | None) -> Place | None:
    return None if slot is None else Place(slot.offset, slot.size)


def _elements(session: Session, descriptor: Descriptor) -> int:
    dtype, dims = ctypes.c_int(), ctypes.c_int()
    shape, strides = (ctypes.c_int * _MOST_DIMS)(), (ctypes.c_int * _MOST_DIMS)()
    session.library.cudnnGetTensorNdDescriptor(
        descriptor, _MOST_DIMS, ctypes.byref(dtype), ctypes.byref(dims), shape, strides
    )
    size = 1
    for dim in shape[: dims.value]:
        size *= dim
    return size
