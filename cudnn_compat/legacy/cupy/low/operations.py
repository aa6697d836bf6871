"""Dropout, softmax and activations on plain addresses."""

from __future__ import annotations

import ctypes

from cudnn_compat.arrays import Array
from cudnn_compat.checking import check_integer
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.choose import engine_of_device
from cudnn_compat.errors import ArgumentError, UnsupportedError
from cudnn_compat.legacy.cupy import constants as c
from cudnn_compat.legacy.cupy.described import Activation, Dropout, Tensor
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.handles import current_space, space_of
from cudnn_compat.legacy.cupy.memory import Space
from cudnn_compat.legacy.cupy.registry import find, give_number, release
from cudnn_compat.legacy.cupy.translate import ACTIVATIONS, SOFTMAXES, choice

__all__ = [
    "STATES_BYTES",
    "activationBackward_v4",
    "activationForward_v4",
    "createActivationDescriptor",
    "createDropoutDescriptor",
    "destroyActivationDescriptor",
    "destroyDropoutDescriptor",
    "dropoutBackward",
    "dropoutForward",
    "dropoutGetStatesSize",
    "getDropoutReserveSpaceSize",
    "setActivationDescriptor",
    "setDropoutDescriptor",
    "set_dropout",
    "softmaxBackward",
    "softmaxForward",
]

STATES_BYTES = 16
"""What a program is told to allocate for a generator, which the engines keep themselves."""


@old_name("libcudnn")
def createDropoutDescriptor() -> int:
    """A dropout descriptor, to be set."""
    return give_number(Dropout())


@old_name("libcudnn")
def destroyDropoutDescriptor(dropoutDesc: int) -> None:
    """Forget a dropout descriptor; networks that were set with it keep it."""
    release(Dropout, dropoutDesc)


@old_name("libcudnn")
def dropoutGetStatesSize(handle: int) -> int:
    """Bytes to allocate for a generator: few, because the engines keep it themselves."""
    space_of(handle)
    return STATES_BYTES


@old_name("libcudnn")
def setDropoutDescriptor(
    dropoutDesc: int, handle: int, dropout: float, states: int, stateSizeInBytes: int, seed: int
) -> None:
    """Set a ratio and start a generator.

    Args:
        states: any address but 0 starts a generator from ``seed`` (nothing is written there); 0
            changes the ratio and keeps the generator.
    """
    set_dropout(find(Dropout, dropoutDesc), dropout, states, seed)


def set_dropout(described: Dropout, ratio: float, states: int, seed: int) -> None:
    """Set a description; nothing is changed where something is wrong.

    Raises:
        ArgumentError: the ratio is no probability, or the seed no unsigned integer.
    """
    ratio = float(ratio)
    if not 0 <= ratio <= 1:
        raise ArgumentError(f"the dropout ratio is {ratio}; wanted a number from 0 to 1")
    if states:
        described.state = DropoutState(seed)
    described.ratio = ratio


@old_name("libcudnn")
def getDropoutReserveSpaceSize(xDesc: int) -> int:
    """Bytes of the mask of a tensor, on the current device."""
    tensor, space = find(Tensor, xDesc), current_space()
    engine = engine_of_device(space.name)
    return engine.dropout_reserve_bytes(tensor.size("xDesc"), tensor.dtype, space.name)


@old_name("libcudnn")
def dropoutForward(
    handle: int,
    dropoutDesc: int,
    srcDesc: int,
    srcData: int,
    dstDesc: int,
    dstData: int,
    reserveSpace: int,
    reserveSpaceSizeInBytes: int,
) -> None:
    """Dropout; the reserve keeps the mask."""
    dropout, space = find(Dropout, dropoutDesc), space_of(handle)
    if dropout.state is None:
        raise ArgumentError("the dropout descriptor was set without states: no generator")
    engine_of_device(space.name).dropout_forward(
        _tensor(space, "src", srcDesc, srcData),
        y=_tensor(space, "dst", dstDesc, dstData),
        reserve=space.needed("reserveSpace", reserveSpace, (reserveSpaceSizeInBytes,), "uint8"),
        ratio=dropout.ratio,
        state=dropout.state,
    )


@old_name("libcudnn")
def dropoutBackward(
    handle: int,
    dropoutDesc: int,
    dyDesc: int,
    dyData: int,
    dxtDesc: int,
    dxData: int,
    reserveSpace: int,
    reserveSpaceSizeInBytes: int,
) -> None:
    """The gradient under the mask of the reserve, with the ratio that is set now."""
    dropout, space = find(Dropout, dropoutDesc), space_of(handle)
    engine_of_device(space.name).dropout_backward(
        _tensor(space, "dy", dyDesc, dyData),
        dx=_tensor(space, "dx", dxtDesc, dxData),
        reserve=space.needed("reserveSpace", reserveSpace, (reserveSpaceSizeInBytes,), "uint8"),
        ratio=dropout.ratio,
    )


@old_name("libcudnn")
def createActivationDescriptor() -> int:
    """An activation descriptor, to be set."""
    return give_number(Activation())


@old_name("libcudnn")
def destroyActivationDescriptor(activationDesc: int) -> None:
    """Forget an activation descriptor."""
    release(Activation, activationDesc)


