"""The cuDNN engine against PyTorch's modules on one GPU, in one run: speed-ups over the grid.

    python benchmarks/gpu.py [--quick] [--only SUBSTRING] [--rounds 9] [--json FILE]

Both sides have the same weights, the same precision (TF32 allowed for float32 on both) and work on
the default stream; they take turns, round by round. A round is as many calls as fit into some
milliseconds, one behind the other, between two CUDA events; the time of a call is that of the round
over its calls, and a workload's is the median of its rounds. Times by the host's clock, which
include the closing wait, stand beside it in the JSON. A speed-up above 1 means that this package is
faster. Before anything is timed the outputs of the two sides are compared.

With new lengths in every call PyTorch packs and unpacks, as its users must.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

from grid import GRID, MODES, Workload, named  # noqa: E402 - found by the line above

LENGTHS = 64
"""Lengths that are drawn beforehand; calls take one after the other."""
CLOSE = {"float64": 1e-6, "float32": 5e-2, "float16": 5e-2, "bfloat16": 3e-1}
"""Largest difference of outputs between the two sides; TF32, and weights of PyTorch's size."""

Call = Callable[[], Any]


@dataclasses.dataclass
class Side:
    """What one library does for a workload, by mode; ``output`` gives y in float64 on the host."""

    calls: dict[str, Call]
    output: Callable[[], np.ndarray]
    algo: Callable[[str], str]


class Inputs:
    """Arrays on the host that both sides start from, and the lengths of each call."""

    def __init__(self, workload: Workload) -> None:
        from cudnn_compat import v2

        rng = np.random.default_rng(0)
        self.workload = workload
        self.spec = workload.spec()
        self.w = v2.init_weights(self.spec, seed=0)
        rows = (workload.steps, workload.batch)
        self.x = rng.standard_normal((*rows, workload.input), dtype=np.float32)
        self.dy = rng.standard_normal((*rows, self.spec.output_size), dtype=np.float32)
        self.lengths = [workload.draw_lengths(rng) for _ in range(LENGTHS)]

    def counter(self) -> Callable[[], list[int] | None]:
        """A function that gives the lengths of call after call."""
        calls = 0

        def following() -> list[int] | None:
            nonlocal calls
            calls += 1
            return self.lengths[calls % LENGTHS]

        return following


def ours(inputs: Inputs) -> Side:
    """This package."""
    import cupy

    from cudnn_compat import v2
    from cudnn_compat.arrays import numpy_dtype

    spec, dtype = inputs.spec, numpy_dtype(inputs.workload.dtype)
    w, x, dy = (cupy.asarray(a.astype(dtype)) for a in (inputs.w, inputs.x, inputs.dy))
    following, algos = inputs.counter(), dict.fromkeys(MODES, "")

    def inference() -> Any:
        out = v2.rnn_forward(spec, w, x, lengths=following())
        algos["inference"] = out.algo
        return out

    def training() -> Any:
        out = v2.rnn_forward(spec, w, x, lengths=following(), training=True)
        algos["training"] = out.algo
        return v2.rnn_backward(out, dy)

    def output() -> np.ndarray:
        y = v2.rnn_forward(spec, w, x, lengths=inputs.lengths[0]).y
        return y.get().astype(np.float64)

    return Side({"inference": inference, "training": training}, output, algos.__getitem__)


def theirs(inputs: Inputs) -> Side:
    """PyTorch's module with the same weights."""
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    from cudnn_compat.v2 import convert

    torch.backends.cudnn.allow_tf32 = True
    spec, dtype = inputs.spec, getattr(torch, inputs.workload.dtype)
    options: dict[str, Any] = {"proj_size": spec.proj_size or 0} if spec.has_cell else {}
    if spec.num_gates == 1:
        options["nonlinearity"] = spec.cell
    kinds = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
    module = kinds.get(spec.cell, torch.nn.RNN)(
        spec.input_size,
        spec.hidden_size,
        spec.num_layers,
        bidirectional=spec.bidirectional,
        device="cuda",
        dtype=dtype,
        **options,
    )
    state = convert.to_torch(spec, inputs.w)
    module.load_state_dict({n: torch.tensor(a.astype(np.float32)) for n, a in state.items()})
    x, dy = (torch.tensor(a, dtype=dtype, device="cuda") for a in (inputs.x, inputs.dy))
    following = inputs.counter()

    def run(data: Any, lengths: list[int] | None) -> Any:
        if lengths is None:
            return module(data)[0]
        packed = pack_padded_sequence(data, torch.tensor(lengths), enforce_sorted=False)
        return pad_packed_sequence(module(packed)[0], total_length=inputs.workload.steps)[0]

    def inference() -> Any:
        with torch.inference_mode():
            return run(x, following())

    def training() -> Any:
        module.zero_grad(set_to_none=True)
        leaf = x.detach().requires_grad_(True)
        run(leaf, following()).backward(dy)
        return leaf.grad

    def output() -> np.ndarray:
        with torch.inference_mode():
            y = run(x, inputs.lengths[0])
        found: np.ndarray = y.double().cpu().numpy()
        return found

    return Side({"inference": inference, "training": training}, output, lambda mode: "")


