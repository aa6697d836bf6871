"""The rows of :mod:`cudnn_compat.legacy.cupy.cudnn`. Pure data; see :mod:`.table`."""

from __future__ import annotations

from typing import Final, Literal

from cudnn_compat.legacy.names import LegacyName

__all__ = ["CUDNN", "FORWARD", "FORWARD_EX", "PRELUDE"]

PRELUDE: Final = """\
import ctypes
import numpy as np
from cudnn_compat import v2
from cudnn_compat.legacy.cupy import cudnn, libcudnn
from cudnn_compat.legacy.cupy.constants import *

# Two layers of LSTM, five steps of two sequences. The old calls took flat packed rows.
sizes, lengths = [2, 2, 2, 2, 2], np.full(2, 5, np.int32)
spec = v2.RNNSpec("lstm", 3, 4, num_layers=2, math="full")
w = v2.init_weights(spec, seed=0)
xs = np.linspace(-1, 1, 30, dtype="float32").reshape(10, 3)
hx, cx = (np.full((2, 2, 4), 0.5, "float32") for _ in range(2))
dys, dhy, dcy = np.ones((10, 4), "float32"), hx + 1, cx + 1
states = cudnn.DropoutStates(None, 7)
"""
"""What the examples of this dialect start from."""

FORWARD: Final = """\
out = v2.rnn_forward(spec, w, xs, hx, cx, layout="packed", batch_sizes=sizes)
hy, cy, ys = out.hy, out.cy, out.y"""

_TRAINING = FORWARD.replace("=sizes)", "=sizes, training=True)")
FORWARD_EX: Final = """\
out = v2.rnn_forward(spec, w, xs.reshape(5, 2, 3), hx, cx, lengths=lengths)
hy, cy, ys = out.hy, out.cy, out.y"""
_TRAINING_EX = FORWARD_EX.replace("=lengths)", "=lengths, training=True)")

_BEFORE = "hy, cy, ys = cudnn.rnn_forward_inference(states, 0, CUDNN_LSTM, hx, cx, w, xs, sizes)"
_TRAINED = """\
reserve, hy, cy, ys = cudnn.rnn_forward_training(
    states, 0, CUDNN_LSTM, hx, cx, w, xs, sizes)"""
_DATA = """
dhx, dcx, dxs = cudnn.rnn_backward_data(
    states, 0, CUDNN_LSTM, hx, cx, w, xs, ys, reserve, dhy, dcy, dys, sizes)"""
_WEIGHTS = """
dw = cudnn.rnn_backward_weights(states, 0, CUDNN_LSTM, xs, hx, ys, w, reserve, sizes)"""
_V2_DATA = """
grad = v2.rnn_backward_data(out, {dys}, dhy, dcy)
dhx, dcx, dxs = grad.dhx, grad.dcx, grad.dx"""


def _ex(before: str) -> str:
    """The same with the calls for padded sequences."""
    for name in ("forward_inference", "forward_training", "backward_data", "backward_weights"):
        before = before.replace(f"rnn_{name}(", f"rnn_{name}_ex(")
    before = before.replace(" xs,", " xs.reshape(5, 2, 3),")
    return before.replace(" dys,", " dys.reshape(5, 2, 4),").replace("sizes)", "lengths)")


_VIEW = """\
handle = cudnn.get_handle()
none = cudnn.create_dropout_descriptor(handle, 0.0, 0, 0, 0)
rnn = cudnn.create_rnn_descriptor(
    4, 2, none, CUDNN_LINEAR_INPUT, CUDNN_UNIDIRECTIONAL, CUDNN_LSTM, CUDNN_DATA_FLOAT)
x_desc = cudnn.create_tensor_nd_descriptor(xs.reshape(10, 3, 1))
w_desc = cudnn.create_filter_descriptor(w)
gate = cudnn.get_rnn_lin_layer_matrix_params(handle, rnn, 0, x_desc, w_desc, w, 5).copy()"""
_NAMED = """\
named = v2.named_weights(spec, w)
gate = named[0, 5].matrix.ravel()"""


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
        prelude=PRELUDE,
    )


_SPEC, _RUN, _VIEWS = (
    f"cudnn_compat.v2.{name}" for name in ("RNNSpec", "rnn_forward", "named_weights")
)
_STATE = "cudnn_compat.v2.DropoutState"
_NO_HANDLES = "There are no handles in v2: each call finds the one of its thread and device."
_NO_DESCRIPTORS = "There are no descriptors to make: v2 takes the arrays."

