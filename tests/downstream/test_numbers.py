"""The frozen program's numbers are those of the plain equations."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import fluxlike
import numpy as np
import pytest
import train

from tests.downstream.plain_equations import (
    Array,
    PlainModel,
    PlainOptimiser,
    derivatives,
    mean_squared_error,
    plain_copy,
)

pytestmark = pytest.mark.filterwarnings("ignore::cudnn_compat.legacy.LegacyAPIWarning")

TOLERANCE = {"float64": 1e-12, "float32": 2e-5}
"""Largest absolute difference; all numbers compared here are of the order of one or smaller."""

EPOCHS = 2

each_model = pytest.mark.parametrize("name", train.MODELS)
each_shape = pytest.mark.parametrize("shape", train.SHAPES)
each_dtype = pytest.mark.parametrize("dtype", TOLERANCE)


def columns(arrays: list[Array]) -> list[Array]:
    """Each as (features, batch), in float64."""
    return [np.asarray(a, np.float64).reshape(len(a), -1) for a in arrays]


def plain_data(shape: str, dtype: str) -> list[tuple[list[Array], list[Array]]]:
    data = train.make_data(train.SHAPES[shape], dtype)
    return [(columns(xs), columns(targets)) for xs, targets in data]


def plain_run(name: str, shape: str, dtype: str) -> list[float]:
    """What the program reports for one network: the loss of each epoch, then the loss after."""
    model = plain_copy(train.make_model(name, dtype))
    data = plain_data(shape, dtype)
    optimiser = PlainOptimiser(*((0.2, False) if name in ("relu", "tanh") else (0.03, True)))
    losses = []
    for _ in range(EPOCHS):
        total = 0.0
        for xs, targets in data:
            loss = loss_function(model, xs, targets)
            total += loss(model.arrays)
            optimiser.update(model.arrays, derivatives(loss, model.arrays))
        losses.append(total / len(data))
    losses.append(np.mean([loss_function(model, *pair)(model.arrays) for pair in data]))
    return losses


def loss_function(
    model: PlainModel,
    xs: list[Array],
    targets: list[Array],
    states: Sequence[Sequence[Array]] = (),
) -> Callable[[list[Array]], Any]:
    """The loss as a function of the model's arrays."""
    return lambda arrays: mean_squared_error(model.outputs(arrays, xs, states)[0], targets)


@each_dtype
def test_the_program_prints_the_losses_of_the_plain_equations(
    dtype: str, environment: dict[str, str]
) -> None:
    program = Path(train.__file__)
    command = [sys.executable, str(program), dtype, str(EPOCHS)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=program.parent
    )
    assert done.returncode == 0, done.stderr
    printed = {}
    for line in done.stdout.splitlines():
        case, numbers = line.split(": ", 1)
        before, after = numbers.split(" after: ")
        after, steps = after.split(" steps: ")
        printed[case] = [float(value) for value in (*before.split(), after)]
        assert int(steps) == (EPOCHS + 1) * train.SEQUENCES * train.STEPS
    assert list(printed) == [f"{name} {shape}" for name in train.MODELS for shape in train.SHAPES]
    for case, losses in printed.items():
        expected = plain_run(*case.split(), dtype)
        np.testing.assert_allclose(losses, expected, rtol=0, atol=TOLERANCE[dtype], err_msg=case)


@each_dtype
@each_shape
@each_model
def test_every_gradient_is_the_plain_equations_own(name: str, shape: str, dtype: str) -> None:
    """Right after a reset, when the initial state has a gradient too, and one chunk later."""
    model = train.make_model(name, dtype)
    plain = plain_copy(model)
    first, second = train.make_data(train.SHAPES[shape], dtype)[:2]
    states: Sequence[Sequence[Array]] = ()
    for xs, targets in (first, second):
        loss, grads = fluxlike.gradient(model, fluxlike.mse, xs, targets)
        plain_loss = loss_function(plain, columns(xs), columns(targets), states)
        expected = derivatives(plain_loss, plain.arrays)
        assert abs(loss - plain_loss(plain.arrays)) < TOLERANCE[dtype]
        for p, d in zip(model.params(), expected, strict=True):
            if p not in grads:  # an initial state, which the second chunk does not begin with
                assert xs is second[0]
                assert p.ndim == 1
                assert not d.any()
                continue
            assert grads[p].dtype == p.dtype
            assert grads[p].shape == p.shape
            np.testing.assert_allclose(grads[p], d.reshape(p.shape), rtol=0, atol=TOLERANCE[dtype])
            assert np.abs(d).max() > 1e-4
        _, states = plain.outputs(plain.arrays, columns(xs), states)


@each_shape
@each_model
def test_calling_a_model_and_training_it_compute_the_same_outputs(name: str, shape: str) -> None:
    model = train.make_model(name, "float64")
    ((xs, _), *_) = train.make_data(train.SHAPES[shape], "float64")
    called = [model(x) for x in xs]
    model.reset()
    trained = [model.pullback(x)[0] for x in xs]
    plain = plain_copy(model)
    expected, _ = plain.outputs(plain.arrays, columns(xs))
    for one, other, y in zip(called, trained, expected, strict=True):
        assert np.array_equal(one, other)
        assert one.shape == (train.N_OUT, *xs[0].shape[1:])
        np.testing.assert_allclose(columns([one])[0], y, rtol=0, atol=1e-12)


@each_model
def test_a_vector_is_a_batch_of_one(name: str) -> None:
    assert train.run(name, "vector", epochs=2) == train.run(name, "batch1", epochs=2)


@each_dtype
@each_shape
@each_model
def test_training_lowers_the_loss(name: str, shape: str, dtype: str) -> None:
    losses, after, _ = train.run(name, shape, dtype, epochs=6)
    assert after < 0.8 * losses[0]
    assert max(losses) == losses[0]


def test_gradients_of_the_input_reach_the_layer_below() -> None:
    """Through both recurrences of the stacked network, for each x of the sequence."""
    model = train.make_model("stacked", "float64")
    ((xs, targets), *_) = train.make_data(train.SHAPES["batch5"], "float64")
    backs = []
    for x, target in zip(xs, targets, strict=True):
        y, back = model.pullback(x)
        backs.append((back, 2 * (y - target) / y.size / len(xs)))
    model.begin_backward()
    grads = fluxlike.Grads()
    dxs = [back(dy, grads) for back, dy in reversed(backs)][::-1]
    plain = plain_copy(model)
    expected = derivatives(
        lambda xs: mean_squared_error(plain.outputs(plain.arrays, xs)[0], targets), xs
    )
    np.testing.assert_allclose(dxs, expected, rtol=0, atol=1e-12)
