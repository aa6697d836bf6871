"""One generator of dropout masks on several streams and GPUs: it draws what it draws on one.

The generators live in device memory and every use advances them. Streams are kept busy before a
use, so that a use that does not wait for the one before comes too early and draws the wrong masks.
"""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import DropoutState
from tests.gpu.work import all_at_once, wait

pytestmark = pytest.mark.gpu

SPEC = v2.RNNSpec("lstm", 8, 16, num_layers=3, dropout=0.5, math="full", algo="standard")
W = v2.init_weights(SPEC, seed=0)
X = np.random.default_rng(0).normal(size=(12, 4, 8)).astype("float32")
SEED = 7
BUSY = 0.03
"""Seconds: much more than a warm call takes on the host."""
LONG = 0.3
"""Seconds for which something is pending with certainty."""


class Network:
    """A network whose output shows the masks, on the current device."""

    def __init__(self, cupy: Any) -> None:
        self.w, self.x = cupy.asarray(W), cupy.asarray(X)
        cupy.cuda.Device().synchronize()

    def draw(self, state: Any) -> Any:
        """y under the next masks of a state (or under an integer's first ones), not waited for."""
        return v2.rnn_forward(SPEC, self.w, self.x, training=True, seed=state).y

    def alone(self, calls: int, seed: int = SEED) -> list[bytes]:
        """What a state of its own draws on the current stream."""
        state = DropoutState(seed)
        return [self.draw(state).get().tobytes() for _ in range(calls)]


@pytest.fixture
def network(cupy: Any) -> Network:
    made = Network(cupy)
    first, second = made.alone(2)
    assert first != second
    return made


@pytest.fixture
def streams(cupy: Any, network: Network) -> list[Any]:
    """Two streams that have the memory that a call takes: to get it could wait for the GPU."""
    made = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    for stream in made:
        drawn_on(stream, network, DropoutState(0))
        stream.synchronize()
    return made


def drawn_on(stream: Any, network: Network, state: Any, busy: float = 0.0) -> Any:
    """y of a call on ``stream``, which is kept busy before; returns at once."""
    with stream:
        if busy:
            wait(busy)
        return network.draw(state)


def on_host(ys: list[Any], streams: list[Any]) -> list[bytes]:
    """What is in the arrays once the streams have worked."""
    for stream in streams:
        stream.synchronize()
    return [y.get().tobytes() for y in ys]


@pytest.mark.parametrize("busy", [(BUSY, 0), (0, BUSY), (BUSY, BUSY)], ids=str)
def test_two_streams_in_turn_draw_what_one_stream_draws(
    network: Network, streams: list[Any], busy: tuple[float, float]
) -> None:
    wanted, state = network.alone(8), DropoutState(SEED)
    ys = [drawn_on(streams[i % 2], network, state, busy[i % 2]) for i in range(8)]
    assert on_host(ys, streams) == wanted


def test_many_short_lived_streams_draw_what_one_stream_draws(cupy: Any, network: Network) -> None:
    wanted, state, ys, streams = network.alone(8), DropoutState(SEED), [], []
    for i in range(8):
        stream = cupy.cuda.Stream(non_blocking=True)
        ys.append(drawn_on(stream, network, state, BUSY * (i % 3)))
        if i % 4 == 3:
            stream.synchronize()
        else:
            streams.append(stream.record())
        del stream  # whose address the next one may get
    assert on_host(ys, streams) == wanted


def test_backward_on_another_stream_meanwhile_draws_nothing(
    cupy: Any, network: Network, streams: list[Any]
) -> None:
    wanted, state = network.alone(6), DropoutState(SEED)
    ys, gradients = [], []
    for i in range(6):
        with streams[i % 2]:
            wait(BUSY)
            out = v2.rnn_forward(SPEC, network.w, network.x, training=True, seed=state)
            ys.append(out.y)
            done = streams[i % 2].record()
        with streams[1 - i % 2]:
            streams[1 - i % 2].wait_event(done)
            gradients.append(v2.rnn_backward(out, cupy.ones_like(out.y)).dw)
    assert on_host(ys, streams) == wanted
    assert len(set(on_host(gradients, streams))) == 6


def test_an_integer_starts_again_on_each_stream(network: Network, streams: list[Any]) -> None:
    (wanted,) = network.alone(1)
    ys = [drawn_on(streams[i % 2], network, SEED, BUSY * (1 - i % 2)) for i in range(6)]
    assert on_host(ys, streams) == [wanted] * 6


