"""The layers RNN, LSTM and GRU: what they are made of, and that they are the functional call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import GRU, LSTM, RNN, ArgumentError, DTypeError

T, B, IN, H = 5, 2, 3, 4
X = np.random.default_rng(0).normal(size=(T, B, IN)).astype("float32")

LAYERS = {"RNN": RNN, "LSTM": LSTM, "GRU": GRU}
each_layer = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)


def parts(state: Any) -> tuple[Any, ...]:
    """h, or h and c."""
    return state if isinstance(state, tuple) else (state,)


def equal(a: Any, b: Any) -> bool:
    """Whether two states are equal to the bit."""
    pairs = zip(parts(a), parts(b), strict=True)
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


def random_state(make: Any, spec: v2.RNNSpec, batch: int = B) -> Any:
    rng = np.random.default_rng(1)
    h = rng.normal(size=spec.state_shape(batch)).astype("float32")
    return (h, rng.normal(size=spec.cell_shape(batch)).astype("float32")) if make is LSTM else h


@each_layer
def test_a_layer_gives_what_the_functional_call_gives(make: Any) -> None:
    layer = make(IN, H, num_layers=2, bidirectional=True, seed=0)
    given = random_state(make, layer.spec)
    y, state = layer(X, given)
    wanted = v2.rnn_forward(layer.spec, layer.w, X, *parts(given))
    assert np.array_equal(y, wanted.y)
    assert equal(state, (wanted.hy, wanted.cy) if make is LSTM else wanted.hy)
    assert isinstance(state, tuple) == (make is LSTM)


@pytest.mark.parametrize(
    ("layer", "cell"),
    [
        (RNN(IN, H), "tanh"),
        (RNN(IN, H, cell="relu"), "relu"),
        (LSTM(IN, H), "lstm"),
        (GRU(IN, H), "gru"),
    ],
)
def test_each_layer_has_its_cell(layer: Any, cell: str) -> None:
    assert layer.spec == v2.RNNSpec(cell, IN, H)


@pytest.mark.parametrize("cell", ["lstm", "sigmoid", None, [], "TANH"])
def test_a_plain_layer_is_tanh_or_relu(cell: Any) -> None:
    with pytest.raises(ArgumentError, match=r"cell is .*'tanh' or 'relu'"):
        RNN(IN, H, cell=cell)


@each_layer
def test_options_of_the_spec_reach_it(make: Any) -> None:
    options = {"num_layers": 2, "bidirectional": True, "bias": "input", "dtype": "float64"}
    layer = make(IN, H, **options, math="full", algo="standard")
    assert {name: getattr(layer.spec, name) for name in options} == options
    assert layer.w.dtype == np.float64
    assert layer(X.astype("float64"))[0].shape == (T, B, 2 * H)


def test_an_lstm_layer_may_be_projected_and_clipped() -> None:
    layer = LSTM(IN, H, proj_size=2, clip=(-1, 1))
    y, (h, c) = layer(X)
    assert (y.shape, h.shape, c.shape) == ((T, B, 2), (1, B, 2), (1, B, H))


@each_layer
def test_errors_of_the_spec_come_through(make: Any) -> None:
    with pytest.raises(ArgumentError, match="hidden_size is 0"):
        make(IN, 0)
    with pytest.raises(ArgumentError, match="bias is 'some'"):
        make(IN, H, bias="some")


@each_layer
def test_weights_are_drawn_from_the_seed_or_afresh(make: Any) -> None:
    assert np.array_equal(make(IN, H, seed=3).w, make(IN, H, seed=3).w)
    assert np.array_equal(make(IN, H, seed=3).w, v2.init_weights(make(IN, H).spec, 3))
    assert not np.array_equal(make(IN, H, seed=3).w, make(IN, H, seed=4).w)
    assert not np.array_equal(make(IN, H).w, make(IN, H).w)


@each_layer
def test_given_weights_are_used_and_not_copied(make: Any) -> None:
    w = make(IN, H, seed=3).w
    layer = make(IN, H, w=w)
    assert layer.w is w
    before = layer(X)[0]
    layer.named_weights()["weight_ih_l0"][...] *= 2
    assert not np.array_equal(layer(X)[0], before)


@each_layer
@pytest.mark.parametrize(
    ("w", "error"),
    [
        (np.zeros(3, "float32"), ArgumentError),
        (np.zeros((1, 300), "float32"), ArgumentError),
        ([0.0] * 144, DTypeError),
        ("w", DTypeError),
        (0, DTypeError),
    ],
    ids=["short", "two axes", "list", "str", "int"],
)
def test_weights_that_do_not_fit_are_refused_when_the_layer_is_made(
    make: Any, w: Any, error: Any
) -> None:
    with pytest.raises(error, match=r"w (has|is)"):
        make(IN, H, w=w)


@each_layer
def test_weights_of_another_dtype_or_with_gaps_are_refused(make: Any) -> None:
    w = make(IN, H).w
    with pytest.raises(DTypeError, match=r"float64.*float32"):
        make(IN, H, w=w.astype("float64"))
    with pytest.raises(ArgumentError, match="w is not contiguous"):
        make(IN, H, w=np.repeat(w, 2)[::2])


@each_layer
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("layout", "sideways"),
        ("layout", None),
        ("layout", np.array([1, 2])),
        ("engine", "cuda"),
        ("engine", 3),
        ("seed", -1),
        ("seed", "a"),
        ("seed", 1.5),
        ("xp", None),
        ("keep_state", "no"),
        ("keep_state", np.array([1, 2])),
    ],
    ids=str,
)
def test_an_option_that_a_layer_cannot_have_is_refused_when_it_is_made(
    make: Any, option: str, value: Any
) -> None:
    with pytest.raises(v2.CompatError, match=option):
        make(IN, H, **{option: value})


@each_layer
def test_the_layout_of_a_layer_is_that_of_its_calls(make: Any) -> None:
    layer = make(IN, H, seed=0)
    by_batch = make(IN, H, w=layer.w, layout="batch_major")
    y = by_batch(X.swapaxes(0, 1), lengths=[5, 3])[0]
    assert np.array_equal(y.swapaxes(0, 1), layer(X, lengths=[5, 3])[0])
    packed = make(IN, H, w=layer.w, layout="packed")
    rows = v2.pack(X, [5, 3])
    assert np.array_equal(packed(rows.data, lengths=[5, 3])[0], layer(rows)[0].data)
    assert np.array_equal(packed(rows.data, batch_sizes=rows.batch_sizes)[0], layer(rows)[0].data)


@each_layer
@pytest.mark.parametrize("layout", ["time_major", "batch_major", "packed"])
def test_a_packed_is_taken_by_a_layer_of_every_layout_and_answered_in_kind(
    make: Any, layout: str
) -> None:
    layer = make(IN, H, seed=0, layout=layout)
    y, state = layer(v2.pack(X, [3, 5]))
    assert isinstance(y, v2.Packed)
    assert y.lengths == (3, 5)
    wanted, wanted_state = make(IN, H, seed=0)(X, lengths=[3, 5])
    assert np.array_equal(y.data, v2.pack(wanted, [3, 5]).data)
    assert equal(state, wanted_state)


@each_layer
def test_a_training_forward_of_a_layer_goes_to_backward(make: Any) -> None:
    layer = make(IN, H, num_layers=2, seed=0)
    out = layer.forward(X, training=True)
    assert out.training
    gradients = v2.rnn_backward(out, np.ones_like(out.y))
    wanted = v2.rnn_backward(
        v2.rnn_forward(layer.spec, layer.w, X, training=True), np.ones_like(out.y)
    )
    assert np.array_equal(gradients.dw, wanted.dw)
    assert not layer.forward(X).training
