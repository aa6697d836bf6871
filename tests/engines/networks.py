"""Networks and data for the tests of the engines, and how to run both."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.matrix import reference
from cudnn_compat.matrix.tolerances import tolerance

__all__ = [
    "CELLS",
    "GRADIENTS",
    "LAYOUTS",
    "NETWORKS",
    "OUTPUTS",
    "Arrays",
    "Data",
    "check",
    "draw",
    "each_network",
    "expected",
    "forward",
    "largest",
    "run",
    "weights",
]

CELLS = ("relu", "tanh", "lstm", "gru")
LAYOUTS = ("time_major", "batch_major", "packed")
OUTPUTS = ("y", "hy", "cy")
GRADIENTS = ("dx", "dhx", "dcx", "dw")

Arrays = dict[str, Any]
"""NumPy arrays, or None, by the names of OUTPUTS and GRADIENTS."""


def _spec(cell: str, input_size: int = 3, hidden_size: int = 4, **options: Any) -> v2.RNNSpec:
    return v2.RNNSpec(cell, input_size, hidden_size, dtype="float64", **options)


NETWORKS = {
    "relu": _spec("relu"),
    "tanh": _spec("tanh"),
    "lstm": _spec("lstm"),
    "gru": _spec("gru"),
    "lstm 2 layers bi": _spec("lstm", num_layers=2, bidirectional=True),
    "gru 2 layers bi": _spec("gru", num_layers=2, bidirectional=True),
    "tanh 3 layers": _spec("tanh", num_layers=3, bias="none"),
    "relu bi skip": _spec("relu", 4, bidirectional=True, input_mode="skip"),
    "lstm projected bi": _spec("lstm", 3, 5, num_layers=2, bidirectional=True, proj_size=2),
    "lstm clipped": _spec("lstm", num_layers=2, clip=(-0.3, 0.2)),
    "gru one bias": _spec("gru", bias="recurrent", bidirectional=True),
}
"""One of each kind, in float64, all smooth or with values off the kinks' reach."""

each_network = pytest.mark.parametrize("spec", NETWORKS.values(), ids=NETWORKS)


@dataclasses.dataclass
class Data:
    """Arguments of one forward and one backward, as NumPy arrays of the spec's dtype."""

    w: Any
    x: Any
    hx: Any
    cx: Any
    dy: Any
    dhy: Any
    dcy: Any

    def replace(self, **changes: Any) -> Data:
        return dataclasses.replace(self, **changes)

    def without(self, *names: str) -> Data:
        return self.replace(**dict.fromkeys(names))


def draw(
    spec: v2.RNNSpec,
    lengths: Any,
    *,
    steps: int | None = None,
    layout: str = "time_major",
    seed: int = 0,
) -> Data:
    """Data of unit scale for sequences of these lengths; the same for every layout.

    The padding (up to ``steps``, at least the longest length) is not zero.
    """
    rng, batch = np.random.default_rng(seed), len(lengths)
    steps = max(lengths, default=0) if steps is None else steps

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape).astype(numpy_dtype(spec.dtype))

    w = 0.5 * normal(v2.weight_size(spec))
    x, dy = normal(steps, batch, spec.input_size), normal(steps, batch, spec.output_size)
    state, cell = spec.state_shape(batch), spec.cell_shape(batch)
    hx, dhy = normal(*state), normal(*state)
    cx, dcy = (normal(*cell), normal(*cell)) if spec.has_cell else (None, None)
    if layout == "batch_major":
        x, dy = (a.swapaxes(0, 1).copy() for a in (x, dy))
    elif layout == "packed":
        alive = np.arange(steps)[:, None] < np.asarray(lengths, dtype=int)
        x, dy = x[alive], dy[alive]
    return Data(w.astype(x.dtype), x, hx, cx, dy, dhy, dcy)


def forward(
    engine: Any, spec: v2.RNNSpec, data: Data, *, training: bool = True, **how: Any
) -> v2.RNNOutput:
    """``rnn_forward`` with the arrays where the engine computes."""
    w, x, hx, cx = (engine.put(a) for a in (data.w, data.x, data.hx, data.cx))
    return v2.rnn_forward(spec, w, x, hx, cx, training=training, engine=engine.name, **how)


def run(engine: Any, spec: v2.RNNSpec, data: Data, **how: Any) -> Arrays:
    """All results and gradients of one call, as NumPy arrays by name."""
    out = forward(engine, spec, data, **how)
    gradients = v2.rnn_backward(out, *(engine.put(a) for a in (data.dy, data.dhy, data.dcy)))
    values = [engine.get(value) for value in (*out, *gradients)]
    return dict(zip(OUTPUTS + GRADIENTS, values, strict=True))


def expected(spec: v2.RNNSpec, data: Data, lengths: Any, *, layout: str = "time_major") -> Arrays:
    """The same from the slow reference, in float64."""
    out = reference.reference_forward(
        spec, data.w, reference.split_rows(data.x, lengths, layout), data.hx, data.cx
    )
    dys = None if data.dy is None else reference.split_rows(data.dy, lengths, layout)
    gradients = reference.reference_backward(out, dys, data.dhy, data.dcy)
    steps = data.x.shape[layout == "batch_major"]
    y, dx = (
        reference.join_rows(rows, layout, steps=steps, features=features)
        for rows, features in ((out.ys, spec.output_size), (gradients.dxs, spec.input_size))
    )
    values = (y, out.hy, out.cy, dx, gradients.dhx, gradients.dcx, gradients.dw)
    return dict(zip(OUTPUTS + GRADIENTS, values, strict=True))


def largest(a: Any, b: Any) -> float:
    """Largest absolute difference of two arrays of one shape; NaN where either has one."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, (a.shape, b.shape)
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0.0))


def check(spec: v2.RNNSpec, engine: Any, computed: Arrays, wanted: Arrays) -> None:
    """Every array that is wanted has been computed, within the tolerance of the engine."""
    for name, value in wanted.items():
        if value is None:
            assert computed[name] is None, name
            continue
        what = "output" if name in OUTPUTS else "gradient"
        bound = tolerance(
            spec.dtype, spec.math, engine=engine.name, clip=spec.clip is not None, what=what
        )
        assert computed[name].dtype == spec.dtype, name
        assert largest(computed[name], value) <= bound, name


def weights(spec: v2.RNNSpec, seed: int = 0) -> Any:
    """A weight space of unit scale."""
    return draw(spec, (1,), seed=seed).w
