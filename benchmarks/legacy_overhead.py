"""What a legacy call costs over the v2 call that it becomes: one step (T = 1), small sizes.

    python benchmarks/legacy_overhead.py [--rounds 200] [--limit 15]

Both are timed in one run, in turns of eight calls each, so that a busy machine slows both alike.
Printed are medians in µs, and the median of the differences between turns that follow each other;
with ``--limit`` the exit status is 1 where one of those is above it. Warnings are in their usual
state: in the first table ignored, by Python's default filters, in the second shown once already at
their line.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cudnn_compat import legacy, v2

INPUT, HIDDEN = 16, 32
BATCHES = (1, 4)
MODES = {
    "tanh": legacy.CUDNN_RNN_TANH,
    "gru": legacy.CUDNN_GRU,
    "lstm": legacy.CUDNN_LSTM,
}
TURN = 8

Call = Callable[[], Any]
Prepared = Callable[[], tuple[Call, Call]]
"""Makes the legacy and the v2 call, with whatever they need that is not to be timed."""


class Step:
    """The same step for both: arrays as v2 takes them, and the same memory feature-first."""

    def __init__(self, cell: str, batch: int) -> None:
        rng = np.random.default_rng(0)

        def draw(*shape: int) -> np.ndarray:
            return rng.uniform(-0.5, 0.5, shape).astype("float32")

        self.desc = legacy.RNNDesc(MODES[cell], INPUT, HIDDEN)
        rows = legacy.ngates(self.desc) * HIDDEN
        self.weights = draw(rows, INPUT), draw(rows, HIDDEN), draw(rows)
        legacy.setweights(self.desc, *self.weights)
        inputs = [draw(1, batch, INPUT), draw(1, batch, HIDDEN)]
        if cell == "lstm":
            inputs.append(draw(1, batch, HIDDEN))
        self.new = inputs
        self.old = [array[0].T for array in inputs]
        self.unbatched = [self.old[0], *(np.ascontiguousarray(s[:, 0]) for s in self.old[1:])]

    def train(self) -> v2.RNNOutput:
        """A training forward of v2."""
        return v2.rnn_forward(self.desc.spec, self.desc.params, *self.new, training=True)


def calls_of(step: Step) -> Iterator[tuple[str, Prepared]]:
    """Every legacy call that has a counterpart, with it."""
    desc, spec, w, old, new = step.desc, step.desc.spec, step.desc.params, step.old, step.new
    x, *states = old

    def same(old_call: Call, new_call: Call) -> Prepared:
        return lambda: (old_call, new_call)

    def infer() -> Any:
        return v2.rnn_forward(spec, w, *new)

    def data() -> tuple[Call, Call]:
        reserve, (y, *after) = legacy.forwardTrain(desc, *old)
        out = step.train()
        given = (desc, y, y, *after, *states, reserve)
        return (
            lambda: legacy.backwardData(*given),
            lambda: v2.rnn_backward_data(out, out.y, out.hy, out.cy),
        )

    def weights() -> tuple[Call, Call]:
        reserve, (y, *_) = legacy.forwardTrain(desc, *old)
        out = step.train()
        legacy.backwardData(desc, y, y, 0, states[0], reserve)
        v2.rnn_backward_data(out, out.y)
        return (
            lambda: legacy.backwardWeights(desc, x, states[0], y, reserve),
            lambda: v2.rnn_backward_weights(out),
        )

    def back() -> tuple[Call, Call]:
        result, pull = legacy.pullback(desc, *old)
        out = step.train()
        return lambda: pull(*result), lambda: v2.rnn_backward(out, out.y, out.hy, out.cy)

    def set_named() -> None:
        named = v2.named_weights(spec, w)
        named["weight_ih_l0"][...], named["weight_hh_l0"][...], named["bias_ih_l0"][...] = (
            step.weights
        )

    yield "forward", same(lambda: legacy.forward(desc, *old), infer)
    yield "forward, h (hidden,)", same(lambda: legacy.forward(desc, *step.unbatched), infer)
    yield "forwardTrain", same(lambda: legacy.forwardTrain(desc, *old), step.train)
    yield "backwardData", data
    yield "backwardWeights", weights
    yield "pullback", same(lambda: legacy.pullback(desc, *old), step.train)
    yield "pullback's back", back
    yield "setweights", same(lambda: legacy.setweights(desc, *step.weights), set_named)


def medians(prepared: Prepared, rounds: int) -> tuple[float, float, float]:
    """Medians in µs of the legacy call, the v2 call, and the difference of neighbouring turns."""
    turns = np.empty((rounds, 2))
    for number in range(rounds):
        for which in (0, 1) if number % 2 else (1, 0):
            calls = [prepared()[which] for _ in range(TURN)]
            start = time.perf_counter_ns()
            for call in calls:
                call()
            turns[number, which] = (time.perf_counter_ns() - start) / TURN / 1000
    old, new = np.median(turns, axis=0)
    return float(old), float(new), float(np.median(turns[:, 0] - turns[:, 1]))


def table(rounds: int) -> float:
    """Print one line per call; the largest difference."""
    print(f"{'':<22}{'cell':<6}{'batch':<6}{'legacy':>8}{'v2':>8}{'more':>8}")
    differences = []
    for batch in BATCHES:
        for cell in MODES:
            for name, prepared in calls_of(Step(cell, batch)):
                old, new, more = medians(prepared, rounds)
                differences.append(more)
                print(f"{name:<22}{cell:<6}{batch:<6}{old:8.1f}{new:8.1f}{more:8.1f}")
    print(f"largest: {max(differences):.1f}, median: {np.median(differences):.1f}\n")
    return max(differences)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=200, help="turns of eight calls")
    parser.add_argument("--limit", type=float, help="µs that a call may cost over v2's")
    options = parser.parse_args()
    gc.disable()
    worst = 0.0
    for state, action in (("ignored", "ignore"), ("shown once already", "default")):
        with warnings.catch_warnings():
            warnings.filterwarnings(action, category=legacy.LegacyAPIWarning)  # type: ignore[arg-type]
            warnings.showwarning = lambda *args, **kwargs: None
            print(f"warnings {state}, µs a call")
            worst = max(worst, table(options.rounds))
    return int(options.limit is not None and worst > options.limit)


if __name__ == "__main__":
    sys.exit(main())