_DROPPED = """\
state = v2.DropoutState(7)
out = v2.rnn_forward(spec.replace(dropout=0.5), w, xs, hx, cx, layout="packed",
                     batch_sizes=sizes, training=True, seed=state)
ys = out.y"""
_SOFTMAX = "y = cudnn.softmax_forward(xs, 1, CUDNN_SOFTMAX_ACCURATE)"
_V2_SOFTMAX = """\
e = np.exp(xs - xs.max(axis=1, keepdims=True))
y = e / e.sum(axis=1, keepdims=True)"""

CUDNN: Final[tuple[LegacyName, ...]] = (
    _function("CC100", "get_handle", _VIEWS, _NO_HANDLES, _VIEW, _NAMED),
    _function(
        "CC101",
        "Descriptor",
        _VIEWS,
        _NO_DESCRIPTORS,
        _VIEW + "\nowned = cudnn.Descriptor(libcudnn.createTensorDescriptor(), "
        "libcudnn.destroyTensorDescriptor)",
        _NAMED,
        kind="class",
    ),
    _function(
        "CC102",
        "get_data_type",
        _SPEC,
        "A spec has its dtype by name.",
        "single = cudnn.get_data_type(xs.dtype) == CUDNN_DATA_FLOAT",
        'single = v2.RNNSpec("lstm", 3, 4, dtype=xs.dtype).dtype == "float32"',
    ),
    _function(
        "CC103",
        "create_tensor_descriptor",
        _RUN,
        _NO_DESCRIPTORS,
        f"x_desc = cudnn.create_tensor_descriptor(xs)\n{_BEFORE}",
        FORWARD,
    ),
    _function("CC104", "create_tensor_nd_descriptor", _VIEWS, _NO_DESCRIPTORS, _VIEW, _NAMED),
    _function("CC105", "create_filter_descriptor", _VIEWS, _NO_DESCRIPTORS, _VIEW, _NAMED),
    _function(
        "CC106",
        "create_dropout_descriptor",
        _VIEWS,
        "A spec has a dropout of 0 unless it says otherwise.",
        _VIEW,
        _NAMED,
    ),
    _function(
        "CC107",
        "set_dropout_descriptor",
        _SPEC,
        "The ratio is a part of the spec; a DropoutState draws for any of them.",
        "cudnn.set_dropout_descriptor(states._desc, None, 0.5)\n"
        + _TRAINED.replace("reserve, hy, cy, ys", "reserve, _, _, ys"),
        _DROPPED.replace("spec.replace(dropout=0.5)", "dropping").replace(
            "state =",
            'dropping = v2.RNNSpec("lstm", 3, 4, num_layers=2, dropout=0.5, math="full")\nstate =',
        ),
    ),
    _function(
        "CC108",
        "create_dropout_states",
        _STATE,
        "A DropoutState has its own memory on each device.",
        "memory = cudnn.create_dropout_states(cudnn.get_handle())\nstates.set_dropout_ratio(0.5)\n"
        + _TRAINED.replace("reserve, hy, cy, ys", "reserve, _, _, ys"),
        _DROPPED,
    ),
    _function("CC109", "create_rnn_descriptor", _VIEWS, "A spec says it.", _VIEW, _NAMED),
    _function(
        "CC110",
        "get_rnn_lin_layer_matrix_params",
        _VIEWS,
        "Views of a weight space by name, or by pseudo-layer and linear id.",
        _VIEW,
        _NAMED,
    ),
    _function(
        "CC111",
        "get_rnn_lin_layer_bias_params",
        _VIEWS,
        "Views of a weight space by name, or by pseudo-layer and linear id.",
        _VIEW.replace("matrix_params", "bias_params"),
        _NAMED.replace(".matrix.ravel()", ".bias"),
    ),
    _function(
        "CC112",
        "DropoutStates",
        _STATE,
        "A generator that calls share; the ratio is a part of the spec.",
        "states = cudnn.DropoutStates(None, 7)\nstates.set_dropout_ratio(0.5)\n"
        + _TRAINED.replace("reserve, hy, cy, ys", "reserve, _, _, ys"),
        _DROPPED,
        kind="class",
    ),
    _function(
        "CC113",
        "DropoutStates.set_dropout_ratio",
        _STATE,
        "The ratio is a part of the spec.",
        "states.set_dropout_ratio(0.5)\n"
        + _TRAINED.replace("reserve, hy, cy, ys", "reserve, _, _, ys"),
        _DROPPED,
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
        _RUN,
        "A spec says the network, and layout='packed' with batch_sizes the form of x.",
        _BEFORE,
        FORWARD,
        "xs=x lengths=batch_sizes",
    ),
    _function(
        "CC121",
        "rnn_forward_training",
        _RUN,
        "Pass training=True; the result itself goes to backward, in place of the reserve.",
        _TRAINED,
        _TRAINING,
        "xs=x lengths=batch_sizes",
    ),
    _function(
        "CC122",
        "rnn_backward_data",
        "cudnn_compat.v2.rnn_backward_data",
        "Takes the forward's result and the gradients; the rest is known to it.",
        _TRAINED + _DATA,
        _TRAINING + _V2_DATA.format(dys="dys"),
        "reserve_space=out dys=dy",
    ),
    _function(
        "CC123",
        "rnn_backward_weights",
        "cudnn_compat.v2.rnn_backward_weights",
        "Takes the forward's result, after rnn_backward_data.",
        _TRAINED + _DATA + _WEIGHTS,
        _TRAINING + _V2_DATA.format(dys="dys") + "\ndw = v2.rnn_backward_weights(out)",
        "reserve_space=out",
    ),
    _function(
        "CC124",
        "rnn_forward_inference_ex",
        _RUN,
        "A spec says the network; padded x and lengths are the usual form.",
        _ex(_BEFORE),
        FORWARD_EX,
        "xs=x",
    ),
    _function(
        "CC125",
        "rnn_forward_training_ex",
        _RUN,
        "Pass training=True; the result itself goes to backward, in place of the reserve.",
        _ex(_TRAINED),
        _TRAINING_EX,
        "xs=x",
    ),
    _function(
        "CC126",
        "rnn_backward_data_ex",
        "cudnn_compat.v2.rnn_backward_data",
        "Takes the forward's result and the gradients; the rest is known to it.",
        _ex(_TRAINED + _DATA).replace(", dys.reshape", ",\n    dys.reshape"),
        _TRAINING_EX + _V2_DATA.format(dys="dys.reshape(5, 2, 4)"),
        "reserve_space=out dys=dy",
    ),
    _function(
        "CC127",
        "rnn_backward_weights_ex",
        "cudnn_compat.v2.rnn_backward_weights",
        "Takes the forward's result, after rnn_backward_data.",
        _ex(_TRAINED + _DATA + _WEIGHTS).replace(", dys.reshape", ",\n    dys.reshape"),
        _TRAINING_EX
        + _V2_DATA.format(dys="dys.reshape(5, 2, 4)")
        + "\ndw = v2.rnn_backward_weights(out)",
        "reserve_space=out",
    ),
    _function(
        "CC130",
        "softmax_forward",
        "numpy.exp",
        "Two lines of NumPy or CuPy, or cupyx.scipy.special.softmax and log_softmax.",
        _SOFTMAX,
        _V2_SOFTMAX,
    ),
    _function(
        "CC131",
        "softmax_backward",
        "numpy.sum",
        "One line of NumPy or CuPy.",
        f"{_SOFTMAX}\ndx = cudnn.softmax_backward(y, xs, 1, CUDNN_SOFTMAX_ACCURATE)",
        f"{_V2_SOFTMAX}\ndx = y * (xs - np.sum(y * xs, axis=1, keepdims=True))",
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
        _RUN,
        "It was a limit for convolutions; RNNs take what they need.",
        f"limit = cudnn.get_max_workspace_size()\n{_BEFORE}",
        FORWARD,
    ),
    _function(
        "CC141",
        "set_max_workspace_size",
        _RUN,
        "It was a limit for convolutions; RNNs take what they need.",
        f"cudnn.set_max_workspace_size(8 * 1024 * 1024)\n{_BEFORE}",
        FORWARD,
    ),
    _function(
        "CC142",
        "is_tensor_core_available",
        _SPEC,
        "The math of a spec says in which precision it computes.",
        "fast = cudnn.is_tensor_core_available(xs.dtype)",
        'fast = v2.RNNSpec("lstm", 3, 4, math="full").math != "full"',
    ),
)
"""The old names of the high-level module, by code."""
