"""`backwardData`, `backwardWeights` and `pullback`: values, shapes and memory."""

from __future__ import annotations

import gc
import itertools
import weakref

import numpy as np
import pytest

from cudnn_compat import legacy, v2
from tests.engine import Engine
from tests.legacy.steps import (
    GATES,
    HIDDEN,
    Step,
    assert_close,
    assert_same,
    by_hand,
    by_pullback,
    on_host,
)

CELLS = tuple(GATES)
FORMS = tuple(itertools.product((None, 1, 5), ("vector", "column", "batch")))


def assert_gradients(found: dict, right: dict, dtype: str = "float64") -> None:
    assert list(found) == list(right)
    for name, value in found.items():
        assert_close(value, right[name], dtype, what="gradient")


@pytest.mark.parametrize("way", [by_hand, by_pullback])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("batch", "state"), FORMS)
def test_gradients_are_those_of_the_equations(
    cell: str, batch: int | None, state: str, dtype: str, way, engine: Engine
) -> None:
    step = Step(cell, batch, state, dtype, engine=engine)
    assert_gradients(way(step, *step.after), step.right_gradients(*step.after), dtype)


def test_float16_goes_through_the_three_calls(engine: Engine) -> None:
    step = Step("gru", 5, dtype="float16", engine=engine)
    assert_gradients(by_hand(step, *step.after), step.right_gradients(*step.after), "float16")


@pytest.mark.parametrize("way", [by_hand, by_pullback])
@pytest.mark.parametrize("zero", [None, 0, np.int64(0)])
@pytest.mark.parametrize(
    ("cell", "kept"), [*itertools.product(CELLS, ("dy", "dho", "nothing")), ("lstm", "dco")]
)
def test_a_gradient_of_none_or_0_means_zeros(
    cell: str, zero, kept: str, way, engine: Engine
) -> None:
    step = Step(cell, 5, engine=engine)
    given = {"dy": step.dy, "dho": step.dho} | ({"dco": step.dco} if step.c is not None else {})
    given = {name: array if name == kept else zero for name, array in given.items()}
    right = step.right_gradients(
        **{name: array for name, array in given.items() if array is not zero}
    )
    # Whatever is not written must be seen: the memory that results get is full of NaN.
    poison_free_memory(engine)
    assert_gradients(way(step, *given.values()), right)


def poison_free_memory(engine: Engine) -> None:
    """Leave NaN in blocks of the sizes that small results get, as a fresh allocation may find."""
    # CuPy hands out multiples of 512 bytes.
    sizes = range(1, 130) if engine.on_host else range(64, 1000, 64)
    blocks = [engine.xp.full(size, np.nan) for size in sizes for _ in range(8)]
    del blocks


@pytest.mark.parametrize("cell", CELLS)
def test_dh_keeps_the_batch_that_h_was_broadcast_over(cell: str, engine: Engine) -> None:
    step = Step(cell, 5, "vector", engine=engine)
    gradients = by_pullback(step, *step.after)
    assert gradients["h"].shape == (HIDDEN, 5)
    batched = Step(cell, 5, "vector", engine=engine)
    batched.h = engine.xp.repeat(batched.h[:, None], 5, axis=1)
    if batched.c is not None:
        batched.c = engine.xp.repeat(batched.c[:, None], 5, axis=1)
    for name, value in by_pullback(batched, *step.after).items():
        assert_same(gradients[name], value)


@pytest.mark.parametrize("cell", CELLS)
def test_weight_gradients_are_transposed_against_what_setweights_took(
    cell: str, engine: Engine
) -> None:
    step = Step(cell, 5, engine=engine)
    gradients = by_pullback(step, *step.after)
    legacy.setweights(step.desc, gradients["Wi"].T, gradients["Wh"].T, gradients["b"])
    for view, name in zip((*step.desc.weights, step.desc.bias), ("Wi", "Wh", "b"), strict=True):
        np.testing.assert_array_equal(on_host(view), on_host(gradients[name]))


def test_weight_gradients_of_two_forwards_do_not_add_up(engine: Engine) -> None:
    step = Step("gru", 5, engine=engine)
    first = by_hand(step, *step.after)
    kept = {name: value.copy() for name, value in first.items()}
    second = by_hand(step, *step.after)
    for name, value in second.items():
        assert_same(value, kept[name])
        np.testing.assert_array_equal(on_host(first[name]), on_host(kept[name]))
        assert not engine.shares(value, first[name])


def test_a_transposed_or_stride_0_gradient_is_read_right(engine: Engine) -> None:
    step = Step("lstm", 5, engine=engine)
    dy = engine.xp.broadcast_to(step.dy[:, :1], (HIDDEN, 5))
    dho = engine.xp.ascontiguousarray(step.dho)
    assert_gradients(by_pullback(step, dy, dho, None), step.right_gradients(dy, dho))


