"""The rows of the constants of :mod:`cudnn_compat.legacy.cupy.libcudnn` that RNNs took.

Pure data; see :mod:`.table`. Constants of other operations are numbers that nothing here takes,
or belong to a function whose row says what to use; they have no row.
"""

from __future__ import annotations

from typing import Final

from cudnn_compat.legacy.names import LegacyName
from cudnn_compat.legacy.table_libcudnn_code import PRELUDE

__all__ = ["CONSTANTS"]

_SIZE = """\
rnn = libcudnn.createRNNDescriptor()
libcudnn.setRNNDescriptor_v6(handle, rnn, 3, 2, dropout, {inputs}, {direction}, {cell}, {algo}, 0)
size = libcudnn.getRNNParamsSize(handle, rnn, x_desc, 0) // 4"""
_V2_SIZE = "size = v2.weight_size(v2.RNNSpec({cell}, 3, 3, num_layers=2{more}))"
_PLAIN = {"inputs": "0", "direction": "0", "cell": "2", "algo": "0"}

_BYTES = """\
rnn = libcudnn.createRNNDescriptor()
libcudnn.setRNNDescriptor_v6(handle, rnn, 4, 2, dropout, 0, 0, 2, 0, {name})
size = libcudnn.getRNNParamsSize(handle, rnn, x_desc, {name})"""
_V2_BYTES = """\
spec = v2.RNNSpec("lstm", 3, 4, num_layers=2, dtype={value})
size = v2.weight_size(spec) * np.dtype(spec.dtype).itemsize"""

_LAYOUT = """\
desc, layout = libcudnn.createRNNDataDescriptor(), ctypes.c_int()
libcudnn.setRNNDataDescriptor(desc, 0, {name}, 5, 2, 3, at(lengths), 0)
libcudnn.setRNNPaddingMode(rnn, CUDNN_RNN_PADDED_IO_ENABLED)
wide = libcudnn.createRNNDataDescriptor()
libcudnn.setRNNDataDescriptor(wide, 0, {name}, 5, 2, 4, at(lengths), 0)
libcudnn.RNNForwardInferenceEx(
    handle, rnn, desc, at(xs), *forward, wide, at(ys), *states_out, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
result = ys"""
_V2_LAYOUT = """\
out = v2.rnn_forward(spec, w, xs.reshape({shape}), hx, cx, layout={value}, lengths=lengths)
result = out.y.reshape(10, 4)"""
_PADDING = """\
libcudnn.setRNNPaddingMode(rnn, {name})
result = run()"""
_V2_PADDING = """\
out = v2.rnn_forward(spec, w, xs, hx, cx, layout="packed", batch_sizes=sizes)
result = out.y"""


def _row(
    code: int, name: str, value: str, summary: str, before: str, after: str, new: str = "RNNSpec"
) -> LegacyName:
    return LegacyName(
        code=f"CC{code}",
        old=f"cudnn_compat.legacy.cupy.libcudnn.{name}",
        new=f"cudnn_compat.v2.{new}",
        kind="constant",
        summary=summary,
        value=value,
        before=before,
        after=after,
        prelude=PRELUDE,
    )


def _cell(code: int, name: str, cell: str, does: str) -> LegacyName:
    value = f'"{cell}"'
    before = _SIZE.format_map(_PLAIN | {"cell": name})
    after = _V2_SIZE.format(cell=value, more="")
    return _row(code, name, value, f"{does}; a spec says cell={value}.", before, after)


def _option(code: int, name: str, field: str, parameter: str, value: str) -> LegacyName:
    before = _SIZE.format_map(_PLAIN | {field: name})
    after = _V2_SIZE.format(cell='"lstm"', more=f", {parameter}={value}")
    return _row(code, name, value, f"A spec says {parameter}={value}.", before, after)


def _dtype(code: int, name: str, dtype: str) -> LegacyName:
    value = f'"{dtype}"'
    before, after = _BYTES.format(name=name), _V2_BYTES.format(value=value)
    return _row(code, name, value, f"A spec says dtype={value}.", before, after)


def _layout(code: int, name: str, layout: str, shape: str) -> LegacyName:
    value = f'"{layout}"'
    before, after = _LAYOUT.format(name=name), _V2_LAYOUT.format(shape=shape, value=value)
    summary = f"rnn_forward takes layout={value}."
    return _row(code, name, value, summary, before, after, "rnn_forward")


def _padding(code: int, name: str, value: str) -> LegacyName:
    summary = f"rnn_forward takes layout={value}."
    before = _PADDING.format(name=name)
    return _row(code, name, value, summary, before, _V2_PADDING, "rnn_forward")


CONSTANTS: Final[tuple[LegacyName, ...]] = (
    _cell(300, "CUDNN_RNN_RELU", "relu", "The plain cell with relu"),
    _cell(301, "CUDNN_RNN_TANH", "tanh", "The plain cell with tanh"),
    _cell(302, "CUDNN_LSTM", "lstm", "The LSTM cell"),
    _cell(303, "CUDNN_GRU", "gru", "The GRU cell, reset-after form"),
    _option(304, "CUDNN_UNIDIRECTIONAL", "direction", "bidirectional", "False"),
    _option(305, "CUDNN_BIDIRECTIONAL", "direction", "bidirectional", "True"),
    _option(306, "CUDNN_LINEAR_INPUT", "inputs", "input_mode", '"linear"'),
    _option(307, "CUDNN_SKIP_INPUT", "inputs", "input_mode", '"skip"'),
    _option(310, "CUDNN_RNN_ALGO_STANDARD", "algo", "algo", '"standard"'),
    _option(311, "CUDNN_RNN_ALGO_PERSIST_STATIC", "algo", "algo", '"persist_static"'),
    _option(312, "CUDNN_RNN_ALGO_PERSIST_DYNAMIC", "algo", "algo", '"persist_dynamic"'),
    _option(313, "CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H", "algo", "algo", '"persist_small_h"'),
    _dtype(320, "CUDNN_DATA_FLOAT", "float32"),
    _dtype(321, "CUDNN_DATA_DOUBLE", "float64"),
    _dtype(322, "CUDNN_DATA_HALF", "float16"),
    _layout(330, "CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED", "time_major", "5, 2, 3"),
    _layout(331, "CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED", "packed", "10, 3"),
    _layout(332, "CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED", "batch_major", "2, 5, 3"),
    _padding(333, "CUDNN_RNN_PADDED_IO_DISABLED", '"packed"'),
    _padding(334, "CUDNN_RNN_PADDED_IO_ENABLED", '"time_major"'),
)
"""The constants, by code."""
