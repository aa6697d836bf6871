"""Dropout between layers: seeds, generators, shared states, threads, copies, layers."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import ArgumentError, DropoutState, DTypeError, RNNSpec
from tests.engine import Engine

SPEC = RNNSpec("gru", 3, 8, num_layers=3, dropout=0.5)
W = v2.init_weights(SPEC, seed=0)
X = np.random.default_rng(0).normal(size=(6, 4, 3)).astype("float32")


Draw = Callable[..., Any]
"""``y_of(seed, spec=…, training=…)``: y, on the host, of a call on the engine."""


@pytest.fixture
def y_of(engine: Engine) -> Draw:
    w, x = engine.put(W), engine.put(X)

    def call(seed: Any = None, *, spec: RNNSpec = SPEC, training: bool = True) -> Any:
        return engine.get(v2.rnn_forward(spec, w, x, training=training, seed=seed).y)

    return call


@pytest.fixture
def trained(engine: Engine) -> Draw:
    """y of a layer's training forward."""
    x = engine.put(X)
    return lambda layer: engine.get(layer.forward(x, training=True).y)


def test_one_seed_gives_the_same_masks_and_another_gives_others(y_of: Draw) -> None:
    assert np.array_equal(y_of(seed=7), y_of(seed=7))
    assert not np.array_equal(y_of(seed=7), y_of(seed=8))


def test_an_integer_restarts_the_generator_and_none_goes_on_with_it(y_of: Draw) -> None:
    first, second = y_of(seed=7), y_of()
    assert not np.array_equal(first, second)
    assert np.array_equal(y_of(seed=7), first)
    assert np.array_equal(y_of(), second)


def test_a_state_advances_from_call_to_call(y_of: Draw) -> None:
    state, again = DropoutState(7), DropoutState(7)
    results = [y_of(state) for _ in range(3)]
    assert not np.array_equal(results[0], results[1])
    assert not np.array_equal(results[1], results[2])
    for result in results:
        assert np.array_equal(y_of(again), result)


def test_a_state_and_the_generator_of_the_thread_draw_the_same_for_one_seed(y_of: Draw) -> None:
    state = DropoutState(7)
    assert np.array_equal(y_of(seed=7), y_of(state))
    assert np.array_equal(y_of(), y_of(state))


def test_a_state_does_not_disturb_the_generator_of_the_thread(y_of: Draw) -> None:
    y_of(seed=7)
    undisturbed = y_of()
    y_of(seed=7)
    y_of(DropoutState(3))
    assert np.array_equal(y_of(), undisturbed)


def test_calls_that_share_a_state_get_different_masks(y_of: Draw, engine: Engine) -> None:
    state = DropoutState(7)
    other = SPEC.replace(cell="tanh")
    assert not np.array_equal(y_of(state), y_of(state))
    alone = DropoutState(7)
    y_of(alone)
    y_of(alone)
    w, x = v2.init_weights(other, seed=0, xp=engine.xp), engine.put(X)
    shared = engine.get(v2.rnn_forward(other, w, x, training=True, seed=state).y)
    by_itself = v2.rnn_forward(other, w, x, training=True, seed=alone).y
    assert np.array_equal(shared, engine.get(by_itself))


def test_restarting_a_state_repeats_it(y_of: Draw) -> None:
    state = DropoutState(7)
    first = y_of(state)
    state.restart()
    assert np.array_equal(y_of(state), first)
    state.restart(8)
    assert state.seed == 8
    assert np.array_equal(y_of(state), y_of(seed=8))
    state.restart()
    assert np.array_equal(y_of(state), y_of(seed=8))


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1, np.uint64(5), np.int8(5)], ids=repr)
def test_a_seed_is_a_natural_number_below_two_to_the_64(seed: Any, y_of: Draw) -> None:
    assert DropoutState(seed).seed == int(seed)
    assert np.isfinite(y_of(seed=seed)).all()


@pytest.mark.parametrize("seed", [-1, 2**64, "7", 7.0, True, [7], np.array([7])], ids=repr)
def test_what_is_no_seed_is_refused_whether_or_not_dropout_acts(seed: Any, y_of: Draw) -> None:
    error = ArgumentError if isinstance(seed, int) and seed is not True else DTypeError
    calls: list[Callable[[], Any]] = [
        lambda: DropoutState(seed),
        lambda: DropoutState(0).restart(seed),
        lambda: y_of(seed=seed),
        lambda: y_of(seed=seed, training=False),
        lambda: y_of(seed=seed, spec=SPEC.replace(dropout=0.0)),
    ]
    for call in calls:
        with pytest.raises(error, match="seed is "):
            call()


