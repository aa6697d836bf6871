"""What dropout drops: where it acts, how often, and with which scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import RNNSpec
from tests.engine import Engine
from tests.engines.networks import same

SPEC = RNNSpec("gru", 3, 8, num_layers=3, dropout=0.5)
W = v2.init_weights(SPEC, seed=0)
X = np.random.default_rng(0).normal(size=(6, 4, 3)).astype("float32")


def y_of(engine: Engine, seed: Any = None, *, spec: RNNSpec = SPEC, training: bool = True) -> Any:
    w, x = engine.put(W), engine.put(X)
    return engine.get(v2.rnn_forward(spec, w, x, training=training, seed=seed).y)


def test_inference_ignores_dropout(engine: Engine) -> None:
    assert np.array_equal(
        y_of(engine, seed=7, training=False),
        y_of(engine, spec=SPEC.replace(dropout=0.0), training=False),
    )


def test_dropout_of_zero_drops_nothing(engine: Engine) -> None:
    spec = SPEC.replace(dropout=0.0)
    trained, inferred = y_of(engine, seed=7, spec=spec), y_of(engine, spec=spec, training=False)
    assert same(spec, engine, trained, inferred, "y")


def test_dropout_of_one_layer_does_nothing(engine: Engine) -> None:
    with pytest.warns(v2.IneffectiveOptionWarning):
        spec = RNNSpec("gru", 3, 8, dropout=0.9)
    w, x = v2.init_weights(spec, seed=0, xp=engine.xp), engine.put(X)
    trained = engine.get(v2.rnn_forward(spec, w, x, training=True, seed=3).y)
    assert same(spec, engine, trained, engine.get(v2.rnn_forward(spec, w, x).y), "y")


def test_dropout_of_one_drops_everything_between_layers_and_nothing_else(engine: Engine) -> None:
    spec = RNNSpec("gru", 3, 8, num_layers=2, dropout=1.0, math="full")
    w, x = v2.init_weights(spec, seed=0), engine.put(X)
    out = v2.rnn_forward(spec, engine.put(w), x, training=True)
    above = RNNSpec("gru", 8, 8, math="full")
    names, of_above = v2.named_weights(spec, w), np.empty(v2.weight_size(above), "float32")
    for name, view in v2.named_weights(above, of_above).items():
        view[...] = names[name.replace("_l0", "_l1")]
    zeros = engine.put(np.zeros((6, 4, 8), "float32"))
    alone = v2.rnn_forward(above, engine.put(of_above), zeros)
    assert np.allclose(engine.get(out.y), engine.get(alone.y), rtol=0, atol=1e-6)
    below = v2.rnn_forward(spec, engine.put(w), x)
    assert same(spec, engine, engine.get(out.hy)[0], engine.get(below.hy)[0], "hy")
    gradients = v2.rnn_backward(out, engine.xp.ones_like(out.y))
    assert not engine.get(gradients.dx).any()
    names = v2.named_weights(spec, engine.get(gradients.dw))
    assert not names["weight_ih_l1"].any()
    assert names["weight_hh_l1"].any()


def masks_of(engine: Engine, dropout: float, layers: int = 2, **options: Any) -> Any:
    """What the second layer received of ones: a relu network that hands its input on.

    The first layer gives 1 everywhere (bias 1), the second its input (identity matrix).
    """
    hidden = 50
    # In full: TF32 would round what passes to 10 bits.
    options = {"math": "full", "dropout": dropout, "num_layers": layers} | options
    spec = RNNSpec("relu", 1, hidden, **options)
    w = np.zeros(v2.weight_size(spec), spec.dtype)
    for name, view in v2.named_weights(spec, w).items():
        if name.startswith("weight_ih") and "_l0" not in name:
            view[...] = np.eye(*view.shape)
        elif name.startswith("bias_ih_l0"):
            view[...] = 1
    x = engine.put(np.zeros((20, 10, 1), spec.dtype))
    out = v2.rnn_forward(spec, engine.put(w), x, training=True, seed=1)
    return engine.get(out.y).astype("float64")


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_an_element_is_dropped_with_the_given_probability_and_else_scaled_up(
    dropout: float, engine: Engine
) -> None:
    passed = masks_of(engine, dropout)
    scale = 1 / (1 - dropout)
    assert np.all((passed == 0) | (np.abs(passed - scale) < 1e-5))
    # 10,000 elements: six standard deviations of a binomial are at most 0.03.
    assert abs((passed == 0).mean() - dropout) < 0.03


def test_every_step_sequence_and_feature_has_a_draw_of_its_own(engine: Engine) -> None:
    dropped = masks_of(engine, 0.5) == 0
    for axis in range(3):
        share = dropped.mean(axis=axis)
        assert not np.all((share == 0) | (share == 1))
    # Neighbours along every axis agree half the time.
    for axis in range(3):
        agree = np.take(dropped, range(1, dropped.shape[axis]), axis) == np.take(
            dropped, range(dropped.shape[axis] - 1), axis
        )
        assert abs(agree.mean() - 0.5) < 0.03


def test_every_boundary_between_layers_has_masks_of_its_own(engine: Engine) -> None:
    passed = masks_of(engine, 0.5, layers=3)
    # An element arrives when it was kept twice.
    assert np.all((passed == 0) | (np.abs(passed - 4) < 1e-5))
    assert abs((passed != 0).mean() - 0.25) < 0.03


def test_masks_of_half_precision_are_scaled_alike(engine: Engine) -> None:
    passed = masks_of(engine, 0.5, dtype="float16")
    assert np.all((passed == 0) | (np.abs(passed - 2) < 1e-2))


def test_states_are_not_dropped(engine: Engine) -> None:
    w, x = engine.put(W), engine.put(X)
    y, hy, _ = map(engine.get, v2.rnn_forward(SPEC, w, x, training=True, seed=1))
    undropped = engine.get(v2.rnn_forward(SPEC, w, x).hy)
    assert same(SPEC, engine, hy[0], undropped[0], "hy")
    assert same(SPEC, engine, hy[-1], y[-1], "y")
