"""Old and new calls on the same weights, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.errors import ArgumentError, DTypeError
from cudnn_compat.legacy import CUDNN_GRU, CUDNN_LSTM, RNNDesc, forward, pullback, setweights
from tests.engine import Engine
from tests.legacy.steps import GATES, HIDDEN, INPUT, MODES, on_host

BATCH = 5


def drawn(engine: Engine, *shape: int) -> Any:
    rng = np.random.default_rng(sum(shape))
    return engine.xp.asarray(rng.standard_normal(shape, dtype=np.float32))


def one_step(spec: v2.RNNSpec, w: Any, x: Any, h: Any) -> Any:
    """The output (hidden, batch) of a v2 call on arrays with features first."""
    return v2.rnn_forward(spec, w, x.T[None], h.T[None]).y[0].T


@pytest.mark.parametrize("cell", GATES)
def test_v2_computes_on_a_descriptor_what_the_old_call_does(cell: str, engine: Engine) -> None:
    desc = RNNDesc(MODES[cell], INPUT, HIDDEN, xp=engine.xp)
    rows = GATES[cell] * HIDDEN
    setweights(desc, drawn(engine, rows, INPUT), drawn(engine, rows, HIDDEN), drawn(engine, rows))
    spec, w = desc.to_v2()
    x, h = drawn(engine, INPUT, BATCH), drawn(engine, HIDDEN, BATCH)
    y, _ = forward(desc, x, h)
    assert (spec.cell, spec.math) == (cell, "full")
    assert np.array_equal(on_host(one_step(spec, w, x, h)), on_host(y))


def test_weights_that_either_api_sets_are_those_of_the_other(engine: Engine) -> None:
    desc = RNNDesc(CUDNN_GRU, INPUT, HIDDEN, xp=engine.xp)
    spec, w = desc.to_v2()
    rows = 3 * HIDDEN
    Wi, Wh, b = drawn(engine, rows, INPUT), drawn(engine, rows, HIDDEN), drawn(engine, rows)
    setweights(desc, Wi, Wh, b)
    named = v2.named_weights(spec, w)
    assert np.array_equal(on_host(named["weight_ih_l0"]), on_host(Wi))
    named["weight_hh_l0"][...] = 2 * Wh
    named["bias_ih_l0"][...] = 3 * b
    assert np.array_equal(on_host(desc.weights[1].T), 2 * on_host(Wh))
    assert np.array_equal(on_host(desc.bias), 3 * on_host(b))


@pytest.mark.parametrize("bias", ["double", "input"])
def test_a_descriptor_on_the_weights_of_a_v2_program_shares_them(bias: str, engine: Engine) -> None:
    spec = v2.RNNSpec("lstm", INPUT, HIDDEN, bias=bias)
    w = v2.init_weights(spec, seed=1, xp=engine.xp)
    desc = RNNDesc.from_v2(spec, w)
    assert desc.params is w
    assert (desc.mode, desc.input, desc.hidden, desc.dtype) == (2, INPUT, HIDDEN, "float32")
    assert desc.spec == spec.replace(math="full", algo="standard")
    x, h = drawn(engine, INPUT, BATCH), drawn(engine, HIDDEN, BATCH)
    full = spec.replace(math="full", algo="standard")
    assert np.array_equal(on_host(forward(desc, x, h)[0]), on_host(one_step(full, w, x, h)))
    w *= 2
    assert np.array_equal(on_host(forward(desc, x, h)[0]), on_host(one_step(full, w, x, h)))
    assert desc.weights[0].shape == (INPUT, 4 * HIDDEN)


def test_there_and_back_is_the_same_descriptor() -> None:
    desc = RNNDesc(CUDNN_LSTM, INPUT, HIDDEN, dtype="float64", layers=2)
    again = RNNDesc.from_v2(*desc.to_v2())
    assert again.params is desc.params
    assert again.spec == desc.spec
    assert repr(again) == repr(desc)


def test_gradients_of_the_old_api_belong_to_the_v2_weights() -> None:
    spec = v2.RNNSpec("gru", INPUT, HIDDEN, bias="input", math="full", algo="standard")
    w = v2.init_weights(spec, seed=0)
    x, h = np.ones((INPUT, BATCH), "float32"), np.zeros((HIDDEN, BATCH), "float32")
    (y, _), back = pullback(RNNDesc.from_v2(spec, w), x, h)
    old = back(np.ones_like(y))
    out = v2.rnn_forward(spec, w, x.T[None], h.T[None], training=True)
    new = v2.rnn_backward(out, np.ones_like(out.y))
    assert new.dw is not None
    assert np.array_equal(old.dw, new.dw)


def test_a_class_with_a_dtype_takes_a_spec_of_that_dtype() -> None:
    spec = v2.RNNSpec("gru", INPUT, HIDDEN, dtype="float64")
    w = v2.init_weights(spec, seed=0)
    assert isinstance(RNNDesc["float64"].from_v2(spec, w), RNNDesc["float64"])
    with pytest.raises(
        ArgumentError, match=r"dtype='float64', but the class is RNNDesc\[float32\]"
    ):
        RNNDesc["float32"].from_v2(spec, w)


@pytest.mark.parametrize(
    "options",
    [
        {"bidirectional": True},
        {"bias": "recurrent"},
        {"bias": "none"},
        {"proj_size": 2},
        {"clip": (-1, 1)},
        {"num_layers": 2, "dropout": 0.5},
        {"dtype": "bfloat16"},
    ],
    ids=str,
)
def test_a_network_that_the_old_api_cannot_describe_is_refused(options: dict[str, Any]) -> None:
    if options.get("dtype") == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="bfloat16 arrays need ml_dtypes (extra test)")
    spec = v2.RNNSpec("lstm", INPUT, HIDDEN, **options)
    with pytest.raises(ArgumentError, match="a descriptor has one direction"):
        RNNDesc.from_v2(spec, v2.init_weights(spec, seed=0))


def test_weights_that_do_not_fit_the_spec_are_refused() -> None:
    spec = v2.RNNSpec("lstm", INPUT, HIDDEN)
    w = v2.init_weights(spec, seed=0)
    with pytest.raises(ArgumentError, match="wanted"):
        RNNDesc.from_v2(spec, w[:-1])
    with pytest.raises(DTypeError, match="float64"):
        RNNDesc.from_v2(spec, w.astype("float64"))
    with pytest.raises(ArgumentError, match="not contiguous"):
        RNNDesc.from_v2(spec, np.repeat(w, 2)[::2])
