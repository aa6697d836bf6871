"""The rows of :mod:`cudnn_compat.legacy.cupy.libcudnn`. Pure data; see :mod:`.table`."""

from __future__ import annotations

from typing import Final

from cudnn_compat.legacy import table_cudnn_code as high
from cudnn_compat.legacy import table_libcudnn_code as text
from cudnn_compat.legacy.names import LegacyName

__all__ = ["LIBCUDNN"]


_Fields = tuple[str, str, str, str, str, str]


def _rows(first: int, names: str, *texts: str) -> list[_Fields]:
    """The fields of consecutive codes that share new name, summary, before and after."""
    new, summary, before, after = texts
    return [
        (f"CC{first + index}", name, new, summary, before, after)
        for index, name in enumerate(names.split())
    ]


_FIELDS: Final[list[_Fields]] = [
    *_rows(
        200,
        "getVersion",
        "cudnn_compat.v2.plans",
        "cudnn-compat info tells which library is loaded, and v2.plans() what was computed with.",
        "new_enough = libcudnn.getVersion() >= 7200",
        "new_enough = v2.plans() is not None",
    ),
    *_rows(
        201,
        "create destroy",
        high.RUN,
        high.NO_HANDLES,
        text.HANDLE,
        text.RESULT,
    ),
    *_rows(
        203,
        "setStream getStream",
        high.RUN,
        "Calls run on CuPy's current stream, which a stream's with block sets.",
        text.STREAM,
        text.RESULT,
    ),
    *_rows(
        210,
        "createTensorDescriptor setTensorNdDescriptor destroyTensorDescriptor",
        high.RUN,
        high.NO_DESCRIPTORS,
        text.TENSOR,
        text.RESULT,
    ),
    *_rows(
        213,
        "setTensor4dDescriptor getTensor4dDescriptor",
        high.RUN,
        high.NO_DESCRIPTORS,
        text.TENSOR_4D.format(
            call="libcudnn.setTensor4dDescriptor("
            "desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 1, 1)"
        ),
        text.RESULT,
    ),
    *_rows(
        215,
        "setTensor4dDescriptorEx",
        high.RUN,
        high.NO_DESCRIPTORS,
        text.TENSOR_4D.format(
            call="libcudnn.setTensor4dDescriptorEx(desc, CUDNN_DATA_FLOAT, 2, 3, 1, 1, 3, 1, 1, 1)"
        ),
        text.RESULT,
    ),
    *_rows(
        216,
        "createFilterDescriptor setFilter4dDescriptor_v4 getFilterNdDescriptor "
        "destroyFilterDescriptor",
        high.RUN,
        high.NO_DESCRIPTORS,
        text.FILTER,
        text.RESULT,
    ),
    *_rows(
        220,
        "setFilterNdDescriptor_v4",
        high.RUN,
        high.NO_DESCRIPTORS,
        text.FILTER_ND,
        text.RESULT,
    ),
    *_rows(
        221,
        "createRNNDescriptor setRNNDescriptor_v6 destroyRNNDescriptor",
        high.SPEC,
        text.A_SPEC,
        text.NETWORK,
        text.V2_NETWORK,
    ),
    *_rows(
        224,
        "setRNNDescriptor_v5",
        high.SPEC,
        text.A_SPEC,
        text.NETWORK.replace("_v6(\n    handle, ", "_v5(\n    ").replace(
            "CUDNN_LSTM,\n    CUDNN_RNN_ALGO_STANDARD, ", "CUDNN_LSTM,\n    "
        ),
        text.V2_NETWORK,
    ),
    *_rows(
        225,
        "setRNNPaddingMode getRNNPaddingMode",
        high.RUN,
        text.LENGTHS,
        text.PADDING,
        text.PADDED,
    ),
    *_rows(
        227,
        "getRNNParamsSize",
        "cudnn_compat.v2.weight_size",
        "In elements, not in bytes.",
        "size = libcudnn.getRNNParamsSize(handle, rnn, x_desc, CUDNN_DATA_FLOAT) // 4",
        "size = v2.weight_size(spec)",
    ),
    *_rows(
        228,
        "getRNNWorkspaceSize",
        high.RUN,
        text.NO_SCRATCH,
        text.SCRATCH,
        text.RESULT,
    ),
    *_rows(
        229,
        "getRNNTrainingReserveSize",
        high.SPEC,
        text.NO_SCRATCH,
        text.DROPOUT,
        text.V2_DROPOUT,
    ),
    *_rows(
        230,
        "getRNNLinLayerMatrixParams",
        high.VIEWS,
        "Views of a weight space by name, or by pseudo-layer and linear id.",
        text.MATRIX,
        "named = v2.named_weights(spec, w)\nresult = named[0, 5].matrix.ravel()",
    ),
    *_rows(
        231,
        "getRNNLinLayerBiasParams",
        high.VIEWS,
        "Views of a weight space by name, or by pseudo-layer and linear id.",
        text.MATRIX.replace("MatrixParams", "BiasParams"),
        "named = v2.named_weights(spec, w)\nresult = named[0, 5].bias",
    ),
    *_rows(
        232,
        "createRNNDataDescriptor setRNNDataDescriptor getRNNDataDescriptor "
        "destroyRNNDataDescriptor",
        high.RUN,
        text.LENGTHS,
        text.DATA_DESC,
        text.PADDED,
    ),
    *_rows(
        236,
        "createPersistentRNNPlan setPersistentRNNPlan destroyPersistentRNNPlan",
        high.RUN,
        text.NO_PLANS,
        text.PERSISTENT,
        text.RESULT,
    ),
    *_rows(
        240,
        "RNNForwardInference",
        high.RUN,
        text.ONE_CALL,
        "libcudnn.RNNForwardInference(\n    handle, rnn, 5, at(x_descs), at(xs), *forward, "
        "at(y_descs), at(ys), *states_out, 0, 0)\nresult = ys",
        text.RESULT,
    ),
    *_rows(
        241,
        "RNNForwardTraining",
        high.RUN,
        text.ONE_CALL,
        f"{text.TRAIN}\nresult = ys",
        text.V2_TRAIN,
    ),
    *_rows(
        242,
        "RNNBackwardData",
        "cudnn_compat.v2.rnn_backward_data",
        "Takes the forward's result and the gradients; the rest is known to it.",
        f"{text.TRAIN}{text.BACK}\nfirst = dhx",
        text.V2_TRAIN + text.V2_BACK.format(dys=text.FLAT),
    ),
    *_rows(
        243,
        "RNNBackwardWeights",
        "cudnn_compat.v2.rnn_backward_weights",
        "Takes the forward's result; accumulate=True adds, as the old call did.",
        f"{text.TRAIN}{text.BACK}{text.ADD}\nsecond = dw",
        text.V2_TRAIN + text.V2_BACK.format(dys=text.FLAT) + text.V2_ADD,
    ),
    *_rows(
        244,
        "RNNForwardInferenceEx",
        high.RUN,
        text.ONE_CALL,
        text.PADDING,
        text.PADDED,
    ),
    *_rows(
        245,
        "RNNForwardTrainingEx",
        high.RUN,
        text.ONE_CALL,
        f"{text.TRAIN_EX}\nresult = ys",
        text.V2_TRAIN_EX,
    ),
    *_rows(
        246,
        "RNNBackwardDataEx",
        "cudnn_compat.v2.rnn_backward_data",
        "Takes the forward's result and the gradients; the rest is known to it.",
        f"{text.TRAIN_EX}{text.BACK_EX}\nfirst = dhx",
        text.V2_TRAIN_EX + text.V2_BACK.format(dys=text.CUBE),
    ),
    *_rows(
        247,
        "RNNBackwardWeightsEx",
        "cudnn_compat.v2.rnn_backward_weights",
        "Takes the forward's result; accumulate=True adds, as the old call did.",
        f"{text.TRAIN_EX}{text.BACK_EX}{text.ADD_EX}\nsecond = dw",
        text.V2_TRAIN_EX + text.V2_BACK.format(dys=text.CUBE) + text.V2_ADD,
    ),
    *_rows(
        250,
        "createDropoutDescriptor setDropoutDescriptor dropoutGetStatesSize "
        "destroyDropoutDescriptor",
        "cudnn_compat.v2.DropoutState",
        text.A_STATE,
        text.DROPOUT,
        text.V2_DROPOUT,
    ),
    *_rows(
        254,
        "getDropoutReserveSpaceSize dropoutForward dropoutBackward",
        "numpy.where",
        "Draw a mask with the array library's own generator.",
        text.DROP,
        text.V2_DROP,
    ),
    *_rows(
        260,
        "createActivationDescriptor setActivationDescriptor activationForward_v4 "
        "destroyActivationDescriptor",
        "numpy.maximum",
        text.CUPY,
        text.ACTIVATION,
        text.V2_ACTIVATION,
    ),
    *_rows(
        264,
        "activationBackward_v4",
        "numpy.where",
        text.CUPY,
        text.ACTIVATION,
        text.V2_ACTIVATION,
    ),
    *_rows(265, "softmaxForward", "numpy.exp", text.CUPY, text.SOFTMAX, text.V2_SOFTMAX),
    *_rows(266, "softmaxBackward", "numpy.sum", text.CUPY, text.SOFTMAX, text.V2_SOFTMAX),
]

_RENAMED: Final = {
    "setRNNDescriptor_v5": (("hiddenSize", "hidden_size"), ("numLayers", "num_layers")),
    "setRNNDescriptor_v6": (("hiddenSize", "hidden_size"), ("numLayers", "num_layers")),
}


def _row(code: str, name: str, new: str, summary: str, before: str, after: str) -> LegacyName:
    return LegacyName(
        code=code,
        old=f"cudnn_compat.legacy.cupy.libcudnn.{name}",
        new=new,
        kind="function",
        summary=summary,
        renamed=_RENAMED.get(name, ()),
        before=before,
        after=after,
        prelude=text.PRELUDE,
    )


LIBCUDNN: Final[tuple[LegacyName, ...]] = tuple(_row(*fields) for fields in _FIELDS)
"""The old names of the low-level module, by code."""
