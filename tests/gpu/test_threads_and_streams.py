"""Many threads and streams on one GPU, and arrays on several: each gets what it gets alone.

Inputs are made on the stream just before the call, behind a kernel that keeps the stream busy: work
that is not ordered behind the current stream reads NaN.
"""

from __future__ import annotations

import dataclasses
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
    wait,
)

pytestmark = pytest.mark.gpu

THREADS, STREAMS = 8, 4
BUSY = 0.03
"""Seconds: much more than a warm call takes on the host."""


def spec_of(cell: str, **options: Any) -> v2.RNNSpec:
    return v2.RNNSpec(cell, 8, 16, math="full", algo="standard", **options)


NETWORKS = {
    "lstm 2 layers bi": spec_of("lstm", num_layers=2, bidirectional=True),
    "gru bi": spec_of("gru", bidirectional=True),
    "tanh 2 layers": spec_of("tanh", num_layers=2, dtype="float64"),
    "relu": spec_of("relu", bias="none"),
    "lstm projected": spec_of("lstm", proj_size=5, dtype="float64"),
    "lstm float16": spec_of("lstm", dtype="float16"),
    "gru 2 layers": spec_of("gru", num_layers=2),
    "lstm clipped": spec_of("lstm", clip=(-0.5, 0.5)),
}
"""One for each of the eight threads."""
LENGTHS = ((9, 9, 9), (4, 9, 1), (0, 5, 9), (1, 1, 1), (12, 2, 7))
LAYOUTS = ("time_major", "batch_major", "packed")


def own_problems(k: int) -> list[Any]:
    """What belongs to thread k alone: a network, weights and batches of several layouts."""
    spec = list(NETWORKS.values())[k % len(NETWORKS)]
    made = [
        problem(spec, lengths, layout=LAYOUTS[(k + i) % 3], seed=100 * k + i)
        for i, lengths in enumerate(LENGTHS)
    ]
    return [(spec, on_device(data), how) for spec, data, how in made]


def test_eight_threads_with_networks_of_their_own_get_what_each_gets_alone(cupy: Any) -> None:
    problems = [own_problems(k) for k in range(THREADS)]
    wanted = [[as_bytes(train(*each)) for each in problems[k]] for k in range(THREADS)]

    def work(k: int) -> Any:
        return [[as_bytes(train(*each)) for each in problems[k]] for _ in range(6)]

    for expected, rounds in zip(wanted, all_at_once(work, THREADS), strict=True):
        for results in rounds:
            for got, right in zip(results, expected, strict=True):
                assert_same_bytes(got, right)


@pytest.mark.parametrize("name", ["lstm 2 layers bi", "gru bi"])
def test_eight_threads_on_one_weight_space_get_what_each_gets_alone(cupy: Any, name: str) -> None:
    made = [problem(NETWORKS[name], lengths, seed=7) for lengths in LENGTHS]
    problems = [(spec, on_device(data), how) for spec, data, how in made]
    shared = problems[0][1].w
    problems = [(spec, data.replace(w=shared), how) for spec, data, how in problems]
    wanted = [as_bytes(train(*each)) for each in problems]
    v2.clear_plans()  # so that the threads make the plans, all at once
    for results in all_at_once(lambda _: [as_bytes(train(*p)) for p in problems * 3], THREADS):
        for got, right in zip(results, wanted * 3, strict=True):
            assert_same_bytes(got, right)


def test_one_thread_may_run_backward_for_the_forward_of_another(cupy: Any) -> None:
    spec, host, how = problem(NETWORKS["lstm 2 layers bi"], (4, 9, 1), seed=3)
    data = on_device(host)
    wanted = as_bytes(train(spec, data, how))["dw"]

    def forward(_: int) -> Any:
        out = v2.rnn_forward(spec, data.w, data.x, data.hx, data.cx, training=True, **how)
        cupy.cuda.get_current_stream().synchronize()
        return out

    outs = all_at_once(forward, THREADS)
    backward = all_at_once(
        lambda k: v2.rnn_backward(outs[k - 1], data.dy, data.dhy, data.dcy).dw.get().tobytes(),
        THREADS,
    )
    assert [dw == wanted for dw in backward] == [True] * THREADS


@dataclasses.dataclass
class Pending:
    """Results that a stream has still to compute, and the arrays that it reads for them."""

    stream: Any
    results: dict[str, Any]
    inputs: tuple[Data, Data]

    def get(self) -> dict[str, bytes]:
        with self.stream:
            return as_bytes(self.results)


def run_behind_busy_work(stream: Any, spec: v2.RNNSpec, data: Data, how: Any) -> Pending:
    """Forward and backward on ``stream``, all of whose inputs are made there, late."""
    with stream:
        inputs = late(data, BUSY, "w", "x", "hx", "cx")
        out = v2.rnn_forward(spec, inputs.w, inputs.x, inputs.hx, inputs.cx, training=True, **how)
        given = late(inputs, BUSY, "dy", "dhy", "dcy")
        gradients = v2.rnn_backward(out, given.dy, given.dhy, given.dcy)
        pairs = zip(OUTPUTS + GRADIENTS, (*out, *gradients), strict=True)
        # Copies made on the stream: of what is there when the stream gets here.
        results = {name: array.copy() for name, array in pairs if array is not None}
    return Pending(stream, results, (inputs, given))


