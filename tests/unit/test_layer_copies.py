"""Layers that are copied and pickled, also by older releases."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from cudnn_compat.v2 import GRU, LSTM, RNN, DTypeError

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


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda layer: pickle.loads(pickle.dumps(layer)),
}


@each_layer
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("keep", [False, True], ids=["passing", "keeping"])
def test_a_copied_layer_goes_on_like_the_original(make: Any, copied: Any, keep: bool) -> None:
    layer = make(
        IN,
        H,
        num_layers=2,
        dropout=0.5,
        seed=0,
        keep_state=keep,
        layout="batch_major",
        engine="numpy",
    )
    layer(X)
    other = copied(layer)
    assert type(other) is type(layer)
    assert vars(other).keys() == vars(layer).keys()
    assert (other.layout, other.engine, other.keep_state) == ("batch_major", "numpy", keep)
    assert other.spec == layer.spec
    assert np.array_equal(other(X)[0], copy.deepcopy(layer)(X)[0])


@each_layer
@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_a_deep_copy_shares_nothing_with_the_original(make: Any, how: str) -> None:
    layer = make(IN, H, num_layers=2, seed=0, keep_state=True)
    layer(X)
    other = COPIES[how](layer)
    state, y = copy.deepcopy(layer.state), copy.deepcopy(layer)(X)[0]
    other.w[...] = 0
    other(X)
    other.named_weights()["bias_ih_l0"][...] = 1
    assert equal(layer.state, state)
    assert np.array_equal(layer(X)[0], y)


@each_layer
def test_a_shallow_copy_shares_the_weights_but_keeps_its_own_state(make: Any) -> None:
    layer = make(IN, H, seed=0, keep_state=True)
    layer(X)
    other = copy.copy(layer)
    assert other.w is layer.w
    state = layer.state
    other(X)
    assert layer.state is state


# What a layer of the first release pickled: attributes and nothing else. Never to be changed; a
# release that adds an attribute adds a row here.
GOLDEN = {
    "2.0": {"spec", "w", "layout", "engine", "keep_state", "state", "dropout_state"},
    "before layouts": {"spec", "w", "keep_state", "state"},
    "weights alone": {"spec", "w"},
}


@each_layer
@pytest.mark.parametrize("known", GOLDEN.values(), ids=GOLDEN)
def test_a_pickle_that_lacks_newer_attributes_gets_their_defaults(
    make: Any, known: set[str]
) -> None:
    layer = make(IN, H, seed=0)
    state = {name: value for name, value in vars(layer).items() if name in known}
    assert set(state) == known
    old = make.__new__(make)
    old.__setstate__(state)
    assert vars(old).keys() == vars(layer).keys()
    assert (old.layout, old.engine, old.keep_state) == ("time_major", None, False)
    assert np.array_equal(old(X)[0], layer(X)[0])
    assert np.array_equal(pickle.loads(pickle.dumps(old))(X)[0], layer(X)[0])


@each_layer
@pytest.mark.parametrize("missing", ["spec", "w"])
def test_a_pickle_without_spec_or_weights_is_refused_in_words(make: Any, missing: str) -> None:
    state = dict(vars(make(IN, H)))
    del state[missing]
    with pytest.raises(DTypeError, match=f"not the pickle of a {make.__name__}"):
        make.__new__(make).__setstate__(state)


@each_layer
def test_the_text_of_a_layer_names_it_and_its_spec(make: Any) -> None:
    layer = make(IN, H)
    assert repr(layer) == f"{make.__name__}({layer.spec!r})"