def timed(call: Call, count: int) -> tuple[float, float]:
    """µs of one call: by CUDA events, and by the host's clock with the wait at the end."""
    import cupy

    before, after = cupy.cuda.Event(), cupy.cuda.Event()
    start = time.perf_counter()
    before.record()
    for _ in range(count):
        call()
    after.record()
    after.synchronize()
    wall = time.perf_counter() - start
    return cupy.cuda.get_elapsed_time(before, after) * 1000 / count, wall * 1e6 / count


def measure(workload: Workload, mode: str, sides: list[Side], options: Any) -> dict[str, Any]:
    """One row of the table."""
    calls = [side.calls[mode] for side in sides]
    counts = []
    for call in calls:
        warm = time.perf_counter() + options.warm_up
        timed(call, 3)
        while time.perf_counter() < warm:
            timed(call, 1)
        _, once = timed(call, 2)
        counts.append(max(1, min(500, round(options.round_ms * 1000 / once))))
    rounds = []
    for _ in range(options.rounds):
        rounds.append([timed(call, count) for call, count in zip(calls, counts, strict=True)])
    events, walls = (
        [statistics.median(times[side][clock] for times in rounds) for side in (0, 1)]
        for clock in (0, 1)
    )
    pairs = [times[1][0] / times[0][0] for times in rounds]
    return {
        "workload": workload.name,
        "mode": mode,
        "ours_us": events[0],
        "torch_us": events[1],
        "speed_up": events[1] / events[0],
        "speed_up_of_rounds": [min(pairs), max(pairs)],
        "ours_wall_us": walls[0],
        "torch_wall_us": walls[1],
        "algo": sides[0].algo(mode),
    }


def rows_of(workload: Workload, options: Any) -> list[dict[str, Any]]:
    """Both modes of a workload; a failure is a row that says so."""
    try:
        inputs = Inputs(workload)
        sides = [ours(inputs), theirs(inputs)]
        difference = float(np.abs(sides[0].output() - sides[1].output()).max())
        if not difference <= CLOSE[workload.dtype]:
            raise ArithmeticError(f"the two sides differ by {difference:.1e}: nothing is timed")
        return [
            {**measure(workload, mode, sides, options), "difference": difference} for mode in MODES
        ]
    except Exception as error:  # the other workloads are still worth measuring
        words = f"{type(error).__name__}: {error}"
        return [{"workload": workload.name, "mode": mode, "error": words} for mode in MODES]


def show(row: dict[str, Any]) -> None:
    """One line."""
    head = f"{row['workload']:34} {row['mode']:10}"
    if "error" in row:
        print(f"{head} {row['error'][:200]}", flush=True)
        return
    low, high = row["speed_up_of_rounds"]
    print(
        f"{head} {row['ours_us']:9.0f} {row['torch_us']:9.0f} {row['speed_up']:7.2f}"
        f"   {low:.2f} – {high:.2f}   {row['algo']}",
        flush=True,
    )


def geometric_means(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The mean speed-up of each mode."""
    means = {}
    for mode in MODES:
        ratios = [row["speed_up"] for row in rows if row["mode"] == mode and "error" not in row]
        if ratios:
            means[mode] = math.exp(statistics.fmean(map(math.log, ratios)))
    return means


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--round-ms", type=float, default=25, help="length of a round")
    parser.add_argument("--warm-up", type=float, default=0.1, help="seconds of calls not counted")
    parser.add_argument("--only", default="", help="workloads that have this in their names")
    parser.add_argument("--json", type=Path, help="where to write the result")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.round_ms, options.warm_up = 3, 5, 0.02
    workloads = named(options.only)
    if not workloads:
        parser.error(f"no workload has {options.only!r} in its name; the grid has {len(GRID)}")
    import cupy
    import torch

    print(f"{'T×B×I×H':34} {'mode':10} {'ours µs':>9} {'torch µs':>9} {'speed-up':>7}  of rounds")
    rows = []
    result: dict[str, Any] = {
        "about": f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, CuPy "
        f"{cupy.__version__}; medians of {options.rounds} rounds of about {options.round_ms:g} ms, "
        "TF32 allowed on both sides; speed-up above 1: this package is faster",
    }
    for workload in workloads:
        gc.collect()
        gc.disable()
        rows += (fresh := rows_of(workload, options))
        gc.enable()
        for row in fresh:
            show(row)
        result.update(rows=rows, geometric_mean=geometric_means(rows))
        if options.json:  # after each, so that a run that is cut off leaves what it had
            options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for mode, mean in result["geometric_mean"].items():
        worst = min(r["speed_up"] for r in rows if r["mode"] == mode and "error" not in r)
        print(f"geometric mean, {mode}: {mean:.2f}   worst: {worst:.2f}")
    return int(any("error" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