def new_stream(kind: str) -> Any:
    import cupy

    return {
        "non-blocking": lambda: cupy.cuda.Stream(non_blocking=True),
        "blocking": lambda: cupy.cuda.Stream(),
        "null": lambda: cupy.cuda.Stream.null,
        "per-thread default": lambda: cupy.cuda.Stream.ptds,
    }[kind]()


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("kind", ["non-blocking", "blocking", "null", "per-thread default"])
def test_a_call_runs_on_the_current_stream(cupy: Any, kind: str, name: str) -> None:
    spec, host, how = problem(NETWORKS[name], (4, 9, 1), seed=5)
    data = on_device(host)
    wanted, stream = as_bytes(train(spec, data, how)), new_stream(kind)
    for _ in range(2):  # the first call loads kernels, which may wait for the GPU and so hide much
        assert_same_bytes(run_behind_busy_work(stream, spec, data, how).get(), wanted)


@pytest.mark.parametrize("lengths", [(9, 9, 9), (4, 9, 1)], ids=["equal", "ragged"])
def test_a_warm_call_does_not_wait_for_the_gpu(cupy: Any, lengths: Any) -> None:
    spec, host, how = problem(NETWORKS["lstm 2 layers bi"], lengths, seed=6)
    data, stream = on_device(host), cupy.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(2):
            train(spec, data, how)
        stream.synchronize()
        wait(10 * BUSY)
        results = train(spec, data, how)
        pending = not stream.done
        stream.synchronize()
    assert pending
    assert np.isfinite(results["dw"].get()).all()


def test_four_streams_used_in_turn_by_one_thread_are_each_right(cupy: Any) -> None:
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
    problems = [own_problems(k) for k in range(STREAMS)]
    wanted = [[as_bytes(train(*each)) for each in problems[k]] for k in range(STREAMS)]
    for _ in range(2):
        # Nothing waits in between: the work of all four streams is pending at the same time.
        pending = [
            (k, i, run_behind_busy_work(streams[k], *problems[k][i]))
            for i in range(len(LENGTHS))
            for k in range(STREAMS)
        ]
        for k, i, results in pending:
            assert_same_bytes(results.get(), wanted[k][i])


def test_one_network_on_four_streams_at_once_is_right_on_each(cupy: Any) -> None:
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
    made = [problem(NETWORKS["lstm 2 layers bi"], (4, 9, 1), seed=k) for k in range(STREAMS)]
    problems = [(spec, on_device(data), how) for spec, data, how in made]
    wanted = [as_bytes(train(*each)) for each in problems]
    for _ in range(3):
        pending = [run_behind_busy_work(streams[k], *problems[k]) for k in range(STREAMS)]
        for k, results in enumerate(pending):
            assert_same_bytes(results.get(), wanted[k])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_a_plan_keeps_on_the_gpu_is_there_for_another_stream_at_once(
    cupy: Any, layout: str
) -> None:
    # Unsorted, with an empty sequence: where rows and states move, index arrays say how.
    spec, host, how = problem(NETWORKS["gru bi"], (2, 0, 9, 5), layout=layout, seed=4)
    data = on_device(host)
    wanted = as_bytes(train(spec, data, how))
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    for _ in range(3):
        v2.clear_plans()
        first = run_behind_busy_work(streams[0], spec, data, how)
        with streams[1]:
            second = as_bytes(train(spec, data, how))
        assert_same_bytes(second, wanted)
        assert_same_bytes(first.get(), wanted)


@pytest.mark.parametrize("kind", ["non-blocking", "per-thread default"])
def test_four_threads_with_a_stream_each_are_each_right(cupy: Any, kind: str) -> None:
    problems = [own_problems(k) for k in range(STREAMS)]
    wanted = [[as_bytes(train(*each)) for each in problems[k]] for k in range(STREAMS)]

    def work(k: int) -> Any:
        stream = new_stream(kind)
        pending = [run_behind_busy_work(stream, *each) for each in problems[k] * 2]
        return [results.get() for results in pending]

    for results, expected in zip(all_at_once(work, STREAMS), wanted, strict=True):
        for got, right in zip(results, expected * 2, strict=True):
            assert_same_bytes(got, right)


def test_four_threads_that_share_four_streams_are_each_right(cupy: Any) -> None:
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
    problems = [own_problems(k) for k in range(STREAMS)]
    wanted = [[as_bytes(train(*each)) for each in problems[k]] for k in range(STREAMS)]

    def work(k: int) -> Any:
        chosen = [streams[(k + i) % STREAMS] for i in range(len(LENGTHS))]
        pending = [run_behind_busy_work(s, *p) for s, p in zip(chosen, problems[k], strict=True)]
        return [results.get() for results in pending]

    for results, expected in zip(all_at_once(work, STREAMS), wanted, strict=True):
        for got, right in zip(results, expected, strict=True):
            assert_same_bytes(got, right)


def two_devices(cupy: Any) -> None:
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs, and there is one")


def test_arrays_on_the_second_gpu_are_served_there_while_the_first_is_current(cupy: Any) -> None:
    two_devices(cupy)
    spec, host, how = problem(NETWORKS["lstm 2 layers bi"], (4, 9, 1), seed=8)
    wanted = as_bytes(train(spec, on_device(host), how))
    with cupy.cuda.Device(1):
        data = on_device(host)
    with cupy.cuda.Device(0):
        results = train(spec, data, how)
        assert cupy.cuda.runtime.getDevice() == 0
    assert {a.device.id for a in results.values() if a is not None} == {1}
    with cupy.cuda.Device(1):
        got = as_bytes(results)
    assert_same_bytes(got, wanted)


def test_two_gpus_at_once_are_each_right(cupy: Any) -> None:
    two_devices(cupy)
    spec, host, how = problem(NETWORKS["gru bi"], (4, 9, 1), seed=9)
    wanted = as_bytes(train(spec, on_device(host), how))

    def work(k: int) -> Any:
        with cupy.cuda.Device(k % 2):
            data = on_device(host)
            return [as_bytes(train(spec, data, how)) for _ in range(5)]

    for results in all_at_once(work, 4):
        for got in results:
            assert_same_bytes(got, wanted)
