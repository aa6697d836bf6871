"""Name, parameters and types of every function of cuDNN that is called.

Generated, do not edit; made from the headers of cuDNN 8.9.7 and 9.19.0 by
scripts/generate_prototypes.py.

Enums are ``c_int``. Handles, descriptors, streams and addresses of device memory are ``c_void_p``,
which takes an integer, None, ``byref(…)`` and ctypes arrays. What the library writes to the host or
reads from arrays there is ``POINTER(…)``, which takes ``byref(…)`` and ctypes arrays of that type,
and None.
"""

# fmt: off
# ruff: noqa: C408, I001

from __future__ import annotations

from ctypes import (
    POINTER, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint32, c_ulonglong, c_void_p,
)
from typing import Any, NamedTuple

__all__ = ["MADE_FROM", "PROTOTYPES", "Prototype"]


class Prototype(NamedTuple):
    """How a function is called."""

    parameters: tuple[str, ...]
    argtypes: tuple[Any, ...]
    restype: Any
    returns_status: bool


def _status(**parameters: Any) -> Prototype:
    return Prototype(tuple(parameters), tuple(parameters.values()), c_int, True)


def _returns(restype: Any, **parameters: Any) -> Prototype:
    return Prototype(tuple(parameters), tuple(parameters.values()), restype, False)


MADE_FROM = {8: "8.9.7", 9: "9.19.0"}
"""Major to the version whose headers were read."""

