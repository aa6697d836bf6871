"""``cupy.cuda.cudnn`` (``cupy_backends.cuda.libs.cudnn``) as it was in CuPy 13: plain integers.

Handles, descriptors and addresses are integers. Addresses given with a handle of a device belong to
that device; a handle that was made where no GPU is usable is a host handle, its addresses are host
addresses, and the NumPy engine computes.
"""

from __future__ import annotations

from typing import NoReturn

from cudnn_compat.legacy.cupy import constants as _constants
from cudnn_compat.legacy.cupy.absent import missing_attribute
from cudnn_compat.legacy.cupy.constants import *  # noqa: F403
from cudnn_compat.legacy.cupy.errors import CuDNNError
from cudnn_compat.legacy.cupy.low.basic import (
    RNNBackwardData,
    RNNBackwardWeights,
    RNNForwardInference,
    RNNForwardTraining,
)
from cudnn_compat.legacy.cupy.low.data import (
    createRNNDataDescriptor,
    destroyRNNDataDescriptor,
    getRNNDataDescriptor,
    setRNNDataDescriptor,
)
from cudnn_compat.legacy.cupy.low.handles import (
    create,
    destroy,
    getStream,
    getVersion,
    setStream,
)
from cudnn_compat.legacy.cupy.low.networks import (
    createPersistentRNNPlan,
    createRNNDescriptor,
    destroyPersistentRNNPlan,
    destroyRNNDescriptor,
    getRNNPaddingMode,
    getRNNParamsSize,
    getRNNTrainingReserveSize,
    getRNNWorkspaceSize,
    setPersistentRNNPlan,
    setRNNDescriptor_v5,
    setRNNDescriptor_v6,
    setRNNPaddingMode,
)
from cudnn_compat.legacy.cupy.low.operations import (
    activationBackward_v4,
    activationForward_v4,
    createActivationDescriptor,
    createDropoutDescriptor,
    destroyActivationDescriptor,
    destroyDropoutDescriptor,
    dropoutBackward,
    dropoutForward,
    dropoutGetStatesSize,
    getDropoutReserveSpaceSize,
    setActivationDescriptor,
    setDropoutDescriptor,
    softmaxBackward,
    softmaxForward,
)
from cudnn_compat.legacy.cupy.low.padded import (
    RNNBackwardDataEx,
    RNNBackwardWeightsEx,
    RNNForwardInferenceEx,
    RNNForwardTrainingEx,
)
from cudnn_compat.legacy.cupy.low.tensors import (
    createFilterDescriptor,
    createTensorDescriptor,
    destroyFilterDescriptor,
    destroyTensorDescriptor,
    getFilterNdDescriptor,
    getTensor4dDescriptor,
    setFilter4dDescriptor_v4,
    setFilterNdDescriptor_v4,
    setTensor4dDescriptor,
    setTensor4dDescriptorEx,
    setTensorNdDescriptor,
)
from cudnn_compat.legacy.cupy.low.weights import (
    getRNNLinLayerBiasParams,
    getRNNLinLayerMatrixParams,
)

available = True
"""As in CuPy, where False meant that the library was missing."""

__all__ = [
    *_constants.__all__,
    "CuDNNError",
    "RNNBackwardData",
    "RNNBackwardDataEx",
    "RNNBackwardWeights",
    "RNNBackwardWeightsEx",
    "RNNForwardInference",
    "RNNForwardInferenceEx",
    "RNNForwardTraining",
    "RNNForwardTrainingEx",
    "activationBackward_v4",
    "activationForward_v4",
    "available",
    "create",
    "createActivationDescriptor",
    "createDropoutDescriptor",
    "createFilterDescriptor",
    "createPersistentRNNPlan",
    "createRNNDataDescriptor",
    "createRNNDescriptor",
    "createTensorDescriptor",
    "destroy",
    "destroyActivationDescriptor",
    "destroyDropoutDescriptor",
    "destroyFilterDescriptor",
    "destroyPersistentRNNPlan",
    "destroyRNNDataDescriptor",
    "destroyRNNDescriptor",
    "destroyTensorDescriptor",
    "dropoutBackward",
    "dropoutForward",
    "dropoutGetStatesSize",
    "getDropoutReserveSpaceSize",
    "getFilterNdDescriptor",
    "getRNNDataDescriptor",
    "getRNNLinLayerBiasParams",
    "getRNNLinLayerMatrixParams",
    "getRNNPaddingMode",
    "getRNNParamsSize",
    "getRNNTrainingReserveSize",
    "getRNNWorkspaceSize",
    "getStream",
    "getTensor4dDescriptor",
    "getVersion",
    "setActivationDescriptor",
    "setDropoutDescriptor",
    "setFilter4dDescriptor_v4",
    "setFilterNdDescriptor_v4",
    "setPersistentRNNPlan",
    "setRNNDataDescriptor",
    "setRNNDescriptor_v5",
    "setRNNDescriptor_v6",
    "setRNNPaddingMode",
    "setStream",
    "setTensor4dDescriptor",
    "setTensor4dDescriptorEx",
    "setTensorNdDescriptor",
    "softmaxBackward",
    "softmaxForward",
]


def __getattr__(name: str) -> NoReturn:
    raise missing_attribute("cupy.cuda.cudnn", name, high=False)