@pytest.mark.parametrize("cell", CELLS)
def test_no_argument_is_changed(cell: str, engine: Engine) -> None:
    step = Step(cell, 5, engine=engine)
    given = [step.x, *step.states, *step.after, step.desc.params]
    before = [array.copy() for array in given]
    for array in given:
        if engine.on_host:  # CuPy's arrays have no such flag
            array.flags.writeable = False
    by_hand(step, *step.after)
    for array, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(on_host(array), on_host(old))


def test_pullback_gives_a_steps_result_and_named_fields(engine: Engine) -> None:
    step = Step("lstm", 5, engine=engine)
    result, back = legacy.pullback(step.desc, step.x, step.h, step.c)
    for one, other in zip(result, step.run_forward(), strict=True):
        assert_same(one, other)
    assert back(*step.after)._fields == ("x", "h", "c", "Wi", "Wh", "b")
    (y, ho), back = legacy.pullback(step.desc, step.x, step.h)
    assert back(y, ho)._fields == ("x", "h", "Wi", "Wh", "b")


def test_an_lstm_without_c_gets_no_gradient_of_it(engine: Engine) -> None:
    step = Step("lstm", 5, with_cell=False, engine=engine)
    for way in (by_hand, by_pullback):
        assert_gradients(way(step, step.dy, step.dho), step.right_gradients(step.dy, step.dho))


def test_an_lstm_that_was_given_c_may_be_asked_without_it(engine: Engine) -> None:
    step = Step("lstm", 5, engine=engine)
    reserve, (y, *_) = legacy.forwardTrain(step.desc, step.x, step.h, step.c)
    dx, dh = legacy.backwardData(step.desc, y, step.dy, step.dho, step.h, reserve)
    right = step.right_gradients(step.dy, step.dho)
    assert_close(dx, right["x"], what="gradient")
    assert_close(dh, right["h"], what="gradient")


@pytest.mark.parametrize(
    "named",
    [
        {"dco": "dco", "h": "h", "c": "c", "reserve": "reserve"},
        {"reserve": "reserve", "c": "c", "h": "h", "dco": "dco"},
        {"h": "h", "reserve": "reserve"},
    ],
)
def test_the_states_and_the_reserve_may_be_named(named: dict[str, str], engine: Engine) -> None:
    step = Step("lstm", 5, engine=engine)
    reserve, (y, *_) = legacy.forwardTrain(step.desc, step.x, step.h, step.c)
    known = {"dco": step.dco, "h": step.h, "c": step.c, "reserve": reserve}
    given = {name: known[name] for name in named}
    found = legacy.backwardData(step.desc, y, step.dy, step.dho, **given)
    right = step.right_gradients(step.dy, step.dho, given.get("dco"))
    for value, name in zip(found, ("x", "h", "c"), strict=False):
        assert_close(value, right[name], what="gradient")
    assert len(found) == (3 if "c" in named else 2)


def test_the_forwards_own_values_are_used_not_those_passed_again(engine: Engine) -> None:
    step = Step("gru", 5, engine=engine)
    reserve, (y, _) = legacy.forwardTrain(step.desc, step.x, step.h)
    other, wrong_x = (engine.xp.full_like(a, np.nan) for a in (y, step.x))
    dx, dh = legacy.backwardData(step.desc, other, step.dy, step.dho, other, reserve)
    (dWi, _), _ = legacy.backwardWeights(step.desc, wrong_x, other, y, reserve)
    right = step.right_gradients(step.dy, step.dho)
    for found, name in ((dx, "x"), (dh, "h"), (dWi, "Wi")):
        assert_close(found, right[name], what="gradient")


def test_a_state_may_be_passed_again_as_it_was_or_broadcast(engine: Engine) -> None:
    step = Step("lstm", 5, "vector", engine=engine)
    h, c = legacy.hBatch(step.x, step.h), legacy.hBatch(step.x, step.c)
    results = []
    for states in ((step.h, step.c), (h, c), (step.h[:, None], c)):
        reserve, (y, *_) = legacy.forwardTrain(step.desc, step.x, step.h, step.c)
        results.append(legacy.backwardData(step.desc, y, step.dy, 0, 0, *states, reserve))
    for result in results:
        for one, other in zip(result, results[0], strict=True):
            assert_same(one, other)


def test_a_dropped_reserve_frees_what_it_held(engine: Engine) -> None:
    step = Step("lstm", 5, engine=engine)
    reserve, _ = step.run_forward(train=True)
    out = weakref.ref(reserve._out)
    assert out() is not None
    del reserve, _
    gc.collect()
    assert out() is None


def test_a_reserve_says_whose_it_is_and_what_it_holds(engine: Engine) -> None:
    step = Step("lstm", 5, dtype="float32", engine=engine)
    reserve, _ = step.run_forward(train=True)
    held = v2.rnn_forward(
        step.desc.spec, step.desc.params, step.x.T[None], training=True
    ).reserve_bytes
    assert repr(reserve) == f"<reserve of RNNDesc[float32](2, 3, 4): {held} bytes>"
