"""States of layers: passed and returned, or kept by Knet's rule."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import GRU, LSTM, RNN, ArgumentError

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
def test_a_run_in_pieces_that_hand_the_state_on_equals_the_whole_run(make: Any) -> None:
    layer = make(IN, H, num_layers=2, seed=0)
    y, state = layer(X)
    first, between = layer(X[:2])
    second, last = layer(X[2:], between)
    assert np.allclose(np.concatenate((first, second)), y, rtol=0, atol=1e-6)
    assert all(
        np.allclose(a, b, rtol=0, atol=1e-6) for a, b in zip(parts(last), parts(state), strict=True)
    )


@each_layer
def test_a_layer_that_does_not_keep_its_state_starts_from_zeros_each_time(make: Any) -> None:
    layer = make(IN, H, seed=0)
    first, _ = layer(X)
    assert np.array_equal(layer(X)[0], first)
    assert np.array_equal(layer(X, None)[0], first)
    assert layer.state is None
    layer(X, random_state(make, layer.spec))
    assert layer.state is None


@pytest.mark.parametrize("state", [(None, None), [None, None]])
def test_both_states_of_an_lstm_may_be_missing(state: Any) -> None:
    layer = LSTM(IN, H, seed=0)
    assert np.array_equal(layer(X, state)[0], layer(X)[0])


def test_one_state_of_an_lstm_may_be_missing() -> None:
    layer = LSTM(IN, H, seed=0)
    h, c = random_state(LSTM, layer.spec)
    assert np.array_equal(layer(X, (h, None))[0], layer(X, (h, np.zeros_like(c)))[0])
    assert np.array_equal(layer(X, (None, c))[0], layer(X, [np.zeros_like(h), c])[0])


def test_an_lstm_that_is_given_one_array_says_that_it_takes_a_pair() -> None:
    layer = LSTM(IN, H)
    h, c = random_state(LSTM, layer.spec)
    for state, words in (
        (h, r"state .*one .*\(h, c\)"),
        ((h,), r"state has 1 part.*\(h, c\)"),
        ((h, c, c), r"state has 3 parts.*\(h, c\)"),
        (np.stack((h, c)), r"state .*\(h, c\)"),
    ):
        with pytest.raises(ArgumentError, match=words):
            layer(X, state)


@pytest.mark.parametrize("make", [RNN, GRU])
def test_a_layer_without_a_cell_that_is_given_a_pair_says_that_it_takes_h(make: Any) -> None:
    layer = make(IN, H)
    h = random_state(make, layer.spec)
    for state in ((h, h), [h], ()):
        with pytest.raises(ArgumentError, match=f"state .*a {layer.spec.cell} takes h"):
            layer(X, state)


@each_layer
def test_a_state_of_another_batch_is_refused_with_both_numbers(make: Any) -> None:
    layer = make(IN, H)
    with pytest.raises(ArgumentError, match=r"hx has a batch of 7, x .* has 2"):
        layer(X, random_state(make, layer.spec, batch=7))


@each_layer
@pytest.mark.parametrize("state", ["h", 1.5, True, False, 1, -1, ...], ids=repr)
@pytest.mark.parametrize("keep", [False, True], ids=["passing", "keeping"])
def test_what_is_no_state_is_refused(make: Any, state: Any, keep: bool) -> None:
    layer = make(IN, H, keep_state=keep)
    before = layer.state
    with pytest.raises(v2.CompatError, match=r"state|hx"):
        layer(X, state)
    assert layer.state is before


@each_layer
def test_a_keeping_layer_starts_from_zeros_and_goes_on_by_itself(make: Any) -> None:
    layer = make(IN, H, num_layers=2, seed=0, keep_state=True)
    plain = make(IN, H, num_layers=2, w=layer.w)
    assert layer.state == 0
    first, state = plain(X)
    assert np.array_equal(layer(X)[0], first)
    assert equal(layer.state, state)
    second, state = plain(X, state)
    assert np.array_equal(layer(X)[0], second)
    assert equal(layer.state, state)


@each_layer
def test_a_state_of_zero_starts_from_zeros_and_keeps(make: Any) -> None:
    layer = make(IN, H, seed=0, keep_state=True)
    first, state = layer(X)
    layer(X)
    again, _ = layer(X, 0)
    assert np.array_equal(again, first)
    assert equal(layer.state, state)


@each_layer
def test_a_state_of_none_starts_from_zeros_and_forgets(make: Any) -> None:
    layer = make(IN, H, seed=0, keep_state=True)
    first, _ = layer(X)
    assert np.array_equal(layer(X, None)[0], first)
    assert layer.state is None
    # It goes on forgetting until it is told to keep again.
    assert np.array_equal(layer(X)[0], first)
    assert layer.state is None
    layer.state = 0
    layer(X)
    assert layer.state is not None


@each_layer
def test_a_state_that_is_given_is_used_and_replaced(make: Any) -> None:
    layer = make(IN, H, seed=0, keep_state=True)
    given = random_state(make, layer.spec)
    kept = tuple(part.copy() for part in parts(given))
    y, state = layer(X, given)
    assert np.array_equal(y, make(IN, H, w=layer.w)(X, given)[0])
    assert equal(layer.state, state)
    assert equal(given, kept if make is LSTM else kept[0])


@each_layer
def test_the_attribute_follows_the_same_rule_as_the_argument(make: Any) -> None:
    layer = make(IN, H, seed=0, keep_state=True)
    given = random_state(make, layer.spec)
    wanted = make(IN, H, w=layer.w)(X, given)[0]
    layer.state = given
    assert np.array_equal(layer(X)[0], wanted)
    layer.state = None
    first = make(IN, H, w=layer.w)(X)[0]
    assert np.array_equal(layer(X)[0], first)
    assert layer.state is None


@each_layer
def test_zero_needs_a_layer_that_keeps(make: Any) -> None:
    with pytest.raises(ArgumentError, match=r"state of 0 .*needs keep_state=True"):
        make(IN, H)(X, 0)


@each_layer
def test_a_refused_call_leaves_the_kept_state_alone(make: Any) -> None:
    layer = make(IN, H, seed=0, keep_state=True)
    _, state = layer(X)
    for call in (
        lambda: layer(X[..., :2]),
        lambda: layer(X, lengths=[9, 9]),
        lambda: layer(X[:, :1]),
    ):
        with pytest.raises(ArgumentError):
            call()
    assert equal(layer.state, state)


@each_layer
def test_kept_states_are_not_overwritten_by_later_calls(make: Any) -> None:
    layer = make(IN, H, seed=0, keep_state=True)
    layer(X)
    kept = layer.state
    copied = copy.deepcopy(kept)
    layer(X)
    assert equal(kept, copied)
    assert not equal(kept, layer.state)


@each_layer
def test_a_keeping_layer_keeps_in_training_too_and_for_one_sequence(make: Any) -> None:
    layer = make(IN, H, seed=0, keep_state=True)
    out = layer.forward(X[:, 0], training=True)
    assert parts(layer.state)[0].shape == (1, H)
    assert np.array_equal(parts(layer.state)[0], out.hy)
    step, _ = layer(X[0, 0])
    assert step.shape == (H,)
    assert parts(layer.state)[0].shape == (1, H)
