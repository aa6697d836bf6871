"""The rows of :mod:`cudnn_compat.legacy.cupy.libcudnn`. Pure data; see :mod:`.table`."""

from __future__ import annotations

from typing import Final

from cudnn_compat.legacy.names import LegacyName
from cudnn_compat.legacy.table_cudnn import FORWARD, FORWARD_EX
from cudnn_compat.legacy.table_cudnn import PRELUDE as HIGH_PRELUDE

__all__ = ["LIBCUDNN", "PRELUDE"]

PRELUDE: Final = (
    HIGH_PRELUDE
    + '''
from cudnn_compat.legacy.cupy.handles import make_handle

handle = make_handle(None)  # what create() gives where there is no GPU


def at(array):
    """The address of an array."""
    return array.ctypes.data


def tensor(*dims):
    made, dims = libcudnn.createTensorDescriptor(), np.array(dims, np.int32)
    strides = np.ones(dims.size, np.int32)
    strides[:-1] = np.cumprod(dims[:0:-1])[::-1]
    libcudnn.setTensorNdDescriptor(made, 0, dims.size, at(dims), at(strides))
    return made


def data(features):
    made = libcudnn.createRNNDataDescriptor()
    libcudnn.setRNNDataDescriptor(made, 0, 0, 5, 2, features, at(lengths), 0)
    return made


x_desc, y_desc, h_desc, w_desc = tensor(2, 3, 1), tensor(2, 4, 1), tensor(2, 2, 4), (
    libcudnn.createFilterDescriptor())
libcudnn.setFilter4dDescriptor_v4(w_desc, 0, 0, w.size, 1, 1, 1)
x_descs, y_descs = np.array([x_desc] * 5, np.uintp), np.array([y_desc] * 5, np.uintp)
dropout = libcudnn.createDropoutDescriptor()
libcudnn.setDropoutDescriptor(dropout, handle, 0.0, 1, 16, 7)
rnn = libcudnn.createRNNDescriptor()
libcudnn.setRNNDescriptor_v6(handle, rnn, 4, 2, dropout, 0, 0, 2, 0, 0)
libcudnn.setRNNPaddingMode(rnn, 1)
x_data, y_data = data(3), data(4)
hy, cy, dhx, dcx = (np.empty_like(hx) for _ in range(4))
ys, dxs, dw = np.empty_like(dys), np.empty_like(xs), np.zeros_like(w)
reserve = np.empty(
    libcudnn.getRNNTrainingReserveSize(handle, rnn, 5, at(x_descs)), "uint8")
forward = (h_desc, at(hx), h_desc, at(cx), w_desc, at(w))
states_out = (h_desc, at(hy), h_desc, at(cy))


def run(rnn=rnn, x_descs=x_descs):
    """RNNForwardInference, which fills ys."""
    libcudnn.RNNForwardInference(
        handle, rnn, 5, at(x_descs), at(xs), *forward, at(y_descs), at(ys), *states_out, 0, 0)
    return ys.copy()
'''
)
"""What the examples of this module start from: the prelude of the other one, with descriptors."""

_RUN, _SPEC, _VIEWS = (
    f"cudnn_compat.v2.{name}" for name in ("rnn_forward", "RNNSpec", "named_weights")
)
_RESULT = FORWARD.replace("hy, cy, ys = out.hy, out.cy, out.y", "result = out.y")
_PADDED = FORWARD_EX.replace("hy, cy, ys = out.hy, out.cy, out.y", "result = out.y.reshape(10, 4)")

