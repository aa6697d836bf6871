"""A backward that fails, or that two threads ask for at once, spends its forward once and for all.

The reserve is changed in place: a second try on it would give wrong numbers without an error.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import TapeError
from tests.engine import Engine
from tests.engines.networks import NETWORKS, draw, forward, run

SPEC = NETWORKS["lstm 2 layers bi"]
LENGTHS = (4, 0, 2)
DATA = draw(SPEC, LENGTHS)
SOON = 20.0
"""Seconds after which a thread that waits for another goes on by itself."""

PASSES = ("backward", "backward_data", "backward_weights")
"""The methods of an engine: both passes at once, and each by itself."""
each_pass = pytest.mark.parametrize("failing", PASSES)


def training_forward(engine: Engine) -> v2.RNNOutput:
    return forward(engine, SPEC, DATA, lengths=LENGTHS)


def given_gradients(engine: Engine) -> list[Any]:
    return [engine.put(a) for a in (DATA.dy, DATA.dhy, DATA.dcy)]


def engine_class(out: v2.RNNOutput) -> Any:
    """The class whose methods compute for this output."""
    assert out._tape is not None
    return type(out._tape.engine)


def wanted_dw(engine: Engine) -> Any:
    return run(engine, SPEC, DATA, lengths=LENGTHS)["dw"]


class Planted(RuntimeError):
    """The failure."""


def fail(*_: Any, **__: Any) -> None:
    raise Planted("planted")


def backward_by(passing: str, out: v2.RNNOutput, given: list[Any]) -> Any:
    """dw, by calls that come to the engine's method ``passing``."""
    if passing == "backward":
        return v2.rnn_backward(out, *given).dw
    v2.rnn_backward_data(out, *given)
    return v2.rnn_backward_weights(out)