def test_a_refused_seed_leaves_the_generator_where_it_was(y_of: Draw) -> None:
    y_of(seed=7)
    undisturbed = y_of()
    y_of(seed=7)
    with pytest.raises(ArgumentError):
        y_of(seed=-1)
    assert np.array_equal(y_of(), undisturbed)


@pytest.mark.parametrize(
    ("spec", "training"),
    [(SPEC, False), (SPEC.replace(dropout=0.0), True)],
    ids=["inference", "without dropout"],
)
def test_a_seed_is_looked_at_only_where_dropout_acts(
    spec: RNNSpec, training: bool, y_of: Draw
) -> None:
    state = DropoutState(7)
    y_of(seed=7)
    y_of(seed=9, spec=spec, training=training)
    y_of(state, spec=spec, training=training)
    fresh = DropoutState(7)
    assert np.array_equal(y_of(state), y_of(fresh))
    assert np.array_equal(y_of(), y_of(fresh))


def in_thread(call: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


def test_every_thread_has_a_generator_of_its_own(y_of: Draw) -> None:
    y_of(seed=7)
    undisturbed = y_of()
    y_of(seed=7)
    in_thread(lambda: y_of(seed=99))
    in_thread(y_of)
    assert np.array_equal(y_of(), undisturbed)


def test_two_threads_that_name_no_seed_draw_different_masks(y_of: Draw) -> None:
    assert not np.array_equal(in_thread(y_of), in_thread(y_of))


def test_one_seed_gives_the_same_masks_in_every_thread(y_of: Draw) -> None:
    assert np.array_equal(in_thread(lambda: y_of(seed=7)), y_of(seed=7))


def test_threads_that_share_a_state_draw_what_one_thread_would_have_drawn(engine: Engine) -> None:
    spec = SPEC.replace(num_layers=2)
    w, x = v2.init_weights(spec, seed=0, xp=engine.xp), engine.put(X)

    def draw(state: DropoutState) -> bytes:
        return engine.get(v2.rnn_forward(spec, w, x, training=True, seed=state).y).tobytes()

    alone, shared, drawn = DropoutState(7), DropoutState(7), []
    wanted = [draw(alone) for _ in range(40)]
    threads = [
        threading.Thread(target=lambda: drawn.extend(draw(shared) for _ in range(10)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(drawn) == sorted(wanted)


@pytest.mark.parametrize("calls", [0, 1, 2])
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))]
)
def test_a_copied_state_goes_on_where_the_original_was_and_by_itself(
    copied: Any, calls: int, y_of: Draw
) -> None:
    state = DropoutState(7)
    for _ in range(calls):
        y_of(state)
    other = copied(state)
    assert other.seed == 7
    theirs = [y_of(other) for _ in range(2)]
    mine = [y_of(state) for _ in range(2)]
    assert np.array_equal(mine, theirs)


def test_a_pickle_of_a_state_needs_no_more_than_the_seed(y_of: Draw) -> None:
    old = DropoutState.__new__(DropoutState)
    old.__setstate__({"seed": 7})
    assert np.array_equal(y_of(old), y_of(seed=7))


def test_the_text_of_a_state_names_its_seed() -> None:
    assert repr(DropoutState(7)) == "DropoutState(seed=7)"


def test_a_second_layer_object_of_one_seed_repeats_the_first(
    y_of: Draw, trained: Draw, engine: Engine
) -> None:
    layers = [v2.GRU(3, 8, num_layers=3, dropout=0.5, seed=4, xp=engine.xp) for _ in range(2)]
    first = [trained(layers[0]) for _ in range(2)]
    y_of(seed=1)  # the generator of the thread has no part in it
    second = [trained(layers[1]) for _ in range(2)]
    assert np.array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


def test_a_layer_without_a_seed_takes_the_generator_of_the_thread(
    y_of: Draw, trained: Draw, engine: Engine
) -> None:
    layer = v2.GRU(3, 8, num_layers=3, dropout=0.5, w=engine.put(W))
    y_of(seed=7)
    wanted = y_of()
    y_of(seed=7)
    assert np.array_equal(trained(layer), wanted)


def test_layers_may_share_a_state(y_of: Draw, trained: Draw, engine: Engine) -> None:
    layers = [v2.GRU(3, 8, num_layers=3, dropout=0.5, w=engine.put(W)) for _ in range(2)]
    state, alone = DropoutState(7), DropoutState(7)
    for layer in layers:
        layer.dropout_state = state
    for layer in (*layers, *layers):
        assert np.array_equal(trained(layer), y_of(alone))


def test_a_pickled_layer_goes_on_with_the_dropout_of_the_original(
    trained: Draw, engine: Engine
) -> None:
    layer = v2.GRU(3, 8, num_layers=3, dropout=0.5, seed=4, xp=engine.xp)
    trained(layer)
    again = pickle.loads(pickle.dumps(layer))
    assert np.array_equal(trained(again), trained(layer))
