"""Train for many steps on a GPU and see that no memory is lost: part of `make gpu`.

    python scripts/gpu_soak.py [--steps 10000] [--shapes 0] [--json FILE]

Ten thousand steps (forward, backward, update) with 1 to 50 time steps, and a batch, lengths and
layout of their own each. Device memory (what CuPy's pool has handed out and holds, and what the
driver says is taken on the whole GPU, so nobody else should use it) and the memory of the process
must be flat after the first quarter. Exit status 1 where they are not.

With ``--shapes N`` the batches have N shapes, of equal lengths, that come back and are replayed as
CUDA graphs. Without it graphs are off: what they keep goes up and down with the shapes in use.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

MEGABYTE = 1 << 20
LIMITS = {
    "pool_used": 2 * MEGABYTE,
    "pool_total": 32 * MEGABYTE,
    "device_used": 32 * MEGABYTE,
    "host_rss": 8 * MEGABYTE,
}
"""Bytes by which a curve may grow between the second quarter and the last tenth of the run."""

SAMPLES = 200
LONGEST = 50


@dataclasses.dataclass
class Network:
    """A network in training: its spec and weights."""

    spec: Any
    w: Any


def networks(v2: Any, cupy: Any) -> list[Network]:
    """Of every cell one, small, so that ten thousand steps take about a minute."""
    specs = [
        v2.RNNSpec("lstm", 8, 16, num_layers=2, dropout=0.2),
        v2.RNNSpec("gru", 8, 16, bidirectional=True),
        v2.RNNSpec("tanh", 8, 16),
        v2.RNNSpec("lstm", 8, 16, proj_size=4, dtype="float64"),
        v2.RNNSpec("relu", 8, 16, dtype="float16"),
    ]
    return [Network(spec, v2.init_weights(spec, seed=0, xp=cupy)) for spec in specs]


def training_step(v2: Any, cupy: Any, rng: Any, network: Network, equal: bool) -> None:
    """One step on a batch that ``rng`` draws; now and then what happens in real programs."""
    spec = network.spec
    batch = int(rng.integers(1, 9))
    steps = int(rng.integers(1, LONGEST + 1))
    layout = ("time_major", "batch_major", "packed")[int(rng.integers(3))]
    lengths = rng.integers(0, steps + 1, batch)
    lengths[rng.integers(batch)] = steps
    if equal or rng.random() < 0.3:
        lengths[:] = steps
    rows = {"time_major": (steps, batch), "batch_major": (batch, steps)}
    shape = rows.get(layout, (int(lengths.sum()),))
    x = cupy.full((*shape, spec.input_size), 0.1, spec.dtype)
    how = {"lengths": lengths.tolist(), "layout": layout}
    kind = rng.random()
    if kind < 0.05:  # evaluation
        v2.rnn_forward(spec, network.w, x, **how)
    out = v2.rnn_forward(spec, network.w, x, training=True, **how)
    if kind > 0.95:  # a forward whose backward never comes
        return
    gradients = v2.rnn_backward(out, out.y)
    network.w -= 1e-3 * gradients.dw


def sample(cupy: Any, step: int) -> dict[str, float]:
    """What is in use now, in bytes."""
    cupy.cuda.Device().synchronize()
    pool = cupy.get_default_memory_pool()
    free, total = cupy.cuda.runtime.memGetInfo()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return {
        "step": step,
        "pool_used": pool.used_bytes(),
        "pool_total": pool.total_bytes(),
        "device_used": total - free,
        "host_rss": pages * os.sysconf("SC_PAGE_SIZE"),
    }


def curve(v2: Any, cupy: Any, steps: int, shapes: int, limit: float) -> Iterator[dict[str, float]]:
    """Train, and sample on the way; stops where the time is over."""
    draw = importlib.import_module("numpy").random.default_rng
    rng = draw(0)
    trained, end = networks(v2, cupy), time.monotonic() + limit
    every = max(1, steps // SAMPLES)
    for step in range(1, steps + 1):
        if shapes:  # the same for every network in turn
            rng = draw(step // len(trained) % shapes)
        training_step(v2, cupy, rng, trained[step % len(trained)], equal=bool(shapes))
        if step % every == 0:
            if step % (10 * every) == 0:
                gc.collect()
            yield sample(cupy, step)
            if time.monotonic() > end:
                return


def judge(samples: list[dict[str, float]], limits: dict[str, int]) -> dict[str, dict[str, float]]:
    """For each curve: where it stood in the second quarter and in the last tenth."""
    count = len(samples)
    early = samples[count // 4 : max(count // 2, count // 4 + 1)]
    late = samples[-max(1, count // 10) :]
    verdict = {}
    for name, limit in limits.items():
        start = statistics.median(each[name] for each in early)
        end = statistics.median(each[name] for each in late)
        verdict[name] = {
            "first": samples[0][name],
            "start": start,
            "end": end,
            "growth": end - start,
            "limit": limit,
            "flat": end - start <= limit,
        }
    return verdict


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--shapes", type=int, default=0, help="0: every batch is like no other")
    parser.add_argument("--seconds", type=float, default=150, help="stop after these (and fail)")
    parser.add_argument(
        "--slack",
        type=int,
        default=1,
        help="factor of the limits, for short runs: kernels load late",
    )
    parser.add_argument("--json", type=Path, help="where to write the result")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))  # the package need not be installed
    if not options.shapes:
        os.environ["CUDNN_COMPAT_GRAPHS"] = "off"
    cupy, v2 = importlib.import_module("cupy"), importlib.import_module("cudnn_compat.v2")
    start = time.monotonic()
    samples = list(curve(v2, cupy, options.steps, options.shapes, options.seconds))
    seconds = time.monotonic() - start
    done, verdict = (
        int(samples[-1]["step"]),
        judge(samples, {name: options.slack * limit for name, limit in LIMITS.items()}),
    )
    result = {
        "steps": done,
        "wanted": options.steps,
        "seconds": round(seconds, 1),
        "plans": len(v2.plans()),
        "curves": verdict,
        "samples": samples[:: max(1, len(samples) // 40)],
    }
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{done} of {options.steps} training steps in {seconds:.0f} s")
    for name, values in verdict.items():
        print(
            f"  {name:12} {values['start'] / MEGABYTE:9.2f} → {values['end'] / MEGABYTE:9.2f} MiB"
            f"   {'flat' if values['flat'] else 'GROWS'}"
        )
    return int(done < options.steps or not all(each["flat"] for each in verdict.values()))


if __name__ == "__main__":
    sys.exit(main())
