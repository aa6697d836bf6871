"""Whether another library would make the NumPy engine's step loop faster.

    pip install numba numexpr mkl
    python benchmarks/numpy_accelerators.py [--threads 2]

A step of an LSTM is one matrix product and what its gates make of it. Each part is computed as the
engine computes it and by what could replace it, in turns and in one run: numba (all of the gates in
one loop) and numexpr (sigmoid of the gates) for the second part, MKL for the first, as it is and
with its packed weights. Printed are medians in µs and ratios to NumPy's: above 1 is slower than
NumPy. Results are compared first. What is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SHAPES = ((1, 32), (1, 128), (8, 64), (16, 256), (64, 512))
"""B×H."""
ROUNDS = 31

Part = Callable[[], object]


class Step:
    """Arrays of one step: h ``(B, H)``, R ``(4H, H)``, and the gates' sums ``(B, 4H)``."""

    def __init__(self, batch: int, hidden: int) -> None:
        rng = np.random.default_rng(0)
        self.batch, self.hidden = batch, hidden
        self.h = rng.standard_normal((batch, hidden), dtype="float32")
        self.matrix = rng.standard_normal((4 * hidden, hidden), dtype="float32")
        self.transposed = np.ascontiguousarray(self.matrix.T)
        self.sums = rng.standard_normal((batch, 4 * hidden), dtype="float32")
        self.inputs = rng.standard_normal((batch, 4 * hidden), dtype="float32")
        self.c = rng.standard_normal((batch, hidden), dtype="float32")
        self.out = np.empty_like(self.sums)
        self.new_c, self.new_h = np.empty_like(self.c), np.empty_like(self.c)


def gates_of_numpy(step: Step) -> Part:
    """The engine's way: few calls, all of them on arrays that stay in the cache."""
    hidden, a, one = step.hidden, np.empty_like(step.sums), np.ones((), "float32")
    i, f, g, o = (a[:, n * hidden : (n + 1) * hidden] for n in range(4))
    signs = np.repeat(np.float32([-1, -1, 1, -1]), hidden)
    sums, inputs = step.sums * signs, step.inputs * signs
    total, product = np.empty_like(sums), np.empty_like(step.c)
    sums_of_g = total[:, 2 * hidden : 3 * hidden]

    def run() -> None:
        np.add(sums, inputs, total)
        np.exp(total, a)
        np.add(a, one, a)
        np.tanh(sums_of_g, g)
        np.divide(g, i, product)
        np.divide(step.c, f, step.new_c)
        np.add(step.new_c, product, step.new_c)
        np.tanh(step.new_c, product)
        np.divide(product, o, step.new_h)

    return run


def gates_of_numba(step: Step) -> Part:
    """All gates in one compiled loop, which reads and writes each value once."""
    import numba

    @numba.njit(fastmath={"contract", "nsz", "arcp", "afn"})  # type: ignore[untyped-decorator]
    def loop(sums: Any, inputs: Any, c: Any, new_c: Any, new_h: Any) -> None:
        batch, hidden = c.shape
        one = np.float32(1)
        for b in range(batch):
            for k in range(hidden):
                i = one / (one + np.exp(-(sums[b, k] + inputs[b, k])))
                at = k + hidden
                f = one / (one + np.exp(-(sums[b, at] + inputs[b, at])))
                at += hidden
                g = np.tanh(sums[b, at] + inputs[b, at])
                at += hidden
                o = one / (one + np.exp(-(sums[b, at] + inputs[b, at])))
                cell = f * c[b, k] + i * g
                new_c[b, k] = cell
                new_h[b, k] = o * np.tanh(cell)

    return lambda: loop(step.sums, step.inputs, step.c, step.new_c, step.new_h)


def sigmoids_of_numpy(step: Step) -> Part:
    """``1 + exp(a)`` of all gates, as the engine has it."""
    one = np.ones((), "float32")

    def run() -> None:
        np.exp(step.sums, step.out)
        np.add(step.out, one, step.out)

    return run


def sigmoids_of_numexpr(step: Step) -> Part:
    """The same as one expression, in blocks and on several threads."""
    import numexpr

    return lambda: numexpr.evaluate("1 + exp(a)", {"a": step.sums}, out=step.out)


def product_of_numpy(step: Step) -> Part:
    """``h Rᵀ`` by NumPy's own BLAS."""
    return lambda: np.dot(step.h, step.transposed, step.out)