_TENSOR = """\
desc = libcudnn.createTensorDescriptor()
dims, strides = (ctypes.c_int * 3)(2, 3, 1), (ctypes.c_int * 3)(3, 1, 1)
libcudnn.setTensorNdDescriptor(
    desc, CUDNN_DATA_FLOAT, 3, ctypes.addressof(dims), ctypes.addressof(strides))
result = run(x_descs=np.array([desc] * 5, np.uintp))
libcudnn.destroyTensorDescriptor(desc)"""
_TENSOR_4D = """\
desc = libcudnn.createTensorDescriptor()
{call}
first = libcudnn.getTensor4dDescriptor(desc)[1]
result = run()"""
_FILTER = """\
desc = libcudnn.createFilterDescriptor()
libcudnn.setFilter4dDescriptor_v4(desc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, w.size, 1, 1, 1)
shape = libcudnn.getFilterNdDescriptor(desc, 4)[3]
result = run()
libcudnn.destroyFilterDescriptor(desc)"""
_FILTER_ND = """\
desc, dims = libcudnn.createFilterDescriptor(), (ctypes.c_int * 3)(w.size, 1, 1)
libcudnn.setFilterNdDescriptor_v4(
    desc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 3, ctypes.addressof(dims))
result = run()"""
_NETWORK = """\
mine = libcudnn.createRNNDescriptor()
libcudnn.setRNNDescriptor_v6(
    handle, mine, 4, 2, dropout, CUDNN_LINEAR_INPUT, CUDNN_UNIDIRECTIONAL, CUDNN_LSTM,
    CUDNN_RNN_ALGO_STANDARD, CUDNN_DATA_FLOAT)
result = run(rnn=mine)
libcudnn.destroyRNNDescriptor(mine)"""
_V2_NETWORK = """\
network = v2.RNNSpec("lstm", 3, 4, num_layers=2, math="full")
out = v2.rnn_forward(network, w, xs, hx, cx, layout="packed", batch_sizes=sizes)
result = out.y"""
_DROPOUT = """\
mine = libcudnn.createDropoutDescriptor()
memory = np.empty(libcudnn.dropoutGetStatesSize(handle), "uint8")
libcudnn.setDropoutDescriptor(mine, handle, 0.5, at(memory), memory.size, 7)
dropping = libcudnn.createRNNDescriptor()
libcudnn.setRNNDescriptor_v6(handle, dropping, 4, 2, mine, 0, 0, CUDNN_LSTM, 0, 0)
reserve = np.empty(
    libcudnn.getRNNTrainingReserveSize(handle, dropping, 5, at(x_descs)), "uint8")
libcudnn.RNNForwardTraining(
    handle, dropping, 5, at(x_descs), at(xs), *forward, at(y_descs), at(ys), *states_out, 0, 0,
    at(reserve), reserve.size)
libcudnn.destroyDropoutDescriptor(mine)
result = ys"""
_V2_DROPOUT = """\
network = v2.RNNSpec("lstm", 3, 4, num_layers=2, dropout=0.5, math="full")
out = v2.rnn_forward(network, w, xs, hx, cx, layout="packed", batch_sizes=sizes,
                     training=True, seed=v2.DropoutState(7))
result = out.y"""
_SCRATCH = """\
bytes_of_scratch = libcudnn.getRNNWorkspaceSize(handle, rnn, 5, at(x_descs))
result = run()"""
_MATRIX = """\
desc, address = libcudnn.createFilterDescriptor(), ctypes.c_size_t()
libcudnn.getRNNLinLayerMatrixParams(
    handle, rnn, 0, x_desc, w_desc, at(w), 5, desc, ctypes.addressof(address))
size = np.prod(libcudnn.getFilterNdDescriptor(desc, 3)[3])
start = (address.value - at(w)) // 4
result = w[start : start + size]"""
_DATA_DESC = """\
desc = libcudnn.createRNNDataDescriptor()
libcudnn.setRNNDataDescriptor(
    desc, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 5, 2, 3, at(lengths), 0)
libcudnn.RNNForwardInferenceEx(
    handle, rnn, desc, at(xs), *forward, y_data, at(ys), *states_out, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
batch = ctypes.c_int()
libcudnn.getRNNDataDescriptor(desc, 0, 0, 0, ctypes.addressof(batch), 0, 0, 0, 0)
libcudnn.destroyRNNDataDescriptor(desc)
result = ys"""
_PADDING = """\
libcudnn.setRNNPaddingMode(rnn, CUDNN_RNN_PADDED_IO_ENABLED)
padded = libcudnn.getRNNPaddingMode(rnn) == CUDNN_RNN_PADDED_IO_ENABLED
libcudnn.RNNForwardInferenceEx(
    handle, rnn, x_data, at(xs), *forward, y_data, at(ys), *states_out,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
result = ys"""
_PERSISTENT = """\
plan = libcudnn.createPersistentRNNPlan(rnn, 2, CUDNN_DATA_FLOAT)
libcudnn.setPersistentRNNPlan(rnn, plan)
result = run()
libcudnn.destroyPersistentRNNPlan(plan)"""

_TRAIN = """\
libcudnn.RNNForwardTraining(
    handle, rnn, 5, at(x_descs), at(xs), *forward, at(y_descs), at(ys), *states_out, 0, 0,
    at(reserve), reserve.size)"""
