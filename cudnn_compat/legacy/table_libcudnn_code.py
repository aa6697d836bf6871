"""The code in the rows of :mod:`.table_libcudnn`: what it was, and what it becomes."""

from __future__ import annotations

from typing import Final

from cudnn_compat.legacy import table_cudnn_code as high

__all__ = [
    "ACTIVATION",
    "ADD",
    "ADD_EX",
    "A_SPEC",
    "A_STATE",
    "BACK",
    "BACK_EX",
    "CUBE",
    "CUPY",
    "DATA_DESC",
    "DROP",
    "DROPOUT",
    "FILTER",
    "FILTER_ND",
    "FLAT",
    "HANDLE",
    "LENGTHS",
    "MATRIX",
    "NETWORK",
    "NO_PLANS",
    "NO_SCRATCH",
    "ONE_CALL",
    "PADDED",
    "PADDING",
    "PERSISTENT",
    "PRELUDE",
    "RESULT",
    "SCRATCH",
    "SOFTMAX",
    "STREAM",
    "TENSOR",
    "TENSOR_4D",
    "TRAIN",
    "TRAIN_EX",
    "V2_ACTIVATION",
    "V2_ADD",
    "V2_BACK",
    "V2_DROP",
    "V2_DROPOUT",
    "V2_NETWORK",
    "V2_SOFTMAX",
    "V2_TRAIN",
    "V2_TRAIN_EX",
]

