"""A bidirectional GRU on cuDNN, by its low-level calls: one object, a batch of sequences at a time.

It talks to the library itself, past cupy.cudnn, to keep its workspace and its descriptors from one
call to the next: descriptors for each time step, addresses, memory of its own.
"""

import ctypes

import cupy
import numpy
from cupy.cuda import cudnn as libcudnn


def address(array):
    """Where an array's memory begins: on the GPU, or on the host."""
    return array.data.ptr if hasattr(array.data, "ptr") else array.ctypes.data


def int_array(*values):
    return (ctypes.c_int * len(values))(*values)


class TensorDescriptors:
    """One tensor descriptor for each time step, and the host array of them that cuDNN wants."""

    def __init__(self, data_type, batch_sizes, size):
        self.descs = []
        for batch in batch_sizes:
            desc = libcudnn.createTensorDescriptor()
            dims, strides = int_array(batch, size, 1), int_array(size, 1, 1)
            libcudnn.setTensorNdDescriptor(
                desc, data_type, 3, ctypes.addressof(dims), ctypes.addressof(strides)
            )
            self.descs.append(desc)
        self.array = (ctypes.c_size_t * len(self.descs))(*self.descs)

    @property
    def ptr(self):
        return ctypes.addressof(self.array)

    def __del__(self):
        for desc in self.descs:
            libcudnn.destroyTensorDescriptor(desc)


class BiGRU:
    def __init__(self, n_in, n_units, dtype="f", seed=0):
        self.n_in, self.n_units, self.dtype = n_in, n_units, numpy.dtype(dtype)
        self.data_type = {
            "f": libcudnn.CUDNN_DATA_FLOAT,
            "d": libcudnn.CUDNN_DATA_DOUBLE,
        }[self.dtype.char]
        self.handle = libcudnn.create()
        self.drop_desc = libcudnn.createDropoutDescriptor()
        states = cupy.empty(libcudnn.dropoutGetStatesSize(self.handle), "b")
        libcudnn.setDropoutDescriptor(
            self.drop_desc, self.handle, 0.0, address(states), states.nbytes, seed
        )
        self.drop_states = states
        self.rnn_desc = libcudnn.createRNNDescriptor()
        libcudnn.setRNNDescriptor_v6(
            self.handle, self.rnn_desc, n_units, 1, self.drop_desc,
            libcudnn.CUDNN_LINEAR_INPUT, libcudnn.CUDNN_BIDIRECTIONAL, libcudnn.CUDNN_GRU,
            libcudnn.CUDNN_RNN_ALGO_STANDARD, self.data_type,
        )
        one_step = TensorDescriptors(self.data_type, [1], n_in)
        nbytes = libcudnn.getRNNParamsSize(
            self.handle, self.rnn_desc, one_step.descs[0], self.data_type
        )
        self.w = cupy.zeros((nbytes // self.dtype.itemsize, 1, 1), self.dtype)
        self.w_desc = libcudnn.createFilterDescriptor()
        dims = int_array(*self.w.shape)
        libcudnn.setFilterNdDescriptor_v4(
            self.w_desc, self.data_type, libcudnn.CUDNN_TENSOR_NCHW, 3, ctypes.addressof(dims)
        )
        self._find_params(one_step)

    def _find_params(self, one_step):
        """offsets[name] = (begin, shape) of every matrix and bias in w, as the library says."""
        self.offsets = {}
        desc = libcudnn.createFilterDescriptor()
        for direction in range(2):
            for lin in range(6):
                n = self.n_in if lin < 3 else self.n_units
                for kind, shape, get in (
                    ("W", (self.n_units, n), libcudnn.getRNNLinLayerMatrixParams),
                    ("b", (self.n_units,), libcudnn.getRNNLinLayerBiasParams),
                ):
                    at = numpy.array(0, dtype=numpy.intp)
                    get(self.handle, self.rnn_desc, direction, one_step.descs[0], self.w_desc,
                        address(self.w), lin, desc, at.ctypes.data)
                    begin = (int(at) - address(self.w)) // self.dtype.itemsize
                    self.offsets[kind, direction, lin] = begin, shape
        libcudnn.destroyFilterDescriptor(desc)

    def param(self, kind, direction, lin, of=None):
        """A view of one matrix or bias, in w or in an array like it."""
        begin, shape = self.offsets[kind, direction, lin]
        size = int(numpy.prod(shape))
        return (self.w if of is None else of).reshape(-1)[begin:begin + size].reshape(shape)

    def forward(self, xs, batch_sizes, hx):
        """xs: (sum of batch_sizes, n_in), time step by time step. Returns ys and hy."""
        self.steps = len(batch_sizes)
        self.xs, self.hx = xs, hx
        self.x_descs = TensorDescriptors(self.data_type, batch_sizes, self.n_in)
        self.y_descs = TensorDescriptors(self.data_type, batch_sizes, 2 * self.n_units)
        self.h_desc = libcudnn.createTensorDescriptor()
        dims = int_array(*hx.shape)
        strides = int_array(hx.shape[1] * hx.shape[2], hx.shape[2], 1)
        libcudnn.setTensorNdDescriptor(
            self.h_desc, self.data_type, 3, ctypes.addressof(dims), ctypes.addressof(strides)
        )
        self.work = cupy.empty(max(1, libcudnn.getRNNWorkspaceSize(
            self.handle, self.rnn_desc, self.steps, self.x_descs.ptr)), "b")
        self.reserve = cupy.empty(max(1, libcudnn.getRNNTrainingReserveSize(
            self.handle, self.rnn_desc, self.steps, self.x_descs.ptr)), "b")
        self.ys = cupy.empty((len(xs), 2 * self.n_units), self.dtype)
        hy = cupy.empty(hx.shape, self.dtype)
        # A GRU has no cell: 0 for its descriptors and its memory.
        libcudnn.RNNForwardTraining(
            self.handle, self.rnn_desc, self.steps, self.x_descs.ptr, address(xs),
            self.h_desc, address(hx), 0, 0, self.w_desc, address(self.w),
            self.y_descs.ptr, address(self.ys), self.h_desc, address(hy), 0, 0,
            address(self.work), self.work.nbytes, address(self.reserve), self.reserve.nbytes,
        )
        return self.ys, hy

    def backward(self, dys, dhy):
        """Gradients of xs, hx and w."""
        dxs, dhx, dw = (cupy.empty(a.shape, self.dtype) for a in (self.xs, self.hx, self.w))
        dw[...] = 0
        libcudnn.RNNBackwardData(
            self.handle, self.rnn_desc, self.steps, self.y_descs.ptr, address(self.ys),
            self.y_descs.ptr, address(dys), self.h_desc, address(dhy), 0, 0,
            self.w_desc, address(self.w), self.h_desc, address(self.hx), 0, 0,
            self.x_descs.ptr, address(dxs), self.h_desc, address(dhx), 0, 0,
            address(self.work), self.work.nbytes, address(self.reserve), self.reserve.nbytes,
        )
        libcudnn.RNNBackwardWeights(
            self.handle, self.rnn_desc, self.steps, self.x_descs.ptr, address(self.xs),
            self.h_desc, address(self.hx), self.y_descs.ptr, address(self.ys),
            address(self.work), self.work.nbytes, self.w_desc, address(dw),
            address(self.reserve), self.reserve.nbytes,
        )
        return dxs, dhx, dw