def failed_at(failing: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> v2.RNNOutput:
    """An output one pass of whose backward has failed; the engine is whole again."""
    out = training_forward(engine)
    with monkeypatch.context() as patch:
        patch.setattr(engine_class(out), failing, fail)
        with pytest.raises(Planted, match="planted"):
            backward_by(failing, out, given_gradients(engine))
    return out


@each_pass
@pytest.mark.parametrize(
    "call",
    [v2.rnn_backward, v2.rnn_backward_data, v2.rnn_backward_weights],
    ids=lambda f: f.__name__,
)
def test_after_a_failed_pass_every_call_is_refused_in_words(
    call: Any, failing: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = failed_at(failing, engine, monkeypatch)
    for _ in range(2):
        with pytest.raises(TapeError, match=r"failed.*rnn_forward again"):
            call(out)


@each_pass
def test_after_a_failed_pass_the_memory_of_the_tape_is_free(
    failing: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = training_forward(engine)
    assert whole.reserve_bytes > 0
    out = failed_at(failing, engine, monkeypatch)
    assert out.reserve_bytes == 0
    assert out.weights is None
    assert out.own_weights() is None
    assert out.training
    assert not out.can_backward


@each_pass
def test_a_failed_backward_leaves_the_outputs_and_other_forwards_alone(
    failing: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = training_forward(engine)
    out = failed_at(failing, engine, monkeypatch)
    for value, right in zip(out, other, strict=True):
        assert np.array_equal(engine.get(value), engine.get(right))
    dw = v2.rnn_backward(other, *given_gradients(engine)).dw
    assert np.array_equal(engine.get(dw), wanted_dw(engine))


def test_weights_that_fail_after_data_that_did_not_are_refused_from_then_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = training_forward(engine)
    gradients = v2.rnn_backward_data(out, *given_gradients(engine))
    right = engine.get(gradients.dx).copy()
    with monkeypatch.context() as patch:
        patch.setattr(engine_class(out), "backward_weights", fail)
        with pytest.raises(Planted):
            v2.rnn_backward_weights(out)
    with pytest.raises(TapeError, match="failed"):
        v2.rnn_backward_weights(out)
    assert out.reserve_bytes == 0
    assert np.array_equal(engine.get(gradients.dx), right)


def test_results_for_which_there_is_no_memory_leave_the_forward_as_it_was(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: Any, **__: Any) -> None:
        raise MemoryError("planted")

    out = training_forward(engine)
    held = out.reserve_bytes
    with monkeypatch.context() as patch:
        patch.setattr(engine_class(out), "results", no_memory)
        with pytest.raises(MemoryError, match="planted"):
            v2.rnn_backward(out, *given_gradients(engine))
    assert out.can_backward
    assert out.reserve_bytes == held
    v2.rnn_backward_data(out, *given_gradients(engine))
    with monkeypatch.context() as patch:
        patch.setattr(engine_class(out), "zeros", no_memory)
        with pytest.raises(MemoryError, match="planted"):
            v2.rnn_backward_weights(out)
    assert np.array_equal(engine.get(v2.rnn_backward_weights(out)), wanted_dw(engine))


# --- two threads, one tape ---------------------------------------------------------------------


def attempt(call: Callable[[], Any]) -> Any:
    """What it gives, or the TapeError or MemoryError that it raises."""
    try:
        return call()
    except (TapeError, MemoryError) as error:
        return error


def all_at_once(call: Callable[[], Any], threads: int) -> list[Any]:
    barrier = threading.Barrier(threads)

    def run(_: int) -> Any:
        barrier.wait()
        return attempt(call)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


def only_success(results: list[Any]) -> Any:
    """The result of the one call that was served; all others were refused in words."""
    served = [result for result in results if not isinstance(result, TapeError)]
    assert len(served) == 1
    for result in results:
        if result is not served[0]:
            assert "backward" in str(result)
    return served[0]


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_of_threads_that_race_for_one_backward_exactly_one_is_served(engine: Engine) -> None:
    wanted, given = wanted_dw(engine), given_gradients(engine)
    for _ in range(30):
        out = training_forward(engine)
        results = all_at_once(lambda out=out: v2.rnn_backward(out, *given), 4)
        assert np.array_equal(engine.get(only_success(results).dw), wanted)
        assert out.reserve_bytes == 0


@pytest.mark.usefixtures("switching")
def test_of_threads_that_race_for_the_weights_exactly_one_is_served(engine: Engine) -> None:
    wanted, given = wanted_dw(engine), given_gradients(engine)
    for _ in range(30):
        out = training_forward(engine)
        v2.rnn_backward_data(out, *given)
        results = all_at_once(lambda out=out: v2.rnn_backward_weights(out), 4)
        assert np.array_equal(engine.get(only_success(results)), wanted)
        assert out.reserve_bytes == 0


@pytest.mark.usefixtures("switching")
def test_a_thread_without_memory_does_not_spend_the_forward_for_another(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, given = wanted_dw(engine), given_gradients(engine)
    poor = threading.local()
    original = engine_class(training_forward(engine)).results

    def results(*args: Any, **options: Any) -> Any:
        if getattr(poor, "yes", False):
            raise MemoryError("planted") from OSError("the driver says why")
        return original(*args, **options)

    monkeypatch.setattr(engine_class(training_forward(engine)), "results", results)
    for _ in range(30):
        out = training_forward(engine)
        over = threading.Event()

        def try_in_vain(out: v2.RNNOutput = out, over: threading.Event = over) -> None:
            poor.yes = True
            while not over.is_set():
                failed = attempt(lambda: v2.rnn_backward(out, *given))
                assert isinstance(failed, TapeError) or isinstance(failed.__cause__, OSError)

        with ThreadPoolExecutor(1) as pool:
            trying = pool.submit(try_in_vain)
            try:
                got: Any = None
                while got is None:
                    served = attempt(lambda out=out: v2.rnn_backward_data(out, *given))
                    if not isinstance(served, TapeError):
                        got = v2.rnn_backward_weights(out)
                    else:
                        assert "another thread" in str(served)
            finally:
                over.set()
            trying.result(SOON)
        assert np.array_equal(engine.get(got), wanted)


def test_what_interrupts_the_making_of_results_leaves_the_forward_as_it_was(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    out = training_forward(engine)
    with monkeypatch.context() as patch:
        patch.setattr(engine_class(out), "results", interrupt)
        with pytest.raises(KeyboardInterrupt):
            v2.rnn_backward(out, *given_gradients(engine))
    assert out.can_backward
    dw = v2.rnn_backward(out, *given_gradients(engine)).dw
    assert np.array_equal(engine.get(dw), wanted_dw(engine))


@pytest.mark.parametrize("stage", ["data", "weights"])
def test_two_threads_that_have_both_passed_the_checks_are_not_both_served(
    stage: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, given = wanted_dw(engine), given_gradients(engine)
    out = training_forward(engine)
    if stage == "weights":
        v2.rnn_backward_data(out, *given)
    taking = "results" if stage == "data" else "zeros"
    original, meeting = getattr(engine_class(out), taking), threading.Barrier(2)

    def take(*args: Any, **options: Any) -> Any:
        # Memory for results is taken between the checks and the work: here both have passed them.
        meeting.wait(SOON)
        return original(*args, **options)

    monkeypatch.setattr(engine_class(out), taking, take)
    if stage == "data":
        results = all_at_once(lambda: v2.rnn_backward_data(out, *given), 2)
        monkeypatch.undo()
        only_success(results)
        dw = v2.rnn_backward_weights(out)
    else:
        dw = only_success(all_at_once(lambda: v2.rnn_backward_weights(out), 2))
    assert np.array_equal(engine.get(dw), wanted)


@each_pass
def test_while_one_thread_is_at_work_another_is_refused_and_disturbs_nothing(
    failing: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, given = wanted_dw(engine), given_gradients(engine)
    out = training_forward(engine)
    original = getattr(engine_class(out), failing)
    inside, go_on = threading.Event(), threading.Event()

    def slowly(*args: Any, **options: Any) -> None:
        inside.set()
        go_on.wait(SOON)
        original(*args, **options)

    monkeypatch.setattr(engine_class(out), failing, slowly)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(backward_by, failing, out, given)
        try:
            assert inside.wait(SOON)
            for call in (v2.rnn_backward, v2.rnn_backward_data, v2.rnn_backward_weights):
                with pytest.raises(TapeError, match="backward"):
                    call(out)
        finally:
            go_on.set()
        assert np.array_equal(engine.get(first.result(SOON)), wanted)