_BACK = """
libcudnn.RNNBackwardData(
    handle, rnn, 5, at(y_descs), at(ys), at(y_descs), at(dys), h_desc, at(dhy), h_desc, at(dcy),
    w_desc, at(w), *forward[:4], at(x_descs), at(dxs), h_desc, at(dhx), h_desc, at(dcx), 0, 0,
    at(reserve), reserve.size)"""
_ADD = """
libcudnn.RNNBackwardWeights(
    handle, rnn, 5, at(x_descs), at(xs), h_desc, at(hx), at(y_descs), at(ys), 0, 0, w_desc, at(dw),
    at(reserve), reserve.size)"""
_TRAIN_EX = """\
libcudnn.RNNForwardTrainingEx(
    handle, rnn, x_data, at(xs), *forward, y_data, at(ys), *states_out,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, at(reserve), reserve.size)"""
_BACK_EX = """
libcudnn.RNNBackwardDataEx(
    handle, rnn, y_data, at(ys), y_data, at(dys), 0, 0, h_desc, at(dhy), h_desc, at(dcy),
    w_desc, at(w), *forward[:4], x_data, at(dxs), h_desc, at(dhx), h_desc, at(dcx), 0, 0, 0, 0,
    at(reserve), reserve.size)"""
_ADD_EX = """
libcudnn.RNNBackwardWeightsEx(
    handle, rnn, x_data, at(xs), h_desc, at(hx), y_data, at(ys), 0, 0, w_desc, at(dw),
    at(reserve), reserve.size)"""
_V2_TRAIN = _RESULT.replace("=sizes)", "=sizes, training=True)")
_V2_BACK = """
grad = v2.rnn_backward_data(out, {dys}, dhy, dcy)
first = grad.dhx"""
_V2_ADD = "\nsecond = v2.rnn_backward_weights(out)"
_V2_TRAIN_EX = _PADDED.replace("=lengths)", "=lengths, training=True)")
_FLAT, _CUBE = "dys", "dys.reshape(5, 2, 4)"

_DROP = """\
mask = np.empty(libcudnn.getDropoutReserveSpaceSize(x_desc), "uint8")
mask = np.empty(max(mask.size, 64), "uint8")
x, y, dx = np.ones((2, 3), "float32"), np.empty((2, 3), "float32"), np.empty((2, 3), "float32")
libcudnn.dropoutForward(handle, dropout, x_desc, at(x), x_desc, at(y), at(mask), mask.size)
libcudnn.dropoutBackward(handle, dropout, x_desc, at(x), x_desc, at(dx), at(mask), mask.size)"""
_V2_DROP = """\
kept = np.random.default_rng(7).random((2, 3)) >= 0.0
y = np.where(kept, np.ones((2, 3), "float32") / np.float32(1 - 0.0), 0)"""
_ACTIVATION = """\
desc = libcudnn.createActivationDescriptor()
libcudnn.setActivationDescriptor(desc, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0)
x, y, dx = xs[:2].copy(), np.empty((2, 3), "float32"), np.empty((2, 3), "float32")
one, zero = np.ones(1, "float32"), np.zeros(1, "float32")
libcudnn.activationForward_v4(handle, desc, at(one), x_desc, at(x), at(zero), x_desc, at(y))
libcudnn.activationBackward_v4(
    handle, desc, at(one), x_desc, at(y), x_desc, at(x), x_desc, at(x), at(zero), x_desc, at(dx))
libcudnn.destroyActivationDescriptor(desc)"""
_V2_ACTIVATION = "y = np.maximum(xs[:2], 0)\ndx = np.where(y > 0, xs[:2], 0)"
_SOFTMAX = """\
one, zero = np.ones(1, "float32"), np.zeros(1, "float32")
x, y, dx = xs[:2].copy(), np.empty((2, 3), "float32"), np.empty((2, 3), "float32")
how = CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL
libcudnn.softmaxForward(handle, *how, at(one), x_desc, at(x), at(zero), x_desc, at(y))
libcudnn.softmaxBackward(
    handle, *how, at(one), x_desc, at(y), x_desc, at(x), at(zero), x_desc, at(dx))
y, dx = y.round(6), dx.round(6)"""
_V2_SOFTMAX = """\
e = np.exp(xs[:2] - xs[:2].max(axis=1, keepdims=True))
y = e / np.sum(e, axis=1, keepdims=True)
dx = y * (xs[:2] - np.sum(y * xs[:2], axis=1, keepdims=True))
y, dx = y.round(6), dx.round(6)"""

