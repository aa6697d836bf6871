"""One network, described to the library once, that threads and streams use at the same time.

With each algorithm. The persistent kernels wait for each other on the GPU: should two calls of them
ever block each other, the process ends with a traceback instead of waiting for ever.
"""

from __future__ import annotations

import faulthandler
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from tests.engines.networks import GRADIENTS, OUTPUTS, Data
from tests.gpu.work import (
    all_at_once,
    as_bytes,
    assert_same_bytes,
    late,
    on_device,
    problem,
    train,
)

pytestmark = pytest.mark.gpu

THREADS, STREAMS = 8, 4
BUSY = 0.01
"""Seconds: what a stream is busy with before each call."""
PATIENCE = 60
"""Seconds after which threads are taken to block each other."""

SPECS = {
    "auto": v2.RNNSpec("gru", 64, 64, num_layers=2, bidirectional=True, dtype="float16"),
    "persist_static": v2.RNNSpec("lstm", 128, 128, dtype="float16", algo="persist_static"),
    "persist_dynamic": v2.RNNSpec("tanh", 64, 64, algo="persist_dynamic"),
    "persist_small_h": v2.RNNSpec(
        "lstm", 64, 64, num_layers=2, bidirectional=True, algo="persist_small_h"
    ),
}
LENGTHS = (20,) * 8

each_algo = pytest.mark.parametrize("algo", SPECS)


@pytest.fixture(autouse=True)
def not_for_ever(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """A GPU that waits for itself cannot be interrupted: after so long, the process ends."""
    with capfd.disabled():
        stderr = os.fdopen(os.dup(2), "w")
    with stderr:
        faulthandler.dump_traceback_later(PATIENCE, exit=True, file=stderr)
        yield
        faulthandler.cancel_dump_traceback_later()


Problem = tuple[v2.RNNSpec, Data, Any]


def problems_of(algo: str, count: int) -> list[Problem]:
    """One network and, for each thread, weights and a batch of its own, all on the device."""
    made = []
    for seed in range(count):
        spec, data, _ = problem(SPECS[algo], LENGTHS, seed=seed)
        data = data.replace(w=v2.init_weights(spec, seed=seed))
        made.append((spec, on_device(data), {}))
    return made


def one_after_the_other(problems: list[Problem]) -> list[dict[str, bytes]]:
    """What each gives while nothing else runs; twice the same, or nothing could be compared."""
    try:
        results = [as_bytes(train(*each)) for each in problems]
    except v2.UnsupportedError as error:
        pytest.skip(f"refused by the library: {str(error)[:100]}")
    for result, each in zip(results, problems, strict=True):
        assert np.isfinite(np.frombuffer(result["dw"], each[1].w.dtype).astype("float64")).all()
        assert_same_bytes(as_bytes(train(*each)), result)
    return results


def behind_busy_work(stream: Any, problem: Problem) -> dict[str, Any]:
    """Put a training step on ``stream``, whose inputs are made there, late; returns at once."""
    spec, data, how = problem
    with stream:
        inputs = late(data, BUSY, "w", "x", "hx", "cx", "dy", "dhy", "dcy")
        out = v2.rnn_forward(spec, inputs.w, inputs.x, inputs.hx, inputs.cx, training=True, **how)
        gradients = v2.rnn_backward(out, inputs.dy, inputs.dhy, inputs.dcy)
    return dict(zip(OUTPUTS + GRADIENTS, (*out, *gradients), strict=True))


def steps_on_all_streams(streams: list[Any], problem: Problem, first: int) -> list[Any]:
    """A training step on each stream, beginning with one of them; nothing waits in between."""
    turns = [streams[(first + i) % len(streams)] for i in range(len(streams))]
    pending = [behind_busy_work(stream, problem) for stream in turns]
    done = []
    for stream, results in zip(turns, pending, strict=True):
        with stream:
            done.append(as_bytes(results))
    return done


@each_algo
def test_threads_and_streams_that_share_a_network_get_what_each_gets_alone(
    cupy: Any, algo: str
) -> None:
    problems = problems_of(algo, THREADS)
    wanted = one_after_the_other(problems)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
    got = all_at_once(lambda k: steps_on_all_streams(streams, problems[k], k), THREADS)
    for results, right in zip(got, wanted, strict=True):
        for result in results:
            assert_same_bytes(result, right)


@each_algo
def test_threads_with_streams_of_their_own_that_share_a_network_are_each_right(
    cupy: Any, algo: str
) -> None:
    problems = problems_of(algo, THREADS)
    wanted = one_after_the_other(problems)

    def work(k: int) -> Any:
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
        return steps_on_all_streams(streams, problems[k], 0)

    for results, right in zip(all_at_once(work, THREADS), wanted, strict=True):
        for result in results:
            assert_same_bytes(result, right)


@each_algo
def test_plans_may_be_cleared_and_looked_at_while_others_compute(cupy: Any, algo: str) -> None:
    problems = problems_of(algo, THREADS)
    wanted = one_after_the_other(problems)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
    # What is compiled for a batch takes its time to be made anew.
    clears = 2 if algo == "persist_dynamic" else 12

    def look_and_clear() -> list[Any]:
        seen = []
        for _ in range(clears):
            for _ in range(10):
                seen += v2.plans()
                time.sleep(BUSY / 10)
            v2.clear_plans()
        return seen

    def work(k: int) -> Any:
        if k == THREADS:
            return look_and_clear()
        return steps_on_all_streams(streams, problems[k], k)

    *got, seen = all_at_once(work, THREADS + 1)
    for results, right in zip(got, wanted, strict=True):
        for result in results:
            assert_same_bytes(result, right)
    ours = {plan for plan in seen if plan.spec == SPECS[algo]}
    assert len({(plan.steps, plan.batch, plan.training, plan.algo) for plan in ours}) == 1


@each_algo
def test_the_first_calls_of_a_network_may_come_from_all_threads_at_once(
    cupy: Any, algo: str
) -> None:
    problems = problems_of(algo, THREADS)
    wanted = one_after_the_other(problems)
    v2.clear_plans()
    for got, right in zip(
        all_at_once(lambda k: as_bytes(train(*problems[k])), THREADS), wanted, strict=True
    ):
        assert_same_bytes(got, right)
    assert len([plan for plan in v2.plans() if plan.spec == SPECS[algo]]) == 1