@old_name("libcudnn")
def setActivationDescriptor(
    activationDesc: int, mode: int, reluNanOpt: int, reluCeiling: float
) -> None:
    """Say which activation; ``reluCeiling`` is the ceiling of the clipped relu, alpha of elu.

    Raises:
        CuDNNError: ``CUDNN_PROPAGATE_NAN``, which CuPy's own functions never passed.
    """
    described = find(Activation, activationDesc)
    choice("mode", mode, ACTIVATIONS)
    if reluNanOpt != c.CUDNN_NOT_PROPAGATE_NAN:
        raise UnsupportedError("reluNanOpt must be CUDNN_NOT_PROPAGATE_NAN (0) here")
    described.mode, described.coef = mode, float(reluCeiling)


@old_name("libcudnn")
def activationForward_v4(
    handle: int,
    activationDesc: int,
    alpha: int,
    srcDesc: int,
    srcData: int,
    beta: int,
    dstDesc: int,
    dstData: int,
) -> None:
    """An activation of each element; alpha must point to 1 and beta to 0."""
    function, coef = _activation(activationDesc)
    space = space_of(handle)
    x = _tensor(space, "src", srcDesc, srcData)
    _check_factors(x, alpha, beta)
    engine_of_device(space.name).activation_forward(
        x, y=_tensor(space, "dst", dstDesc, dstData), function=function, coef=coef
    )


@old_name("libcudnn")
def activationBackward_v4(
    handle: int,
    activationDesc: int,
    alpha: int,
    srcDesc: int,
    srcData: int,
    srcDiffDesc: int,
    srcDiffData: int,
    destDesc: int,
    destData: int,
    beta: int,
    destDiffDesc: int,
    destDiffData: int,
) -> None:
    """The gradient: src is y, srcDiff dy, dest x and destDiff dx."""
    function, coef = _activation(activationDesc)
    space = space_of(handle)
    x = _tensor(space, "dest", destDesc, destData)
    _check_factors(x, alpha, beta)
    engine_of_device(space.name).activation_backward(
        x,
        _tensor(space, "src", srcDesc, srcData),
        _tensor(space, "srcDiff", srcDiffDesc, srcDiffData),
        dx=_tensor(space, "destDiff", destDiffDesc, destDiffData),
        function=function,
        coef=coef,
    )


@old_name("libcudnn")
def softmaxForward(
    handle: int,
    algorithm: int,
    mode: int,
    alpha: int,
    srcDesc: int,
    srcData: int,
    beta: int,
    dstDesc: int,
    dstData: int,
) -> None:
    """Softmax over all axes but the first, or over the second; alpha points to 1, beta to 0."""
    space = space_of(handle)
    x = _tensor(space, "src", srcDesc, srcData)
    _check_factors(x, alpha, beta)
    engine_of_device(space.name).softmax_forward(
        x,
        y=_tensor(space, "dst", dstDesc, dstData),
        algorithm=choice("algorithm", algorithm, SOFTMAXES),
        mode=choice("mode", mode, _SOFTMAX_MODES),
    )


@old_name("libcudnn")
def softmaxBackward(
    handle: int,
    algorithm: int,
    mode: int,
    alpha: int,
    srcDesc: int,
    srcData: int,
    srcDiffDesc: int,
    srcDiffData: int,
    beta: int,
    destDiffDesc: int,
    destDiffData: int,
) -> None:
    """The gradient: src is y, srcDiff dy and destDiff dx."""
    space = space_of(handle)
    y = _tensor(space, "src", srcDesc, srcData)
    _check_factors(y, alpha, beta)
    engine_of_device(space.name).softmax_backward(
        y,
        _tensor(space, "srcDiff", srcDiffDesc, srcDiffData),
        dx=_tensor(space, "destDiff", destDiffDesc, destDiffData),
        algorithm=choice("algorithm", algorithm, SOFTMAXES),
        mode=choice("mode", mode, _SOFTMAX_MODES),
    )


_SOFTMAX_MODES = {
    c.CUDNN_SOFTMAX_MODE_INSTANCE: "instance",
    c.CUDNN_SOFTMAX_MODE_CHANNEL: "channel",
}


def _activation(number: int) -> tuple[str, float]:
    described = find(Activation, number)
    if described.mode is None:
        raise ArgumentError("the activation descriptor has been created but not set")
    return ACTIVATIONS[described.mode], described.coef


def _tensor(space: Space, name: str, number: int, address: int) -> Array:
    tensor = find(Tensor, number)
    return space.needed(f"{name}Data", address, tensor.dims(f"{name}Desc"), tensor.dtype)


def _check_factors(array: Array, alpha: int, beta: int) -> None:
    """The factors of result and target, host floats (doubles for float64), are 1 and 0."""
    kind = ctypes.c_double if array.dtype.itemsize == 8 else ctypes.c_float
    for name, address, wanted in (("alpha", alpha, 1), ("beta", beta, 0)):
        if not check_integer(name, address, 0, 2**64):
            raise ArgumentError(f"{name} is NULL; wanted the address of {wanted}")
        given = kind.from_address(address).value
        if given != wanted:
            raise UnsupportedError(f"{name} points to {given}; only {wanted} is offered")
