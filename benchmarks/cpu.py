"""NumPy engine against PyTorch on the CPU, in one run: ratios of times, ours over theirs.

    python benchmarks/cpu.py [--threads 2] [--rounds 5] [--json FILE] [--only SUBSTRING]

Each side runs in a process of its own, so that one side's idle worker threads do not spin while
the other is measured; the two take turns, round by round. Times are of a whole call: inference,
and a training step (forward, backward data, backward weights; PyTorch: forward and ``backward()``
with gradients of x and of all weights). Below 1 means that this engine is faster.

Two ratios are given: of the medians, and of the fastest calls, which a machine shared with others
disturbs less.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


@dataclasses.dataclass(frozen=True)
class Workload:
    """T steps × B batch × I input × H hidden."""

    cell: str
    steps: int
    batch: int
    input: int
    hidden: int

    @property
    def name(self) -> str:
        return f"{self.cell} {self.steps}×{self.batch}×{self.input}×{self.hidden}"


WORKLOADS = (
    Workload("lstm", 100, 64, 512, 512),
    Workload("lstm", 512, 16, 256, 256),
    Workload("lstm", 1000, 1, 128, 128),
    Workload("lstm", 20, 8, 64, 64),
    Workload("lstm", 1, 64, 256, 256),
    Workload("lstm", 1, 1, 16, 32),
    Workload("gru", 100, 32, 256, 256),
)
MODES = ("inference", "training")


def ours(workload: Workload, threads: int) -> dict[str, Callable[[], object]]:
    """Calls of this package, by mode."""
    import numpy as np

    from cudnn_compat import v2

    spec = v2.RNNSpec(workload.cell, workload.input, workload.hidden)
    w = v2.init_weights(spec, seed=0)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((workload.steps, workload.batch, workload.input), dtype=np.float32)
    dy = rng.standard_normal((workload.steps, workload.batch, workload.hidden), dtype=np.float32)
    return {
        "inference": lambda: v2.rnn_forward(spec, w, x),
        "training": lambda: v2.rnn_backward(v2.rnn_forward(spec, w, x, training=True), dy),
    }


def torch(workload: Workload, threads: int) -> dict[str, Callable[[], object]]:
    """Calls of PyTorch's modules, by mode."""
    import torch

    torch.set_num_threads(threads)
    module = getattr(torch.nn, workload.cell.upper())(workload.input, workload.hidden)
    x = torch.randn(workload.steps, workload.batch, workload.input)
    dy = torch.randn(workload.steps, workload.batch, workload.hidden)

    def inference() -> object:
        with torch.inference_mode():
            return module(x)

    def training() -> object:
        module.zero_grad(set_to_none=True)
        leaf = x.detach().requires_grad_(True)
        y, _ = module(leaf)
        y.backward(dy)
        return leaf.grad

    return {"inference": inference, "training": training}


def median_and_best_us(call: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Median and shortest time of one call in µs, over at least 3 calls and ``seconds``."""
    times: list[float] = []
    call()
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6, min(times) * 1e6


def _serve(side: str, threads: int, pipe: Connection) -> None:
    make = {"ours": ours, "torch": torch}[side]
    calls: dict[Workload, dict[str, Callable[[], object]]] = {}
    try:
        while True:
            workload, mode, seconds = pipe.recv()
            if workload not in calls:
                calls = {workload: make(workload, threads)}
                calls[workload][mode]()
            pipe.send(median_and_best_us(calls[workload][mode], seconds))
    except EOFError:
        pass


def measure(
    workloads: tuple[Workload, ...], threads: int, rounds: int, seconds: float
) -> list[dict[str, Any]]:
    """Medians over rounds of both sides for every workload and mode."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    context = multiprocessing.get_context("spawn")
    pipes = {}
    for side in ("ours", "torch"):
        mine, theirs = context.Pipe()
        context.Process(target=_serve, args=(side, threads, theirs), daemon=True).start()
        theirs.close()
        pipes[side] = mine
    rows = []
    for workload in workloads:
        for mode in MODES:
            times: dict[str, list[tuple[float, float]]] = {side: [] for side in pipes}
            for _ in range(rounds):
                for side, pipe in pipes.items():
                    pipe.send((workload, mode, seconds))
                    times[side].append(pipe.recv())
                    time.sleep(0.25)
            sides = ("ours", "torch")
            mine, theirs = (statistics.median(t[0] for t in times[side]) for side in sides)
            best = [min(t[1] for t in times[side]) for side in sides]
            pairs = [a[0] / b[0] for a, b in zip(times["ours"], times["torch"], strict=True)]
            rows.append(
                {
                    "workload": workload.name,
                    "mode": mode,
                    "ours_us": mine,
                    "torch_us": theirs,
                    "ratio": mine / theirs,
                    "ours_best_us": best[0],
                    "torch_best_us": best[1],
                    "ratio_of_best": best[0] / best[1],
                    "ratio_min": min(pairs),
                    "ratio_max": max(pairs),
                }
            )
            print(
                f"{workload.name:24} {mode:10} {mine:10.0f} {theirs:10.0f} {mine / theirs:7.2f}"
                f" {best[0] / best[1]:7.2f}   {min(pairs):.2f} – {max(pairs):.2f}",
                flush=True,
            )
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(arguments)
    workloads = tuple(w for w in WORKLOADS if options.only in w.name)
    if not workloads:
        parser.error(f"no workload has {options.only!r} in its name")
    print(
        f"{'T×B×I×H, float32':24} {'mode':10} {'ours µs':>10} {'torch µs':>10} {'ratio':>7}"
        f" {'of best':>7}   of rounds"
    )
    rows = measure(workloads, options.threads, options.rounds, options.seconds)
    means = {}
    for mode in MODES:
        for key in ("ratio", "ratio_of_best"):
            ratios = [row[key] for row in rows if row["mode"] == mode]
            mean = means[f"{mode} {key}"] = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"geometric mean, {mode}, {key}: {mean:.2f}   worst: {max(ratios):.2f}")
    if options.json:
        from importlib.metadata import version

        import numpy

        record = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": platform.machine(),
            "cpu": _cpu_name(),
            "cores": os.cpu_count(),
            "threads": options.threads,
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "torch": version("torch"),
            "rows": rows,
            "geometric_mean": means,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
    return 0


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            ]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()


if __name__ == "__main__":
    sys.exit(main())
