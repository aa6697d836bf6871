"""What ``cupy.cudnn`` and ``cupy.cuda.cudnn`` had and this dialect does not offer.

Pure data, and importing it loads nothing else: the error of a look-up and the table of the guide
are made from it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ABSENT", "Absent", "missing_attribute"]


class Absent(NamedTuple):
    """A group of names that belong together.

    Attributes:
        what: what they were.
        instead: what to use.
        high: names of ``cupy.cudnn``.
        low: names of ``cupy.cuda.cudnn``.
    """

    what: str
    instead: str
    high: tuple[str, ...]
    low: tuple[str, ...]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ABSENT: Final = (
    Absent(
        "a part of convolutions",
        "CuPy's own functions: with Chainer, chainer.config.use_cudnn = 'never' around the "
        "convolution makes it use them",
        _names(
            "convolution_forward convolution_backward_filter convolution_backward_data "
            "create_convolution_descriptor"
        ),
        _names(
            "createConvolutionDescriptor destroyConvolutionDescriptor setConvolutionMathType "
            "getConvolutionMathType setConvolutionGroupCount getConvolutionGroupCount "
            "setConvolution2dDescriptor_v4 setConvolution2dDescriptor_v5 "
            "setConvolutionNdDescriptor_v3 findConvolutionForwardAlgorithm "
            "findConvolutionForwardAlgorithmEx findConvolutionForwardAlgorithmEx_v7 "
            "getConvolutionForwardAlgorithm_v6 getConvolutionForwardAlgorithm_v7 "
            "getConvolutionForwardWorkspaceSize convolutionForward convolutionBackwardBias "
            "findConvolutionBackwardFilterAlgorithm findConvolutionBackwardFilterAlgorithmEx "
            "findConvolutionBackwardFilterAlgorithmEx_v7 "
            "getConvolutionBackwardFilterAlgorithm_v6 getConvolutionBackwardFilterAlgorithm_v7 "
            "getConvolutionBackwardFilterWorkspaceSize convolutionBackwardFilter_v3 "
            "findConvolutionBackwardDataAlgorithm findConvolutionBackwardDataAlgorithmEx "
            "findConvolutionBackwardDataAlgorithmEx_v7 getConvolutionBackwardDataAlgorithm_v6 "
            "getConvolutionBackwardDataAlgorithm_v7 getConvolutionBackwardDataWorkspaceSize "
            "convolutionBackwardData_v3 CuDNNAlgoPerf"
        ),
    ),
    Absent(
        "a part of pooling",
        "CuPy's own functions: with Chainer, chainer.config.use_cudnn = 'never' around it",
        _names("pooling_forward pooling_backward create_pooling_descriptor"),
        _names(
            "createPoolingDescriptor destroyPoolingDescriptor setPooling2dDescriptor_v4 "
            "setPoolingNdDescriptor_v4 poolingForward poolingBackward"
        ),
    ),
    Absent(
        "a part of batch normalisation",
        "CuPy's own functions: with Chainer, chainer.config.use_cudnn = 'never' around it",
        _names(
            "batch_normalization_forward_training batch_normalization_forward_training_ex "
            "batch_normalization_forward_inference batch_normalization_backward"
        ),
        _names(
            "deriveBNTensorDescriptor batchNormalizationForwardTraining "
            "batchNormalizationForwardInference batchNormalizationBackward "
            "batchNormalizationForwardTrainingEx batchNormalizationBackwardEx "
            "getBatchNormalizationForwardTrainingExWorkspaceSize "
            "getBatchNormalizationBackwardExWorkspaceSize "
            "getBatchNormalizationTrainingExReserveSpaceSize"
        ),
    ),
    Absent(
        "a part of the CTC loss",
        "CuPy's own functions: with Chainer, chainer.config.use_cudnn = 'never' around it",
        _names("ctc_loss"),
        _names(
            "createCTCLossDescriptor destroyCTCLossDescriptor setCTCLossDescriptor "
            "getCTCLossDescriptor getCTCLossWorkspaceSize CTCLoss"
        ),
    ),
    Absent(
        "a part of the spatial transformer",
        "CuPy's own functions: with Chainer, chainer.config.use_cudnn = 'never' around it",
        _names("create_spatial_transformer_descriptor"),
        _names(
            "createSpatialTransformerDescriptor destroySpatialTransformerDescriptor "
            "setSpatialTransformerDescriptor spatialTfGridGeneratorForward "
            "spatialTfGridGeneratorBackward spatialTfSamplerForward spatialTfSamplerBackward"
        ),
    ),
    Absent(
        "arithmetic on tensors",
        "CuPy's operators and reductions (x + y, x.sum(axis), cupy.maximum, …)",
        _names("add_tensor create_op_tensor_descriptor create_reduce_tensor_descriptor"),
        _names(
            "addTensor_v3 createOpTensorDescriptor destroyOpTensorDescriptor "
            "setOpTensorDescriptor getOpTensorDescriptor opTensor createReduceTensorDescriptor "
            "destroyReduceTensorDescriptor setReduceTensorDescriptor getReduceTensorDescriptor "
            "getReductionIndicesSize getReductionWorkspaceSize reduceTensor setTensor scaleTensor"
        ),
    ),
    Absent(
        "a part of fused operations",
        "the operations one by one",
        _names(
            "create_fused_ops_plan create_fused_ops_const_param_pack "
            "create_fused_ops_variant_param_pack make_fused_ops_plan fused_ops_execute "
            "get_fused_ops_const_param_pack_attribute get_fused_ops_variant_param_pack_attribute "
            "set_fused_ops_const_param_pack_attribute set_fused_ops_variant_param_pack_attribute"
        ),
        _names(
            "createFusedOpsConstParamPack destroyFusedOpsConstParamPack "
            "setFusedOpsConstParamPackAttribute getFusedOpsConstParamPackAttribute "
            "createFusedOpsVariantParamPack destroyFusedOpsVariantParamPack "
            "setFusedOpsVariantParamPackAttribute getFusedOpsVariantParamPackAttribute "
            "createFusedOpsPlan destroyFusedOpsPlan makeFusedOpsPlan fusedOpsExecute"
        ),
    ),
    Absent(
        "a descriptor for other functions",
        "activation_forward and activation_backward, which take the mode itself",
        _names("create_activation_descriptor create_uninitialized_tensor_descriptor"),
        (),
    ),
    Absent(
        "a look at errors that come later, and the end of all handles",
        "the exceptions that calls raise; handles go with the process",
        _names("reset_handles"),
        _names("queryRuntimeError check_status"),
    ),
)
"""Every public function and class of CuPy 13's two modules that is not offered."""


def missing_attribute(module: str, name: str, *, high: bool) -> AttributeError:
    """What to raise for a name that a module of the dialect does not have."""
    for group in ABSENT:
        if name in (group.high if high else group.low):
            return AttributeError(
                f"{module}.{name} was {group.what}, which cudnn_compat does not offer: it has the "
                f"RNNs, dropout, softmax and activations. Use {group.instead}"
            )
    elsewhere = "cupy.cuda.cudnn" if high else "cupy.cudnn"
    if any(name in (group.low if high else group.high) for group in ABSENT):
        return AttributeError(f"module {module!r} has no attribute {name!r}; {elsewhere} had")
    return AttributeError(f"module {module!r} has no attribute {name!r}")
