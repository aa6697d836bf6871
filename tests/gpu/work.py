"""Problems for the GPU, how to run them, and a kernel that takes its time."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cudnn_compat import v2
from tests.engines.networks import GRADIENTS, OUTPUTS, Data, draw

__all__ = [
    "ROOT",
    "all_at_once",
    "as_bytes",
    "assert_same_bytes",
    "late",
    "on_device",
    "problem",
    "run_python",
    "train",
    "wait",
]

ROOT = Path(__file__).parents[2]

NAMES = ("w", "x", "hx", "cx", "dy", "dhy", "dcy")

# globaltimer counts nanoseconds at any clock rate.
_WAIT = r"""
extern "C" __global__ void wait_ns(long long ns) {
    long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - start < ns);
}
"""


def problem(spec: v2.RNNSpec, lengths: Any, **options: Any) -> tuple[v2.RNNSpec, Data, Any]:
    """A spec, host data drawn for it and how to call: the arguments of :func:`train`."""
    layout = options.get("layout", "time_major")
    how = {"lengths": tuple(lengths), "layout": layout}
    return spec, draw(spec, lengths, **options), how


def on_device(data: Data) -> Data:
    """The same data as CuPy arrays, complete when this returns."""
    import cupy

    arrays = {name: getattr(data, name) for name in NAMES}
    moved = {n: None if a is None else cupy.asarray(a) for n, a in arrays.items()}
    cupy.cuda.Device().synchronize()
    return Data(**moved)


def train(spec: v2.RNNSpec, data: Data, how: Any, *, seed: int | None = None) -> dict[str, Any]:
    """Forward and backward on CuPy arrays: all results by name, on the device."""
    out = v2.rnn_forward(spec, data.w, data.x, data.hx, data.cx, training=True, seed=seed, **how)
    assert out.engine == "cudnn"
    gradients = v2.rnn_backward(out, data.dy, data.dhy, data.dcy)
    return dict(zip(OUTPUTS + GRADIENTS, (*out, *gradients), strict=True))


def as_bytes(results: dict[str, Any]) -> dict[str, bytes]:
    """What is in the arrays, bit for bit; waits for the current stream."""
    return {n: a.get().tobytes() for n, a in results.items() if a is not None}


def assert_same_bytes(got: dict[str, bytes], wanted: dict[str, bytes]) -> None:
    """The two are equal; says which array is not, instead of printing bytes."""
    assert got.keys() == wanted.keys()
    assert [name for name in wanted if got[name] != wanted[name]] == []


@functools.cache
def _wait_kernel() -> Any:
    import cupy

    return cupy.RawKernel(_WAIT, "wait_ns")


def wait(seconds: float) -> None:
    """Keep the current stream busy; returns at once."""
    _wait_kernel()((1,), (1,), (np.int64(seconds * 1e9),))


def late(data: Data, seconds: float, *names: str) -> Data:
    """Copies that hold NaN until the current stream has waited; returns at once.

    Who reads them without being ordered behind the current stream reads NaN.
    """
    import cupy

    copies = {n: cupy.full_like(getattr(data, n), np.nan) for n in names if _there(data, n)}
    wait(seconds)
    for name, copy in copies.items():
        copy[...] = getattr(data, name)
    return data.replace(**copies)


def _there(data: Data, name: str) -> bool:
    return getattr(data, name) is not None


def all_at_once(work: Callable[[int], Any], threads: int) -> list[Any]:
    """What ``work(k)`` gives in each of the threads, which start together."""
    barrier = threading.Barrier(threads)

    def run(k: int) -> Any:
        barrier.wait()
        return work(k)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


def run_python(program: str, *, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that runs ``program`` where the package is importable."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
