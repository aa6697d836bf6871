"""Errors for the checks of the CuPy dialect and of the C library."""

from __future__ import annotations

from typing import Any

import pytest

from cudnn_compat import v2
from cudnn_compat.cudnn.descriptors import (
    rnn_data_descriptor,
    rnn_descriptor,
    tensor_descriptor,
)
from cudnn_compat.cudnn.library import Library
from cudnn_compat.legacy.cupy import cudnn, libcudnn, registry
from cudnn_compat.legacy.cupy.described import Dropout
from cudnn_compat.matrix import checks_library, checks_names
from tests.matrix.planting import (
    Plant,
    changed,
    part,
    replaced,
    replaced_by_one,
    row_of,
    silent,
    silent_with_signature,
    told,
    wrote,
)


def unseed(states: Any) -> None:
    """Every generator starts from a seed of its own."""
    global _seed
    _seed += 1
    registry.find(Dropout, states._desc.value).state = v2.DropoutState(_seed)


_seed = 0


def another_first_constant(patch: pytest.MonkeyPatch) -> None:
    shape = row_of("legacy.cupy.libcudnn", "constant").shape
    assert shape is not None
    patch.setattr(libcudnn, shape.label, -1)


class Other:
    """A library of another version."""

    def __init__(self, major: int) -> None:
        self.major = major

    def cudnnGetVersion(self) -> int:
        return 1000 * self.major


def of_other_dims(library: Any, dtype: int, dims: tuple[int, ...]) -> Any:
    return tensor_descriptor(library, dtype, dims[::-1])


def of_another_layout(library: Any, **given: Any) -> Any:
    return rnn_data_descriptor(library, **given | {"layout": 2})


def of_one_layer(library: Any, **given: Any) -> Any:
    return rnn_descriptor(library, **given | {"num_layers": 1})


PLANTS: dict[tuple[str, str], list[Plant]] = {
    ("legacy.cupy", "chainer"): [
        replaced(checks_names, "fresh_process", lambda: {"chainer": False}),
        replaced(checks_names, "fresh_process", lambda: {"chainer": True, "error": "KeyError: 1"}),
    ],
    **{
        ("legacy.cupy.cudnn", call): [told(cudnn, call, change) for change in changes]
        for call, changes in {
            "rnn_forward_inference": [part(0), part(1), part(2)],
            "rnn_forward_training": [part(1), part(2), part(3)],
            "rnn_backward_data": [part(0), part(1), part(2)],
            "rnn_backward_weights": [lambda dw: dw + 1e-3, lambda dw: dw.reshape(-1)],
            "softmax_forward": [lambda y: y + 1e-3],
            "softmax_backward": [lambda dx: dx + 1e-3],
            "activation_forward": [lambda y: y + 1e-3],
            "activation_backward": [lambda dx: dx + 1e-3],
        }.items()
    },
    ("legacy.cupy.cudnn", "dropout_states"): [
        changed(cudnn.DropoutStates, "forward", lambda r, *_: (r[0], r[1] + 1e-3)),
        changed(cudnn.DropoutStates, "backward", lambda dx, *_: 2 * dx),
        changed(cudnn.DropoutStates, "__init__", lambda none, self, *_: unseed(self)),
    ],
    ("legacy.cupy.cudnn", "dropout_between_layers"): [
        silent("set_dropout_ratio", cudnn.DropoutStates),
    ],
    ("legacy.cupy.cudnn", "lin_layer_params"): [
        told(cudnn, "get_rnn_lin_layer_matrix_params", lambda view: view.copy()),
    ],
    ("legacy.cupy.cudnn", "create_descriptors"): [
        told(cudnn, "get_data_type", lambda number: number + 1),
        replaced(cudnn, "create_filter_descriptor", cudnn.create_tensor_descriptor),
    ],
    ("legacy.cupy.cudnn", "dropout_descriptor"): [
        told(cudnn, "create_dropout_states", lambda memory: memory[:0]),
    ],
    ("legacy.cupy.cudnn", "settings"): [silent("set_max_workspace_size", cudnn)],
    ("legacy.cupy.cudnn", "descriptor"): [silent("__del__", cudnn.Descriptor)],
    ("legacy.cupy.libcudnn", "rnn_inference"): [
        wrote("RNNForwardInference", each) for each in ("y", "hy", "cy")
    ],
    ("legacy.cupy.libcudnn", "rnn_training"): [
        *(wrote("RNNForwardTraining", each) for each in ("y", "hy", "cy")),
        silent_with_signature("RNNForwardTraining"),
    ],
    ("legacy.cupy.libcudnn", "rnn_backward_data"): [
        wrote("RNNBackwardData", each) for each in ("dx", "dhx", "dcx")
    ],
    ("legacy.cupy.libcudnn", "rnn_backward_weights"): [
        wrote("RNNBackwardWeights", "dw"),
        silent_with_signature("RNNBackwardWeights"),
    ],
    ("legacy.cupy.libcudnn", "params_size"): [
        told(libcudnn, "getRNNParamsSize", lambda size: size + 8),
        told(libcudnn, "getRNNWorkspaceSize", lambda size: size + 8),
    ],
    ("legacy.cupy.libcudnn", "lin_layer_params"): [
        silent("getRNNLinLayerMatrixParams"),
        told(libcudnn, "getFilterNdDescriptor", lambda found: found[:3]),
    ],
    ("legacy.cupy.libcudnn", "softmax_addresses"): [wrote("softmaxForward", "dstData")],
    ("legacy.cupy.libcudnn", "activation_addresses"): [wrote("activationForward_v4", "dstData")],
    ("legacy.cupy.libcudnn", "dropout_addresses"): [
        wrote("dropoutForward", "dstData"),
        wrote("dropoutBackward", "dxData"),
    ],
    ("legacy.cupy.libcudnn", "tensors"): [
        told(libcudnn, "getTensor4dDescriptor", lambda found: found[:8]),
        silent("destroyTensorDescriptor"),
    ],
    ("legacy.cupy.libcudnn", "filters"): [
        told(libcudnn, "getFilterNdDescriptor", lambda found: found[:3]),
        silent("destroyFilterDescriptor"),
    ],
    ("legacy.cupy.libcudnn", "data_descriptors"): [silent("destroyRNNDataDescriptor")],
    ("legacy.cupy.libcudnn", "version"): [told(libcudnn, "getVersion", lambda n: n + 1)],
    ("legacy.cupy.libcudnn", "handles"): [silent("setStream"), silent("destroy")],
    ("legacy.cupy.libcudnn", "networks"): [silent("setRNNPaddingMode")],
    ("legacy.cupy.libcudnn", "persistent_plan"): [silent("destroyPersistentRNNPlan")],
    ("legacy.cupy.libcudnn", "error"): [
        replaced(libcudnn.CuDNNError, "add_info", lambda self, info: None),
        silent("destroy"),
    ],
    ("legacy.cupy.libcudnn", "constant"): [another_first_constant],
    ("cudnn", "loaded"): [replaced(checks_library, "load", lambda: Other(major=7))],
    ("cudnn", "symbol"): [replaced(Library, "has", lambda self, name: False)],
    ("cudnn", "tensors"): [
        replaced(checks_library, "TYPES", dict.fromkeys(checks_library.TYPES, 2))
    ],
    ("cudnn", "networks"): [replaced(checks_library, "rnn_descriptor", of_one_layer)],
    ("cudnn", "data"): [replaced(checks_library, "rnn_data_descriptor", of_another_layout)],
    ("cudnn", "status_names"): [replaced(checks_library.c, "STATUS_9", {"CUDNN_STATUS_LUCK": 0})],
    ("cudnn", "refusals"): [
        replaced(checks_library, "tensor_descriptor", lambda *_: None),
    ],
    ("cudnn", "long_sequences"): [
        replaced(checks_library, "rnn_data_descriptor", lambda *_, **__: None),
    ],
}

