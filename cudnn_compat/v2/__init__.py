"""The new API: one description of a network, functional calls, layers.

>>> from cudnn_compat import v2
>>> spec = v2.RNNSpec("lstm", input_size=64, hidden_size=128, num_layers=2, bidirectional=True)
>>> w = v2.init_weights(spec, seed=0)
>>> out = v2.rnn_forward(spec, w, x, lengths=lengths, training=True)    # doctest: +SKIP
>>> grad = v2.rnn_backward(out, dy)                                     # doctest: +SKIP
"""

from cudnn_compat.dropout import DropoutState
from cudnn_compat.errors import (
    ArgumentError,
    CompatError,
    DTypeError,
    IneffectiveOptionWarning,
    LibraryBadParameter,
    LibraryError,
    LibraryExecutionFailed,
    LibraryInternalError,
    LibraryMismatch,
    LibraryNotFound,
    LibraryNotInitialized,
    LibraryNotSupported,
    LibraryOutOfMemory,
    LibraryVersionError,
    TapeError,
    UnsupportedError,
)
from cudnn_compat.packed import Packed, pack, unpack
from cudnn_compat.spec import RNNSpec
from cudnn_compat.v2 import convert
from cudnn_compat.v2.backward import rnn_backward, rnn_backward_data, rnn_backward_weights
from cudnn_compat.v2.forward import rnn_forward
from cudnn_compat.v2.layers import GRU, LSTM, RNN
from cudnn_compat.v2.plans import PlanInfo, clear_plans, plans
from cudnn_compat.v2.results import RNNGradients, RNNOutput
from cudnn_compat.weights import (
    LinearParams,
    NamedWeights,
    init_weights,
    named_weights,
    weight_size,
)

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "ArgumentError",
    "CompatError",
    "DTypeError",
    "DropoutState",
    "IneffectiveOptionWarning",
    "LibraryBadParameter",
    "LibraryError",
    "LibraryExecutionFailed",
    "LibraryInternalError",
    "LibraryMismatch",
    "LibraryNotFound",
    "LibraryNotInitialized",
    "LibraryNotSupported",
    "LibraryOutOfMemory",
    "LibraryVersionError",
    "LinearParams",
    "NamedWeights",
    "Packed",
    "PlanInfo",
    "RNNGradients",
    "RNNOutput",
    "RNNSpec",
    "TapeError",
    "UnsupportedError",
    "clear_plans",
    "convert",
    "init_weights",
    "named_weights",
    "pack",
    "plans",
    "rnn_backward",
    "rnn_backward_data",
    "rnn_backward_weights",
    "rnn_forward",
    "unpack",
    "weight_size",
]