def _mkl(threads: int) -> Any:
    found = sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))
    if not found:
        raise ImportError("no libmkl_rt")
    library = ctypes.CDLL(str(found[0]))
    address, number, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_float
    matrices = [address, number, address, number, real, address, number]
    library.cblas_sgemm.argtypes = [*[number] * 6, real, *matrices]
    library.cblas_sgemm_pack_get_size.argtypes = [number] * 4
    library.cblas_sgemm_pack_get_size.restype = ctypes.c_size_t
    library.cblas_sgemm_pack.argtypes = [*[number] * 6, real, address, number, address]
    library.cblas_sgemm_compute.argtypes = [*[number] * 6, *matrices]
    library.MKL_Set_Num_Threads(threads)
    return library


ROW_MAJOR, PLAIN, TRANSPOSED, PACKED, B_MATRIX = 101, 111, 112, 151, 162
"""Constants of CBLAS, and of MKL's packed products."""


def product_of_mkl(step: Step, threads: int) -> Part:
    """``h Rᵀ`` by MKL."""
    library, hidden = _mkl(threads), step.hidden
    sizes = step.batch, 4 * hidden, hidden
    h, matrix, out = (a.ctypes.data for a in (step.h, step.matrix, step.out))
    result = 0.0, out, 4 * hidden
    given = h, hidden, matrix, hidden
    return lambda: library.cblas_sgemm(ROW_MAJOR, PLAIN, TRANSPOSED, *sizes, 1.0, *given, *result)


def product_of_packed_mkl(step: Step, threads: int) -> Part:
    """``h Rᵀ`` by MKL with R packed once, which OpenBLAS does in every call."""
    library, hidden = _mkl(threads), step.hidden
    sizes = step.batch, 4 * hidden, hidden
    packed = np.empty(library.cblas_sgemm_pack_get_size(B_MATRIX, *sizes) + 64, "uint8")
    place = packed.ctypes.data
    library.cblas_sgemm_pack(
        *(ROW_MAJOR, B_MATRIX, TRANSPOSED, *sizes, 1.0, step.matrix.ctypes.data, hidden, place)
    )
    h, out = step.h.ctypes.data, step.out.ctypes.data

    def run(keep: object = packed) -> None:
        given = h, hidden, place, hidden
        library.cblas_sgemm_compute(
            *(ROW_MAJOR, PLAIN, PACKED, *sizes, *given, 0.0, out, 4 * hidden)
        )

    return run


def medians(first: Part, second: Part) -> tuple[float, float]:
    """µs of each, taken in turns."""
    first(), second()
    start = time.perf_counter()
    first()
    turn = max(1, int(0.002 / max(time.perf_counter() - start, 1e-7)))
    times: tuple[list[float], list[float]] = [], []
    for _ in range(ROUNDS):
        for part, into in ((first, times[0]), (second, times[1])):
            start = time.perf_counter()
            for _ in range(turn):
                part()
            into.append((time.perf_counter() - start) / turn * 1e6)
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> None:
    """Print a line for each part, candidate and shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2, help="of MKL; others by their variables")
    threads = parser.parse_args().threads
    candidates: dict[str, tuple[str, Callable[[Step], Part], Callable[[Step], Part]]] = {
        "numba": ("gates", gates_of_numpy, gates_of_numba),
        "numexpr": ("sigmoids", sigmoids_of_numpy, sigmoids_of_numexpr),
        "MKL": ("product", product_of_numpy, lambda step: product_of_mkl(step, threads)),
        "MKL, packed": (
            *("product", product_of_numpy),
            lambda step: product_of_packed_mkl(step, threads),
        ),
    }
    print(f"{'part':10}{'by':14}{'B×H':>10}{'NumPy µs':>10}{'µs':>10}{'ratio':>8}")
    for name, (part, of_numpy, of_candidate) in candidates.items():
        for batch, hidden in SHAPES:
            step = Step(batch, hidden)
            try:
                ours, theirs = of_numpy(step), of_candidate(step)
            except ImportError as error:
                print(f"{part:10}{name:14}not installed: {error}")
                break
            into = step.new_h if part == "gates" else step.out
            ours()
            wanted = into.copy()
            theirs()
            np.testing.assert_allclose(into, wanted, rtol=2e-5, atol=2e-5 * np.abs(wanted).max())
            a, b = medians(ours, theirs)
            print(f"{part:10}{name:14}{f'{batch}×{hidden}':>10}{a:10.1f}{b:10.1f}{b / a:8.2f}")


if __name__ == "__main__":
    main()
