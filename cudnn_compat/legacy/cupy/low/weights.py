"""Addresses of one matrix or bias in a weight space."""

from __future__ import annotations

import ctypes

from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.checking import check_integer
from cudnn_compat.errors import ArgumentError
from cudnn_compat.legacy.cupy.described import RNN, Filter
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.handles import space_of
from cudnn_compat.legacy.cupy.low.networks import input_size_of
from cudnn_compat.legacy.cupy.memory import write_integer
from cudnn_compat.legacy.cupy.registry import find
from cudnn_compat.legacy.cupy.translate import network_of
from cudnn_compat.weights import linear_slots, weight_layout

__all__ = ["getRNNLinLayerBiasParams", "getRNNLinLayerMatrixParams"]


@old_name("libcudnn")
def getRNNLinLayerMatrixParams(
    handle: int,
    rnnDesc: int,
    layer: int,
    xDesc: int,
    wDesc: int,
    w: int,
    linLayerID: int,
    linLayerMatDesc: int,
    linLayerMat: int,
) -> None:
    """Where the matrix of one linear id lies.

    Args:
        layer: pseudo-layer, 2 · layer + direction when bidirectional.
        xDesc: descriptor of a step of x, ``(batch, input, 1)``.
        w: address of the weight space.
        linLayerMatDesc: filter descriptor, which gets the matrix's dimensions ``(1, out, in)``.
        linLayerMat: address of a host ``size_t`` that gets the matrix's address; 0 where the
            network has none (the input matrices of a first layer with skipped input).
    """
    _write(handle, rnnDesc, layer, xDesc, wDesc, w, linLayerID, linLayerMatDesc, linLayerMat, 0)


@old_name("libcudnn")
def getRNNLinLayerBiasParams(
    handle: int,
    rnnDesc: int,
    layer: int,
    xDesc: int,
    wDesc: int,
    w: int,
    linLayerID: int,
    linLayerBiasDesc: int,
    linLayerBias: int,
) -> None:
    """Where the bias of one linear id lies; its descriptor gets the dimensions ``(1, out, 1)``."""
    _write(handle, rnnDesc, layer, xDesc, wDesc, w, linLayerID, linLayerBiasDesc, linLayerBias, 1)


def _write(
    handle: int,
    rnn_number: int,
    layer: int,
    x: int,
    w_number: int,
    w: int,
    linear_id: int,
    described: int,
    address: int,
    which: int,
) -> None:
    rnn, space, found = find(RNN, rnn_number), space_of(handle), find(Filter, described)
    spec = network_of(rnn, input_size_of(x), on_gpu=space.device is not None, dropout=0.0)
    size, given = weight_layout(spec).size, find(Filter, w_number).size("wDesc")
    if given != size:
        raise ArgumentError(f"wDesc describes {given} elements; this network has {size} weights")
    if not address:
        raise ArgumentError("the address to write to is NULL")
    base = check_integer("w", w, 0, 2**64)
    slot = linear_slots(spec, layer, linear_id)[which]
    found.dtype = spec.dtype
    if slot is None:
        found.shape = (1, 0, 0)
        write_integer(address, 0, ctypes.c_size_t)
        return
    rows = slot.shape[0]
    found.shape = (1, rows, slot.size // rows)
    place = base + slot.offset * numpy_dtype(spec.dtype).itemsize
    write_integer(address, place, ctypes.c_size_t)
