"""Recurrent cells, and Recur, which remembers a cell's state from step to step."""

import numpy as np

from . import curnn
from .layers import Layer, glorot_uniform


class Cell(Layer):
    """``cell(state, x)`` gives ``(new state, y)``. The initial state is trained like a weight."""

    names = ("Wi", "Wh", "b", "h")
    gates = 1

    def __init__(self, n_in, n_out, rng, dtype="float32"):
        rows = self.gates * n_out
        self.Wi = glorot_uniform(rng, rows, n_in).astype(dtype)
        self.Wh = glorot_uniform(rng, rows, n_out).astype(dtype)
        self.b = glorot_uniform(rng, rows).astype(dtype)
        self.h = np.zeros(n_out, dtype)

    def initial(self):
        return self.h

    def __call__(self, state, x):
        return curnn.step(self, state, x)

    def pullback(self, state, x):
        return curnn.step_pullback(self, state, x)

    def add_initial(self, grads, dstate):
        """Count the gradient of the state before the first step as the initial state's."""
        grads.add(self.h, dstate)


class RNNCell(Cell):
    """h' = σ(Wi x + Wh h + b), σ either "tanh" or "relu"."""

    def __init__(self, n_in, n_out, rng, activation="tanh", dtype="float32"):
        if activation not in ("tanh", "relu"):
            raise ValueError(f"cuDNN has no {activation!r} cell")
        Cell.__init__(self, n_in, n_out, rng, dtype)
        self.kind = activation


class GRUCell(Cell):
    """Gates r, z, n, with r applied after the recurrent product, as cuDNN does."""

    kind = "gru"
    gates = 3


class LSTMCell(Cell):
    """Gates i, f, g, o. The state is the pair (h, c)."""

    kind = "lstm"
    gates = 4
    names = ("Wi", "Wh", "b", "h", "c")

    def __init__(self, n_in, n_out, rng, dtype="float32"):
        Cell.__init__(self, n_in, n_out, rng, dtype)
        self.b[n_out : 2 * n_out] = 1  # do not forget before having learnt what to forget
        self.c = np.zeros(n_out, dtype)

    def initial(self):
        return self.h, self.c

    def __call__(self, state, x):
        return curnn.lstm_step(self, state, x)

    def pullback(self, state, x):
        return curnn.lstm_step_pullback(self, state, x)

    def add_initial(self, grads, dstate):
        grads.add(self.h, dstate[0])
        grads.add(self.c, dstate[1])


class Recur(Layer):
    """A cell with its state: each call is the next step; reset() goes back to the beginning."""

    def __init__(self, cell):
        self.cell = cell
        self.state = None  # before the first step: the cell's initial state, whatever it is then
        self.dstate = None  # in a backward pass: the gradient that later steps sent to the state

    def params(self):
        return self.cell.params()

    def convert(self, f):
        self.cell.convert(f)
        self.reset()

    def reset(self):
        self.state = None

    def __call__(self, x):
        state = self.cell.initial() if self.state is None else self.state
        self.state, y = self.cell(state, x)
        return y

    def pullback(self, x):
        """The next step, and its gradient function. These are to be called last step first."""
        first = self.state is None
        state = self.cell.initial() if first else self.state
        (self.state, y), cell_back = self.cell.pullback(state, x)
        cell = self.cell

        def back(dy, grads):
            (dWi, dWh, db), self.dstate, dx = cell_back(self.dstate, dy)
            grads.add(cell.Wi, dWi)
            grads.add(cell.Wh, dWh)
            grads.add(cell.b, db)
            if first:
                cell.add_initial(grads, self.dstate)
            return dx

        return y, back

    def begin_backward(self):
        self.dstate = None


def RNN(n_in, n_out, rng, activation="tanh", dtype="float32"):
    return Recur(RNNCell(n_in, n_out, rng, activation, dtype))


def GRU(n_in, n_out, rng, dtype="float32"):
    return Recur(GRUCell(n_in, n_out, rng, dtype))


def LSTM(n_in, n_out, rng, dtype="float32"):
    return Recur(LSTMCell(n_in, n_out, rng, dtype))
