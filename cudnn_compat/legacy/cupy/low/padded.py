"""The calls of RNNs with Ex: sequences of different lengths, in a padded layout or packed.

xDesc, yDesc, dxDesc and dyDesc are RNN data descriptors. The parameters of attention (kDesc to
queries, dcDesc, dcAttn, dkDesc, dkeys) are ignored, as by the old library; so are workspaces.
"""

from __future__ import annotations

from cudnn_compat.errors import ArgumentError
from cudnn_compat.legacy.cupy.described import RNN
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.low.calls import Call, sequences_of_data
from cudnn_compat.legacy.cupy.registry import find

__all__ = [
    "RNNBackwardDataEx",
    "RNNBackwardWeightsEx",
    "RNNForwardInferenceEx",
    "RNNForwardTrainingEx",
]


@old_name("libcudnn")
def RNNForwardInferenceEx(
    handle: int,
    rnnDesc: int,
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
    kDesc: int,
    keys: int,
    cDesc: int,
    cAttn: int,
    iDesc: int,
    iAttn: int,
    qDesc: int,
    queries: int,
    workSpace: int,
    workSpaceSizeInBytes: int,
) -> None:
    """Run a network. The padding of y is zero.

    Args:
        hx, cx: 0 starts from zeros.
        hy, cy: 0 where they are not wanted.

    Raises:
        CuDNNError: a descriptor is not set, or does not fit the others.
    """
    rnn = find(RNN, rnnDesc)
    sequences, size = sequences_of_data(rnn, xDesc)
    call = Call(handle, rnn, sequences, size, training=False)
    _check_features(call, yDesc, "yDesc", call.spec.output_size)
    call.forward((wDesc, w), x, (hxDesc, hx), (cxDesc, cx), y, (hyDesc, hy), (cyDesc, cy))


@old_name("libcudnn")
def RNNForwardTrainingEx(
    handle: int,
    rnnDesc: int,
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
    kDesc: int,
    keys: int,
    cDesc: int,
    cAttn: int,
    iDesc: int,
    iAttn: int,
    qDesc: int,
    queries: int,
    workSpace: int,
    workSpaceSizeInBytes: int,
    reserveSpace: int,
    reserveSpaceSizeInBytes: int,
) -> None:
    """The same, with dropout; the reserve gets what the two backward calls need."""
    rnn = find(RNN, rnnDesc)
    sequences, size = sequences_of_data(rnn, xDesc)
    reserve = (reserveSpace, reserveSpaceSizeInBytes)
    call = Call(handle, rnn, sequences, size, training=True, reserve=reserve)
    _check_features(call, yDesc, "yDesc", call.spec.output_size)
    call.forward((wDesc, w), x, (hxDesc, hx), (cxDesc, cx), y, (hyDesc, hy), (cyDesc, cy))


@old_name("libcudnn")
def RNNBackwardDataEx(
    handle: int,
    rnnDesc: int,
    yDesc: int,
    y: int,
    dyDesc: int,
    dy: int,
    dcDesc: int,
    dcAttn: int,
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
    dkDesc: int,
    dkeys: int,
    workSpace: int,
    workSpaceSizeInBytes: int,
    reserveSpace: int,
    reserveSpaceSizeInBytes: int,
) -> None:
    """Gradients of x and of the states, with the dropout of the reserve's own forward.

    Args:
        dhy, dcy: 0 is zeros.
        dhx, dcx: 0 where they are not wanted.
    """
    rnn = find(RNN, rnnDesc)
    sequences, size = sequences_of_data(rnn, dxDesc, "dxDesc")
    reserve = (reserveSpace, reserveSpaceSizeInBytes)
    call = Call(handle, rnn, sequences, size, training=True, reserve=reserve, backward=True)
    for name, described in (("yDesc", yDesc), ("dyDesc", dyDesc)):
        _check_features(call, described, name, call.spec.output_size)
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
def RNNBackwardWeightsEx(
    handle: int,
    rnnDesc: int,
    xDesc: int,
    x: int,
    hxDesc: int,
    hx: int,
    yDesc: int,
    y: int,
    workSpace: int,
    workSpaceSizeInBytes: int,
    dwDesc: int,
    dw: int,
    reserveSpace: int,
    reserveSpaceSizeInBytes: int,
) -> None:
    """Add the gradients of the weights into dw; after :func:`RNNBackwardDataEx`."""
    rnn = find(RNN, rnnDesc)
    sequences, size = sequences_of_data(rnn, xDesc)
    reserve = (reserveSpace, reserveSpaceSizeInBytes)
    call = Call(handle, rnn, sequences, size, training=True, reserve=reserve, backward=True)
    _check_features(call, yDesc, "yDesc", call.spec.output_size)
    call.backward_weights(x, (hxDesc, hx), y, (dwDesc, dw))


def _check_features(call: Call, number: int, name: str, wanted: int) -> None:
    other, features = sequences_of_data(call.rnn, number, name)
    mine = call.sequences
    if (other.layout, other.steps, other.lengths) != (mine.layout, mine.steps, mine.lengths):
        raise ArgumentError(f"{name} has other lengths or another layout than the first one")
    if features != wanted:
        raise ArgumentError(f"{name} has {features} features; wanted {wanted}")
