"""A spec in the library's constants."""

from __future__ import annotations

from typing import Final

from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.descriptors import Descriptor, rnn_descriptor
from cudnn_compat.cudnn.library import Library
from cudnn_compat.errors import UnsupportedError
from cudnn_compat.spec import RNNSpec

__all__ = ["ALGO_CODES", "DTYPE_CODES", "LAYOUT_CODES", "check_version", "describe"]

ALGO_CODES: Final = {
    "standard": c.CUDNN_RNN_ALGO_STANDARD,
    "persist_static": c.CUDNN_RNN_ALGO_PERSIST_STATIC,
    "persist_dynamic": c.CUDNN_RNN_ALGO_PERSIST_DYNAMIC,
    "persist_small_h": c.CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H,
}
DTYPE_CODES: Final = {
    "float16": c.CUDNN_DATA_HALF,
    "bfloat16": c.CUDNN_DATA_BFLOAT16,
    "float32": c.CUDNN_DATA_FLOAT,
    "float64": c.CUDNN_DATA_DOUBLE,
}
LAYOUT_CODES: Final = {
    "time_major": c.CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
    "batch_major": c.CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED,
    "packed": c.CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
}
_CELLS: Final = {
    "relu": c.CUDNN_RNN_RELU,
    "tanh": c.CUDNN_RNN_TANH,
    "lstm": c.CUDNN_LSTM,
    "gru": c.CUDNN_GRU,
}
_BIASES: Final = {
    "none": c.CUDNN_RNN_NO_BIAS,
    "input": c.CUDNN_RNN_SINGLE_INP_BIAS,
    "double": c.CUDNN_RNN_DOUBLE_BIAS,
    "recurrent": c.CUDNN_RNN_SINGLE_REC_BIAS,
}
_MATHS: Final = {
    # (dtype, math): (precision of the arithmetic, math type)
    ("float32", "default"): (c.CUDNN_DATA_FLOAT, c.CUDNN_DEFAULT_MATH),
    ("float32", "full"): (c.CUDNN_DATA_FLOAT, c.CUDNN_FMA_MATH),
    ("float32", "half"): (c.CUDNN_DATA_FLOAT, c.CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION),
    ("float16", "default"): (c.CUDNN_DATA_FLOAT, c.CUDNN_TENSOR_OP_MATH),
    ("float16", "full"): (c.CUDNN_DATA_FLOAT, c.CUDNN_FMA_MATH),
    # Without tensor cores: that is what the old calls did with float16, bit for bit.
    ("float16", "half"): (c.CUDNN_DATA_HALF, c.CUDNN_DEFAULT_MATH),
    ("bfloat16", "default"): (c.CUDNN_DATA_FLOAT, c.CUDNN_DEFAULT_MATH),
    ("bfloat16", "full"): (c.CUDNN_DATA_FLOAT, c.CUDNN_FMA_MATH),
    ("float64", "default"): (c.CUDNN_DATA_DOUBLE, c.CUDNN_DEFAULT_MATH),
    ("float64", "full"): (c.CUDNN_DATA_DOUBLE, c.CUDNN_DEFAULT_MATH),
}


def check_version(library: Library, spec: RNNSpec) -> None:
    """Refuse what the loaded library is too old for.

    Raises:
        UnsupportedError: bfloat16 before cuDNN 9.13.
    """
    if spec.dtype == "bfloat16" and library.version.release < (9, 13):
        raise UnsupportedError(
            f"the RNNs of cuDNN {library.version} have no bfloat16 (9.13 and later have); "
            "use float16 or float32"
        )


def describe(
    library: Library, spec: RNNSpec, algo: str, *, padded: bool, dropout: Descriptor | None
) -> Descriptor:
    """The RNN descriptor of a spec.

    Args:
        padded: whether x and y have room for padding.
        dropout: the dropout descriptor, where dropout acts.
    """
    precision, math_type = _MATHS[spec.dtype, spec.math]
    return rnn_descriptor(
        library,
        algo=ALGO_CODES[algo],
        cell=_CELLS[spec.cell],
        bias=_BIASES[spec.bias],
        direction=c.CUDNN_BIDIRECTIONAL if spec.bidirectional else c.CUDNN_UNIDIRECTIONAL,
        input_mode=c.CUDNN_SKIP_INPUT if spec.input_mode == "skip" else c.CUDNN_LINEAR_INPUT,
        dtype=DTYPE_CODES[spec.dtype],
        math_precision=precision,
        math_type=math_type,
        input_size=spec.input_size,
        hidden_size=spec.hidden_size,
        proj_size=spec.state_size,
        num_layers=spec.num_layers,
        dropout=dropout,
        flags=c.CUDNN_RNN_PADDED_IO_ENABLED if padded else 0,
        clip=spec.clip,
    )
