"""`forward` and `forwardTrain`: values, shapes, memory, and what they refuse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cudnn_compat import legacy
from cudnn_compat.errors import ArgumentError, DTypeError
from cudnn_compat.legacy import CUDNN_GRU, CUDNN_LSTM, CUDNN_RNN_RELU, CUDNN_RNN_TANH, RNNDesc
from tests.engine import Engine
from tests.legacy.steps import GATES, HIDDEN, INPUT, Step, assert_close, assert_same, on_host

CELLS = tuple(GATES)
FORMS = tuple(itertools.product((None, 1, 5), ("vector", "column", "batch")))


def sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("batch", "state"), FORMS)
def test_a_step_gives_what_the_equations_say(
    cell: str, batch: int | None, state: str, dtype: str, engine: Engine
) -> None:
    step = Step(cell, batch, state, dtype, engine=engine)
    result = step.run_forward()
    assert type(result) is tuple
    for found, right in zip(result, step.right(), strict=True):
        assert_close(found, right, dtype)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("batch", "state"), FORMS)
def test_training_and_inference_agree(
    cell: str, batch: int | None, state: str, engine: Engine
) -> None:
    step = Step(cell, batch, state, "float32", engine=engine)
    inference = step.run_forward()
    for reserve, result in (
        step.run_forward(train=True),
        legacy.forwardTrain(step.desc, step.x, *step.states),
    ):
        assert reserve is not None
        assert len(result) == len(inference)
        for one, other in zip(result, inference, strict=True):
            assert_same(one, other)


def test_a_gru_has_one_bias_outside_the_reset_gate(engine: Engine) -> None:
    """n = tanh(W x + b + r * (R h)): where the bias stands distinguishes the two forms of GRU."""
    step = Step("gru", 2, engine=engine)
    x, h = on_host(step.x), on_host(step.h)
    (Wr, Wz, Wn), (Rr, Rz, Rn) = (np.split(on_host(a), 3) for a in (step.Wi, step.Wh))
    br, bz, bn = (part[:, None] for part in np.split(on_host(step.b), 3))
    r, z = sigmoid(Wr @ x + Rr @ h + br), sigmoid(Wz @ x + Rz @ h + bz)
    n = np.tanh(Wn @ x + bn + r * (Rn @ h))
    y, ho = step.run_forward()
    assert_close(y, (1 - z) * n + z * h)
    assert_close(ho, (1 - z) * n + z * h)


def test_the_gates_of_an_lstm_come_in_the_order_i_f_g_o(engine: Engine) -> None:
    step = Step("lstm", 2, engine=engine)
    Wi, Wh, b, x, h, c = map(on_host, (step.Wi, step.Wh, step.b, step.x, step.h, step.c))
    i, f, g, o = np.split(Wi @ x + Wh @ h + b[:, None], 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    y, ho, co = step.run_forward()
    assert_close(co, c)
    assert_close(ho, sigmoid(o) * np.tanh(c))
    np.testing.assert_array_equal(on_host(y), on_host(ho))


@pytest.mark.parametrize(
    ("mode", "function"),
    [(CUDNN_RNN_RELU, lambda a: np.maximum(a, 0)), (CUDNN_RNN_TANH, np.tanh)],
)
def test_a_plain_cell_applies_the_function_that_its_mode_names(mode: int, function) -> None:
    desc = RNNDesc(mode, 1, 1, dtype="float64")
    legacy.setweights(desc, np.array([[2.0]]), np.array([[3.0]]), np.array([0.5]))
    y, _ = legacy.forward(desc, np.array([0.25]), np.array([-0.75]))
    assert_close(y, function(np.array([2 * 0.25 + 3 * -0.75 + 0.5])))


@pytest.mark.parametrize("batch", [None, 1, 5])
@pytest.mark.parametrize("train", [False, True])
def test_an_lstm_without_c_starts_from_a_zero_cell_and_returns_two(
    batch: int | None, train: bool, engine: Engine
) -> None:
    step = Step("lstm", batch, with_cell=False, engine=engine)
    result = step.run_forward(train=train)
    y, ho = result[1] if train else result
    zero = engine.xp.zeros_like(step.h)
    y_with, ho_with, _ = legacy.forward(step.desc, step.x, step.h, zero)
    assert_same(y, y_with)
    assert_same(ho, ho_with)


@pytest.mark.parametrize("state", ["vector", "column"])
@pytest.mark.parametrize("cell", CELLS)
def test_an_unbatched_state_gives_what_its_copies_over_the_batch_give(
    cell: str, state: str, engine: Engine
) -> None:
    step = Step(cell, 5, state, engine=engine)
    copies = [engine.xp.repeat(s.reshape(HIDDEN, 1), 5, axis=1) for s in step.states]
    for one, other in zip(
        step.run_forward(), legacy.forward(step.desc, step.x, *copies), strict=True
    ):
        assert_same(one, other)


def test_h_and_c_may_be_broadcast_differently(engine: Engine) -> None:
    step = Step("lstm", 5, engine=engine)
    vector = step.draw(HIDDEN)
    found = legacy.forward(step.desc, step.x, step.h, vector)
    columns = engine.put(np.outer(on_host(vector), np.ones(5)))
    right = legacy.forward(step.desc, step.x, step.h, columns)
    for one, other in zip(found, right, strict=True):
        assert_same(one, other)


def test_a_first_state_without_a_batch_may_be_followed_by_one_with_it(engine: Engine) -> None:
    step = Step("lstm", 5, "vector", engine=engine)
    y, h, c = step.run_forward()
    assert h.shape == c.shape == (HIDDEN, 5)
    y, h, c = legacy.forward(step.desc, step.x, h, c)
    assert y.shape == h.shape == c.shape == (HIDDEN, 5)


def test_a_fortran_ordered_x_is_not_copied(engine: Engine) -> None:
    step = Step("gru", 5, engine=engine)
    reserve, (y, ho) = legacy.forwardTrain(step.desc, step.x, step.h)
    tape = reserve._out._tape
    assert engine.shares(tape.x, step.x)
    assert engine.shares(tape.hx, step.h)
    assert engine.shares(reserve._out.y, y)
    assert engine.shares(reserve._out.hy, ho)
    assert y.flags.f_contiguous
    assert ho.flags.f_contiguous


@pytest.mark.parametrize("cell", CELLS)
def test_any_strides_are_read_right(cell: str, engine: Engine) -> None:
    step = Step(cell, 5, engine=engine)
    xp = engine.xp
    wide = xp.zeros((2 * INPUT, 15))
    wide[::2, ::3] = step.x
    tall = xp.zeros((HIDDEN, 10))
    tall[:, ::-2] = step.h
    states = [tall[:, ::-2], *(xp.ascontiguousarray(s) for s in step.states[1:])]
    found = legacy.forward(step.desc, wide[::2, ::3], *states)
    for one, other in zip(found, step.run_forward(), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("cell", CELLS)
def test_no_argument_is_changed(cell: str, engine: Engine) -> None:
    step = Step(cell, 5, engine=engine)
    given = [step.x, *step.states, step.desc.params]
    before = [array.copy() for array in given]
    for array in given:
        if engine.on_host:  # CuPy's arrays have no such flag
            array.flags.writeable = False
    step.run_forward(train=True)
    for array, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(on_host(array), on_host(old))


def test_results_are_new_memory_each_time(engine: Engine) -> None:
    step = Step("tanh", 5, engine=engine)
    first, second = step.run_forward(), step.run_forward()
    arrays = [*first, *second, step.x, step.h, step.desc.params]
    for one, other in itertools.combinations(arrays, 2):
        assert not engine.shares(one, other)


def test_a_batch_of_none_gives_empty_results(engine: Engine) -> None:
    step = Step("lstm", 0, engine=engine)
    assert [array.shape for array in step.run_forward()] == [(HIDDEN, 0)] * 3


def test_arrays_of_a_subclass_are_taken_as_plain_ones() -> None:
    class Mine(np.ndarray):
        def __getitem__(self, key):
            raise AssertionError("a subclass may index as it likes")

    step = Step("tanh", 5)
    found = legacy.forward(step.desc, step.x.view(Mine), step.h.view(Mine))
    for one, other in zip(found, step.run_forward(), strict=True):
        assert type(one) is np.ndarray
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(INPUT + 1, 5), (5, INPUT), (INPUT + 1,), (), (INPUT, 5, 1)])
def test_an_x_of_a_wrong_shape_is_refused_in_the_callers_own_dimensions(
    shape: tuple[int, ...], engine: Engine
) -> None:
    step = Step("tanh", 5, engine=engine)
    with pytest.raises(ArgumentError, match="x has shape ") as caught:
        legacy.forward(step.desc, engine.xp.zeros(shape), step.h)
    assert str(shape) in str(caught.value)
    assert "(3,) or (3, batch)" in str(caught.value)


@pytest.mark.parametrize("name", ["h", "c"])
@pytest.mark.parametrize(
    "shape", [(HIDDEN + 1, 5), (HIDDEN, 4), (5, HIDDEN), (HIDDEN + 1,), (), (HIDDEN, 5, 1)]
)
def test_a_state_of_a_wrong_shape_is_refused_by_name(
    name: str, shape: tuple[int, ...], engine: Engine
) -> None:
    step = Step("lstm", 5, engine=engine)
    states = {"h": step.h, "c": step.c, name: engine.xp.zeros(shape)}
    with pytest.raises(ArgumentError, match=f"^{name} has shape ") as caught:
        legacy.forward(step.desc, step.x, **states)
    for words in (str(shape), "(4,), (4, 1), (4, 5)", "batch of 5"):
        assert words in str(caught.value)


def test_a_state_of_32_for_an_x_of_33_names_both_batches() -> None:
    step = Step("gru", 33)
    with pytest.raises(ArgumentError, match=r"\(4, 32\).*\(3, 33\) has a batch of 33"):
        legacy.forward(step.desc, step.x, np.zeros((HIDDEN, 32)))


def test_a_vector_x_has_no_batch_for_a_state_to_have() -> None:
    step = Step("tanh", None)
    with pytest.raises(ArgumentError, match=r"h has shape \(4, 2\).*batch of 1"):
        legacy.forward(step.desc, step.x, np.zeros((HIDDEN, 2)))


@pytest.mark.parametrize("mode", [CUDNN_RNN_RELU, CUDNN_RNN_TANH, CUDNN_GRU])
def test_a_cell_state_for_a_cell_without_one_is_refused(mode: int) -> None:
    desc = RNNDesc(mode, INPUT, HIDDEN)
    x, h = np.zeros(INPUT, "float32"), np.zeros(HIDDEN, "float32")
    with pytest.raises(ArgumentError, match="c was given"):
        legacy.forward(desc, x, h, h)


@pytest.mark.parametrize("name", ["x", "h", "c"])
def test_mixed_dtypes_are_refused_and_each_is_listed(name: str, engine: Engine) -> None:
    step = Step("lstm", 5, dtype="float32", engine=engine)
    arguments = {"x": step.x, "h": step.h, "c": step.c}
    arguments[name] = arguments[name].astype("float64")
    with pytest.raises(DTypeError, match="descriptor has dtype='float32'") as caught:
        legacy.forward(step.desc, **arguments)
    for given, array in arguments.items():
        assert f"{given} {array.dtype}" in str(caught.value)


@pytest.mark.parametrize("wrong", [[1.0, 2.0, 3.0], 1.0, None, "x", np.ma.masked_array(np.ones(3))])
@pytest.mark.parametrize("name", ["x", "h"])
def test_what_is_no_array_is_refused_by_name(name: str, wrong: object, engine: Engine) -> None:
    step = Step("tanh", None, engine=engine)
    with pytest.raises(DTypeError, match=f"^{name} is a"):
        legacy.forward(step.desc, **{"x": step.x, "h": step.h, name: wrong})


def test_a_pair_of_states_is_answered_with_how_to_pass_them() -> None:
    step = Step("lstm", 5)
    with pytest.raises(DTypeError, match=r"h is a tuple.*h and c of an LSTM are two arguments"):
        legacy.forward(step.desc, step.x, (step.h, step.c))


@pytest.mark.parametrize("wrong", [None, CUDNN_LSTM, RNNDesc])
def test_what_is_no_descriptor_is_refused(wrong: object) -> None:
    with pytest.raises(DTypeError, match=r"desc is a .*RNNDesc"):
        legacy.forward(wrong, np.zeros(3, "float32"), np.zeros(4, "float32"))


@pytest.mark.gpu
def test_arrays_on_the_host_for_a_descriptor_on_the_gpu_are_refused_and_the_other_way_round() -> (
    None
):
    import cupy

    host, gpu = Step("lstm", 5), Step("lstm", 5, engine=Engine("cudnn", cupy))
    for step, other, where in ((gpu, host, "cuda:0"), (host, gpu, "cpu")):
        with pytest.raises(ArgumentError, match=rf"weights are on {where}.*x on") as caught:
            legacy.forward(step.desc, other.x, step.h, step.c)
        assert "h on " + where in str(caught.value)
        with pytest.raises(ArgumentError, match=rf"weights are on {where}.*Wi on"):
            legacy.setweights(step.desc, other.Wi, step.Wh, step.b)