_BOTH = dict(
    cudnnActivationBackward=_status(handle=c_void_p, activationDesc=c_void_p, alpha=c_void_p,
        yDesc=c_void_p, y=c_void_p, dyDesc=c_void_p, dy=c_void_p, xDesc=c_void_p, x=c_void_p,
        beta=c_void_p, dxDesc=c_void_p, dx=c_void_p),
    cudnnActivationForward=_status(handle=c_void_p, activationDesc=c_void_p, alpha=c_void_p,
        xDesc=c_void_p, x=c_void_p, beta=c_void_p, yDesc=c_void_p, y=c_void_p),
    cudnnBuildRNNDynamic=_status(handle=c_void_p, rnnDesc=c_void_p, miniBatch=c_int),
    cudnnCreate=_status(handle=POINTER(c_void_p)),
    cudnnCreateActivationDescriptor=_status(activationDesc=POINTER(c_void_p)),
    cudnnCreateDropoutDescriptor=_status(dropoutDesc=POINTER(c_void_p)),
    cudnnCreateRNNDataDescriptor=_status(rnnDataDesc=POINTER(c_void_p)),
    cudnnCreateRNNDescriptor=_status(rnnDesc=POINTER(c_void_p)),
    cudnnCreateTensorDescriptor=_status(tensorDesc=POINTER(c_void_p)),
    cudnnDestroy=_status(handle=c_void_p),
    cudnnDestroyActivationDescriptor=_status(activationDesc=c_void_p),
    cudnnDestroyDropoutDescriptor=_status(dropoutDesc=c_void_p),
    cudnnDestroyRNNDataDescriptor=_status(rnnDataDesc=c_void_p),
    cudnnDestroyRNNDescriptor=_status(rnnDesc=c_void_p),
    cudnnDestroyTensorDescriptor=_status(tensorDesc=c_void_p),
    cudnnDropoutBackward=_status(handle=c_void_p, dropoutDesc=c_void_p, dydesc=c_void_p,
        dy=c_void_p, dxdesc=c_void_p, dx=c_void_p, reserveSpace=c_void_p,
        reserveSpaceSizeInBytes=c_size_t),
    cudnnDropoutForward=_status(handle=c_void_p, dropoutDesc=c_void_p, xdesc=c_void_p, x=c_void_p,
        ydesc=c_void_p, y=c_void_p, reserveSpace=c_void_p, reserveSpaceSizeInBytes=c_size_t),
    cudnnDropoutGetReserveSpaceSize=_status(xdesc=c_void_p, sizeInBytes=POINTER(c_size_t)),
    cudnnDropoutGetStatesSize=_status(handle=c_void_p, sizeInBytes=POINTER(c_size_t)),
    cudnnGetActivationDescriptor=_status(activationDesc=c_void_p, mode=POINTER(c_int),
        reluNanOpt=POINTER(c_int), coef=POINTER(c_double)),
    cudnnGetCudartVersion=_returns(c_size_t),
    cudnnGetDropoutDescriptor=_status(dropoutDesc=c_void_p, handle=c_void_p,
        dropout=POINTER(c_float), states=POINTER(c_void_p), seed=POINTER(c_ulonglong)),
    cudnnGetErrorString=_returns(c_char_p, status=c_int),
    cudnnGetProperty=_status(type=c_int, value=POINTER(c_int)),
    cudnnGetRNNDataDescriptor=_status(rnnDataDesc=c_void_p, dataType=POINTER(c_int),
        layout=POINTER(c_int), maxSeqLength=POINTER(c_int), batchSize=POINTER(c_int),
        vectorSize=POINTER(c_int), arrayLengthRequested=c_int, seqLengthArray=POINTER(c_int),
        paddingFill=c_void_p),
    cudnnGetRNNDescriptor_v8=_status(rnnDesc=c_void_p, algo=POINTER(c_int), cellMode=POINTER(c_int),
        biasMode=POINTER(c_int), dirMode=POINTER(c_int), inputMode=POINTER(c_int),
        dataType=POINTER(c_int), mathPrec=POINTER(c_int), mathType=POINTER(c_int),
        inputSize=POINTER(c_int32), hiddenSize=POINTER(c_int32), projSize=POINTER(c_int32),
        numLayers=POINTER(c_int32), dropoutDesc=POINTER(c_void_p), auxFlags=POINTER(c_uint32)),
    cudnnGetRNNTempSpaceSizes=_status(handle=c_void_p, rnnDesc=c_void_p, fwdMode=c_int,
        xDesc=c_void_p, workSpaceSize=POINTER(c_size_t), reserveSpaceSize=POINTER(c_size_t)),
    cudnnGetRNNWeightParams=_status(handle=c_void_p, rnnDesc=c_void_p, pseudoLayer=c_int32,
        weightSpaceSize=c_size_t, weightSpace=c_void_p, linLayerID=c_int32, mDesc=c_void_p,
        mAddr=POINTER(c_void_p), bDesc=c_void_p, bAddr=POINTER(c_void_p)),
    cudnnGetRNNWeightSpaceSize=_status(handle=c_void_p, rnnDesc=c_void_p,
        weightSpaceSize=POINTER(c_size_t)),
    cudnnGetStream=_status(handle=c_void_p, streamId=POINTER(c_void_p)),
    cudnnGetTensor4dDescriptor=_status(tensorDesc=c_void_p, dataType=POINTER(c_int),
        n=POINTER(c_int), c=POINTER(c_int), h=POINTER(c_int), w=POINTER(c_int),
        nStride=POINTER(c_int), cStride=POINTER(c_int), hStride=POINTER(c_int),
        wStride=POINTER(c_int)),
    cudnnGetTensorNdDescriptor=_status(tensorDesc=c_void_p, nbDimsRequested=c_int,
        dataType=POINTER(c_int), nbDims=POINTER(c_int), dimA=POINTER(c_int),
        strideA=POINTER(c_int)),
    cudnnGetTensorSizeInBytes=_status(tensorDesc=c_void_p, size=POINTER(c_size_t)),
    cudnnGetVersion=_returns(c_size_t),
    cudnnRNNBackwardData_v8=_status(handle=c_void_p, rnnDesc=c_void_p, devSeqLengths=c_void_p,
        yDesc=c_void_p, y=c_void_p, dy=c_void_p, xDesc=c_void_p, dx=c_void_p, hDesc=c_void_p,
        hx=c_void_p, dhy=c_void_p, dhx=c_void_p, cDesc=c_void_p, cx=c_void_p, dcy=c_void_p,
        dcx=c_void_p, weightSpaceSize=c_size_t, weightSpace=c_void_p, workSpaceSize=c_size_t,
        workSpace=c_void_p, reserveSpaceSize=c_size_t, reserveSpace=c_void_p),
    cudnnRNNBackwardWeights_v8=_status(handle=c_void_p, rnnDesc=c_void_p, addGrad=c_int,
        devSeqLengths=c_void_p, xDesc=c_void_p, x=c_void_p, hDesc=c_void_p, hx=c_void_p,
        yDesc=c_void_p, y=c_void_p, weightSpaceSize=c_size_t, dweightSpace=c_void_p,
        workSpaceSize=c_size_t, workSpace=c_void_p, reserveSpaceSize=c_size_t,
        reserveSpace=c_void_p),
    cudnnRNNForward=_status(handle=c_void_p, rnnDesc=c_void_p, fwdMode=c_int,
        devSeqLengths=c_void_p, xDesc=c_void_p, x=c_void_p, yDesc=c_void_p, y=c_void_p,
        hDesc=c_void_p, hx=c_void_p, hy=c_void_p, cDesc=c_void_p, cx=c_void_p, cy=c_void_p,
        weightSpaceSize=c_size_t, weightSpace=c_void_p, workSpaceSize=c_size_t, workSpace=c_void_p,
        reserveSpaceSize=c_size_t, reserveSpace=c_void_p),
    cudnnRNNGetClip_v8=_status(rnnDesc=c_void_p, clipMode=POINTER(c_int), clipNanOpt=POINTER(c_int),
        lclip=POINTER(c_double), rclip=POINTER(c_double)),
    cudnnRNNSetClip_v8=_status(rnnDesc=c_void_p, clipMode=c_int, clipNanOpt=c_int, lclip=c_double,
        rclip=c_double),
    cudnnRestoreDropoutDescriptor=_status(dropoutDesc=c_void_p, handle=c_void_p, dropout=c_float,
        states=c_void_p, stateSizeInBytes=c_size_t, seed=c_ulonglong),
    cudnnSetActivationDescriptor=_status(activationDesc=c_void_p, mode=c_int, reluNanOpt=c_int,
        coef=c_double),
    cudnnSetDropoutDescriptor=_status(dropoutDesc=c_void_p, handle=c_void_p, dropout=c_float,
        states=c_void_p, stateSizeInBytes=c_size_t, seed=c_ulonglong),
    cudnnSetRNNDataDescriptor=_status(rnnDataDesc=c_void_p, dataType=c_int, layout=c_int,
        maxSeqLength=c_int, batchSize=c_int, vectorSize=c_int, seqLengthArray=POINTER(c_int),
        paddingFill=c_void_p),
    cudnnSetRNNDescriptor_v8=_status(rnnDesc=c_void_p, algo=c_int, cellMode=c_int, biasMode=c_int,
        dirMode=c_int, inputMode=c_int, dataType=c_int, mathPrec=c_int, mathType=c_int,
        inputSize=c_int32, hiddenSize=c_int32, projSize=c_int32, numLayers=c_int32,
        dropoutDesc=c_void_p, auxFlags=c_uint32),
    cudnnSetStream=_status(handle=c_void_p, streamId=c_void_p),
    cudnnSetTensor4dDescriptor=_status(tensorDesc=c_void_p, format=c_int, dataType=c_int, n=c_int,
        c=c_int, h=c_int, w=c_int),
    cudnnSetTensorNdDescriptor=_status(tensorDesc=c_void_p, dataType=c_int, nbDims=c_int,
        dimA=POINTER(c_int), strideA=POINTER(c_int)),
    cudnnSetTensorNdDescriptorEx=_status(tensorDesc=c_void_p, format=c_int, dataType=c_int,
        nbDims=c_int, dimA=POINTER(c_int)),
    cudnnSoftmaxBackward=_status(handle=c_void_p, algo=c_int, mode=c_int, alpha=c_void_p,
        yDesc=c_void_p, y=c_void_p, dyDesc=c_void_p, dy=c_void_p, beta=c_void_p, dxDesc=c_void_p,
        dx=c_void_p),
    cudnnSoftmaxForward=_status(handle=c_void_p, algo=c_int, mode=c_int, alpha=c_void_p,
        xDesc=c_void_p, x=c_void_p, beta=c_void_p, yDesc=c_void_p, y=c_void_p),
)

_ONLY_8 = dict(
    cudnnAdvInferVersionCheck=_status(),
    cudnnAdvTrainVersionCheck=_status(),
)
_ONLY_9 = dict(
    cudnnAdvVersionCheck=_status(),
    cudnnGetLastErrorString=_returns(None, message=c_char_p, max_size=c_size_t),
    cudnnRNNGetClip_v9=_status(rnnDesc=c_void_p, clipMode=POINTER(c_int), lclip=POINTER(c_double),
        rclip=POINTER(c_double)),
    cudnnRNNSetClip_v9=_status(rnnDesc=c_void_p, clipMode=c_int, lclip=c_double, rclip=c_double),
)

PROTOTYPES = {8: _BOTH | _ONLY_8, 9: _BOTH | _ONLY_9}
"""Major to name to prototype."""