REFUSED = {
    ("legacy.cupy.cudnn", "activation_identity"): silent("activation_forward", cudnn),
    ("legacy.cupy.libcudnn", "factors"): silent_with_signature("activationForward_v4"),
    ("legacy.cupy.libcudnn", "padding_fill"): silent("setRNNDataDescriptor"),
}
"""Checks of what is refused: a call that takes it all the same is a failure."""

ABSENT = {
    ("legacy.cupy.cudnn", "absent"): replaced_by_one(cudnn, "convolution_forward"),
    ("legacy.cupy.libcudnn", "absent"): replaced_by_one(libcudnn, "createConvolutionDescriptor"),
}

ELSEWHERE = {("legacy.cupy", "installing"), ("legacy.cupy", "beside_cupy")}
"""Planted in ``test_in_cupy.py``, because their rows need a CuPy."""

SECOND = {
    "softmaxBackward": wrote("softmaxBackward", "destDiffData"),
    "activationBackward_v4": wrote("activationBackward_v4", "destDiffData"),
    "getRNNLinLayerBiasParams": silent("getRNNLinLayerBiasParams"),
    "setRNNDescriptor_v5": wrote("RNNForwardInference", "y"),
    "RNNForwardInferenceEx": wrote("RNNForwardInferenceEx", "hy"),
    "RNNForwardTrainingEx": wrote("RNNForwardTrainingEx", "y"),
    "RNNBackwardDataEx": wrote("RNNBackwardDataEx", "dhx"),
    "RNNBackwardWeightsEx": wrote("RNNBackwardWeightsEx", "dw"),
    "get_rnn_lin_layer_bias_params": told(
        cudnn, "get_rnn_lin_layer_bias_params", lambda view: view.copy()
    ),
    "rnn_forward_inference_ex": told(cudnn, "rnn_forward_inference_ex", part(2)),
    "rnn_forward_training_ex": told(cudnn, "rnn_forward_training_ex", part(3)),
    "rnn_backward_data_ex": told(cudnn, "rnn_backward_data_ex", part(2)),
    "rnn_backward_weights_ex": told(cudnn, "rnn_backward_weights_ex", lambda dw: dw + 1e-3),
}
"""Calls that share a check with one that :data:`PLANTS` has."""
