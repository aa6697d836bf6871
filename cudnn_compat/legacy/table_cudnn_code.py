"""The code in the rows of :mod:`.table_cudnn`: what it was, and what it becomes."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BEFORE",
    "DATA",
    "DROPPED",
    "FORWARD",
    "FORWARD_EX",
    "NAMED",
    "NO_DESCRIPTORS",
    "NO_HANDLES",
    "PRELUDE",
    "RUN",
    "SOFTMAX",
    "SPEC",
    "STATE",
    "TRAINED",
    "TRAINING",
    "TRAINING_EX",
    "V2_DATA",
    "V2_SOFTMAX",
    "VIEW",
    "VIEWS",
    "WEIGHTS",
    "ex",
]

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

TRAINING = FORWARD.replace("=sizes)", "=sizes, training=True)")
FORWARD_EX: Final = """\
out = v2.rnn_forward(spec, w, xs.reshape(5, 2, 3), hx, cx, lengths=lengths)
hy, cy, ys = out.hy, out.cy, out.y"""
TRAINING_EX = FORWARD_EX.replace("=lengths)", "=lengths, training=True)")

BEFORE = "hy, cy, ys = cudnn.rnn_forward_inference(states, 0, CUDNN_LSTM, hx, cx, w, xs, sizes)"
TRAINED = """\
reserve, hy, cy, ys = cudnn.rnn_forward_training(
    states, 0, CUDNN_LSTM, hx, cx, w, xs, sizes)"""
DATA = """
dhx, dcx, dxs = cudnn.rnn_backward_data(
    states, 0, CUDNN_LSTM, hx, cx, w, xs, ys, reserve, dhy, dcy, dys, sizes)"""
WEIGHTS = """
dw = cudnn.rnn_backward_weights(states, 0, CUDNN_LSTM, xs, hx, ys, w, reserve, sizes)"""
V2_DATA = """
grad = v2.rnn_backward_data(out, {dys}, dhy, dcy)
dhx, dcx, dxs = grad.dhx, grad.dcx, grad.dx"""


def ex(before: str) -> str:
    """The same with the calls for padded sequences."""
    for name in ("forward_inference", "forward_training", "backward_data", "backward_weights"):
        before = before.replace(f"rnn_{name}(", f"rnn_{name}_ex(")
    before = before.replace(" xs,", " xs.reshape(5, 2, 3),")
    return before.replace(" dys,", " dys.reshape(5, 2, 4),").replace("sizes)", "lengths)")


VIEW = """\
handle = cudnn.get_handle()
none = cudnn.create_dropout_descriptor(handle, 0.0, 0, 0, 0)
rnn = cudnn.create_rnn_descriptor(
    4, 2, none, CUDNN_LINEAR_INPUT, CUDNN_UNIDIRECTIONAL, CUDNN_LSTM, CUDNN_DATA_FLOAT)
x_desc = cudnn.create_tensor_nd_descriptor(xs.reshape(10, 3, 1))
w_desc = cudnn.create_filter_descriptor(w)
gate = cudnn.get_rnn_lin_layer_matrix_params(handle, rnn, 0, x_desc, w_desc, w, 5).copy()"""
NAMED = """\
named = v2.named_weights(spec, w)
gate = named[0, 5].matrix.ravel()"""


SPEC, RUN, VIEWS = (
    f"cudnn_compat.v2.{name}" for name in ("RNNSpec", "rnn_forward", "named_weights")
)
STATE = "cudnn_compat.v2.DropoutState"
NO_HANDLES = "There are no handles in v2: each call finds the one of its thread and device."
NO_DESCRIPTORS = "There are no descriptors to make: v2 takes the arrays."

DROPPED = """\
state = v2.DropoutState(7)
out = v2.rnn_forward(spec.replace(dropout=0.5), w, xs, hx, cx, layout="packed",
                     batch_sizes=sizes, training=True, seed=state)
ys = out.y"""
SOFTMAX = "y = cudnn.softmax_forward(xs, 1, CUDNN_SOFTMAX_ACCURATE)"
V2_SOFTMAX = """\
e = np.exp(xs - xs.max(axis=1, keepdims=True))
y = e / e.sum(axis=1, keepdims=True)"""
