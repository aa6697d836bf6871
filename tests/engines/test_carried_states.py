"""Long sequences in chunks that hand their states on, forward and backward."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from tests.engines.networks import NETWORKS, Data, draw, forward, largest, run

ONE_WAY = {name: spec for name, spec in NETWORKS.items() if not spec.bidirectional}
STACKS = {name: spec for name, spec in ONE_WAY.items() if spec.num_layers > 1}
each_one_way = pytest.mark.parametrize("spec", ONE_WAY.values(), ids=ONE_WAY)

CUTS = [(3,), (1, 2, 3, 4, 5, 6, 7), (0, 4, 4, 8), (8,)]


def chunks(data: Data, cuts: tuple[int, ...], steps: int = 8) -> list[slice]:
    edges = (0, *cuts, steps)
    return [slice(start, stop) for start, stop in itertools.pairwise(edges)]


@each_one_way
@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_chunks_that_hand_their_states_on_equal_the_whole_run(
    spec: v2.RNNSpec, cuts: tuple[int, ...], engine: Any
) -> None:
    data = draw(spec, (8, 8))
    whole = forward(engine, spec, data, training=False)
    state = data.hx, data.cx
    ys = []
    for part in chunks(data, cuts):
        piece = data.replace(x=data.x[part], hx=state[0], cx=state[1])
        y, *state = (engine.get(a) for a in forward(engine, spec, piece, training=False))
        ys.append(y)
    assert largest(np.concatenate(ys), engine.get(whole.y)) <= 1e-12
    for mine, theirs in zip(state, (whole.hy, whole.cy), strict=True):
        assert mine is None or largest(mine, engine.get(theirs)) <= 1e-12


@each_one_way
@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_gradients_that_are_handed_back_through_chunks_equal_those_of_the_whole_run(
    spec: v2.RNNSpec, cuts: tuple[int, ...], engine: Any
) -> None:
    data = draw(spec, (8, 8))
    whole = run(engine, spec, data)
    hx, cx, tapes = data.hx, data.cx, []
    for part in chunks(data, cuts):
        out = forward(engine, spec, data.replace(x=data.x[part], hx=hx, cx=cx))
        hx, cx = engine.get(out.hy), engine.get(out.cy)
        tapes.append((part, out))
    dh, dc = data.dhy, data.dcy
    dw = engine.put(np.zeros_like(data.w))
    dxs = []
    for part, out in reversed(tapes):
        given = (engine.put(a) for a in (data.dy[part], dh, dc))
        gradients = v2.rnn_backward_data(out, *given)
        v2.rnn_backward_weights(out, dw=dw, accumulate=True)
        dh, dc = engine.get(gradients.dhx), engine.get(gradients.dcx)
        dxs.insert(0, engine.get(gradients.dx))
    assert largest(np.concatenate(dxs), whole["dx"]) <= 1e-12
    assert largest(dh, whole["dhx"]) <= 1e-12
    assert dc is None or largest(dc, whole["dcx"]) <= 1e-12
    assert largest(engine.get(dw), whole["dw"]) <= 1e-11


@each_one_way
def test_ragged_sequences_may_be_cut_too(spec: v2.RNNSpec, engine: Any) -> None:
    # Sequences that end before a chunk are empty in it, and hand their state on.
    lengths = np.array([8, 3, 5, 0])
    data = draw(spec, tuple(lengths))
    whole = forward(engine, spec, data, lengths=lengths, training=False)
    hx, cx, ys = data.hx, data.cx, []
    for part in chunks(data, (3, 6)):
        piece = data.replace(x=data.x[part], hx=hx, cx=cx)
        here = np.clip(lengths - part.start, 0, part.stop - part.start)
        y, hx, cx = (
            engine.get(a) for a in forward(engine, spec, piece, lengths=here, training=False)
        )
        ys.append(y)
    assert largest(np.concatenate(ys), engine.get(whole.y)) <= 1e-12
    assert largest(hx, engine.get(whole.hy)) <= 1e-12
    assert cx is None or largest(cx, engine.get(whole.cy)) <= 1e-12


@pytest.mark.parametrize("spec", STACKS.values(), ids=STACKS)
def test_layers_that_are_run_one_after_the_other_equal_the_stack(
    spec: v2.RNNSpec, engine: Any
) -> None:
    lengths = (4, 1, 3)
    data = draw(spec, lengths)
    whole = forward(engine, spec, data, lengths=lengths, training=False)
    names, x = v2.named_weights(spec, data.w), data.x
    for layer in range(spec.num_layers):
        single = spec.replace(num_layers=1, input_size=x.shape[-1])
        w = np.empty(v2.weight_size(single))
        for name, view in v2.named_weights(single, w).items():
            view[...] = names[name.replace("_l0", f"_l{layer}")]
        cx = None if data.cx is None else data.cx[layer : layer + 1]
        piece = data.replace(w=w, x=x, hx=data.hx[layer : layer + 1], cx=cx)
        out = forward(engine, single, piece, lengths=lengths, training=False)
        assert largest(engine.get(out.hy)[0], engine.get(whole.hy)[layer]) <= 1e-12
        x = engine.get(out.y)
    assert largest(x, engine.get(whole.y)) <= 1e-12
