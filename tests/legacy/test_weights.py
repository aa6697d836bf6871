"""`setweights` and `params`: copies in, views out, and tapes that keep their weights."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from cudnn_compat import legacy
from cudnn_compat.errors import ArgumentError, DTypeError, UnsupportedError
from cudnn_compat.legacy import CUDNN_GRU, CUDNN_LSTM, CUDNN_RNN_TANH, RNNDesc
from tests.engine import Engine
from tests.legacy.steps import GATES, HIDDEN, INPUT, MODES, Step, assert_close, on_host


@pytest.mark.parametrize("cell", GATES)
def test_setweights_fills_the_views_and_leaves_the_second_bias_zero(
    cell: str, engine: Engine
) -> None:
    step = Step(cell, engine=engine)
    desc, rows = step.desc, GATES[cell] * HIDDEN
    Wi, Wh, b = map(on_host, (step.Wi, step.Wh, step.b))
    flat = [np.ascontiguousarray(array).ravel() for array in (Wi, Wh, b)]
    np.testing.assert_array_equal(on_host(desc.params), np.concatenate([*flat, np.zeros(rows)]))
    np.testing.assert_array_equal(on_host(desc.weights[0]), Wi.T)
    np.testing.assert_array_equal(on_host(desc.weights[1]), Wh.T)
    np.testing.assert_array_equal(on_host(desc.bias), b)


def test_setweights_returns_nothing_and_params_keeps_its_identity(engine: Engine) -> None:
    step = Step("lstm", engine=engine)
    before = step.desc.params
    assert legacy.setweights(step.desc, step.Wi * 2, step.Wh, step.b) is None
    assert step.desc.params is before


@pytest.mark.parametrize("cell", GATES)
def test_an_array_that_changes_after_setweights_has_no_effect_until_it_is_set_again(
    cell: str, engine: Engine
) -> None:
    step = Step(cell, engine=engine)
    before = step.run_forward()
    step.Wi[...] += 1
    step.Wh[...] += 1
    step.b[...] += 1
    for one, other in zip(step.run_forward(), before, strict=True):
        np.testing.assert_array_equal(on_host(one), on_host(other))
    legacy.setweights(step.desc, step.Wi, step.Wh, step.b)
    for found, right in zip(step.run_forward(), step.right(), strict=True):
        assert_close(found, right)


@pytest.mark.parametrize("cell", GATES)
def test_weights_set_between_forward_and_back_do_not_change_its_gradients(
    cell: str, engine: Engine
) -> None:
    step = Step(cell, engine=engine)
    right = step.right_gradients(*step.after)
    _, back = legacy.pullback(step.desc, step.x, *step.states)
    reserve, (y, *_) = legacy.forwardTrain(step.desc, step.x, *step.states)
    params = step.desc.params
    legacy.setweights(step.desc, step.Wi * 3, step.Wh * -2, step.b + 1)
    assert step.desc.params is params
    for name, found in back(*step.after)._asdict().items():
        assert_close(found, right[name], what="gradient")
    if step.c is None:
        dx, dh = legacy.backwardData(step.desc, y, *step.after, step.h, reserve)
    else:
        dx, dh, _ = legacy.backwardData(step.desc, y, *step.after, step.h, step.c, reserve)
    assert_close(dx, right["x"], what="gradient")
    assert_close(dh, right["h"], what="gradient")


def test_weights_set_through_a_shallow_copy_do_not_change_them_either(engine: Engine) -> None:
    step = Step("gru", engine=engine)
    right = step.right_gradients(*step.after)
    _, back = legacy.pullback(step.desc, step.x, step.h)
    legacy.setweights(copy.copy(step.desc), step.Wi * 3, step.Wh, step.b)
    for name, found in back(*step.after)._asdict().items():
        assert_close(found, right[name], what="gradient")


def test_each_forward_keeps_the_weights_that_it_ran_with(engine: Engine) -> None:
    """An unrolled sequence whose weights change at every step, then all gradients."""
    step = Step("gru", engine=engine)
    backs, rights = [], []
    for _ in range(3):
        step.Wi, step.Wh, step.b = step.draw(*step.Wi.shape), step.draw(*step.Wh.shape), step.b + 1
        legacy.setweights(step.desc, step.Wi, step.Wh, step.b)
        backs += [legacy.pullback(step.desc, step.x, step.h)[1] for _ in range(2)]
        rights += [step.right_gradients(*step.after)] * 2
    for back, right in reversed(list(zip(backs, rights, strict=True))):
        for name, found in back(*step.after)._asdict().items():
            assert_close(found, right[name], what="gradient")


# On NumPy alone: whether weights are equal is not asked of a GPU, see helpers.setweights.
def test_forwards_share_one_copy_and_equal_weights_need_none() -> None:
    step = Step("gru")
    kept = [legacy.forwardTrain(step.desc, step.x, step.h)[0] for _ in range(3)]
    # What Flux did at each step of a sequence.
    legacy.setweights(step.desc, step.Wi.copy(), step.Wh.copy(), step.b.copy())
    assert all(reserve._out.weights is step.desc.params for reserve in kept)
    legacy.setweights(step.desc, step.Wi, step.Wh, step.b + 1)
    copies = {id(reserve._out.weights) for reserve in kept}
    assert len(copies) == 1
    assert copies != {id(step.desc.params)}


def test_what_a_descriptor_remembers_of_its_forwards_stays_small() -> None:
    step = Step("tanh", 1)
    kept = [legacy.forwardTrain(step.desc, step.x, step.h)[0] for _ in range(3)]
    for _ in range(2000):
        legacy.forwardTrain(step.desc, step.x, step.h)
    assert len(step.desc._live) < 200
    legacy.setweights(step.desc, step.Wi + 1, step.Wh, step.b)
    assert all(reserve._out.weights is not step.desc.params for reserve in kept)


def test_setweights_reads_any_strides(engine: Engine) -> None:
    step = Step("lstm", engine=engine)
    wide = engine.xp.zeros((2 * INPUT, 4 * HIDDEN))
    wide[::2] = step.Wi.T
    Wh = engine.xp.ascontiguousarray(step.Wh)
    legacy.setweights(step.desc, wide[::2].T, Wh, step.b[::-1])
    np.testing.assert_array_equal(on_host(step.desc.weights[0]), on_host(step.Wi).T)
    np.testing.assert_array_equal(on_host(step.desc.weights[1]), on_host(step.Wh).T)
    np.testing.assert_array_equal(on_host(step.desc.bias), on_host(step.b)[::-1])


@pytest.mark.parametrize("name", ["Wi", "Wh", "b"])
@pytest.mark.parametrize("change", [np.transpose, lambda a: a[:-1], lambda a: a[None], np.ravel])
def test_an_array_that_does_not_fit_is_refused_by_name_and_nothing_is_set(
    name: str, change
) -> None:
    step = Step("lstm")
    arrays = {"Wi": step.Wi + 1, "Wh": np.tile(step.Wh, (1, 1)) + 1, "b": step.b + 1}
    changed = change(arrays[name])
    if changed.shape == arrays[name].shape:
        changed = arrays[name][:, None]
    before = step.desc.params.copy()
    with pytest.raises(ArgumentError, match=f"^{name} has shape ") as caught:
        legacy.setweights(step.desc, **(arrays | {name: changed}))
    assert str(changed.shape) in str(caught.value)
    assert str(arrays[name].shape) in str(caught.value)
    np.testing.assert_array_equal(step.desc.params, before)


def test_a_transposed_matrix_is_answered_with_what_to_pass(engine: Engine) -> None:
    step = Step("gru", engine=engine)
    with pytest.raises(
        ArgumentError, match=r"Wi has shape \(3, 12\); wanted \(12, 3\).*pass Wi\.T"
    ):
        legacy.setweights(step.desc, step.Wi.T, step.Wh, step.b)


@pytest.mark.parametrize("name", ["Wi", "Wh", "b"])
def test_weights_of_another_dtype_are_refused_and_listed(name: str, engine: Engine) -> None:
    step = Step("gru", dtype="float32", engine=engine)
    arrays = {"Wi": step.Wi, "Wh": step.Wh, "b": step.b}
    arrays[name] = arrays[name].astype("float64")
    with pytest.raises(DTypeError, match=f"dtype='float32' and the arguments are .*{name} float64"):
        legacy.setweights(step.desc, **arrays)
    with pytest.raises(DTypeError, match=f"^{name} is a"):
        legacy.setweights(step.desc, **(arrays | {name: arrays[name].tolist()}))


def test_setweights_of_several_layers_is_refused_with_what_to_do() -> None:
    desc = RNNDesc(CUDNN_LSTM, INPUT, HIDDEN, layers=2)
    zeros = [np.zeros(shape, "float32") for shape in ((16, 3), (16, 4), (16,))]
    with pytest.raises(
        UnsupportedError, match=r"has 2;.*v2\.named_weights\(desc\.spec, desc\.params\)"
    ):
        legacy.setweights(desc, *zeros)


@pytest.mark.parametrize("cell", GATES)
def test_params_divides_a_weight_space_as_a_descriptor_does(cell: str, engine: Engine) -> None:
    desc = Step(cell, engine=engine).desc
    (Wi, Wh), b = legacy.params(desc.params, INPUT, HIDDEN, GATES[cell])
    for view, right in ((Wi, desc.weights[0]), (Wh, desc.weights[1]), (b, desc.bias)):
        np.testing.assert_array_equal(on_host(view), on_host(right))
        assert view.shape == right.shape
        assert engine.shares(view, right)


def test_params_counts_one_gate_unless_told_and_takes_one_bias_too() -> None:
    w = np.arange(HIDDEN * (INPUT + HIDDEN + 1), dtype="float32")
    (Wi, Wh), b = legacy.params(w, INPUT, HIDDEN)
    np.testing.assert_array_equal(Wi, w[:12].reshape(INPUT, HIDDEN, order="F"))
    np.testing.assert_array_equal(Wh, w[12:28].reshape(HIDDEN, HIDDEN, order="F"))
    np.testing.assert_array_equal(b, w[28:])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((np.zeros(5), 3, 4, 1), ArgumentError, r"w has shape \(5,\); wanted \(36,\), or \(32,\)"),
        ((np.zeros((36, 1)), 3, 4, 1), ArgumentError, r"w has shape \(36, 1\)"),
        ((np.zeros(72)[::2], 3, 4, 1), ArgumentError, "not contiguous"),
        ((np.zeros(36), 3, 4, 2), ArgumentError, "n is 2; wanted the gates of a cell: 1, 3 or 4"),
        ((np.zeros(36), 0, 4, 1), ArgumentError, "wanted 1 or more"),
        ((np.zeros(36), 3.0, 4, 1), DTypeError, "wanted integers"),
        (([0.0] * 36, 3, 4, 1), DTypeError, "w is a"),
    ],
)
def test_params_refuses_what_is_no_such_weight_space(arguments, error, words: str) -> None:
    with pytest.raises(error, match=words):
        legacy.params(*arguments)


def test_params_of_several_layers_would_have_a_wrong_bias_and_is_refused() -> None:
    desc = RNNDesc(CUDNN_RNN_TANH, INPUT, HIDDEN, layers=2)
    with pytest.raises(ArgumentError, match=r"for more layers use v2\.named_weights"):
        legacy.params(desc.params, INPUT, HIDDEN)


def test_the_bias_of_a_gru_descriptor_is_the_input_half() -> None:
    desc = RNNDesc(CUDNN_GRU, INPUT, HIDDEN)
    desc.bias[...] = 1
    named = legacy.params(desc.params, INPUT, HIDDEN, 3)
    np.testing.assert_array_equal(named[1], np.ones(12))
    np.testing.assert_array_equal(desc.params[-12:], 0)
    np.testing.assert_array_equal(desc.params[-24:-12], 1)
    assert MODES["gru"] == desc.mode