def test_threads_with_a_stream_each_share_a_state(cupy: Any, network: Network) -> None:
    wanted, state = network.alone(16), DropoutState(SEED)

    def work(k: int) -> list[bytes]:
        stream = cupy.cuda.Stream(non_blocking=True)
        ys = [drawn_on(stream, network, state, BUSY / 3 * k) for _ in range(4)]
        return on_host(ys, [stream])

    drawn = [y for ys in all_at_once(work, 4) for y in ys]
    assert sorted(drawn) == sorted(wanted)


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda state: pickle.loads(pickle.dumps(state)),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["first stream", "another stream"])
def test_a_copy_made_while_work_is_pending_goes_on_behind_that_work(
    network: Network, streams: list[Any], copied: Callable[[Any], Any], elsewhere: bool
) -> None:
    wanted, state = network.alone(5), DropoutState(SEED)
    ys = [drawn_on(streams[0], network, state)]
    busy = streams[elsewhere]
    ys.append(drawn_on(busy, network, state, LONG))
    assert not busy.done
    other = copied(state)
    mine = [drawn_on(streams[i % 2], network, state, BUSY * i) for i in range(3)]
    theirs = [drawn_on(streams[1 - i % 2], network, other, BUSY * i) for i in range(3)]
    assert on_host(ys + mine, streams) == wanted
    assert on_host(theirs, streams) == wanted[2:]


def test_a_copy_of_a_copy_that_drew_nothing_goes_on_too(
    network: Network, streams: list[Any]
) -> None:
    wanted, state = network.alone(3), DropoutState(SEED)
    y = drawn_on(streams[0], network, state, LONG)
    again = pickle.loads(pickle.dumps(copy.deepcopy(state)))
    ys = [y] + [drawn_on(streams[1], network, again) for _ in range(2)]
    assert on_host(ys, streams) == wanted


# --- states that end while work is pending -----------------------------------------------------


def pending_on_another_stream(network: Network, streams: list[Any], state: Any) -> Any:
    """y of a pending call whose generators' memory belongs to the first stream."""
    drawn_on(streams[0], network, state)
    streams[0].synchronize()
    y = drawn_on(streams[1], network, state, LONG)
    assert not streams[1].done
    return y


def use_memory_again(network: Network, stream: Any) -> list[Any]:
    """New generators on ``stream``, which take what memory it has for such."""
    return [drawn_on(stream, network, DropoutState(100 + i)) for i in range(3)]


def test_a_state_that_is_dropped_while_work_is_pending_has_served_it(
    network: Network, streams: list[Any]
) -> None:
    wanted, others = network.alone(2), [network.alone(1, 100 + i)[0] for i in range(3)]
    state = DropoutState(SEED)
    y = pending_on_another_stream(network, streams, state)
    del state
    gc.collect()
    ys = use_memory_again(network, streams[0])
    assert on_host([y, *ys], streams) == [wanted[1], *others]


@pytest.mark.parametrize("where", [0, 1])
def test_a_state_that_starts_again_while_work_is_pending_has_served_it(
    network: Network, streams: list[Any], where: int
) -> None:
    wanted, state = network.alone(2), DropoutState(SEED)
    y = pending_on_another_stream(network, streams, state)
    state.restart()
    ys = [drawn_on(streams[where], network, state) for _ in range(2)]
    use_memory_again(network, streams[0])
    assert on_host([y, *ys], streams) == [wanted[1], *wanted]


def test_plans_that_are_cleared_while_work_is_pending_change_no_masks(
    network: Network, streams: list[Any]
) -> None:
    wanted, state, ys = network.alone(6), DropoutState(SEED), []
    for i in range(6):
        ys.append(drawn_on(streams[i % 2], network, state, BUSY))
        v2.clear_plans()
    assert on_host(ys, streams) == wanted


# --- two GPUs ----------------------------------------------------------------------------------


def test_a_state_has_generators_of_its_own_on_each_gpu(cupy: Any) -> None:
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs, and there is one")
    networks = []
    for device in range(2):
        with cupy.cuda.Device(device):
            networks.append(Network(cupy))
    wanted = []
    for device, network in enumerate(networks):
        with cupy.cuda.Device(device):
            wanted.append(network.alone(4))
    state, got = DropoutState(SEED), [[], []]
    for i in range(8):
        y = networks[i % 2].draw(state)  # whichever device is current
        with cupy.cuda.Device(i % 2):
            got[i % 2].append(y.get().tobytes())
        if i == 3:
            state = pickle.loads(pickle.dumps(state))
    assert got == wanted
