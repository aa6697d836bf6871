"""Between our cells and cuDNN's descriptors.

Importing this module teaches ``RNNDesc`` to be made from a cell: ``RNNDesc.from_cell(cell)``.
"""

import sys
import weakref

from cudnn_compat.legacy import (
    CUDNN_GRU,
    CUDNN_LSTM,
    CUDNN_RNN_RELU,
    CUDNN_RNN_TANH,
    RNNDesc,
    forward,
    pullback,
    setweights,
)

MODES = {
    "relu": CUDNN_RNN_RELU,
    "tanh": CUDNN_RNN_TANH,
    "lstm": CUDNN_LSTM,
    "gru": CUDNN_GRU,
}


def _from_cell(cls, cell):
    """A descriptor with the cell's kind, sizes and element type, in the memory its arrays use."""
    hidden, n_in = cell.Wh.shape[1], cell.Wi.shape[1]
    xp = sys.modules[type(cell.Wi).__module__.split(".")[0]]  # numpy or cupy
    return cls[cell.Wi.dtype.name](MODES[cell.kind], n_in, hidden, xp=xp)


RNNDesc.from_cell = classmethod(_from_cell)

# Neither keeps its keys alive: a dropped cell takes its descriptor with it.
_descs = weakref.WeakKeyDictionary()  # cell -> descriptor
_steps = weakref.WeakKeyDictionary()  # descriptor -> steps it has run


def desc(cell):
    """The cell's descriptor, made once, holding the cell's weights as they are now."""
    d = _descs.get(cell)
    if d is None:
        d = _descs[cell] = RNNDesc.from_cell(cell)
    setweights(d, cell.Wi, cell.Wh, cell.b)
    _steps[d] = _steps.get(d, 0) + 1
    return d


def descriptor_count():
    """How many descriptors are alive."""
    return len(_descs)


def steps_run(cell):
    """How many steps the cell's descriptor has run; 0 for a cell that was never called."""
    d = _descs.get(cell)
    return 0 if d is None else _steps[d]


def unbroadcast(like, delta):
    """Gradient of ``like``, from that of ``like`` stretched over the batch."""
    if delta.shape == like.shape:
        return delta
    if delta.size == like.size:
        return delta.reshape(like.shape)
    return delta.sum(axis=1).reshape(like.shape)


def step(cell, h, x):
    """One step of a cell without a memory: the new state and the output."""
    y, h = forward(desc(cell), x, h)
    return h, y


def lstm_step(cell, state, x):
    """One step of an LSTM, whose state is the pair (h, c)."""
    h, c = state
    y, h, c = forward(desc(cell), x, h, c)
    return (h, c), y


def step_pullback(cell, h, x):
    """step(), and a function from (dstate, dy) to (gradients of Wi, Wh, b; dstate before; dx)."""
    (y, ho), back = pullback(desc(cell), x, h)

    def cell_back(dho, dy):
        g = back(dy, dho)
        return (g.Wi.T, g.Wh.T, g.b), unbroadcast(h, g.h), g.x

    return (ho, y), cell_back


def lstm_step_pullback(cell, state, x):
    """The same of lstm_step(); dstate is a pair too, or None."""
    h, c = state
    (y, ho, co), back = pullback(desc(cell), x, h, c)

    def cell_back(dstate, dy):
        dho, dco = (None, None) if dstate is None else dstate
        g = back(dy, dho, dco)
        return (g.Wi.T, g.Wh.T, g.b), (unbroadcast(h, g.h), unbroadcast(c, g.c)), g.x

    return ((ho, co), y), cell_back
