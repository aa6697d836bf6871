"""For programs on ``RNNDesc``: one step of a one-layer network, with features first."""

import collections
import functools
import weakref

import numpy as np

from cudnn_compat import v2

__all__ = ["Network", "divide", "number_of_gates", "over_batch"]

CUDNN_RNN_RELU = 0
CUDNN_RNN_TANH = 1
CUDNN_LSTM = 2
CUDNN_GRU = 3
CELLS = ("relu", "tanh", "lstm", "gru")


class Gradients(collections.namedtuple("Gradients", "x h Wi Wh b")):
    """Of a step; Wi, Wh and b are views of dw, the flat gradient of all weights."""


class CellGradients(collections.namedtuple("CellGradients", "x h c Wi Wh b")):
    """Of a step that was given c; with dw, as Gradients."""


class WeightGradients(tuple):  # type: ignore[type-arg]
    """((Wi, Wh), b), views of dw, the flat gradient of all weights."""


class Network:
    """A network of one layer: a v2 spec and its flat weights. Arrays have features first.

    x is (input,) or (input, batch); a state is (hidden,), (hidden, 1) or (hidden, batch), and the
    first two stand for every sequence of the batch. The mode is a cell ("lstm") or its number in
    CELLS. float32 is computed in full float32, without TF32.
    """

    _dtype = None

    def __init__(self, mode, input, hidden, *, dtype=None, xp=np):
        if not isinstance(mode, str):
            if mode not in range(len(CELLS)):
                raise ValueError(f"mode is {mode!r}; wanted one of {CELLS}, or its number there")
            mode = CELLS[mode]
        name = np.dtype(dtype or type(self)._dtype or "float32").name
        spec = v2.RNNSpec(mode, input, hidden, dtype=name, math="full", algo="standard")
        self._set_up(spec, xp.zeros(v2.weight_size(spec), name))

    def _set_up(self, spec, params):
        self.spec, self.params = spec, params
        self._waiting_steps = weakref.WeakSet()  # for their way back

    def __copy__(self):
        # It shares the weights, so also the steps that wait for them.
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __getstate__(self):
        # A copy waits for nobody's way back.
        return self.__dict__ | {"_waiting_steps": weakref.WeakSet()}

    def __class_getitem__(cls, dtype):
        return cls._with_dtype(np.dtype(dtype).name)

    @classmethod
    @functools.cache
    def _with_dtype(cls, dtype):
        return type(f"{cls.__name__}[{dtype}]", (cls,), {"_dtype": dtype})

    @classmethod
    def from_v2(cls, spec, w):
        """A network on the weights of other v2 code; it has one layer and full precision."""
        plain = v2.RNNSpec(
            spec.cell,
            spec.input_size,
            spec.hidden_size,
            bias="input" if spec.bias == "input" else "double",
            dtype=spec.dtype,
            math="full",
            algo="standard",
        )
        if spec.replace(math="full", algo="standard", deterministic=False) != plain:
            raise ValueError(
                f"spec is {spec}; wanted one layer, one direction, and nothing special"
            )
        if spec.dtype == "bfloat16" or cls._dtype not in (None, spec.dtype):
            raise ValueError(f"spec has dtype {spec.dtype}, which {cls.__name__} does not take")
        if w.shape != (v2.weight_size(plain),) or w.dtype != spec.dtype or not w.flags.c_contiguous:
            raise ValueError(f"w, {w.dtype} {w.shape}, is no flat array of the weights of {spec}")
        network = cls.__new__(cls)
        network._set_up(plain, w)
        return network

    def to_v2(self):
        return self.spec, self.params

    @property
    def mode(self):
        return CELLS.index(self.spec.cell)

    @property
    def input(self):
        return self.spec.input_size

    @property
    def hidden(self):
        return self.spec.hidden_size

    @property
    def layers(self):
        return self.spec.num_layers

    @property
    def dtype(self):
        return self.spec.dtype

    @property
    def weights(self):
        return self._divided_weights(self.params)[:2]

    @property
    def bias(self):
        return self._divided_weights(self.params)[2]

    def _divided_weights(self, w):
        """Views of flat weights: Wi (input, gates), Wh (hidden, gates) and the one bias used."""
        named = v2.named_weights(self.spec, w)
        return named["weight_ih_l0"].T, named["weight_hh_l0"].T, named["bias_ih_l0"]

    def set_weights(self, Wi, Wh, b):
        """Copy Wi (gates, input), Wh (gates, hidden), b (gates,) into the weights.

        Steps that wait for their way back keep the weights that they ran with.
        """
        own_wi, own_wh, own_b = self._divided_weights(self.params)
        if (own_wi.T.shape, own_wh.T.shape, own_b.shape) != (Wi.shape, Wh.shape, b.shape):
            raise ValueError(f"weights are {Wi.shape}, {Wh.shape}, {b.shape}: not of {self.spec}")
        if self._waiting_steps and not (
            (own_b == b).all() and (Wh == own_wh.T).all() and (Wi == own_wi.T).all()
        ):
            copy = None
            for out in tuple(self._waiting_steps):
                copy = out.own_weights(copy)
            self._waiting_steps.clear()
        own_wi.T[...], own_wh.T[...], own_b[...] = Wi, Wh, b

    def step(self, x, h, c=None, train=False):
        """(y, h), or (y, h, c) where c is given; with train (kept, that), for backward_data."""
        vector = x.ndim == 1
        batch = 1 if vector else x.shape[1]
        out = v2.rnn_forward(
            self.spec,
            self.params,
            x[None, None] if vector else x.T[None],
            self._state_rows(h, batch),
            None if c is None else self._state_rows(c, batch),
            training=bool(train),
        )
        form = (vector, vector and h.ndim == 1)
        y = self._to_columns(out.y, vector)
        states = [self._to_columns(s, form[1]) for s in (out.hy, out.cy if c is not None else None)]
        result = (y, states[0]) if c is None else (y, *states)
        if not train:
            return result
        self._waiting_steps.add(out)
        return (out, *form), result

    def _state_rows(self, state, batch):
        """A state as v2 takes it, (1, batch, hidden)."""
        rows = state.T
        if rows.shape == (batch, self.hidden):
            return rows[None]
        if rows.shape not in ((self.hidden,), (1, self.hidden)):
            raise ValueError(f"a state is {state.shape}; the network has {self.hidden} features")
        full = np.empty_like(self.params, shape=(1, batch, self.hidden))  # CuPy's too
        full[...] = rows
        return full

    @staticmethod
    def _to_columns(rows, vector):
        """(1, batch, features) with features first; or the one vector in it."""
        if rows is None:
            return None
        return rows[0, 0] if vector else rows[0].T

    @staticmethod
    def _from_columns(columns):
        """The other way; None and 0 are zeros, which v2 calls None."""
        if columns is None or (isinstance(columns, int) and columns == 0):
            return None
        return columns[None, None] if columns.ndim == 1 else columns.T[None]

    def backward_data(self, kept, dy, dho, dco=None, c=None):
        """(dx, dh), or (dx, dh, dc) where c is given: the first half of the way back."""
        out, vector, vector_state = kept
        grad = v2.rnn_backward_data(
            out, self._from_columns(dy), self._from_columns(dho), self._from_columns(dco)
        )
        dx, dh = self._to_columns(grad.dx, vector), self._to_columns(grad.dhx, vector_state)
        return (dx, dh) if c is None else (dx, dh, self._to_columns(grad.dcx, vector_state))

    def backward_weights(self, kept):
        """((dWi (input, gates), dWh (hidden, gates)), db): the second half, after the first."""
        dw = v2.rnn_backward_weights(kept[0])
        d_wi, d_wh, d_b = self._divided_weights(dw)
        result = WeightGradients(((d_wi, d_wh), d_b))
        result.dw = dw
        return result

    def pullback(self, x, h, c=None):
        """A step, and the function that takes gradients of its results back through it, once."""
        kept, result = self.step(x, h, c, train=True)

        def back(dy=None, dho=None, dco=None):
            data = self.backward_data(kept, dy, dho, dco, c)
            dw = v2.rnn_backward_weights(kept[0])
            kind = Gradients if c is None else CellGradients
            result = kind(*data, *self._divided_weights(dw))
            result.dw = dw
            return result

        return result, back


def number_of_gates(desc):
    """Gates of a network or of a mode."""
    return desc.spec.num_gates if hasattr(desc, "spec") else {0: 1, 1: 1, 2: 4, 3: 3}[desc]


def divide(w, input, hidden, n=1):
    """((Wi (input, gates), Wh (hidden, gates)), b): views of flat weights, of one or two biases."""
    cell = {1: "tanh", 3: "gru", 4: "lstm"}[n]
    one, two = (v2.RNNSpec(cell, input, hidden, bias=bias) for bias in ("input", "double"))
    spec = one if w.size == v2.weight_size(one) else two
    named = v2.named_weights(spec.replace(dtype=w.dtype.name), w)
    return (named["weight_ih_l0"].T, named["weight_hh_l0"].T), named["bias_ih_l0"]


def over_batch(x, h):
    """h (hidden,), (hidden, 1) or (hidden, batch) over the batch of x; h itself for a vector x."""
    if x.ndim == 1:
        return h
    rows = h.T.reshape(-1, h.shape[0])
    return (rows.copy() if len(rows) == x.shape[1] else rows.repeat(x.shape[1], axis=0)).T
