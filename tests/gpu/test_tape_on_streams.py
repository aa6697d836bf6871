"""Backward on another stream than forward: right, also once the first stream is gone or goes on.

CuPy's pool gives memory back to the stream that it was taken on, whoever uses it last. Whoever
passes arrays from stream to stream orders the streams by events, as these tests do; when the
memory of a tape goes back is the package's own affair.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

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

BUSY = 0.02
"""Seconds: much more than a warm call takes on the host."""
TAPES = 6


def spec_of(cell: str, **options: Any) -> v2.RNNSpec:
    return v2.RNNSpec(cell, 16, 32, num_layers=2, math="full", algo="standard", **options)


NETWORKS = {
    "lstm": (spec_of("lstm"), (20,) * 8),
    "gru bi, ragged": (spec_of("gru", bidirectional=True), (20, 0, 7, 20, 1, 13, 20, 4)),
}
each_network = pytest.mark.parametrize("name", NETWORKS)

Problem = tuple[v2.RNNSpec, Data, Any]


def problems(name: str, count: int) -> list[Problem]:
    """Batches of one shape, on the device: their tapes take memory of the same size."""
    spec, lengths = NETWORKS[name]
    made = [problem(spec, lengths, seed=seed) for seed in range(count)]
    return [(spec, on_device(data), how) for spec, data, how in made]


def new_stream(cupy: Any) -> Any:
    return cupy.cuda.Stream(non_blocking=True)


def forward(given: Problem, *, busy: float = 0.0) -> tuple[v2.RNNOutput, Any]:
    """A training forward on the current stream, which is kept busy before; returns at once.

    Also an event behind it.
    """
    spec, data, how = given
    if busy:
        data = late(data, busy, "w", "x", "hx", "cx")
    out = v2.rnn_forward(spec, data.w, data.x, data.hx, data.cx, training=True, **how)
    return out, _event()


def backward(out: v2.RNNOutput, done: Any, given: Problem, *, busy: float = 0.0) -> dict[str, Any]:
    """Backward on the current stream, behind the event, and busy before."""
    import cupy

    data = given[1]
    cupy.cuda.get_current_stream().wait_event(done)
    if busy:
        wait(busy)
    gradients = v2.rnn_backward(out, data.dy, data.dhy, data.dcy)
    return dict(zip(GRADIENTS, gradients, strict=True))


def _event() -> Any:
    import cupy

    return cupy.cuda.get_current_stream().record()


def outputs(out: v2.RNNOutput) -> dict[str, Any]:
    return dict(zip(OUTPUTS, out, strict=True))


def on_host(cupy: Any, results: dict[str, Any]) -> dict[str, bytes]:
    """What is in the arrays once everything on the GPU is done."""
    cupy.cuda.Device().synchronize()
    return as_bytes(results)


BACKWARD_ON: dict[str, Callable[[Any], Any]] = {
    "the null stream": lambda cupy: cupy.cuda.Stream.null,
    "another stream": new_stream,
    "a blocking stream": lambda cupy: cupy.cuda.Stream(),
    "the thread's stream": lambda cupy: cupy.cuda.Stream.ptds,
}
each_stream = pytest.mark.parametrize("where", BACKWARD_ON)


@each_stream
@each_network
@pytest.mark.parametrize("pending", [False, True], ids=["done", "pending"])
def test_backward_is_right_when_the_stream_of_forward_is_gone(
    cupy: Any, pending: bool, name: str, where: str
) -> None:
    made = problems(name, 4)
    wanted, other = [as_bytes(train(*each)) for each in made], BACKWARD_ON[where](cupy)
    for given, right in zip(made, wanted, strict=True):
        stream = new_stream(cupy)
        with stream:
            out, done = forward(given, busy=BUSY)
        if not pending:
            stream.synchronize()
        del stream
        gc.collect()
        with other:
            results = backward(out, done, given)
        assert_same_bytes(on_host(cupy, outputs(out) | results), right)


@each_network
def test_tapes_outlive_many_streams_whose_places_others_take(cupy: Any, name: str) -> None:
    made = problems(name, TAPES)
    wanted, waiting = [as_bytes(train(*each)) for each in made], []
    for given in made:
        stream = new_stream(cupy)
        with stream:
            waiting.append(forward(given))
        stream.synchronize()
        del stream
    others = [new_stream(cupy) for _ in range(3)]
    results = []
    for k, (given, (out, done)) in enumerate(zip(made, waiting, strict=True)):
        with others[k % 3]:
            results.append(outputs(out) | backward(out, done, given, busy=BUSY))
    for got, right in zip(results, wanted, strict=True):
        assert_same_bytes(on_host(cupy, got), right)


@each_network
def test_data_and_weights_may_run_on_two_more_streams(cupy: Any, name: str) -> None:
    made = problems(name, 4)
    wanted = [as_bytes(train(*each)) for each in made]
    first, second, third = (new_stream(cupy) for _ in range(3))
    results = []
    for given in made:
        data = given[1]
        with first:
            out, done = forward(given, busy=BUSY)
        with second:
            second.wait_event(done)
            wait(BUSY)
            gradients = v2.rnn_backward_data(out, data.dy, data.dhy, data.dcy)
            done = second.record()
        with third:
            third.wait_event(done)
            gradients.dw = v2.rnn_backward_weights(out)
        results.append(outputs(out) | dict(zip(GRADIENTS, gradients, strict=True)))
    for got, right in zip(results, wanted, strict=True):
        assert_same_bytes(on_host(cupy, got), right)


@each_stream
@each_network
def test_memory_of_a_tape_is_used_again_only_behind_the_backward_that_reads_it(
    cupy: Any, name: str, where: str
) -> None:
    made = problems(name, TAPES)
    wanted = [as_bytes(train(*each)) for each in made]
    first, other = new_stream(cupy), BACKWARD_ON[where](cupy)
    kept, results = [], []
    for given in made * 2:
        with first:
            # Takes the memory that the tape before gave back, whose backward is still pending.
            out, done = forward(given)
            kept.append({n: a.copy() for n, a in outputs(out).items() if a is not None})
        with other:
            results.append(backward(out, done, given, busy=BUSY))
        del out
    for copied, got, right in zip(kept, results, wanted * 2, strict=True):
        assert_same_bytes(on_host(cupy, copied | got), right)


@each_network
def test_many_tapes_that_wait_give_their_memory_back_in_order(cupy: Any, name: str) -> None:
    made = problems(name, TAPES)
    wanted = [as_bytes(train(*each)) for each in made]
    first, others = new_stream(cupy), [new_stream(cupy) for _ in range(2)]
    for _ in range(2):
        with first:
            waiting = [forward(given) for given in made]
        results: list[Any] = [None] * TAPES
        for k in reversed(range(TAPES)):
            with others[k % 2]:
                results[k] = backward(*waiting[k], made[k], busy=BUSY)
            with first:  # which goes on meanwhile, with memory of tapes that have served
                again = train(*made[k])
                results[k] |= {f"{n} again": a.copy() for n, a in again.items() if a is not None}
        for k, right in enumerate(wanted):
            both = right | {f"{n} again": value for n, value in right.items()}
            got = on_host(cupy, outputs(waiting[k][0]) | results[k])
            assert_same_bytes(got, both)


@each_network
def test_threads_with_a_stream_each_may_run_backward_for_each_other(cupy: Any, name: str) -> None:
    made = problems(name, 4)
    wanted = [as_bytes(train(*each)) for each in made]

    def forward_in_a_thread(k: int) -> Any:
        with new_stream(cupy):
            return forward(made[k], busy=BUSY)

    def backward_in_another(k: int) -> Any:
        stream = new_stream(cupy)
        with stream:
            results = backward(*waiting[k - 1], made[k - 1])
            stream.synchronize()
            return as_bytes(outputs(waiting[k - 1][0]) | results)

    for _ in range(3):
        waiting = all_at_once(forward_in_a_thread, 4)
        got = all_at_once(backward_in_another, 4)
        for k in range(4):
            assert_same_bytes(got[k], wanted[k - 1])


@each_network
def test_a_tape_that_is_dropped_without_its_backward_disturbs_nothing(cupy: Any, name: str) -> None:
    made = problems(name, TAPES)
    wanted, first = [as_bytes(train(*each)) for each in made], new_stream(cupy)
    results = []
    with first:
        for given in made * 2:
            forward(given)
            wait(BUSY / 10)
            results.append(train(*given))
    for got, right in zip(results, wanted * 2, strict=True):
        assert_same_bytes(on_host(cupy, got), right)
