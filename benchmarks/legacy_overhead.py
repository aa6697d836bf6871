"""What a legacy call costs over the v2 call that it becomes: one step (T = 1), small sizes.

Both are timed in one run, call by call in turn, so that a busy machine slows both alike; medians and
their differences are printed, in µs. Warnings are in their usual state: ignored by Python's default
filters, or (the second table) shown once already at their line.

    python benchmarks/legacy_overhead.py [--rounds 1500] [--limit 15]

With ``--limit`` the exit status is 1 where a difference is above it.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cudnn_compat import legacy, v2

SIZES = ((16, 32, 1), (16, 32, 4))
"""input, hidden, batch."""

MODES = {
    "tanh": legacy.CUDNN_RNN_TANH,
    "gru": legacy.CUDNN_GRU,
    "lstm": legacy.CUDNN_LSTM,
}

Call = Callable[[], Any]
Pair = tuple[str, Call, Call, Callable[[], Any]]
"""Name, legacy call, v2 call, and what makes the tapes that both take (called before each)."""


class Step:
    """The same step for both APIs: arrays feature-first, and views of them as v2 takes them."""

    def __init__(self, cell: str, input: int, hidden: int, batch: int) -> None:
        rng = np.random.default_rng(0)

        def draw(*shape: int) -> np.ndarray:
            return rng.uniform(-0.5, 0.5, shape).astype("float32")

        self.desc = legacy.RNNDesc(MODES[cell], input, hidden)
        self.spec, self.w = self.desc.spec, self.desc.params
        rows = self.spec.num_gates * hidden
        self.weights = draw(rows, input), draw(rows, hidden), draw(rows)
        self.x2, self.h2 = draw(1, batch, input), draw(1, batch, hidden)
        self.c2 = draw(1, batch, hidden) if self.spec.has_cell else None
        self.x, self.h = self.x2[0].T, self.h2[0].T
        self.c = None if self.c2 is None else self.c2[0].T
        legacy.setweights(self.desc, *self.weights)
        self.named = v2.named_weights(self.spec, self.w)

    def train2(self) -> v2.RNNOutput:
        """A training forward of v2."""
        return v2.rnn_forward(self.spec, self.w, self.x2, self.h2, self.c2, training=True)


def pairs(step: Step) -> Iterator[Pair]:
    """Every call that has a counterpart, with it."""
    desc, spec, w = step.desc, step.spec, step.w
    x, h, c, x2, h2, c2 = step.x, step.h, step.c, step.x2, step.h2, step.c2
    vector = np.ascontiguousarray(h[:, 0])
    cell_vector = None if c is None else np.ascontiguousarray(c[:, 0])
    kept: dict[str, Any] = {}

    def nothing() -> None:
        pass

    def tapes() -> None:
        kept["reserve"], kept["result"] = legacy.forwardTrain(desc, x, h, c)
        kept["out"] = step.train2()

    def tapes_with_data() -> None:
        tapes()
        data()
        data2()

    def data() -> Any:
        y, *states = kept["result"]
        dco = states[1] if c is not None else None
        return legacy.backwardData(desc, y, y, states[0], dco, h, c, kept["reserve"])

    def data2() -> Any:
        out = kept["out"]
        return v2.rnn_backward_data(out, out.y, out.hy, out.cy)

    def weights() -> Any:
        return legacy.backwardWeights(desc, x, h, kept["result"][0], kept["reserve"])

    def weights2() -> Any:
        return v2.rnn_backward_weights(kept["out"])

    def pull() -> Any:
        result, back = legacy.pullback(desc, x, h, c)
        return back(*result)

    def pull2() -> Any:
        out = step.train2()
        return v2.rnn_backward(out, out.y, out.hy, out.cy)

    def set2() -> None:
        Wi, Wh, b = step.weights
        step.named["weight_ih_l0"][...] = Wi
        step.named["weight_hh_l0"][...] = Wh
        step.named["bias_ih_l0"][...] = b

    def infer2() -> Any:
        return v2.rnn_forward(spec, w, x2, h2, c2)

    yield "forward", lambda: legacy.forward(desc, x, h, c), infer2, nothing
    yield "forward, h broadcast", lambda: legacy.forward(desc, x, vector, cell_vector), infer2, nothing
    yield "forwardTrain", lambda: legacy.forwardTrain(desc, x, h, c), step.train2, nothing
    yield "backwardData", data, data2, tapes
    yield "backwardWeights", weights, weights2, tapes_with_data
    yield "pullback and back", pull, pull2, nothing
    yield "setweights", lambda: legacy.setweights(desc, *step.weights), set2, nothing


def time_pair(pair: Pair, rounds: int) -> tuple[float, float]:
    """Medians of the legacy and the v2 call in µs."""
    _, old, new, prepare = pair
    clock = time.perf_counter_ns
    times: tuple[list[int], list[int]] = ([], [])
    for number in range(rounds):
        prepare()
        # Whoever comes second finds warm caches: they take turns.
        for which in (0, 1) if number % 2 else (1, 0):
            call = (old, new)[which]
            start = clock()
            call()
            times[which].append(clock() - start)
    skipped = rounds // 10
    return tuple(statistics.median(t[skipped:]) / 1000 for t in times)  # type: ignore[return-value]


def table(rounds: int) -> list[float]:
    """Print one line per call; the differences."""
    print(f"{'call':<22}{'cell':<6}{'I, H, B':<12}{'legacy':>8}{'v2':>8}{'more':>8}")
    differences = []
    for input, hidden, batch in SIZES:
        for cell in MODES:
            for pair in pairs(Step(cell, input, hidden, batch)):
                old, new = time_pair(pair, rounds)
                differences.append(old - new)
                size = f"{input}, {hidden}, {batch}"
                print(f"{pair[0]:<22}{cell:<6}{size:<12}{old:8.1f}{new:8.1f}{old - new:8.1f}")
    return differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--limit", type=float, help="µs that a call may cost over v2's")
    options = parser.parse_args()
    gc.disable()
    worst = []
    for state, action in (("ignored", "ignore"), ("shown once already", "default")):
        with warnings.catch_warnings():
            warnings.simplefilter(action, legacy.LegacyAPIWarning)  # type: ignore[arg-type]
            warnings.showwarning = lambda *args, **kwargs: None
            print(f"warnings {state}")
            worst.append(max(table(options.rounds)))
        gc.collect()
        print(f"largest difference: {worst[-1]:.1f} µs\n")
    return int(options.limit is not None and max(worst) > options.limit)


if __name__ == "__main__":
    sys.exit(main())
