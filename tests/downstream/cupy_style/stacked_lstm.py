"""A stacked LSTM by cupy.cudnn's own functions, called by keywords."""

import cupy
import numpy
from cupy import cudnn
from cupy.cuda import cudnn as libcudnn


class StackedLSTM:
    def __init__(self, n_in, n_units, n_layers, dtype="f"):
        self.n_in, self.n_units, self.n_layers = n_in, n_units, n_layers
        self.dtype = numpy.dtype(dtype)
        self.states = cudnn.DropoutStates(handle=None, seed=1)
        self.states.set_dropout_ratio(dropout_ratio=0.0)
        self.rnn_desc = cudnn.create_rnn_descriptor(
            hidden_size=n_units, num_layers=n_layers, dropout_desc=self.states._desc,
            input_mode=libcudnn.CUDNN_LINEAR_INPUT, direction=libcudnn.CUDNN_UNIDIRECTIONAL,
            mode=libcudnn.CUDNN_LSTM, data_type=cudnn.get_data_type(self.dtype),
        )
        self.x_desc = cudnn.create_tensor_nd_descriptor(cupy.empty((1, n_in, 1), self.dtype))
        nbytes = libcudnn.getRNNParamsSize(
            cudnn.get_handle(), self.rnn_desc.value, self.x_desc.value,
            cudnn.get_data_type(self.dtype),
        )
        self.w = cupy.zeros((nbytes // self.dtype.itemsize, 1, 1), self.dtype)
        self.w_desc = cudnn.create_filter_descriptor(self.w)
        # Start with open forget gates.
        for layer in range(n_layers):
            self.bias(layer, 1)[...] = 1

    def matrix(self, layer, gate, of=None):
        """One matrix, flat: a view of w, or of an array like it. Gates 0-3 read x, 4-7 read h."""
        return cudnn.get_rnn_lin_layer_matrix_params(
            handle=cudnn.get_handle(), rnn_desc=self.rnn_desc, layer=layer, x_desc=self.x_desc,
            w_desc=self.w_desc, w=self.w if of is None else of, lin_layer_id=gate,
        )

    def bias(self, layer, gate, of=None):
        return cudnn.get_rnn_lin_layer_bias_params(
            handle=cudnn.get_handle(), rnn_desc=self.rnn_desc, layer=layer, x_desc=self.x_desc,
            w_desc=self.w_desc, w=self.w if of is None else of, lin_layer_id=gate,
        )

    def __call__(self, xs, lengths, hx, cx):
        """The outputs only, without what a gradient needs."""
        hy, cy, ys = cudnn.rnn_forward_inference(
            states=self.states, direction_mode=libcudnn.CUDNN_UNIDIRECTIONAL,
            rnn_mode=libcudnn.CUDNN_LSTM, hx=hx, cx=cx, w=self.w, xs=xs, lengths=lengths,
        )
        return ys, hy, cy

    def gradient(self, loss, xs, lengths, hx, cx):
        """loss(ys) gives a number and its gradient. Returns the number and gradients."""
        kind = dict(
            states=self.states, direction_mode=libcudnn.CUDNN_UNIDIRECTIONAL,
            rnn_mode=libcudnn.CUDNN_LSTM,
        )
        reserve_space, hy, cy, ys = cudnn.rnn_forward_training(
            hx=hx, cx=cx, w=self.w, xs=xs, lengths=lengths, **kind
        )
        value, dys = loss(ys)
        dhx, dcx, dxs = cudnn.rnn_backward_data(
            hx=hx, cx=cx, w=self.w, xs=xs, ys=ys, reserve_space=reserve_space,
            dhy=cupy.zeros_like(hy), dcy=cupy.zeros_like(cy), dys=dys, lengths=lengths, **kind
        )
        dw = cudnn.rnn_backward_weights(
            xs=xs, hx=hx, ys=ys, w=self.w, reserve_space=reserve_space, lengths=lengths, **kind
        )
        return value, dict(w=dw, xs=dxs, hx=dhx, cx=dcx)
