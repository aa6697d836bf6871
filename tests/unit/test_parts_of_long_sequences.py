"""Cutting long batches into parts, with the NumPy engine in the place of the library.

What is tested is the bookkeeping of ``engines/cudnn/long.py``: stages, parts, reserve, states. The
same on the real library: ``tests/gpu/test_long_sequences.py``.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.engines.cudnn import long
from cudnn_compat.engines.cudnn.plan import Shape
from cudnn_compat.engines.numpy import NumpyEngine
from cudnn_compat.sequences import make_sequences
from cudnn_compat.spec import BIAS_MODES, CELLS, INPUT_MODES
from tests.engines.networks import LAYOUTS, NETWORKS, draw, largest

MOST = 3


@dataclasses.dataclass
class HostSession:
    """What the parts need of a session."""

    xp: Any = np

    def check_sending(self, message: str) -> None:
        """Nothing is captured on the host."""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> NumpyEngine:
    """The NumPy engine, put in the place of the library's calls."""
    engine = NumpyEngine()

    def run(session, plan, sequences, w, x, hx, cx, y, hy, cy, reserve, dropout):
        assert sequences.steps <= MOST
        engine.forward(
            plan, sequences, w, x, hx, cx, y=y, hy=hy, cy=cy, reserve=reserve, dropout=dropout
        )

    def data(session, plan, sequences, w, hx, cx, y, reserve, dy, dhy, dcy, dx, dhx, dcx):
        x = np.empty_like(dx)
        given = {"dy": dy, "dhy": dhy, "dcy": dcy, "dx": dx, "dhx": dhx, "dcx": dcx}
        engine.backward_data(plan, sequences, w, x, hx, cx, y, reserve, **given)

    def weights(session, plan, sequences, x, hx, y, reserve, dw):
        engine.backward_weights(plan, sequences, None, x, hx, y, reserve, dw=dw)

    monkeypatch.setattr(long, "whole_elements", lambda array: array)  # an affair of GPUs
    monkeypatch.setattr(long.forward, "run", run)
    monkeypatch.setattr(long.backward, "run_data", data)
    monkeypatch.setattr(long.backward, "run_weights", weights)
    return engine


def in_parts(engine: NumpyEngine, spec: v2.RNNSpec, data: Any, layout: str, lengths: Any) -> Any:
    """All results and gradients of a call that is computed in parts of three steps."""
    session: Any = HostSession()
    batch = len(lengths)
    sequences = make_sequences(layout, data.x.shape, lengths=lengths)
    shape = Shape(spec, layout, sequences.steps, batch, sequences.ragged, True, "cuda:0")

    def plan(spec: v2.RNNSpec, sequences: Any, *, training: bool, device: str, begins: bool) -> Any:
        return engine.plan(spec.replace(algo="auto"), sequences, training=training)

    # Ragged, because the NumPy engine's only algorithm has a name that no spec can have.
    long_plan = long.LongPlan(dataclasses.replace(shape, ragged=True), plan, MOST)
    reserve = np.empty(long_plan.divide(session, sequences, None).size, np.uint8)
    y = np.empty((*data.x.shape[:-1], spec.output_size))
    hy, dhx = (np.empty(spec.state_shape(batch)) for _ in range(2))
    cy = dcx = None
    if spec.has_cell:
        cy, dcx = (np.empty(spec.cell_shape(batch)) for _ in range(2))
    dx, dw = np.empty_like(data.x), np.zeros_like(data.w)
    w, x, hx, cx = data.w, data.x, data.hx, data.cx
    long.run(session, long_plan, sequences, w, x, hx, cx, y, hy, cy, reserve, None)
    inferred = [None if value is None else np.empty_like(value) for value in (y, hy, cy)]
    long.run(session, long_plan, sequences, w, x, hx, cx, *inferred, None, None)
    for name, value, other in zip("yhc", (y, hy, cy), inferred, strict=True):
        assert value is None or np.array_equal(value, other), name
    given = (w, hx, cx, y, reserve, data.dy, data.dhy, data.dcy, dx, dhx, dcx)
    long.run_data(session, long_plan, sequences, x, *given)
    long.run_weights(session, long_plan, sequences, x, hx, y, reserve, dw)
    return y, hy, cy, dx, dhx, dcx, dw


@pytest.mark.parametrize("lengths", [(7, 7), (9, 4, 9, 0, 1), (3, 8), (0, 5, 6)], ids=str)
@pytest.mark.parametrize("layout", ["time_major", "batch_major", "packed"])
@pytest.mark.parametrize("spec", NETWORKS.values(), ids=NETWORKS)
def test_parts_give_what_the_whole_gives(
    spec: v2.RNNSpec, layout: str, lengths: tuple[int, ...], engine: NumpyEngine
) -> None:
    check(engine, spec, layout, lengths)


def every_kind_of_network() -> Iterator[v2.RNNSpec]:
    """Each cell with each bias mode, input mode, depth and direction; LSTMs also with their own."""
    kinds = itertools.product(CELLS, BIAS_MODES, INPUT_MODES, (1, 2), (False, True))
    for cell, bias, mode, layers, both in kinds:
        own: list[dict[str, Any]] = [{"proj_size": 2}, {"clip": (-0.3, 0.2)}]
        for more in ({}, *own) if cell == "lstm" else ({},):
            yield v2.RNNSpec(
                cell,
                4,
                4,
                num_layers=layers,
                bidirectional=both,
                bias=bias,
                input_mode=mode,
                dtype="float64",
                **more,
            )


def named(spec: v2.RNNSpec) -> str:
    more = ("projected" if spec.proj_size else "") + ("clipped" if spec.clip else "")
    both = "both ways" if spec.bidirectional else "one way"
    return f"{spec.cell} {more} {spec.bias} {spec.input_mode} {spec.num_layers} {both}"


@pytest.mark.parametrize("spec", list(every_kind_of_network()), ids=named)
def test_parts_of_every_kind_of_network_give_what_the_whole_gives(
    spec: v2.RNNSpec, engine: NumpyEngine
) -> None:
    for layout in LAYOUTS:
        check(engine, spec, layout, (8, 3, 0, 5))


def check(engine: NumpyEngine, spec: v2.RNNSpec, layout: str, lengths: tuple[int, ...]) -> None:
    """Parts give what one call gives."""
    data = draw(spec, lengths, layout=layout, seed=len(lengths))
    out = v2.rnn_forward(
        spec, data.w, data.x, data.hx, data.cx, layout=layout, lengths=lengths, training=True
    )
    gradients = v2.rnn_backward(out, data.dy, data.dhy, data.dcy)
    found = in_parts(engine, spec, data, layout, lengths)
    names = ("y", "hy", "cy", "dx", "dhx", "dcx", "dw")
    for name, value, right in zip(names, found, (*out, *gradients), strict=True):
        assert (value is None) == (right is None), name
        assert value is None or largest(value, right) <= 1e-12, name


@pytest.mark.parametrize("spec", NETWORKS.values(), ids=NETWORKS)
def test_missing_states_and_gradients_are_zeros(spec: v2.RNNSpec, engine: NumpyEngine) -> None:
    lengths = (8, 5)
    data = draw(spec, lengths).without("hx", "cx", "dhy", "dcy", "dy")
    out = v2.rnn_forward(spec, data.w, data.x, lengths=lengths, training=True)
    gradients = v2.rnn_backward(out)
    found = in_parts(engine, spec, data, "time_major", lengths)
    for value, right in zip(found, (*out, *gradients), strict=True):
        assert value is None or largest(value, right) <= 1e-12
