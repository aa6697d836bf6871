"""Memory stays flat over many training steps of every length.

On NumPy alone, whose memory ``tracemalloc`` counts; ``tests/gpu`` does the same on a device.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2

SPEC = v2.RNNSpec("tanh", 4, 32, num_layers=2, dropout=0.3)
W = v2.init_weights(SPEC, 0)
RNG = np.random.default_rng(0)


def some_steps() -> int:
    """1 to 50, mostly few."""
    return int(min(50, RNG.geometric(0.2)))


def train(steps: int) -> None:
    """Like a training loop: another number of steps, batch and lengths each time."""
    for _ in range(steps):
        batch = int(RNG.integers(1, 5))
        lengths = RNG.integers(0, some_steps() + 1, batch)
        x = RNG.normal(size=(int(lengths.max()), batch, 4)).astype("float32")
        out = v2.rnn_forward(SPEC, W, x, lengths=lengths, training=True)
        v2.rnn_backward(out, out.y)


def forget_gradients(steps: int) -> None:
    """Training forwards whose backward never comes."""
    for _ in range(steps):
        x = np.zeros((some_steps(), 2, 4), "float32")
        v2.rnn_forward(SPEC, W, x, training=True)


def refuse(steps: int) -> None:
    """Calls that end in an error."""
    for _ in range(steps):
        out = v2.rnn_forward(SPEC, W, np.zeros((5, 2, 4), "float32"), training=True)
        with pytest.raises(v2.ArgumentError):
            v2.rnn_backward(out, np.zeros((1, 1, 1), "float32"))


def new_specs(steps: int) -> None:
    """A new description in every step: the caches must be bounded."""
    for _ in range(steps):
        spec = v2.RNNSpec("tanh", int(RNG.integers(1, 10**6)), 1, bias="none")
        v2.weight_size(spec)
        small = spec.replace(input_size=1, clip=None, hidden_size=int(RNG.integers(1, 60)))
        w = v2.init_weights(small, 0)
        v2.rnn_forward(small, w, np.zeros((some_steps(), 1, 1), "float32"))


@pytest.mark.parametrize(
    ("work", "steps"),
    [(train, 700), (forget_gradients, 500), (refuse, 500), (new_specs, 1000)],
    ids=lambda a: getattr(a, "__name__", str(a)),
)
def test_memory_stays_flat(work: Callable[[int], Any], steps: int) -> None:
    tracemalloc.start()
    try:
        work(steps)  # fills the caches
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        work(steps)
        gc.collect()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # What a step needs lies between 2 and 100 kB: if one in ten stayed, it would show.
    assert after - before < 100_000
    assert peak < 3_000_000
