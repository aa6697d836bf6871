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
    "check_same",
    "draw",
    "draw_away_from_kinks",
    "each_network",
    "expected",
    "forward",
    "largest",
    "run",
    "same",
    "scale",
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
    """Arguments of one forward and one backward: arrays of the spec's dtype, or None."""

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

    def on(self, engine: Any) -> Data:
        """The same where the engine computes. An array in two places stays one array."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        put = {id(array): engine.put(array) for array in given.values()}
        return self.replace(**{name: put[id(array)] for name, array in given.items()})


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


def draw_away_from_kinks(spec: v2.RNNSpec, lengths: Any, distance: float, **how: Any) -> Data:
    """The first drawn data with which no value comes nearer to where a relu or a clip bends.

    Nearer than rounding reaches, either gradient is right.
    """
    for seed in range(200):
        data = draw(spec, lengths, seed=seed, **how)
        rows = reference.split_rows(data.x, lengths, how.get("layout", "time_major"))
        out = reference.reference_forward(spec, data.w, rows, data.hx, data.cx)
        if reference.distance_to_kink(out) > distance:
            return data
    raise AssertionError(f"every draw has a value within {distance} of a kink")


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


def scale(values: Any) -> float:
    """The size of the largest value, at least 1: tolerances are for values of unit scale."""
    return max(1.0, float(np.abs(np.asarray(values).astype(np.float64)).max(initial=0.0)))


def _bound(spec: v2.RNNSpec, engine: Any, name: str) -> float:
    what = "output" if name in OUTPUTS else "gradient"
    clips = spec.clip is not None
    return tolerance(
        spec.dtype, spec.math, engine=engine.name, algo=spec.algo, clip=clips, what=what
    )


def check(spec: v2.RNNSpec, engine: Any, computed: Arrays, wanted: Arrays) -> None:
    """Every array that is wanted has been computed, within the tolerance of the engine."""
    for name, value in wanted.items():
        if value is None:
            assert computed[name] is None, name
            continue
        assert computed[name].dtype == spec.dtype, name
        bound = _bound(spec, engine, name) * (1.0 if engine.on_host else scale(value))
        assert largest(computed[name], value) <= bound, name


def same(spec: v2.RNNSpec, engine: Any, a: Any, b: Any, name: str) -> bool:
    """Whether two results of calls that differ in form, but not in what they ask for, agree.

    On NumPy to the bit. cuDNN may run another kernel for another layout, for inference, for a state
    or a gradient of NULL, and other kernels add in another order: there within the tolerance.
    """
    if engine.on_host:
        return bool(np.array_equal(a, b))
    return largest(a, b) <= _bound(spec, engine, name) * scale(b)


def check_same(spec: v2.RNNSpec, engine: Any, computed: Arrays, wanted: Arrays) -> None:
    """:func:`same` of all results of two calls."""
    for name, value in wanted.items():
        assert (computed[name] is None) == (value is None), name
        assert value is None or same(spec, engine, computed[name], value, name), name
