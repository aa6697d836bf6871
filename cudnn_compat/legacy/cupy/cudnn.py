"""``cupy.cudnn`` (``cupyx.cudnn``) as it was in CuPy 13: functions that take arrays.

They take CuPy arrays, and NumPy arrays, for which the NumPy engine computes.
"""

from __future__ import annotations

from typing import NoReturn

from cudnn_compat.legacy.cupy.absent import missing_attribute
from cudnn_compat.legacy.cupy.high.descriptors import (
    Descriptor,
    create_dropout_descriptor,
    create_filter_descriptor,
    create_rnn_descriptor,
    create_tensor_descriptor,
    create_tensor_nd_descriptor,
    get_data_type,
    get_handle,
    get_max_workspace_size,
    is_tensor_core_available,
    set_dropout_descriptor,
    set_max_workspace_size,
)
from cudnn_compat.legacy.cupy.high.networks import (
    rnn_backward_data,
    rnn_backward_data_ex,
    rnn_backward_weights,
    rnn_backward_weights_ex,
    rnn_forward_inference,
    rnn_forward_inference_ex,
    rnn_forward_training,
    rnn_forward_training_ex,
)
from cudnn_compat.legacy.cupy.high.operations import (
    activation_backward,
    activation_forward,
    softmax_backward,
    softmax_forward,
)
from cudnn_compat.legacy.cupy.high.states import DropoutStates, create_dropout_states
from cudnn_compat.legacy.cupy.high.weights import (
    get_rnn_lin_layer_bias_params,
    get_rnn_lin_layer_matrix_params,
)

__all__ = [
    "Descriptor",
    "DropoutStates",
    "activation_backward",
    "activation_forward",
    "create_dropout_descriptor",
    "create_dropout_states",
    "create_filter_descriptor",
    "create_rnn_descriptor",
    "create_tensor_descriptor",
    "create_tensor_nd_descriptor",
    "get_data_type",
    "get_handle",
    "get_max_workspace_size",
    "get_rnn_lin_layer_bias_params",
    "get_rnn_lin_layer_matrix_params",
    "is_tensor_core_available",
    "rnn_backward_data",
    "rnn_backward_data_ex",
    "rnn_backward_weights",
    "rnn_backward_weights_ex",
    "rnn_forward_inference",
    "rnn_forward_inference_ex",
    "rnn_forward_training",
    "rnn_forward_training_ex",
    "set_dropout_descriptor",
    "set_max_workspace_size",
    "softmax_backward",
    "softmax_forward",
]


def __getattr__(name: str) -> NoReturn:
    raise missing_attribute("cupy.cudnn", name, high=True)
