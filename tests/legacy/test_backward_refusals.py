"""`backwardData`, `backwardWeights` and `pullback`: the order of calls, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from cudnn_compat import legacy
from cudnn_compat.errors import ArgumentError, DTypeError, TapeError
from cudnn_compat.legacy import RNNDesc
from tests.engine import Engine
from tests.legacy.steps import HIDDEN, INPUT, MODES, Step, assert_close, by_hand, by_pullback


@pytest.mark.parametrize("way", [by_hand, by_pullback])
@pytest.mark.parametrize("number", [7, -1, np.int32(1), True])
@pytest.mark.parametrize("name", ["dy", "dho", "dco"])
def test_any_other_integer_is_refused(name: str, number, way, engine: Engine) -> None:
    step = Step("lstm", 5, engine=engine)
    after = dict(zip(("dy", "dho", "dco"), step.after, strict=True)) | {name: number}
    with pytest.raises(
        ArgumentError, match=f"{name} is {int(number)}; wanted an array, or None or 0"
    ):
        way(step, *after.values())


@pytest.mark.parametrize("wrong", [0.0, "0", [0.0]])
def test_what_is_neither_array_nor_integer_is_refused(wrong, engine: Engine) -> None:
    step = Step("tanh", 5, engine=engine)
    with pytest.raises(DTypeError, match="dy is a"):
        by_pullback(step, wrong, None)


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_a_wrong_number_of_arguments_is_answered_with_both_forms(count: int) -> None:
    step = Step("tanh", 5)
    with pytest.raises(
        DTypeError, match=r"dco, h, c, reserve\) or \(desc, y, dy, dho, h, reserve\)"
    ):
        legacy.backwardData(step.desc, step.dy, step.dy, step.dho, *[step.h] * count)
    with pytest.raises(DTypeError, match="and state"):
        legacy.backwardData(step.desc, step.dy, step.dy, step.dho, state=step.h)


def test_a_second_backward_on_one_reserve_is_refused_in_words(engine: Engine) -> None:
    step = Step("gru", 5, engine=engine)
    reserve, (y, _) = legacy.forwardTrain(step.desc, step.x, step.h)
    legacy.backwardData(step.desc, y, y, None, step.h, reserve)
    with pytest.raises(TapeError, match=r"one backward.*run forwardTrain again"):
        legacy.backwardData(step.desc, y, y, None, step.h, reserve)
    legacy.backwardWeights(step.desc, step.x, step.h, y, reserve)
    for call in (
        lambda: legacy.backwardWeights(step.desc, step.x, step.h, y, reserve),
        lambda: legacy.backwardData(step.desc, y, y, None, step.h, reserve),
    ):
        with pytest.raises(TapeError, match=r"one backward.*run forwardTrain again"):
            call()


def test_a_pullback_is_called_once(engine: Engine) -> None:
    step = Step("tanh", 5, engine=engine)
    (y, _), back = legacy.pullback(step.desc, step.x, step.h)
    back(y, None)
    with pytest.raises(TapeError, match="one backward"):
        back(y, None)


def test_weights_before_data_are_refused_in_words(engine: Engine) -> None:
    step = Step("lstm", 5, engine=engine)
    reserve, (y, *_) = legacy.forwardTrain(step.desc, step.x, step.h, step.c)
    with pytest.raises(TapeError, match="backwardWeights comes after backwardData"):
        legacy.backwardWeights(step.desc, step.x, step.h, y, reserve)
    # Nothing was lost.
    legacy.backwardData(step.desc, y, y, 0, 0, step.h, step.c, reserve)
    legacy.backwardWeights(step.desc, step.x, step.h, y, reserve)


def test_a_refused_gradient_leaves_the_reserve_as_it_was(engine: Engine) -> None:
    step = Step("gru", 5, engine=engine)
    reserve, (y, _) = legacy.forwardTrain(step.desc, step.x, step.h)
    with pytest.raises(ArgumentError):
        legacy.backwardData(step.desc, y, 7, None, step.h, reserve)
    dx, _ = legacy.backwardData(step.desc, y, step.dy, None, step.h, reserve)
    assert_close(dx, step.right_gradients(step.dy)["x"], what="gradient")


def test_the_reserve_of_another_descriptor_is_refused() -> None:
    step, other = Step("gru", 5), Step("gru", 5)
    reserve, (y, _) = legacy.forwardTrain(other.desc, step.x, step.h)
    with pytest.raises(ArgumentError, match="reserve belongs to another descriptor"):
        legacy.backwardData(step.desc, y, y, None, step.h, reserve)
    with pytest.raises(ArgumentError, match="reserve belongs to another descriptor"):
        legacy.backwardWeights(step.desc, step.x, step.h, y, reserve)


@pytest.mark.parametrize("wrong", [None, 0, b"reserve", np.zeros(8)])
def test_what_is_no_reserve_is_refused(wrong: object) -> None:
    step = Step("tanh", 5)
    with pytest.raises(DTypeError, match=r"reserve is a .*forwardTrain"):
        legacy.backwardData(step.desc, step.dy, step.dy, None, step.h, wrong)


@pytest.mark.parametrize("name", ["y", "dy", "dho", "dco", "h", "c"])
@pytest.mark.parametrize("shape", [(HIDDEN, 4), (5, HIDDEN), (HIDDEN + 1, 5), (1, HIDDEN, 5)])
def test_backward_data_names_the_argument_whose_shape_is_wrong(
    name: str, shape: tuple[int, ...], engine: Engine
) -> None:
    step = Step("lstm", 5, engine=engine)
    reserve, (y, *_) = legacy.forwardTrain(step.desc, step.x, step.h, step.c)
    names = ("y", "dy", "dho", "dco", "h", "c")
    arguments = dict(zip(names, (y, *step.after, step.h, step.c), strict=True))
    arguments[name] = engine.xp.zeros(shape)
    with pytest.raises(ArgumentError, match=f"^{name} has shape ") as caught:
        legacy.backwardData(step.desc, *arguments.values(), reserve)
    assert str(shape) in str(caught.value)
    assert "(4, 5)" in str(caught.value)


@pytest.mark.parametrize("name", ["x", "h", "y"])
def test_backward_weights_names_the_argument_whose_shape_is_wrong(
    name: str, engine: Engine
) -> None:
    step = Step("gru", 5, engine=engine)
    reserve, (y, _) = legacy.forwardTrain(step.desc, step.x, step.h)
    legacy.backwardData(step.desc, y, y, None, step.h, reserve)
    arguments = {"x": step.x, "h": step.h, "y": y, name: engine.xp.zeros((2, 2))}
    with pytest.raises(ArgumentError, match=rf"^{name} has shape \(2, 2\); wanted"):
        legacy.backwardWeights(step.desc, *arguments.values(), reserve)


@pytest.mark.parametrize("name", ["y", "dy", "dho", "h"])
def test_another_dtype_is_refused_and_listed(name: str, engine: Engine) -> None:
    step = Step("gru", 5, engine=engine)
    reserve, (y, _) = legacy.forwardTrain(step.desc, step.x, step.h)
    arguments = {"y": y, "dy": step.dy, "dho": step.dho, "h": step.h}
    arguments[name] = arguments[name].astype("float32")
    with pytest.raises(DTypeError, match=f"{name} float32"):
        legacy.backwardData(step.desc, *arguments.values(), reserve)


@pytest.mark.parametrize("cell", ["relu", "tanh", "gru"])
def test_gradients_of_a_cell_state_for_a_cell_without_one_are_refused(
    cell: str, engine: Engine
) -> None:
    step = Step(cell, 5, engine=engine)
    reserve, (y, _) = legacy.forwardTrain(step.desc, step.x, step.h)
    with pytest.raises(ArgumentError, match="dco was given"):
        legacy.backwardData(step.desc, y, y, None, y, step.h, None, reserve)
    with pytest.raises(ArgumentError, match="c was given"):
        legacy.backwardData(step.desc, y, y, None, None, step.h, step.h, reserve)
    _, back = legacy.pullback(step.desc, step.x, step.h)
    with pytest.raises(ArgumentError, match="dco was given"):
        back(y, None, y)
    # Zeros are no gradient.
    assert len(legacy.backwardData(step.desc, y, y, None, 0, step.h, None, reserve)) == 2


def test_pullback_is_for_float32_and_float64() -> None:
    desc = RNNDesc["float16"](MODES["tanh"], INPUT, HIDDEN)
    x, h = np.zeros(INPUT, "float16"), np.zeros(HIDDEN, "float16")
    with pytest.raises(DTypeError, match=r"float32 and float64.*use forwardTrain"):
        legacy.pullback(desc, x, h)
