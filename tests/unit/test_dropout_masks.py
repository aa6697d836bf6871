"""What dropout drops: where it acts, how often, and with which scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import RNNSpec

SPEC = RNNSpec("gru", 3, 8, num_layers=3, dropout=0.5)
W = v2.init_weights(SPEC, seed=0)
X = np.random.default_rng(0).normal(size=(6, 4, 3)).astype("float32")


def y_of(seed: Any = None, *, spec: RNNSpec = SPEC, training: bool = True) -> Any:
    return v2.rnn_forward(spec, W, X, training=training, seed=seed).y


def test_inference_ignores_dropout() -> None:
    assert np.array_equal(
        y_of(seed=7, training=False), y_of(spec=SPEC.replace(dropout=0.0), training=False)
    )


def test_dropout_of_zero_drops_nothing() -> None:
    spec = SPEC.replace(dropout=0.0)
    assert np.array_equal(y_of(seed=7, spec=spec), y_of(spec=spec, training=False))


def test_dropout_of_one_layer_does_nothing() -> None:
    with pytest.warns(v2.IneffectiveOptionWarning):
        spec = RNNSpec("gru", 3, 8, dropout=0.9)
    w = v2.init_weights(spec, seed=0)
    trained = v2.rnn_forward(spec, w, X, training=True, seed=3).y
    assert np.array_equal(trained, v2.rnn_forward(spec, w, X).y)


def test_dropout_of_one_drops_everything_between_layers_and_nothing_else() -> None:
    spec = RNNSpec("gru", 3, 8, num_layers=2, dropout=1.0)
    w = v2.init_weights(spec, seed=0)
    out = v2.rnn_forward(spec, w, X, training=True)
    above = RNNSpec("gru", 8, 8)
    names, of_above = v2.named_weights(spec, w), np.empty(v2.weight_size(above), "float32")
    for name, view in v2.named_weights(above, of_above).items():
        view[...] = names[name.replace("_l0", "_l1")]
    zeros = np.zeros((6, 4, 8), "float32")
    alone = v2.rnn_forward(above, of_above, zeros)
    assert np.allclose(out.y, alone.y, rtol=0, atol=1e-6)
    below = v2.rnn_forward(spec, w, X)
    assert np.array_equal(out.hy[0], below.hy[0])
    gradients = v2.rnn_backward(out, np.ones_like(out.y))
    assert not gradients.dx.any()
    assert not v2.named_weights(spec, gradients.dw)["weight_ih_l1"].any()
    assert v2.named_weights(spec, gradients.dw)["weight_hh_l1"].any()


def masks_of(dropout: float, layers: int = 2, **options: Any) -> Any:
    """What the second layer received of ones: a relu network that hands its input on.

    The first layer gives 1 everywhere (bias 1), the second its input (identity matrix).
    """
    hidden = 50
    spec = RNNSpec("relu", 1, hidden, num_layers=layers, dropout=dropout, **options)
    w = np.zeros(v2.weight_size(spec), spec.dtype)
    for name, view in v2.named_weights(spec, w).items():
        if name.startswith("weight_ih") and "_l0" not in name:
            view[...] = np.eye(*view.shape)
        elif name.startswith("bias_ih_l0"):
            view[...] = 1
    x = np.zeros((20, 10, 1), spec.dtype)
    return v2.rnn_forward(spec, w, x, training=True, seed=1).y.astype("float64")


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_an_element_is_dropped_with_the_given_probability_and_else_scaled_up(
    dropout: float,
) -> None:
    passed = masks_of(dropout)
    scale = 1 / (1 - dropout)
    assert np.all((passed == 0) | (np.abs(passed - scale) < 1e-5))
    # 10,000 elements: six standard deviations of a binomial are at most 0.03.
    assert abs((passed == 0).mean() - dropout) < 0.03


def test_every_step_sequence_and_feature_has_a_draw_of_its_own() -> None:
    dropped = masks_of(0.5) == 0
    for axis in range(3):
        share = dropped.mean(axis=axis)
        assert not np.all((share == 0) | (share == 1))
    # Neighbours along every axis agree half the time.
    for axis in range(3):
        agree = np.take(dropped, range(1, dropped.shape[axis]), axis) == np.take(
            dropped, range(dropped.shape[axis] - 1), axis
        )
        assert abs(agree.mean() - 0.5) < 0.03


def test_every_boundary_between_layers_has_masks_of_its_own() -> None:
    passed = masks_of(0.5, layers=3)
    # An element arrives when it was kept twice.
    assert np.isin(passed, (0.0, 4.0)).all()
    assert abs((passed != 0).mean() - 0.25) < 0.03


def test_masks_of_half_precision_are_scaled_alike() -> None:
    assert np.isin(masks_of(0.5, dtype="float16"), (0.0, 2.0)).all()


def test_states_are_not_dropped() -> None:
    out = v2.rnn_forward(SPEC, W, X, training=True, seed=1)
    assert np.array_equal(out.hy[0], v2.rnn_forward(SPEC, W, X).hy[0])
    assert np.array_equal(out.hy[-1], out.y[-1])
