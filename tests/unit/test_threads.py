"""Many threads on one spec, one weight space and one layer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from tests.engine import Engine

THREADS, ROUNDS = 8, 15

SPECS = {
    "lstm": v2.RNNSpec("lstm", 5, 6, num_layers=2, bidirectional=True, dtype="float64"),
    "gru": v2.RNNSpec("gru", 5, 6, bidirectional=True, dtype="float64"),
    "tanh": v2.RNNSpec("tanh", 5, 6, num_layers=2, dtype="float64"),
}


def all_at_once(work: Callable[[int], Any]) -> list[Any]:
    """What ``work(k)`` gives in each of the threads, which start together."""
    barrier = threading.Barrier(THREADS)

    def run(k: int) -> Any:
        barrier.wait()
        return work(k)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def training_step(engine: Engine, spec: v2.RNNSpec, w: Any, k: int) -> list[bytes]:
    """All results of a forward and backward on data of its own, with lengths of its own."""
    rng = np.random.default_rng(k)
    x = engine.put(rng.normal(size=(7, 3, 5)))
    out = v2.rnn_forward(spec, w, x, lengths=rng.integers(0, 8, 3), training=True)
    gradients = v2.rnn_backward(out, engine.put(rng.normal(size=out.y.shape)))
    return [engine.get(a).tobytes() for a in (*out, *gradients) if a is not None]


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_eight_threads_on_one_spec_and_one_weight_space_get_what_each_gets_alone(
    spec: v2.RNNSpec, engine: Engine
) -> None:
    w = v2.init_weights(spec, 0, xp=engine.xp)
    wanted = [training_step(engine, spec, w, k) for k in range(ROUNDS)]
    # New specs of the same description, so that the threads fill the caches themselves.
    results = all_at_once(
        lambda _: [training_step(engine, spec.replace(), w, k) for k in range(ROUNDS)]
    )
    assert all(result == wanted for result in results)


def test_one_thread_may_run_backward_for_the_forward_of_another(engine: Engine) -> None:
    spec = SPECS["lstm"]
    w = v2.init_weights(spec, 0, xp=engine.xp)
    x = engine.put(np.random.default_rng(0).normal(size=(4, 2, 5)))
    outs = all_at_once(lambda _: v2.rnn_forward(spec, w, x, training=True))
    dy = engine.xp.ones_like(outs[0].y)
    gradients = all_at_once(lambda k: engine.get(v2.rnn_backward(outs[k - 1], dy).dw))
    assert all(np.array_equal(dw, gradients[0]) for dw in gradients)
    assert gradients[0].any()


def test_threads_may_share_a_layer_that_passes_its_state(engine: Engine) -> None:
    layer = v2.LSTM(5, 6, num_layers=2, seed=0, xp=engine.xp)
    drawn = np.random.default_rng(0).normal(size=(THREADS, 9, 2, 5)).astype("float32")
    xs = [engine.put(x) for x in drawn]
    wanted = [engine.get(layer(x)[0]) for x in xs]
    got = all_at_once(lambda k: [engine.get(layer(xs[k])[0]) for _ in range(ROUNDS)])
    for mine, theirs in zip(wanted, got, strict=True):
        assert all(np.array_equal(mine, y) for y in theirs)


def test_every_thread_with_a_seed_of_its_own_gets_its_own_masks(engine: Engine) -> None:
    spec = v2.RNNSpec("gru", 5, 6, num_layers=3, dropout=0.5)
    w = v2.init_weights(spec, 0, xp=engine.xp)
    x = engine.xp.ones((4, 2, 5), "float32")

    def draw(k: int) -> bytes:
        y = v2.rnn_forward(spec, w, x, training=True, seed=k).y
        again = v2.rnn_forward(spec, w, x, training=True).y
        return bytes(engine.get(y).tobytes() + engine.get(again).tobytes())

    wanted = [draw(k) for k in range(THREADS)]
    for _ in range(5):
        assert all_at_once(draw) == wanted
