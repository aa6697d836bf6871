"""Dropout, softmax and activations, on both engines and through both levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.choose import engine_of_device
from cudnn_compat.engines.operations import FUNCTIONS, SOFTMAX_ALGORITHMS, SOFTMAX_MODES
from cudnn_compat.errors import ArgumentError, DTypeError, UnsupportedError
from cudnn_compat.legacy.cupy import CuDNNError, cudnn, libcudnn
from tests.engine import Engine
from tests.legacy.cupy_dialect.dialect import at, handle_of, tensor

WITHIN = {"float64": 1e-13, "float32": 2e-6, "float16": 2e-3}
COEF = 0.75

each_dtype = pytest.mark.parametrize("dtype", WITHIN)
each_function = pytest.mark.parametrize("function", FUNCTIONS)
each_algorithm = pytest.mark.parametrize("algorithm", SOFTMAX_ALGORITHMS)
each_mode = pytest.mark.parametrize("mode", SOFTMAX_MODES)


def draw(shape: tuple[int, ...], seed: int = 0) -> Any:
    """Numbers that are away from the corners of the activations."""
    x = np.random.default_rng(seed).uniform(-3, 3, shape)
    corners = np.abs(x[..., None] - np.array([0, COEF])).min(axis=-1) < 0.05
    return np.where(corners, x + 0.15, x)


def runner(engine: Engine) -> Any:
    return engine_of_device("cpu" if engine.on_host else "cuda:0")


def softmax(x: Any, algorithm: str, axes: tuple[int, ...]) -> Any:
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    y = e / e.sum(axis=axes, keepdims=True)
    return np.log(y) if algorithm == "log" else y


def activation(x: Any, function: str) -> Any:
    return {
        "sigmoid": 1 / (1 + np.exp(-x)),
        "relu": np.maximum(x, 0),
        "tanh": np.tanh(x),
        "clipped_relu": np.clip(x, 0, COEF),
        "elu": np.where(x > 0, x, COEF * (np.exp(np.minimum(x, 0)) - 1)),
    }[function]


def slope(f: Any, x: Any, dy: Any) -> Any:
    """Gradient of ``sum(dy f(x))`` by central differences, in float64."""
    dx, step = np.zeros_like(x), 1e-6
    for index in np.ndindex(x.shape):
        moved = x.copy()
        moved[index] += step
        above = (dy * f(moved)).sum()
        moved[index] -= 2 * step
        dx[index] = (above - (dy * f(moved)).sum()) / (2 * step)
    return dx


@each_dtype
@each_mode
@each_algorithm
def test_softmax_is_its_formula(algorithm: str, mode: str, dtype: str, engine: Engine) -> None:
    x = draw((3, 4, 2)).astype(dtype)
    y = engine.xp.empty(x.shape, dtype)
    runner(engine).softmax_forward(engine.put(x), y=y, algorithm=algorithm, mode=mode)
    axes = (1,) if mode == "channel" else (1, 2)
    wanted = softmax(x.astype("float64"), algorithm, axes)
    np.testing.assert_allclose(engine.get(y).astype("float64"), wanted, atol=5 * WITHIN[dtype])


@each_mode
@each_algorithm
def test_the_gradient_of_softmax_is_its_slope(algorithm: str, mode: str, engine: Engine) -> None:
    x, dy, axes = draw((3, 4, 2)), draw((3, 4, 2), 1), (1,) if mode == "channel" else (1, 2)
    y, dx = engine.put(softmax(x, algorithm, axes)), engine.xp.empty(x.shape, x.dtype)
    runner(engine).softmax_backward(y, engine.put(dy), dx=dx, algorithm=algorithm, mode=mode)
    wanted = slope(lambda a: softmax(a, algorithm, axes), x, dy)
    np.testing.assert_allclose(engine.get(dx), wanted, atol=1e-8)


@each_dtype
@each_function
def test_an_activation_is_its_formula(function: str, dtype: str, engine: Engine) -> None:
    x = draw((5, 7)).astype(dtype)
    y = engine.xp.empty(x.shape, dtype)
    runner(engine).activation_forward(engine.put(x), y=y, function=function, coef=COEF)
    wanted = activation(x.astype("float64"), function)
    np.testing.assert_allclose(engine.get(y).astype("float64"), wanted, atol=WITHIN[dtype])


@each_function
def test_the_gradient_of_an_activation_is_its_slope(function: str, engine: Engine) -> None:
    x, dy = draw((5, 7)), draw((5, 7), 1)
    dx = engine.xp.empty(x.shape, x.dtype)
    y = engine.put(activation(x, function))
    runner(engine).activation_backward(
        engine.put(x), y, engine.put(dy), dx=dx, function=function, coef=COEF
    )
    wanted = slope(lambda a: activation(a, function), x, dy)
    np.testing.assert_allclose(engine.get(dx), wanted, atol=1e-8)


@each_dtype
@pytest.mark.parametrize("ratio", [0.0, 0.25, 0.5, 1.0])
def test_dropout_keeps_a_share_and_backward_uses_the_same_mask(
    ratio: float, dtype: str, engine: Engine
) -> None:
    x, states = engine.put(np.ones((200, 50), dtype)), cudnn.DropoutStates(None, 5)
    reserve, y = states.forward(None, x, ratio)
    dx = states.backward(None, x, ratio, reserve)
    assert reserve.dtype == "int8"
    y, dx = engine.get(y), engine.get(dx)
    np.testing.assert_array_equal(y, dx)
    kept = y != 0
    assert kept.mean() == pytest.approx(1 - ratio, abs=0.03)
    if ratio < 1:
        np.testing.assert_array_equal(y[kept], np.asarray(1 / (1 - ratio), dtype))


def test_a_dropped_element_is_zero_whatever_it_was(engine: Engine) -> None:
    x = engine.put(np.full(1000, np.nan, "float32"))
    _, y = cudnn.DropoutStates(None, 5).forward(None, x, 0.5)
    assert 300 < np.count_nonzero(engine.get(y) == 0) < 700


def test_strided_arrays_are_taken_and_written(engine: Engine) -> None:
    x = engine.put(draw((6, 8)))[::2, ::-1]
    flat = engine.put(np.ascontiguousarray(engine.get(x)))
    for of in (
        lambda a: cudnn.softmax_forward(a, 1, 1),
        lambda a: cudnn.activation_forward(a, 2),
        lambda a: cudnn.DropoutStates(None, 1).forward(None, a, 0.5)[1],
    ):
        np.testing.assert_array_equal(engine.get(of(x)), engine.get(of(flat)))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("algorithm", [0, 1, 2])
def test_softmax_of_any_axis(axis: int, algorithm: int, engine: Engine) -> None:
    name = ("fast", "accurate", "log")[algorithm]
    x, gy = draw((2, 3, 4)), draw((2, 3, 4), 1)
    y = cudnn.softmax_forward(engine.put(x), axis, algorithm)
    np.testing.assert_allclose(engine.get(y), softmax(x, name, (axis,)), atol=1e-12)
    gx = cudnn.softmax_backward(y, engine.put(gy), axis=axis, algorithm=algorithm)
    wanted = slope(lambda a: softmax(a, name, (axis,)), x, gy)
    np.testing.assert_allclose(engine.get(gx), wanted, atol=1e-8)


@pytest.mark.parametrize("mode", range(5))
def test_activations_by_their_old_numbers(mode: int, engine: Engine) -> None:
    function = ("sigmoid", "relu", "tanh", "clipped_relu", "elu")[mode]
    x, gy = draw((2, 3, 4)), draw((2, 3, 4), 1)
    y = cudnn.activation_forward(engine.put(x), mode, COEF)
    np.testing.assert_allclose(engine.get(y), activation(x, function), atol=1e-12)
    gx = cudnn.activation_backward(engine.put(x), y, engine.put(gy), mode, coef=COEF)
    wanted = slope(lambda a: activation(a, function), x, gy)
    np.testing.assert_allclose(engine.get(gx), wanted, atol=1e-8)


def test_arrays_without_elements_have_results_without(engine: Engine) -> None:
    x = engine.put(np.empty((0, 3), "float32"))
    assert cudnn.softmax_forward(x, 1, 1).shape == (0, 3)
    assert cudnn.activation_forward(x, 1).shape == (0, 3)
    assert cudnn.DropoutStates(None, 1).forward(None, x, 0.5)[1].shape == (0, 3)


def test_the_same_is_refused_on_every_engine(engine: Engine) -> None:
    run, x = runner(engine), engine.put(np.ones((2, 3)))
    other, reserve = engine.put(np.ones((3, 2))), engine.put(np.zeros(0, "uint8"))
    with pytest.raises(ArgumentError, match="wanted x's"):
        run.activation_forward(x, y=other, function="relu", coef=0.0)
    with pytest.raises(UnsupportedError, match="identity"):
        run.activation_forward(x, y=x, function="identity", coef=0.0)
    with pytest.raises(ArgumentError, match="function is 'swish'"):
        run.activation_forward(x, y=x, function="swish", coef=0.0)
    with pytest.raises(ArgumentError, match="algorithm"):
        run.softmax_forward(x, y=x, algorithm="slow", mode="channel")
    with pytest.raises(ArgumentError, match="two or more axes"):
        run.softmax_forward(x[0], y=x[0], algorithm="fast", mode="channel")
    with pytest.raises(ArgumentError, match="reserve of dropout has 0 bytes"):
        run.dropout_forward(x, y=x, reserve=reserve, ratio=0.5, state=DropoutState(0))
    with pytest.raises(ArgumentError, match="ratio is 2"):
        run.dropout_backward(x, dx=x, reserve=engine.put(np.zeros(999, "uint8")), ratio=2)
    whole = engine.put(np.ones((2, 3), "int32"))
    with pytest.raises(DTypeError, match="x is int32"):
        run.softmax_forward(whole, y=whole, algorithm="fast", mode="channel")


def test_old_code_is_refused_in_its_own_words() -> None:
    x = np.ones((2, 3))
    for call in (
        lambda: cudnn.softmax_forward(x, 2, 1),
        lambda: cudnn.softmax_forward(x, 1, 7),
        lambda: cudnn.activation_forward(x, 9),
        lambda: cudnn.DropoutStates(None, 1).forward(None, x, 1.5),
    ):
        with pytest.raises(CuDNNError) as caught:
            call()
        assert caught.value.status == 3


def test_operations_on_plain_addresses_give_the_same(engine: Engine) -> None:
    handle, x = handle_of(engine), engine.put(draw((2, 3)).astype("float32"))
    desc = tensor("float32", 2, 3, 1, 1)
    one, zero = np.ones(1, "float32"), np.zeros(1, "float32")
    y, dx = engine.xp.empty_like(x), engine.xp.empty_like(x)
    factors = (at(one), at(zero))
    libcudnn.softmaxForward(handle, 2, 1, factors[0], desc, at(x), factors[1], desc, at(y))
    wanted = cudnn.softmax_forward(x, 1, 2)
    np.testing.assert_array_equal(engine.get(y), engine.get(wanted))
    libcudnn.softmaxBackward(
        handle, 2, 1, at(one), desc, at(y), desc, at(x), at(zero), desc, at(dx)
    )
    wanted = cudnn.softmax_backward(wanted, x, 1, 2)
    np.testing.assert_array_equal(engine.get(dx), engine.get(wanted))
    act = libcudnn.createActivationDescriptor()
    libcudnn.setActivationDescriptor(act, 4, 0, COEF)
    libcudnn.activationForward_v4(handle, act, at(one), desc, at(x), at(zero), desc, at(y))
    wanted = cudnn.activation_forward(x, 4, COEF)
    np.testing.assert_array_equal(engine.get(y), engine.get(wanted))
    libcudnn.activationBackward_v4(
        handle, act, at(one), desc, at(y), desc, at(x), desc, at(x), at(zero), desc, at(dx)
    )
    wanted = cudnn.activation_backward(x, wanted, x, 4, COEF)
    np.testing.assert_array_equal(engine.get(dx), engine.get(wanted))
    with pytest.raises(CuDNNError, match="alpha points to 0"):
        libcudnn.activationForward_v4(handle, act, at(zero), desc, at(x), at(zero), desc, at(y))


def test_dropout_on_plain_addresses_gives_the_same(engine: Engine) -> None:
    handle, x = handle_of(engine), engine.put(np.ones((20, 30), "float32"))
    desc, made = tensor("float32", 20, 30, 1, 1), libcudnn.createDropoutDescriptor()
    memory = engine.xp.empty(libcudnn.dropoutGetStatesSize(handle), "uint8")
    libcudnn.setDropoutDescriptor(made, handle, 0.5, at(memory), memory.size, 9)
    size = runner(engine).dropout_reserve_bytes(
        600, "float32", "cpu" if engine.on_host else "cuda:0"
    )
    y, dx, reserve = x * 0, x * 0, engine.xp.zeros(size, "uint8")
    libcudnn.dropoutForward(handle, made, desc, at(x), desc, at(y), at(reserve), size)
    libcudnn.dropoutBackward(handle, made, desc, at(x), desc, at(dx), at(reserve), size)
    _, wanted = cudnn.DropoutStates(None, 9).forward(None, x, 0.5)
    np.testing.assert_array_equal(engine.get(y), engine.get(wanted))
    np.testing.assert_array_equal(engine.get(dx), engine.get(wanted))
    libcudnn.setDropoutDescriptor(made, handle, 0.0, 0, 0, 0)  # NULL states: the ratio alone
    libcudnn.dropoutForward(handle, made, desc, at(x), desc, at(y), at(reserve), size)
    assert (engine.get(y) == 1).all()
