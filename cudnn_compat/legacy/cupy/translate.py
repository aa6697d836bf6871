"""Old arguments as a spec and as sequences: the two things that engines plan by.

float32 and float64 are computed in full precision, because the code is older than TF32; float16 in
float16 arithmetic on a GPU, which reproduces the old library bit for bit, and in float32 on the
host, whose engine has no other.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from cudnn_compat.arrays import Array, dtype_name
from cudnn_compat.checking import check_integer
from cudnn_compat.errors import ArgumentError
from cudnn_compat.legacy.cupy import constants as c
from cudnn_compat.legacy.cupy.described import DTYPES, RNN, code_of_dtype
from cudnn_compat.sequences import Sequences, make_sequences
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import weight_layout

__all__ = [
    "ACTIVATIONS",
    "ALGORITHMS",
    "LAYOUTS",
    "SOFTMAXES",
    "by_lengths",
    "by_steps",
    "choice",
    "data_type_of",
    "flat_weights",
    "float_name",
    "network",
    "network_of",
]

CELLS: Final = {
    c.CUDNN_RNN_RELU: "relu",
    c.CUDNN_RNN_TANH: "tanh",
    c.CUDNN_LSTM: "lstm",
    c.CUDNN_GRU: "gru",
}
DIRECTIONS: Final = {c.CUDNN_UNIDIRECTIONAL: False, c.CUDNN_BIDIRECTIONAL: True}
INPUT_MODES: Final = {c.CUDNN_LINEAR_INPUT: "linear", c.CUDNN_SKIP_INPUT: "skip"}
ALGORITHMS: Final = {
    c.CUDNN_RNN_ALGO_STANDARD: "standard",
    c.CUDNN_RNN_ALGO_PERSIST_STATIC: "persist_static",
    c.CUDNN_RNN_ALGO_PERSIST_DYNAMIC: "persist_dynamic",
    c.CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H: "persist_small_h",
}
LAYOUTS: Final = {
    c.CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED: "time_major",
    c.CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED: "packed",
    c.CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED: "batch_major",
}
SOFTMAXES: Final = {
    c.CUDNN_SOFTMAX_FAST: "fast",
    c.CUDNN_SOFTMAX_ACCURATE: "accurate",
    c.CUDNN_SOFTMAX_LOG: "log",
}
ACTIVATIONS: Final = {
    c.CUDNN_ACTIVATION_SIGMOID: "sigmoid",
    c.CUDNN_ACTIVATION_RELU: "relu",
    c.CUDNN_ACTIVATION_TANH: "tanh",
    c.CUDNN_ACTIVATION_CLIPPED_RELU: "clipped_relu",
    c.CUDNN_ACTIVATION_ELU: "elu",
    c.CUDNN_ACTIVATION_IDENTITY: "identity",
}


def choice(name: str, value: int, known: dict[int, Any]) -> Any:
    """What the number ``value`` means.

    Raises:
        ArgumentError, DTypeError: nothing.
    """
    try:
        return known[value]
    except (KeyError, TypeError):
        number = check_integer(name, value, -(2**31))
        listed = ", ".join(f"{code} ({word})" for code, word in known.items())
        raise ArgumentError(f"{name} is {number}; wanted one of {listed}") from None


def data_type_of(dtype: Any) -> int:
    """The ``CUDNN_DATA_*`` number of a dtype.

    Raises:
        TypeError: neither float16, float32 nor float64.
    """
    code = code_of_dtype(np.dtype(dtype).name)
    if code is None:
        raise TypeError(f"dtype is {np.dtype(dtype)}; wanted float16, float32 or float64")
    return code


@functools.lru_cache(maxsize=512)
def network(
    mode: int,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    direction: int,
    dtype: str,
    on_gpu: bool,
    *,
    dropout: float = 0.0,
    input_mode: int = c.CUDNN_LINEAR_INPUT,
    algo: int = c.CUDNN_RNN_ALGO_STANDARD,
) -> RNNSpec:
    """The spec of old arguments. Biases are always double.

    Raises:
        ArgumentError: a number means nothing, or a size is out of range.
    """
    return RNNSpec(
        choice("the RNN mode", mode, CELLS),
        input_size,
        hidden_size,
        num_layers=num_layers,
        bidirectional=choice("the direction", direction, DIRECTIONS),
        input_mode=choice("the input mode", input_mode, INPUT_MODES),
        # With one layer it does nothing, as of old without a word.
        dropout=dropout if num_layers > 1 else 0.0,
        dtype=dtype,
        math="half" if dtype == "float16" and on_gpu else "full",
        algo=choice("the algorithm", algo, ALGORITHMS),
    )


def network_of(rnn: RNN, input_size: int, *, on_gpu: bool, dropout: float | None = None) -> RNNSpec:
    """The spec of an RNN descriptor, once the input size is known.

    Args:
        dropout: None is the ratio that its dropout descriptor has now.

    Raises:
        ArgumentError: it has not been set.
    """
    if not rnn.dtype:
        raise ArgumentError("the RNN descriptor has been created but not set")
    if dropout is None:
        dropout = 0.0 if rnn.dropout is None else rnn.dropout.ratio
    return network(
        rnn.mode,
        input_size,
        rnn.hidden_size,
        rnn.num_layers,
        rnn.direction,
        rnn.dtype,
        on_gpu,
        dropout=dropout,
        input_mode=rnn.input_mode,
        algo=rnn.algo,
    )


def flat_weights(spec: RNNSpec, w: Array, name: str = "w") -> Array:
    """``w`` of any shape as the flat weight space: a view where it is contiguous.

    Raises:
        ArgumentError: it has another number of elements.
    """
    size = weight_layout(spec).size
    if w.size != size:
        raise ArgumentError(
            f"{name} has {w.size} elements (shape {w.shape}); this network has {size} weights"
        )
    return w.reshape(-1)


def by_steps(sizes: Any, rows: int, batch: int) -> Sequences:
    """The geometry of the basic calls: ``sizes`` is the batch size of each step.

    Raises:
        ArgumentError, DTypeError: sizes that increase, do not add up to ``rows``, or exceed
            ``batch``.
    """
    known = _known(sizes)
    if known is None:
        return make_sequences("packed", (rows, 1), batch_sizes=sizes, batch=batch)
    return _by_steps(known, rows, batch)


def by_lengths(lengths: Any, shape: tuple[int, ...], layout: str = "time_major") -> Sequences:
    """The geometry of the calls with Ex: ``lengths`` is the length of each sequence.

    Raises:
        ArgumentError, DTypeError: lengths that do not fit ``shape``.
    """
    known = _known(lengths)
    if known is None:
        return make_sequences(layout, shape, lengths=lengths)
    return _by_lengths(known, shape, layout)


def _known(counts: Any) -> tuple[int, ...] | None:
    """Counts as a key; None where they have to be looked at closely."""
    if type(counts) is tuple or type(counts) is list:
        return tuple(counts) if all(type(count) is int for count in counts) else None
    if type(counts) is np.ndarray and counts.ndim == 1 and counts.dtype.kind in "iu":
        return tuple(counts.tolist())
    return None


@functools.lru_cache(maxsize=256)
def _by_steps(sizes: tuple[int, ...], rows: int, batch: int) -> Sequences:
    return make_sequences("packed", (rows, 1), batch_sizes=sizes, batch=batch)


@functools.lru_cache(maxsize=256)
def _by_lengths(lengths: tuple[int, ...], shape: tuple[int, ...], layout: str) -> Sequences:
    return make_sequences(layout, shape, lengths=lengths)


def float_name(array: Array) -> str:
    """The dtype of an array of the dialect.

    Raises:
        TypeError: as :func:`data_type_of`.
    """
    name = _FLOATS.get(array.dtype)
    if name is None:
        raise TypeError(f"the array is {dtype_name(array)}; wanted float16, float32 or float64")
    return name


_FLOATS: Final = {np.dtype(name): name for name in DTYPES.values()}
