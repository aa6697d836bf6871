"""One backward for each training forward, data before weights, and what a tape holds."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import ArgumentError, TapeError
from tests.engines.networks import NETWORKS, draw, each_network, forward, run

SPEC = NETWORKS["lstm 2 layers bi"]
LENGTHS = (4, 2)
DATA = draw(SPEC, LENGTHS)


def training_forward(engine: Any, spec: v2.RNNSpec = SPEC, data: Any = DATA) -> v2.RNNOutput:
    return forward(engine, spec, data, lengths=LENGTHS)


def given_gradients(engine: Any, data: Any = DATA) -> list[Any]:
    return [engine.put(a) for a in (data.dy, data.dhy, data.dcy)]


def after_data(engine: Any, spec: v2.RNNSpec = SPEC, data: Any = DATA) -> v2.RNNOutput:
    out = training_forward(engine, spec, data)
    v2.rnn_backward_data(out, *given_gradients(engine, data))
    return out


def wanted_dw(engine: Any) -> Any:
    return run(engine, SPEC, DATA, lengths=LENGTHS)["dw"]


@each_network
def test_data_then_weights_give_what_the_joined_call_gives(spec: v2.RNNSpec, engine: Any) -> None:
    data = draw(spec, LENGTHS)
    wanted = run(engine, spec, data, lengths=LENGTHS)
    out = training_forward(engine, spec, data)
    gradients = v2.rnn_backward_data(out, *given_gradients(engine, data))
    assert gradients.dw is None
    dw = v2.rnn_backward_weights(out)
    values = (gradients.dx, gradients.dhx, gradients.dcx, dw)
    for name, value in zip(("dx", "dhx", "dcx", "dw"), values, strict=True):
        assert (value is None) == (wanted[name] is None)
        assert value is None or np.array_equal(engine.get(value), wanted[name]), name


def test_a_second_backward_on_one_forward_is_refused_in_words(engine: Any) -> None:
    out = training_forward(engine)
    v2.rnn_backward(out, *given_gradients(engine))
    for again in (v2.rnn_backward, v2.rnn_backward_data, v2.rnn_backward_weights):
        with pytest.raises(TapeError, match=r"one backward.*rnn_forward again"):
            again(out)


def test_a_second_run_of_the_data_is_refused_and_the_weights_are_still_right(engine: Any) -> None:
    out = after_data(engine)
    with pytest.raises(TapeError, match="one backward"):
        v2.rnn_backward_data(out, *given_gradients(engine))
    assert np.array_equal(engine.get(v2.rnn_backward_weights(out)), wanted_dw(engine))


def test_weights_before_data_are_refused_in_words_and_cost_nothing(engine: Any) -> None:
    out = training_forward(engine)
    with pytest.raises(TapeError, match=r"weights come after data.*rnn_backward_data"):
        v2.rnn_backward_weights(out)
    assert out.can_backward
    dw = v2.rnn_backward(out, *given_gradients(engine)).dw
    assert np.array_equal(engine.get(dw), wanted_dw(engine))


@pytest.mark.parametrize(
    "call",
    [v2.rnn_backward, v2.rnn_backward_data, v2.rnn_backward_weights],
    ids=lambda f: f.__name__,
)
def test_backward_after_an_inference_says_how_to_ask_for_training(call: Any, engine: Any) -> None:
    out = forward(engine, SPEC, DATA, lengths=LENGTHS, training=False)
    with pytest.raises(TapeError, match=r"inference mode.*training=True"):
        call(out)


def test_training_needs_nothing_but_the_flag(engine: Any) -> None:
    spec = SPEC.replace(dropout=0.0)
    out = forward(engine, spec, DATA, lengths=LENGTHS, training=True)
    assert np.array_equal(
        engine.get(v2.rnn_backward(out, *given_gradients(engine)).dw), wanted_dw(engine)
    )


@pytest.mark.parametrize(
    "call",
    [v2.rnn_backward, v2.rnn_backward_data, v2.rnn_backward_weights],
    ids=lambda f: f.__name__,
)
def test_gradients_of_gradients_are_refused_in_words(call: Any, engine: Any) -> None:
    gradients = v2.rnn_backward(training_forward(engine))
    with pytest.raises(TapeError, match="gradients of gradients"):
        call(gradients)


@pytest.mark.parametrize(
    "out", [None, "out", (1, 2, 3), np.zeros(3)], ids=lambda a: type(a).__name__
)
@pytest.mark.parametrize(
    "call",
    [v2.rnn_backward, v2.rnn_backward_data, v2.rnn_backward_weights],
    ids=lambda f: f.__name__,
)
def test_backward_of_what_is_no_output_says_what_came_and_what_was_wanted(
    call: Any, out: Any
) -> None:
    with pytest.raises(v2.CompatError, match=rf"out is a {type(out).__name__}; wanted .*RNNOutput"):
        call(out)


def test_a_gradient_that_is_refused_does_not_spend_the_forward(engine: Any) -> None:
    out = training_forward(engine)
    arrays = (np.zeros((1, 1, 1)), DATA.dy.astype("float32"))
    for wrong in (*map(engine.put, arrays), 7, [1.0]):
        for place in range(3):
            given: list[Any] = [None, None, None]
            given[place] = wrong
            with pytest.raises(v2.CompatError):
                v2.rnn_backward(out, *given)
            assert out.can_backward
    dw = v2.rnn_backward(out, *given_gradients(engine)).dw
    assert np.array_equal(engine.get(dw), wanted_dw(engine))


def test_a_dw_that_is_refused_does_not_spend_the_tape(engine: Any) -> None:
    out = after_data(engine)
    size = v2.weight_size(SPEC)
    arrays = (np.zeros(size + 1), np.zeros(size, "float32"))
    for wrong in (*map(engine.put, arrays), [0.0] * size):
        with pytest.raises(v2.CompatError, match="dw"):
            v2.rnn_backward_weights(out, dw=wrong)
    with pytest.raises(ArgumentError, match="dw must be given"):
        v2.rnn_backward_weights(out, accumulate=True)
    assert np.array_equal(engine.get(v2.rnn_backward_weights(out)), wanted_dw(engine))


def test_outputs_of_several_forwards_may_wait_and_be_taken_in_any_order(engine: Any) -> None:
    datas = [draw(SPEC, LENGTHS, seed=seed) for seed in range(4)]
    outs = [training_forward(engine, SPEC, data) for data in datas]
    for k in (2, 0, 3, 1):
        dw = v2.rnn_backward(outs[k], *given_gradients(engine, datas[k])).dw
        assert np.array_equal(engine.get(dw), run(engine, SPEC, datas[k], lengths=LENGTHS)["dw"])


def test_a_copied_output_does_not_make_a_second_backward_possible(engine: Any) -> None:
    out = training_forward(engine)
    shallow = copy.copy(out)
    v2.rnn_backward(out, *given_gradients(engine))
    with pytest.raises(TapeError, match="one backward"):
        v2.rnn_backward(shallow)


# --- what a tape holds --------------------------------------------------------------------------


@each_network
def test_a_spent_forward_has_freed_its_reserve(spec: v2.RNNSpec, engine: Any) -> None:
    out = training_forward(engine, spec, draw(spec, LENGTHS))
    assert out.reserve_bytes > 0
    v2.rnn_backward(out)
    assert out.reserve_bytes == 0
    assert not out.can_backward
    assert out.training


def test_an_inference_keeps_nothing(engine: Any) -> None:
    out = forward(engine, SPEC, DATA, training=False)
    assert (out.training, out.can_backward, out.reserve_bytes, out.weights) == (
        False,
        False,
        0,
        None,
    )


def test_a_dropped_output_frees_its_reserve_at_once(engine: Any) -> None:
    out = training_forward(engine)
    tape = out._tape
    assert tape is not None
    reserve = weakref.ref(tape.reserve)
    gc.disable()  # reference counts alone must do it
    try:
        del tape, out
        assert reserve() is None
    finally:
        gc.enable()


def test_a_spent_output_no_longer_holds_the_arguments(engine: Any) -> None:
    w, x = engine.put(DATA.w).copy(), engine.put(DATA.x).copy()
    out = v2.rnn_forward(SPEC, w, x, training=True, engine=engine.name)
    v2.rnn_backward(out)
    gone = weakref.ref(x), weakref.ref(w)
    del w, x
    assert all(ref() is None for ref in gone)
    assert out.y is not None


def test_backward_may_read_weights_of_its_own_so_that_the_caller_can_change_his(
    engine: Any,
) -> None:
    out = training_forward(engine)
    copied = out.own_weights()
    assert copied is out.weights
    mine = engine.put(DATA.w.copy())
    shared = v2.rnn_forward(
        SPEC,
        mine,
        engine.put(DATA.x),
        engine.put(DATA.hx),
        engine.put(DATA.cx),
        lengths=LENGTHS,
        training=True,
        engine=engine.name,
    )
    shared.own_weights()
    mine[...] = 0
    for output in (out, shared):
        dw = v2.rnn_backward(output, *given_gradients(engine)).dw
        assert np.array_equal(engine.get(dw), wanted_dw(engine))
        assert output.own_weights() is None
