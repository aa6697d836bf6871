"""The one table of old names: what replaces each, since when, until when, under which code.

Pure data, and importing it loads nothing else. The warnings, ``cudnn-compat explain``, the
rewriter, the migration guide and the tests all read it, so they cannot drift apart.

A code never changes its meaning and is never given out again. CC001–CC099 belong to
``cudnn_compat.legacy`` itself, CC100–CC199 to ``legacy.cupy.cudnn``, CC200–CC299 to its
``libcudnn`` and CC300–CC399 to the constants of that.

The examples are programs: run after the row's ``prelude``, ``before`` and ``after`` give every name
that both assign the same value, and a test does run them.
"""

from __future__ import annotations

from typing import Final

from cudnn_compat.legacy.names import MODULES, LegacyName
from cudnn_compat.legacy.table_constants import CONSTANTS
from cudnn_compat.legacy.table_cudnn import CUDNN
from cudnn_compat.legacy.table_libcudnn import LIBCUDNN

__all__ = ["PRELUDE", "TABLE", "LegacyName", "find"]

PRELUDE: Final = """\
import numpy as np
from cudnn_compat import legacy, v2
from cudnn_compat.legacy import CUDNN_GRU, CUDNN_LSTM, CUDNN_RNN_RELU, CUDNN_RNN_TANH

# Old arrays have features first; the same memory, transposed, is what v2 takes.
desc = legacy.RNNDesc(CUDNN_LSTM, 3, 4)
desc.params[:128] = np.linspace(-1, 1, 128)
spec = v2.RNNSpec("lstm", 3, 4, math="full")
w = desc.params
x, h, c = (np.full((size, 2), 0.5, "float32") for size in (3, 4, 4))
Wi, Wh, b = np.ones((16, 3), "float32"), np.ones((16, 4), "float32"), np.ones(16, "float32")
dy, dho, dco = (np.ones((4, 2), "float32") for _ in range(3))
"""
"""What the examples start from."""


def _constant(code: str, name: str, cell: str, does: str) -> LegacyName:
    return LegacyName(
        code=code,
        old=f"cudnn_compat.legacy.{name}",
        new="cudnn_compat.v2.RNNSpec",
        kind="constant",
        prelude=PRELUDE,
        summary=f'{does}; a spec says so in words: cell="{cell}".',
        value=f'"{cell}"',
        before=f"gates = legacy.ngates({name})",
        after=f'gates = v2.RNNSpec("{cell}", 3, 4).num_gates',
    )


def _function(code: str, name: str, new: str, summary: str, **fields: str) -> LegacyName:
    renamed = tuple(tuple(pair.split("=")) for pair in fields.pop("renamed", "").split())
    return LegacyName(
        code=code,
        old=f"cudnn_compat.legacy.{name}",
        new=new,
        kind="function",
        prelude=PRELUDE,
        summary=summary,
        renamed=renamed,  # type: ignore[arg-type]  # pairs
        before=fields["before"],
        after=fields["after"],
    )


