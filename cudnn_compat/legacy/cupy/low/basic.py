"""The calls of RNNs without Ex: steps one after the other, each with its own batch size.

xDesc, yDesc, dxDesc and dyDesc are the addresses of host arrays of seqLength tensor descriptors,
each ``(batch of the step, features, 1)``; batch sizes never increase. Workspaces are not used.
"""

from __future__ import annotations

from cudnn_compat.errors import ArgumentError
from cudnn_compat.legacy.cupy.described import RNN, Tensor
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.low.calls import Call, sequences_of_steps
from cudnn_compat.legacy.cupy.registry import find
from cudnn_compat.sequences import Sequences

__all__ = [
    "RNNBackwardData",
    "RNNBackwardWeights",
    "RNNForwardInference",
    "RNNForwardTraining",
]


@old_name("libcudnn")
def RNNForwardInference(
    handle: int,
    rnnDesc: int,
    seqLength: int,
    xDesc: int,
    x: int,
    hxDesc: int,
    hx: int,
    cxDesc: int,
    cx: int,
    wDesc: int,
    w: int,
    yDesc: int,
    y: int,
    hyDesc: int,
    hy: int,
    cyDesc: int,
    cy: int,
    workspace: int,
    workSpaceSizeInBytes: int,
) -> None:
    """Run a network.

    Args:
        hx, cx: 0 starts from zeros.
        hy, cy: 0 where they are not wanted.

    Raises:
        CuDNNError: a descriptor is not set, or does not fit the others.
    """
    rnn, sequences, size = _prepare(rnnDesc, seqLength, xDesc, hxDesc)
    call = Call(handle, rnn, sequences, size, training=False)
    _check_features(call, seqLength, yDesc, "yDesc", call.spec.output_size)
    call.forward((wDesc, w), x, (hxDesc, hx), (cxDesc, cx), y, (hyDesc, hy), (cyDesc, cy))


@old_name("libcudnn")
def RNNForwardTraining(
    handle: int,
    rnnDesc: int,
    seqLength: int,
    xDesc: int,
    x: int,
    hxDesc: int,
    hx: int,
    cxDesc: int,
    cx: int,
    wDesc: int,
    w: int,
    yDesc: int,
    y: int,
    hyDesc: int,
    hy: int,
    cyDesc: int,
    cy: int,
    workspace: int,
    workSpaceSizeInBytes: int,
    reserveSpace: int,
    reserveSpaceSizeInBytes: int,
) -> None:
    """The same, with dropout; the reserve gets what the two backward calls need."""
    rnn, sequences, size = _prepare(rnnDesc, seqLength, xDesc, hxDesc)
    reserve = (reserveSpace, reserveSpaceSizeInBytes)
    call = Call(handle, rnn, sequences, size, training=True, reserve=reserve)
    _check_features(call, seqLength, yDesc, "yDesc", call.spec.output_size)
    call.forward((wDesc, w), x, (hxDesc, hx), (cxDesc, cx), y, (hyDesc, hy), (cyDesc, cy))


@old_name("libcudnn")
def RNNBackwardData(
    handle: int,
    rnnDesc: int,
    seqLength: int,
    yDesc: int,
    y: int,
    dyDesc: int,
    dy: int,
    dhyDesc: int,
    dhy: int,
    dcyDesc: int,
    dcy: int,
    wDesc: int,
    w: int,
    hxDesc: int,
    hx: int,
    cxDesc: int,
    cx: int,
    dxDesc: int,
    dx: int,
    dhxDesc: int,
    dhx: int,
    dcxDesc: int,
    dcx: int,
    workspace: int,
    workSpaceSizeInBytes: int,
    reserveSpace: int,
    reserveSpaceSizeInBytes: int,
) -> None:
    """Gradients of x and of the states, with the dropout of the reserve's own forward.

    Args:
        dhy, dcy: 0 is zeros.
        dhx, dcx: 0 where they are not wanted.
    """
    rnn, sequences, size = _prepare(rnnDesc, seqLength, dxDesc, hxDesc, "dxDesc")
    reserve = (reserveSpace, reserveSpaceSizeInBytes)
    call = Call(handle, rnn, sequences, size, training=True, reserve=reserve, backward=True)
    for name, descriptors in (("yDesc", yDesc), ("dyDesc", dyDesc)):
        _check_features(call, seqLength, descriptors, name, call.spec.output_size)
    call.backward_data(
        (wDesc, w),
        (hxDesc, hx),
        (cxDesc, cx),
        y,
        dy,
        (dhyDesc, dhy),
        (dcyDesc, dcy),
        dx,
        (dhxDesc, dhx),
        (dcxDesc, dcx),
    )


@old_name("libcudnn")
def RNNBackwardWeights(
    handle: int,
    rnnDesc: int,
    seqLength: int,
    xDesc: int,
    x: int,
    hxDesc: int,
    hx: int,
    yDesc: int,
    y: int,
    workspace: int,
    workSpaceSizeInBytes: int,
    dwDesc: int,
    dw: int,
    reserveSpace: int,
    reserveSpaceSizeInBytes: int,
) -> None:
    """Add the gradients of the weights into dw; after :func:`RNNBackwardData`."""
    rnn, sequences, size = _prepare(rnnDesc, seqLength, xDesc, hxDesc)
    reserve = (reserveSpace, reserveSpaceSizeInBytes)
    call = Call(handle, rnn, sequences, size, training=True, reserve=reserve, backward=True)
    _check_features(call, seqLength, yDesc, "yDesc", call.spec.output_size)
    call.backward_weights(x, (hxDesc, hx), y, (dwDesc, dw))


def _prepare(
    rnn_number: int, steps: int, descriptors: int, state: int, name: str = "xDesc"
) -> tuple[RNN, Sequences, int]:
    rnn, batch = find(RNN, rnn_number), None
    if state:
        dims = find(Tensor, state).dims("hxDesc")
        if len(dims) == 3:
            batch = dims[1]
    sequences, size = sequences_of_steps(rnn, steps, descriptors, name, batch)
    return rnn, sequences, size


def _check_features(call: Call, steps: int, descriptors: int, name: str, wanted: int) -> None:
    sequences, features = sequences_of_steps(
        call.rnn, steps, descriptors, name, call.sequences.batch
    )
    if features != wanted or sequences.batch_sizes != call.sequences.batch_sizes:
        raise ArgumentError(
            f"{name} has {features} features and batch sizes {sequences.batch_sizes}; wanted "
            f"{wanted} and {call.sequences.batch_sizes}"
        )
