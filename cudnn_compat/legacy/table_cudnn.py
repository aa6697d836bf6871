"""The rows of :mod:`cudnn_compat.legacy.cupy.cudnn`. Pure data; see :mod:`.table`."""

from __future__ import annotations

from typing import Final, Literal

from cudnn_compat.legacy import table_cudnn_code as text
from cudnn_compat.legacy.names import LegacyName

__all__ = ["CUDNN"]


def _function(
    code: str,
    name: str,
    new: str,
    summary: str,
    before: str,
    after: str,
    renamed: str = "",
    kind: Literal["class", "function", "method"] = "function",
) -> LegacyName:
    pairs = [pair.partition("=") for pair in renamed.split()]
    return LegacyName(
        code=code,
        old=f"cudnn_compat.legacy.cupy.cudnn.{name}",
        new=new,
        kind=kind,
        summary=summary,
        renamed=tuple((old, renamed_to) for old, _, renamed_to in pairs),
        before=before,
        after=after,
        prelude=text.PRELUDE,
    )


CUDNN: Final[tuple[LegacyName, ...]] = (
    _function("CC100", "get_handle", text.VIEWS, text.NO_HANDLES, text.VIEW, text.NAMED),
    _function(
        "CC101",
        "Descriptor",
        text.VIEWS,
        text.NO_DESCRIPTORS,
        text.VIEW + "\nowned = cudnn.Descriptor(libcudnn.createTensorDescriptor(), "
        "libcudnn.destroyTensorDescriptor)",
        text.NAMED,
        kind="class",
    ),
    _function(
        "CC102",
        "get_data_type",
        text.SPEC,
        "A spec has its dtype by name.",
        "single = cudnn.get_data_type(xs.dtype) == CUDNN_DATA_FLOAT",
        'single = v2.RNNSpec("lstm", 3, 4, dtype=xs.dtype).dtype == "float32"',
    ),
    _function(
        "CC103",
        "create_tensor_descriptor",
        text.RUN,
        text.NO_DESCRIPTORS,
        f"x_desc = cudnn.create_tensor_descriptor(xs)\n{text.BEFORE}",
        text.FORWARD,
    ),
    _function(
        "CC104",
        "create_tensor_nd_descriptor",
        text.VIEWS,
        text.NO_DESCRIPTORS,
        text.VIEW,
        text.NAMED,
    ),
    _function(
        "CC105",
        "create_filter_descriptor",
        text.VIEWS,
        text.NO_DESCRIPTORS,
        text.VIEW,
        text.NAMED,
    ),
    _function(
        "CC106",
        "create_dropout_descriptor",
        text.VIEWS,
        "A spec has a dropout of 0 unless it says otherwise.",
        text.VIEW,
        text.NAMED,
    ),
    _function(
        "CC107",
        "set_dropout_descriptor",
        text.SPEC,
        "The ratio is a part of the spec; a DropoutState draws for any of them.",
        "cudnn.set_dropout_descriptor(states._desc, None, 0.5)\n"
        + text.TRAINED.replace("reserve, hy, cy, ys", "reserve, _, _, ys"),
        text.DROPPED.replace("spec.replace(dropout=0.5)", "dropping").replace(
            "state =",
            'dropping = v2.RNNSpec("lstm", 3, 4, num_layers=2, dropout=0.5, math="full")\nstate =',
        ),
    ),
    _function(
        "CC108",
        "create_dropout_states",
        text.STATE,
        "A DropoutState has its own memory on each device.",
        "memory = cudnn.create_dropout_states(cudnn.get_handle())\nstates.set_dropout_ratio(0.5)\n"
        + text.TRAINED.replace("reserve, hy, cy, ys", "reserve, _, _, ys"),
        text.DROPPED,
    ),
    _function(
        "CC109",
        "create_rnn_descriptor",
        text.VIEWS,
        "A spec says it.",
        text.VIEW,
        text.NAMED,
    ),
    _function(
        "CC110",
        "get_rnn_lin_layer_matrix_params",
        text.VIEWS,
        "Views of a weight space by name, or by pseudo-layer and linear id.",
        text.VIEW,
        text.NAMED,
    ),
    _function(
        "CC111",
        "get_rnn_lin_layer_bias_params",
        text.VIEWS,
        "Views of a weight space by name, or by pseudo-layer and linear id.",
        text.VIEW.replace("matrix_params", "bias_params"),
        text.NAMED.replace(".matrix.ravel()", ".bias"),
    ),
    _function(
        "CC112",
        "DropoutStates",
        text.STATE,
        "A generator that calls share; the ratio is a part of the spec.",
        "states = cudnn.DropoutStates(None, 7)\nstates.set_dropout_ratio(0.5)\n"
        + text.TRAINED.replace("reserve, hy, cy, ys", "reserve, _, _, ys"),
        text.DROPPED,
        kind="class",
    ),
    _function(
        "CC113",
        "DropoutStates.set_dropout_ratio",
        text.STATE,
        "The ratio is a part of the spec.",
        "states.set_dropout_ratio(0.5)\n"
        + text.TRAINED.replace("reserve, hy, cy, ys", "reserve, _, _, ys"),
        text.DROPPED,
        kind="method",
    ),
    _function(
        "CC114",
        "DropoutStates.forward",
        "numpy.where",
        "Draw a mask with the array library's own generator.",
        "mask, y = states.forward(None, xs, 0.0)",
        "kept = np.random.default_rng(7).random(xs.shape) >= 0.0\n"
        "y = np.where(kept, xs / np.float32(1 - 0.0), 0)",
        kind="method",
    ),
    _function(
        "CC115",
        "DropoutStates.backward",
        "numpy.where",
        "The mask of the forward, applied to the gradient.",
        "mask, y = states.forward(None, dys, 0.0)\ndx = states.backward(None, dys, 0.0, mask)",
        "kept = np.random.default_rng(7).random(dys.shape) >= 0.0\n"
        "dx = np.where(kept, dys / np.float32(1 - 0.0), 0)",
        kind="method",
    ),
    _function(
        "CC120",
        "rnn_forward_inference",
        text.RUN,
        "A spec says the network, and layout='packed' with batch_sizes the form of x.",
        text.BEFORE,
        text.FORWARD,
        "xs=x lengths=batch_sizes",
    ),
    _function(
        "CC121",
        "rnn_forward_training",
        text.RUN,
        "Pass training=True; the result itself goes to backward, in place of the reserve.",
        text.TRAINED,
        text.TRAINING,
        "xs=x lengths=batch_sizes",
    ),
    _function(
        "CC122",
        "rnn_backward_data",
        "cudnn_compat.v2.rnn_backward_data",
        "Takes the forward's result and the gradients; the rest is known to it.",
        text.TRAINED + text.DATA,
        text.TRAINING + text.V2_DATA.format(dys="dys"),
        "reserve_space=out dys=dy",
    ),
    _function(
        "CC123",
        "rnn_backward_weights",
        "cudnn_compat.v2.rnn_backward_weights",
        "Takes the forward's result, after rnn_backward_data.",
        text.TRAINED + text.DATA + text.WEIGHTS,
        text.TRAINING + text.V2_DATA.format(dys="dys") + "\ndw = v2.rnn_backward_weights(out)",
        "reserve_space=out",
    ),
    _function(
        "CC124",
        "rnn_forward_inference_ex",
        text.RUN,
        "A spec says the network; padded x and lengths are the usual form.",
        text.ex(text.BEFORE),
        text.FORWARD_EX,
        "xs=x",
    ),
    _function(
        "CC125",
        "rnn_forward_training_ex",
        text.RUN,
        "Pass training=True; the result itself goes to backward, in place of the reserve.",
        text.ex(text.TRAINED),
        text.TRAINING_EX,
        "xs=x",
    ),
    _function(
        "CC126",
        "rnn_backward_data_ex",
        "cudnn_compat.v2.rnn_backward_data",
        "Takes the forward's result and the gradients; the rest is known to it.",
        text.ex(text.TRAINED + text.DATA).replace(", dys.reshape", ",\n    dys.reshape"),
        text.TRAINING_EX + text.V2_DATA.format(dys="dys.reshape(5, 2, 4)"),
        "reserve_space=out dys=dy",
    ),
    _function(
        "CC127",
        "rnn_backward_weights_ex",
        "cudnn_compat.v2.rnn_backward_weights",
        "Takes the forward's result, after rnn_backward_data.",
        text.ex(text.TRAINED + text.DATA + text.WEIGHTS).replace(
            ", dys.reshape", ",\n    dys.reshape"
        ),
        text.TRAINING_EX
        + text.V2_DATA.format(dys="dys.reshape(5, 2, 4)")
        + "\ndw = v2.rnn_backward_weights(out)",
        "reserve_space=out",
    ),
    _function(
        "CC130",
        "softmax_forward",
        "numpy.exp",
        "Two lines of NumPy or CuPy, or cupyx.scipy.special.softmax and log_softmax.",
        text.SOFTMAX,
        text.V2_SOFTMAX,
    ),
    _function(
        "CC131",
        "softmax_backward",
        "numpy.sum",
        "One line of NumPy or CuPy.",
        f"{text.SOFTMAX}\ndx = cudnn.softmax_backward(y, xs, 1, CUDNN_SOFTMAX_ACCURATE)",
        f"{text.V2_SOFTMAX}\ndx = y * (xs - np.sum(y * xs, axis=1, keepdims=True))",
    ),
    _function(
        "CC132",
        "activation_forward",
        "numpy.maximum",
        "An expression of NumPy or CuPy: maximum, tanh, exp, clip.",
        "y = cudnn.activation_forward(xs, CUDNN_ACTIVATION_RELU)",
        "y = np.maximum(xs, 0)",
    ),
    _function(
        "CC133",
        "activation_backward",
        "numpy.where",
        "An expression of NumPy or CuPy.",
        "y = cudnn.activation_forward(xs, CUDNN_ACTIVATION_RELU)\n"
        "dx = cudnn.activation_backward(xs, y, xs, CUDNN_ACTIVATION_RELU)",
        "y = np.maximum(xs, 0)\ndx = np.where(y > 0, xs, 0)",
    ),
    _function(
        "CC140",
        "get_max_workspace_size",
        text.RUN,
        "It was a limit for convolutions; RNNs take what they need.",
        f"limit = cudnn.get_max_workspace_size()\n{text.BEFORE}",
        text.FORWARD,
    ),
    _function(
        "CC141",
        "set_max_workspace_size",
        text.RUN,
        "It was a limit for convolutions; RNNs take what they need.",
        f"cudnn.set_max_workspace_size(8 * 1024 * 1024)\n{text.BEFORE}",
        text.FORWARD,
    ),
    _function(
        "CC142",
        "is_tensor_core_available",
        text.SPEC,
        "The math of a spec says in which precision it computes.",
        "fast = cudnn.is_tensor_core_available(xs.dtype)",
        'fast = v2.RNNSpec("lstm", 3, 4, math="full").math != "full"',
    ),
)
"""The old names of the high-level module, by code."""