_NO_HANDLES = "There are no handles in v2: each call finds the one of its thread and device."
_NO_DESCRIPTORS = "There are no descriptors to make: v2 takes the arrays."
_A_SPEC = "A frozen spec says what a network is; there is nothing to destroy."
_A_STATE = "A DropoutState draws; the ratio is a part of the spec."
_NO_SCRATCH = "Scratch memory is the call's own, and the reserve a part of its result."
_LENGTHS = "Pass lengths= and layout=, in words."
_ONE_CALL = "One call for inference and training; a spec, and arrays in place of addresses."
_NO_PLANS = 'Say algo="persist_dynamic" in the spec; the engine plans for each batch size.'
_CUPY = "An expression of NumPy or CuPy."

_STREAM = """\
libcudnn.setStream(handle, 0)
stream = libcudnn.getStream(handle)
result = run()"""
_HANDLE = """\
mine = libcudnn.create()
result = run()
libcudnn.destroy(mine)"""


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
    *_rows(201, "create destroy", _RUN, _NO_HANDLES, _HANDLE, _RESULT),
    *_rows(
        203,
        "setStream getStream",
        _RUN,
        "Calls run on CuPy's current stream, which a stream's with block sets.",
        _STREAM,
        _RESULT,
    ),
    *_rows(
        210,
        "createTensorDescriptor setTensorNdDescriptor destroyTensorDescriptor",
        _RUN,
        _NO_DESCRIPTORS,
        _TENSOR,
        _RESULT,
    ),
    *_rows(
        213,
        "setTensor4dDescriptor getTensor4dDescriptor",
        _RUN,
        _NO_DESCRIPTORS,
        _TENSOR_4D.format(
            call="libcudnn.setTensor4dDescriptor("
            "desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 1, 1)"
        ),
        _RESULT,
    ),
    *_rows(
        215,
        "setTensor4dDescriptorEx",
        _RUN,
        _NO_DESCRIPTORS,
        _TENSOR_4D.format(
            call="libcudnn.setTensor4dDescriptorEx(desc, CUDNN_DATA_FLOAT, 2, 3, 1, 1, 3, 1, 1, 1)"
        ),
        _RESULT,
    ),
    *_rows(
        216,
        "createFilterDescriptor setFilter4dDescriptor_v4 getFilterNdDescriptor "
        "destroyFilterDescriptor",
        _RUN,
        _NO_DESCRIPTORS,
        _FILTER,
        _RESULT,
    ),
    *_rows(220, "setFilterNdDescriptor_v4", _RUN, _NO_DESCRIPTORS, _FILTER_ND, _RESULT),
    *_rows(
        221,
        "createRNNDescriptor setRNNDescriptor_v6 destroyRNNDescriptor",
        _SPEC,
        _A_SPEC,
        _NETWORK,
        _V2_NETWORK,
    ),
    *_rows(
        224,
        "setRNNDescriptor_v5",
        _SPEC,
        _A_SPEC,
        _NETWORK.replace("_v6(\n    handle, ", "_v5(\n    ").replace(
            "CUDNN_LSTM,\n    CUDNN_RNN_ALGO_STANDARD, ", "CUDNN_LSTM,\n    "
        ),
        _V2_NETWORK,
    ),
    *_rows(225, "setRNNPaddingMode getRNNPaddingMode", _RUN, _LENGTHS, _PADDING, _PADDED),
    *_rows(
        227,
        "getRNNParamsSize",
        "cudnn_compat.v2.weight_size",
        "In elements, not in bytes.",
        "size = libcudnn.getRNNParamsSize(handle, rnn, x_desc, CUDNN_DATA_FLOAT) // 4",
        "size = v2.weight_size(spec)",
    ),
    *_rows(228, "getRNNWorkspaceSize", _RUN, _NO_SCRATCH, _SCRATCH, _RESULT),
    *_rows(229, "getRNNTrainingReserveSize", _SPEC, _NO_SCRATCH, _DROPOUT, _V2_DROPOUT),
    *_rows(
        230,
        "getRNNLinLayerMatrixParams",
        _VIEWS,
        "Views of a weight space by name, or by pseudo-layer and linear id.",
        _MATRIX,
        "named = v2.named_weights(spec, w)\nresult = named[0, 5].matrix.ravel()",
    ),
    *_rows(
        231,
        "getRNNLinLayerBiasParams",
        _VIEWS,
        "Views of a weight space by name, or by pseudo-layer and linear id.",
        _MATRIX.replace("MatrixParams", "BiasParams"),
        "named = v2.named_weights(spec, w)\nresult = named[0, 5].bias",
    ),
    *_rows(
        232,
        "createRNNDataDescriptor setRNNDataDescriptor getRNNDataDescriptor "
        "destroyRNNDataDescriptor",
        _RUN,
        _LENGTHS,
        _DATA_DESC,
        _PADDED,
    ),
    *_rows(
        236,
        "createPersistentRNNPlan setPersistentRNNPlan destroyPersistentRNNPlan",
        _RUN,
        _NO_PLANS,
        _PERSISTENT,
        _RESULT,
    ),
    *_rows(
        240,
        "RNNForwardInference",
        _RUN,
        _ONE_CALL,
        "libcudnn.RNNForwardInference(\n    handle, rnn, 5, at(x_descs), at(xs), *forward, "
        "at(y_descs), at(ys), *states_out, 0, 0)\nresult = ys",
        _RESULT,
    ),
    *_rows(241, "RNNForwardTraining", _RUN, _ONE_CALL, f"{_TRAIN}\nresult = ys", _V2_TRAIN),
    *_rows(
        242,
        "RNNBackwardData",
        "cudnn_compat.v2.rnn_backward_data",
        "Takes the forward's result and the gradients; the rest is known to it.",
        f"{_TRAIN}{_BACK}\nfirst = dhx",
        _V2_TRAIN + _V2_BACK.format(dys=_FLAT),
    ),
    *_rows(
        243,
        "RNNBackwardWeights",
        "cudnn_compat.v2.rnn_backward_weights",
        "Takes the forward's result; accumulate=True adds, as the old call did.",
        f"{_TRAIN}{_BACK}{_ADD}\nsecond = dw",
        _V2_TRAIN + _V2_BACK.format(dys=_FLAT) + _V2_ADD,
    ),
    *_rows(
        244,
        "RNNForwardInferenceEx",
        _RUN,
        _ONE_CALL,
        _PADDING,
        _PADDED,
    ),
    *_rows(245, "RNNForwardTrainingEx", _RUN, _ONE_CALL, f"{_TRAIN_EX}\nresult = ys", _V2_TRAIN_EX),
    *_rows(
        246,
        "RNNBackwardDataEx",
        "cudnn_compat.v2.rnn_backward_data",
        "Takes the forward's result and the gradients; the rest is known to it.",
        f"{_TRAIN_EX}{_BACK_EX}\nfirst = dhx",
        _V2_TRAIN_EX + _V2_BACK.format(dys=_CUBE),
    ),
    *_rows(
        247,
        "RNNBackwardWeightsEx",
        "cudnn_compat.v2.rnn_backward_weights",
        "Takes the forward's result; accumulate=True adds, as the old call did.",
        f"{_TRAIN_EX}{_BACK_EX}{_ADD_EX}\nsecond = dw",
        _V2_TRAIN_EX + _V2_BACK.format(dys=_CUBE) + _V2_ADD,
    ),
    *_rows(
        250,
        "createDropoutDescriptor setDropoutDescriptor dropoutGetStatesSize "
        "destroyDropoutDescriptor",
        "cudnn_compat.v2.DropoutState",
        _A_STATE,
        _DROPOUT,
        _V2_DROPOUT,
    ),
    *_rows(
        254,
        "getDropoutReserveSpaceSize dropoutForward dropoutBackward",
        "numpy.where",
        "Draw a mask with the array library's own generator.",
        _DROP,
        _V2_DROP,
    ),
    *_rows(
        260,
        "createActivationDescriptor setActivationDescriptor activationForward_v4 "
        "destroyActivationDescriptor",
        "numpy.maximum",
        _CUPY,
        _ACTIVATION,
        _V2_ACTIVATION,
    ),
    *_rows(264, "activationBackward_v4", "numpy.where", _CUPY, _ACTIVATION, _V2_ACTIVATION),
    *_rows(265, "softmaxForward", "numpy.exp", _CUPY, _SOFTMAX, _V2_SOFTMAX),
    *_rows(266, "softmaxBackward", "numpy.sum", _CUPY, _SOFTMAX, _V2_SOFTMAX),
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
        prelude=PRELUDE,
    )


LIBCUDNN: Final[tuple[LegacyName, ...]] = tuple(_row(*fields) for fields in _FIELDS)
"""The old names of the low-level module, by code."""