_CUDA_JL: Final[tuple[LegacyName, ...]] = (
    _constant("CC001", "CUDNN_RNN_RELU", "relu", "The plain cell with relu"),
    _constant("CC002", "CUDNN_RNN_TANH", "tanh", "The plain cell with tanh"),
    _constant("CC003", "CUDNN_LSTM", "lstm", "The LSTM cell"),
    _constant("CC004", "CUDNN_GRU", "gru", "The GRU cell, reset-after form"),
    LegacyName(
        code="CC010",
        old="cudnn_compat.legacy.RNNDesc",
        new="cudnn_compat.v2.RNNSpec",
        kind="class",
        prelude=PRELUDE,
        summary="Two things now: a frozen spec, and a flat array of weights.",
        renamed=(
            ("mode", "cell"),
            ("input", "input_size"),
            ("hidden", "hidden_size"),
            ("layers", "num_layers"),
        ),
        before="""\
desc = legacy.RNNDesc(CUDNN_GRU, 3, 4, dtype="float64")
w = desc.params""",
        after="""\
spec = v2.RNNSpec("gru", 3, 4, dtype="float64", math="full")
w = np.zeros(v2.weight_size(spec), spec.dtype)""",
    ),
    _function(
        "CC011",
        "setweights",
        "cudnn_compat.v2.named_weights",
        "Write to the named views of the weight space.",
        before="legacy.setweights(desc, Wi, Wh, b)\nw = desc.params",
        after="""\
named = v2.named_weights(spec, w)
named["weight_ih_l0"][...] = Wi
named["weight_hh_l0"][...] = Wh
named["bias_ih_l0"][...] = b""",
    ),
    _function(
        "CC012",
        "forward",
        "cudnn_compat.v2.rnn_forward",
        "One call for inference and training and for any number of steps, with features last.",
        renamed="h=hx c=cx train=training",
        before="y, ho, co = legacy.forward(desc, x, h, c)",
        after="""\
out = v2.rnn_forward(spec, w, x.T[None], h.T[None], c.T[None])
y, ho, co = out.y[0].T, out.hy[0].T, out.cy[0].T""",
    ),
    _function(
        "CC013",
        "forwardTrain",
        "cudnn_compat.v2.rnn_forward",
        "Pass training=True; the result itself goes to backward, in place of the reserve.",
        renamed="h=hx c=cx",
        before="reserve, (y, ho, co) = legacy.forwardTrain(desc, x, h, c)",
        after="""\
out = v2.rnn_forward(spec, w, x.T[None], h.T[None], c.T[None], training=True)
y, ho, co = out.y[0].T, out.hy[0].T, out.cy[0].T""",
    ),
    _function(
        "CC014",
        "backwardData",
        "cudnn_compat.v2.rnn_backward_data",
        "Takes the forward's result and the gradients; y, h and c are known to it.",
        renamed="dho=dhy dco=dcy reserve=out",
        before="""\
reserve, (y, ho, co) = legacy.forwardTrain(desc, x, h, c)
dx, dh, dc = legacy.backwardData(desc, y, dy, dho, None, h, c, reserve)""",
        after="""\
out = v2.rnn_forward(spec, w, x.T[None], h.T[None], c.T[None], training=True)
grad = v2.rnn_backward_data(out, dy.T[None], dho.T[None])
dx, dh, dc = grad.dx[0].T, grad.dhx[0].T, grad.dcx[0].T""",
    ),
    _function(
        "CC015",
        "backwardWeights",
        "cudnn_compat.v2.rnn_backward_weights",
        "Takes the forward's result and gives one flat gradient, which named_weights divides.",
        renamed="reserve=out",
        before="""\
reserve, (y, ho, co) = legacy.forwardTrain(desc, x, h, c)
legacy.backwardData(desc, y, dy, dho, dco, h, c, reserve)
(dWi, dWh), db = legacy.backwardWeights(desc, x, h, y, reserve)""",
        after="""\
out = v2.rnn_forward(spec, w, x.T[None], h.T[None], c.T[None], training=True)
v2.rnn_backward_data(out, dy.T[None], dho.T[None], dco.T[None])
named = v2.named_weights(spec, v2.rnn_backward_weights(out))
dWi, dWh, db = named["weight_ih_l0"].T, named["weight_hh_l0"].T, named["bias_ih_l0"]""",
    ),
    _function(
        "CC016",
        "pullback",
        "cudnn_compat.v2.rnn_backward",
        "Call rnn_forward with training=True, then rnn_backward: data and weights in one.",
        before="""\
(y, ho, co), back = legacy.pullback(desc, x, h, c)
dx, dh, dc, dWi, dWh, db = back(dy, dho, dco)""",
        after="""\
out = v2.rnn_forward(spec, w, x.T[None], h.T[None], c.T[None], training=True)
y, ho, co = out.y[0].T, out.hy[0].T, out.cy[0].T
grad = v2.rnn_backward(out, dy.T[None], dho.T[None], dco.T[None])
dx, dh, dc = grad.dx[0].T, grad.dhx[0].T, grad.dcx[0].T
named = v2.named_weights(spec, grad.dw)
dWi, dWh, db = named["weight_ih_l0"].T, named["weight_hh_l0"].T, named["bias_ih_l0"]""",
    ),
    _function(
        "CC020",
        "ngates",
        "cudnn_compat.v2.RNNSpec.num_gates",
        "An attribute of the spec.",
        before="gates = legacy.ngates(desc)",
        after="gates = spec.num_gates",
    ),
    _function(
        "CC021",
        "params",
        "cudnn_compat.v2.named_weights",
        "Views of a weight space by name, for any number of layers.",
        before="(Wi, Wh), b = legacy.params(w, 3, 4, 4)",
        after="""\
named = v2.named_weights(spec, w)
Wi, Wh, b = named["weight_ih_l0"].T, named["weight_hh_l0"].T, named["bias_ih_l0"]""",
    ),
    _function(
        "CC022",
        "hBatch",
        "numpy.broadcast_to",
        "States have their full shape (layers, batch, hidden) in v2, or are None: zeros.",
        before="h = legacy.hBatch(x, h[:, 0])",
        after="h = np.broadcast_to(h[:, :1], (4, x.shape[1]))",
    ),
    _function(
        "CC023",
        "hDesc",
        "cudnn_compat.v2.rnn_forward",
        "There are no descriptors to make: v2 takes the arrays, and None for a state of zeros.",
        before="descriptor, h = legacy.hDesc(h)\ny, ho, co = legacy.forward(desc, x, h, c)",
        after="""\
out = v2.rnn_forward(spec, w, x.T[None], h.T[None], c.T[None])
y, ho, co = out.y[0].T, out.hy[0].T, out.cy[0].T""",
    ),
    _function(
        "CC024",
        "xDesc",
        "cudnn_compat.v2.rnn_forward",
        "There are no descriptors to make: v2 takes the array.",
        before="descriptors = legacy.xDesc(x)\ny, ho, co = legacy.forward(desc, x, h, c)",
        after="""\
out = v2.rnn_forward(spec, w, x.T[None], h.T[None], c.T[None])
y, ho, co = out.y[0].T, out.hy[0].T, out.cy[0].T""",
    ),
)

TABLE: Final[tuple[LegacyName, ...]] = (*_CUDA_JL, *CUDNN, *LIBCUDNN, *CONSTANTS)
"""Every old name, by code."""


def find(key: str) -> LegacyName | None:
    """The row of a code (``"CC012"``, in any case) or of a qualified old name; None: there is none.

    A name may be given as it was called where it comes from (``"cupy.cudnn.rnn_forward_training"``)
    and without its module (``"forward"``): where two dialects have it, the first one's is meant.
    """
    wanted = key.strip()
    for ours, theirs in MODULES.items():
        for module in theirs:
            if wanted.startswith(f"{module}."):
                wanted = ours + wanted.removeprefix(module)
    for row in TABLE:
        if row.code == wanted.upper() or row.old == wanted:
            return row
    return next((row for row in TABLE if row.name == wanted), None)