PRELUDE: Final = (
    high.PRELUDE
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

RESULT = high.FORWARD.replace("hy, cy, ys = out.hy, out.cy, out.y", "result = out.y")
PADDED = high.FORWARD_EX.replace(
    "hy, cy, ys = out.hy, out.cy, out.y", "result = out.y.reshape(10, 4)"
)

TENSOR = """\
desc = libcudnn.createTensorDescriptor()
dims, strides = (ctypes.c_int * 3)(2, 3, 1), (ctypes.c_int * 3)(3, 1, 1)
libcudnn.setTensorNdDescriptor(
    desc, CUDNN_DATA_FLOAT, 3, ctypes.addressof(dims), ctypes.addressof(strides))
result = run(x_descs=np.array([desc] * 5, np.uintp))
libcudnn.destroyTensorDescriptor(desc)"""
TENSOR_4D = """\
desc = libcudnn.createTensorDescriptor()
{call}
first = libcudnn.getTensor4dDescriptor(desc)[1]
result = run()"""
FILTER = """\
desc = libcudnn.createFilterDescriptor()
libcudnn.setFilter4dDescriptor_v4(desc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, w.size, 1, 1, 1)
shape = libcudnn.getFilterNdDescriptor(desc, 4)[3]
result = run()
libcudnn.destroyFilterDescriptor(desc)"""
FILTER_ND = """\
desc, dims = libcudnn.createFilterDescriptor(), (ctypes.c_int * 3)(w.size, 1, 1)
libcudnn.setFilterNdDescriptor_v4(
    desc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 3, ctypes.addressof(dims))
result = run()"""
NETWORK = """\
mine = libcudnn.createRNNDescriptor()
libcudnn.setRNNDescriptor_v6(
    handle, mine, 4, 2, dropout, CUDNN_LINEAR_INPUT, CUDNN_UNIDIRECTIONAL, CUDNN_LSTM,
    CUDNN_RNN_ALGO_STANDARD, CUDNN_DATA_FLOAT)
result = run(rnn=mine)
libcudnn.destroyRNNDescriptor(mine)"""
V2_NETWORK = """\
network = v2.RNNSpec("lstm", 3, 4, num_layers=2, math="full")
out = v2.rnn_forward(network, w, xs, hx, cx, layout="packed", batch_sizes=sizes)
result = out.y"""
DROPOUT = """\
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
V2_DROPOUT = """\
network = v2.RNNSpec("lstm", 3, 4, num_layers=2, dropout=0.5, math="full")
out = v2.rnn_forward(network, w, xs, hx, cx, layout="packed", batch_sizes=sizes,
                     training=True, seed=v2.DropoutState(7))
result = out.y"""
SCRATCH = """\
bytes_of_scratch = libcudnn.getRNNWorkspaceSize(handle, rnn, 5, at(x_descs))
result = run()"""
MATRIX = """\
desc, address = libcudnn.createFilterDescriptor(), ctypes.c_size_t()
libcudnn.getRNNLinLayerMatrixParams(
    handle, rnn, 0, x_desc, w_desc, at(w), 5, desc, ctypes.addressof(address))
size = np.prod(libcudnn.getFilterNdDescriptor(desc, 3)[3])
start = (address.value - at(w)) // 4
result = w[start : start + size]"""
DATA_DESC = """\
desc = libcudnn.createRNNDataDescriptor()
libcudnn.setRNNDataDescriptor(
    desc, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 5, 2, 3, at(lengths), 0)
libcudnn.RNNForwardInferenceEx(
    handle, rnn, desc, at(xs), *forward, y_data, at(ys), *states_out, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
batch = ctypes.c_int()
libcudnn.getRNNDataDescriptor(desc, 0, 0, 0, ctypes.addressof(batch), 0, 0, 0, 0)
libcudnn.destroyRNNDataDescriptor(desc)
result = ys"""
PADDING = """\
libcudnn.setRNNPaddingMode(rnn, CUDNN_RNN_PADDED_IO_ENABLED)
padded = libcudnn.getRNNPaddingMode(rnn) == CUDNN_RNN_PADDED_IO_ENABLED
libcudnn.RNNForwardInferenceEx(
    handle, rnn, x_data, at(xs), *forward, y_data, at(ys), *states_out,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
result = ys"""
PERSISTENT = """\
plan = libcudnn.createPersistentRNNPlan(rnn, 2, CUDNN_DATA_FLOAT)
libcudnn.setPersistentRNNPlan(rnn, plan)
result = run()
libcudnn.destroyPersistentRNNPlan(plan)"""

TRAIN = """\
libcudnn.RNNForwardTraining(
    handle, rnn, 5, at(x_descs), at(xs), *forward, at(y_descs), at(ys), *states_out, 0, 0,
    at(reserve), reserve.size)"""
BACK = """
libcudnn.RNNBackwardData(
    handle, rnn, 5, at(y_descs), at(ys), at(y_descs), at(dys), h_desc, at(dhy), h_desc, at(dcy),
    w_desc, at(w), *forward[:4], at(x_descs), at(dxs), h_desc, at(dhx), h_desc, at(dcx), 0, 0,
    at(reserve), reserve.size)"""
ADD = """
libcudnn.RNNBackwardWeights(
    handle, rnn, 5, at(x_descs), at(xs), h_desc, at(hx), at(y_descs), at(ys), 0, 0, w_desc, at(dw),
    at(reserve), reserve.size)"""
TRAIN_EX = """\
libcudnn.RNNForwardTrainingEx(
    handle, rnn, x_data, at(xs), *forward, y_data, at(ys), *states_out,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, at(reserve), reserve.size)"""
BACK_EX = """
libcudnn.RNNBackwardDataEx(
    handle, rnn, y_data, at(ys), y_data, at(dys), 0, 0, h_desc, at(dhy), h_desc, at(dcy),
    w_desc, at(w), *forward[:4], x_data, at(dxs), h_desc, at(dhx), h_desc, at(dcx), 0, 0, 0, 0,
    at(reserve), reserve.size)"""
ADD_EX = """
libcudnn.RNNBackwardWeightsEx(
    handle, rnn, x_data, at(xs), h_desc, at(hx), y_data, at(ys), 0, 0, w_desc, at(dw),
    at(reserve), reserve.size)"""
V2_TRAIN = RESULT.replace("=sizes)", "=sizes, training=True)")
V2_BACK = """
grad = v2.rnn_backward_data(out, {dys}, dhy, dcy)
first = grad.dhx"""
V2_ADD = "\nsecond = v2.rnn_backward_weights(out)"
V2_TRAIN_EX = PADDED.replace("=lengths)", "=lengths, training=True)")
FLAT, CUBE = "dys", "dys.reshape(5, 2, 4)"

DROP = """\
mask = np.empty(libcudnn.getDropoutReserveSpaceSize(x_desc), "uint8")
mask = np.empty(max(mask.size, 64), "uint8")
x, y, dx = np.ones((2, 3), "float32"), np.empty((2, 3), "float32"), np.empty((2, 3), "float32")
libcudnn.dropoutForward(handle, dropout, x_desc, at(x), x_desc, at(y), at(mask), mask.size)
libcudnn.dropoutBackward(handle, dropout, x_desc, at(x), x_desc, at(dx), at(mask), mask.size)"""
V2_DROP = """\
kept = np.random.default_rng(7).random((2, 3)) >= 0.0
y = np.where(kept, np.ones((2, 3), "float32") / np.float32(1 - 0.0), 0)"""
ACTIVATION = """\
desc = libcudnn.createActivationDescriptor()
libcudnn.setActivationDescriptor(desc, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0)
x, y, dx = xs[:2].copy(), np.empty((2, 3), "float32"), np.empty((2, 3), "float32")
one, zero = np.ones(1, "float32"), np.zeros(1, "float32")
libcudnn.activationForward_v4(handle, desc, at(one), x_desc, at(x), at(zero), x_desc, at(y))
libcudnn.activationBackward_v4(
    handle, desc, at(one), x_desc, at(y), x_desc, at(x), x_desc, at(x), at(zero), x_desc, at(dx))
libcudnn.destroyActivationDescriptor(desc)"""
V2_ACTIVATION = "y = np.maximum(xs[:2], 0)\ndx = np.where(y > 0, xs[:2], 0)"
SOFTMAX = """\
one, zero = np.ones(1, "float32"), np.zeros(1, "float32")
x, y, dx = xs[:2].copy(), np.empty((2, 3), "float32"), np.empty((2, 3), "float32")
how = CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL
libcudnn.softmaxForward(handle, *how, at(one), x_desc, at(x), at(zero), x_desc, at(y))
libcudnn.softmaxBackward(
    handle, *how, at(one), x_desc, at(y), x_desc, at(x), at(zero), x_desc, at(dx))
y, dx = y.round(6), dx.round(6)"""
V2_SOFTMAX = """\
e = np.exp(xs[:2] - xs[:2].max(axis=1, keepdims=True))
y = e / np.sum(e, axis=1, keepdims=True)
dx = y * (xs[:2] - np.sum(y * xs[:2], axis=1, keepdims=True))
y, dx = y.round(6), dx.round(6)"""

A_SPEC = "A frozen spec says what a network is; there is nothing to destroy."
A_STATE = "A DropoutState draws; the ratio is a part of the spec."
NO_SCRATCH = "Scratch memory is the call's own, and the reserve a part of its result."
LENGTHS = "Pass lengths= and layout=, in words."
ONE_CALL = "One call for inference and training; a spec, and arrays in place of addresses."
NO_PLANS = 'Say algo="persist_dynamic" in the spec; the engine plans for each batch size.'
CUPY = "An expression of NumPy or CuPy."

STREAM = """\
libcudnn.setStream(handle, 0)
stream = libcudnn.getStream(handle)
result = run()"""
HANDLE = """\
mine = libcudnn.create()
result = run()
libcudnn.destroy(mine)"""
