"""Layers whose weights are CuPy arrays: the same layers as on NumPy."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import GRU, LSTM, RNN, ArgumentError
from tests.engine import Engine

pytestmark = pytest.mark.gpu

T, B, IN, H = 5, 2, 3, 4
X = np.random.default_rng(0).normal(size=(T, B, IN)).astype("float32")
OPTIONS = {"math": "full", "seed": 0}
"""Full precision, so that one bound serves all comparisons with NumPy."""
BOUND = 2e-5

LAYERS = {"RNN": RNN, "LSTM": LSTM, "GRU": GRU}
each_layer = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda layer: pickle.loads(pickle.dumps(layer)),
}
each_copy = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)


@pytest.fixture
def gpu() -> Engine:
    import cupy

    return Engine("cudnn", cupy)


def parts(state: Any) -> tuple[Any, ...]:
    """h, or h and c."""
    return state if isinstance(state, tuple) else (state,)


def near(gpu: Engine, a: Any, b: Any) -> bool:
    """Whether arrays or states of any library are equal but for rounding."""
    pairs = zip(parts(a), parts(b), strict=True)
    return all(np.allclose(gpu.get(m), gpu.get(t), rtol=0, atol=BOUND) for m, t in pairs)


@each_layer
def test_a_layer_on_the_gpu_has_the_weights_and_the_results_of_one_on_the_host(
    make: Any, gpu: Engine
) -> None:
    host = make(IN, H, num_layers=2, bidirectional=True, **OPTIONS)
    layer = make(IN, H, num_layers=2, bidirectional=True, xp=gpu.xp, **OPTIONS)
    assert type(layer.w) is gpu.xp.ndarray
    assert np.array_equal(gpu.get(layer.w), host.w)
    y, state = layer(gpu.put(X))
    wanted, wanted_state = host(X)
    assert type(y) is gpu.xp.ndarray
    assert near(gpu, y, wanted)
    assert near(gpu, state, wanted_state)
    assert isinstance(state, tuple) == (make is LSTM)


@each_layer
def test_weights_are_changed_through_their_names(make: Any, gpu: Engine) -> None:
    layer = make(IN, H, xp=gpu.xp, **OPTIONS)
    before = gpu.get(layer(gpu.put(X))[0])
    layer.named_weights()["weight_ih_l0"][...] *= 2
    assert not np.allclose(gpu.get(layer(gpu.put(X))[0]), before)


@each_layer
def test_a_state_goes_from_call_to_call(make: Any, gpu: Engine) -> None:
    layer, x = make(IN, H, num_layers=2, xp=gpu.xp, **OPTIONS), gpu.put(X)
    whole, last = layer(x)
    first, between = layer(x[:2])
    second, state = layer(x[2:], between)
    assert near(gpu, gpu.xp.concatenate((first, second)), whole)
    assert near(gpu, state, last)


@each_layer
def test_a_keeping_layer_keeps_copies_and_starts_anew_at_zero_and_none(
    make: Any, gpu: Engine
) -> None:
    layer, x = make(IN, H, xp=gpu.xp, keep_state=True, **OPTIONS), gpu.put(X)
    first, state = layer(x)
    kept = [gpu.get(part) for part in parts(layer.state)]
    for part in parts(state):
        part[...] = 9  # the caller's own
    assert all(np.array_equal(gpu.get(p), k) for p, k in zip(parts(layer.state), kept, strict=True))
    second, _ = layer(x)
    assert not near(gpu, second, first)
    assert near(gpu, layer(x, 0)[0], first)
    assert near(gpu, layer(x, None)[0], first)
    assert layer.state is None
    given = tuple(map(gpu.put, kept)) if make is LSTM else gpu.put(kept[0])
    assert near(gpu, layer(x, given)[0], second)


@each_layer
@each_copy
@pytest.mark.parametrize("keep", [False, True], ids=["passing", "keeping"])
def test_a_copied_layer_goes_on_like_the_original(
    make: Any, copied: Any, keep: bool, gpu: Engine
) -> None:
    layer, x = make(IN, H, num_layers=2, xp=gpu.xp, keep_state=keep, **OPTIONS), gpu.put(X)
    layer(x)
    other = copied(layer)
    assert type(other.w) is gpu.xp.ndarray
    assert (other.w is layer.w) == (copied is copy.copy)
    assert near(gpu, other(x)[0], copy.deepcopy(layer)(x)[0])


@each_layer
@each_copy
def test_a_copied_layer_goes_on_with_the_dropout_of_the_original(
    make: Any, copied: Any, gpu: Engine
) -> None:
    layer = make(IN, 20, num_layers=3, dropout=0.5, xp=gpu.xp, **OPTIONS)
    x = gpu.put(X)

    def trained(layer: Any) -> Any:
        return gpu.get(layer.forward(x, training=True).y)

    trained(layer)
    twin = copied(layer)
    # A shallow copy shares the generator, which then gives other masks to the second of the two.
    shared = twin.dropout_state is layer.dropout_state
    assert shared == (copied is copy.copy)
    assert near(gpu, trained(twin), trained(layer)) != shared


@each_layer
def test_layouts_and_packed_sequences(make: Any, gpu: Engine) -> None:
    layer, x, lengths = make(IN, H, xp=gpu.xp, **OPTIONS), gpu.put(X), [3, 5]
    wanted, state = layer(x, lengths=lengths)
    y, found = layer(v2.pack(x, lengths))
    assert isinstance(y, v2.Packed)
    assert near(gpu, y.data, v2.pack(wanted, lengths).data)
    assert near(gpu, found, state)
    by_batch = make(IN, H, w=layer.w, layout="batch_major", math="full")
    assert near(gpu, by_batch(x.swapaxes(0, 1), lengths=lengths)[0].swapaxes(0, 1), wanted)


@each_layer
def test_a_training_forward_goes_to_backward(make: Any, gpu: Engine) -> None:
    dw = []
    for engine in (Engine("numpy", np), gpu):
        layer = make(IN, H, num_layers=2, xp=engine.xp, **OPTIONS)
        out = layer.forward(engine.put(X), training=True)
        dw.append(v2.rnn_backward(out, engine.xp.ones_like(out.y)).dw)
    assert near(gpu, *dw)


@each_layer
def test_an_x_on_the_host_is_refused_with_both_devices(make: Any, gpu: Engine) -> None:
    with pytest.raises(ArgumentError, match=r"different devices: w on cuda:0, x on cpu"):
        make(IN, H, xp=gpu.xp)(X)
