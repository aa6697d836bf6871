"""What `gpu_sanitizer.py` runs under the tool.

    python scripts/gpu_sanitizer_cases.py PROGRAM FILE

PROGRAM is an algorithm (all its cases), ``graphs`` (calls that come back), ``results`` (five cases
whose results a kernel reads) or ``beyond`` (a kernel that reads beyond its array). A line of JSON
is added to FILE after each case, so that a run that is cut off still says how far it came.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CELLS = ("relu", "tanh", "lstm", "gru")
LAYOUTS = ("time_major", "batch_major", "packed")
EQUAL, RAGGED = (5, 5, 5, 5), (2, 5, 0, 1)
SORTED = (5, 4, 4, 1)
"""Of which the library writes the results where they are read; others are scattered from there."""

KERNELS = r"""
extern "C" __global__ void read_results(const unsigned char* from, unsigned char* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}
extern "C" __global__ void read_unwritten(const unsigned char* from, unsigned char* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}
extern "C" __global__ void read_beyond(const unsigned char* from, unsigned char* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[n + i];
}
"""


class Case:
    """A network, the lengths and layout of a batch, and what to call it."""

    def __init__(self, name: str, spec: Any, lengths: Any, layout: str) -> None:
        self.name = name
        self.spec = spec
        self.lengths = lengths
        self.layout = layout


COME_BACK = 4
"""Calls after which a shape has been recorded as a graph and replayed."""


def graph_cases(v2: Any) -> Iterator[Case]:
    """Of the library's and of own kernels, with what takes scratch."""
    for algo in ("standard", "fused"):
        for cell in CELLS:
            spec = v2.RNNSpec(cell, 64, 64, algo=algo)
            yield Case(f"graphs {algo} {cell}", spec, EQUAL, "time_major")
        spec = v2.RNNSpec(
            "lstm", 64, 64, algo=algo, dtype="float16", num_layers=2, bidirectional=True
        )
        yield Case(f"graphs {algo} lstm float16", spec, EQUAL, "batch_major")


def cases_of(v2: Any, algo: str) -> Iterator[Case]:
    """Each cell in each layout; with ``standard``, which does everything, the rest as well."""
    if algo == "graphs":
        yield from graph_cases(v2)
        return
    size = 64 if algo in ("persist_static", "persist_dynamic", "fused") else 16
    lengths = RAGGED if algo in ("standard", "fused") else EQUAL
    for cell in CELLS:
        for layout in LAYOUTS:
            spec = v2.RNNSpec(cell, size, size, algo=algo)
            yield Case(f"{algo} {cell} {layout}", spec, lengths, layout)
    if algo == "standard":
        yield from more_cases(v2)
    if algo == "fused":
        for dtype in ("float16", "bfloat16"):
            spec = v2.RNNSpec("lstm", 64, 64, algo=algo, dtype=dtype, bidirectional=True)
            yield Case(f"{algo} lstm {dtype}", spec, RAGGED, "time_major")
        # Some weights are in shared memory, of GRU backward's alone.
        for cell, hidden in (("lstm", 448), ("gru", 480)):
            spec = v2.RNNSpec(cell, 16, hidden, algo=algo)
            yield Case(f"{algo} {cell} of {hidden} units", spec, RAGGED, "time_major")


def more_cases(v2: Any) -> Iterator[Case]:
    """What only ``standard`` does, and every dtype."""
    options: dict[str, dict[str, Any]] = {
        "projected": {"proj_size": 5, "dtype": "float64"},
        "2 layers bi dropout": {"num_layers": 2, "bidirectional": True, "dropout": 0.5},
        "clipped": {"clip": (-0.5, 0.5)},
        "skip": {"input_mode": "skip", "bias": "recurrent"},
        "float16": {"dtype": "float16"},
        "bfloat16": {"dtype": "bfloat16"},
    }
    for number, (name, given) in enumerate(options.items()):
        layout = LAYOUTS[number % 3]
        spec = v2.RNNSpec("lstm", 16, 16, algo="standard", **given)
        yield Case(f"standard lstm {name} {layout}", spec, RAGGED, layout)


def five_cases(v2: Any) -> Iterator[Case]:
    """Of every cell and layout one, with what makes results harder to fill."""
    yield Case("lstm", v2.RNNSpec("lstm", 16, 16, num_layers=2, bidirectional=True), RAGGED,
               "time_major")  # fmt: skip
    yield Case("gru", v2.RNNSpec("gru", 16, 16, dtype="float64"), RAGGED, "batch_major")
    yield Case("tanh", v2.RNNSpec("tanh", 16, 16, dtype="float16"), SORTED, "packed")
    yield Case("projected", v2.RNNSpec("lstm", 16, 16, proj_size=5), RAGGED, "batch_major")
    yield Case("relu", v2.RNNSpec("relu", 16, 16, num_layers=3, dropout=0.3), EQUAL, "time_major")


def inputs(v2: Any, case: Case) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    """w, x, hx, cx on the device, each an allocation of its own, and how to call."""
    cupy, numpy = importlib.import_module("cupy"), importlib.import_module("numpy")
    numpy_dtype = importlib.import_module("cudnn_compat.arrays").numpy_dtype
    rng, spec, batch = numpy.random.default_rng(0), case.spec, len(case.lengths)

    def draw(*shape: int) -> Any:
        return cupy.asarray(rng.uniform(-1, 1, shape).astype(numpy_dtype(spec.dtype)))

    steps = max(case.lengths)
    rows: tuple[int, ...] = (steps, batch)
    if case.layout == "batch_major":
        rows = (batch, steps)
    elif case.layout == "packed":
        rows = (sum(case.lengths),)
    w = v2.init_weights(spec, seed=0, xp=cupy)
    cx = draw(*spec.cell_shape(batch)) if spec.has_cell else None
    how = {"lengths": case.lengths, "layout": case.layout}
    return w, draw(*rows, spec.input_size), draw(*spec.state_shape(batch)), cx, how


def forward(v2: Any, case: Case) -> list[Any]:
    """Inference: the results."""
    w, x, hx, cx, how = inputs(v2, case)
    return [a for a in v2.rnn_forward(case.spec, w, x, hx, cx, **how) if a is not None]


def backward(v2: Any, case: Case) -> list[Any]:
    """Training forward and backward: the results and the gradients."""
    w, x, hx, cx, how = inputs(v2, case)
    out = v2.rnn_forward(case.spec, w, x, hx, cx, training=True, seed=0, **how)
    gradients = v2.rnn_backward(out, out.y, out.hy, out.cy)
    return [a for a in (*out, *gradients) if a is not None]


class Answers:
    """The file of results, one line a case."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, name: str, result: str) -> None:
        """Write a line, at once."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"case": name, "result": result}) + "\n")


def check_memory(v2: Any, algo: str, answers: Answers) -> None:
    """All cases of an algorithm, both directions of the pass."""
    cupy, numpy = importlib.import_module("cupy"), importlib.import_module("numpy")
    for case in cases_of(v2, algo):
        for direction in (forward, backward):
            name = f"{case.name} {direction.__name__}"
            try:
                for _ in range(COME_BACK if algo == "graphs" else 1):
                    results = direction(v2, case)
                cupy.cuda.Device().synchronize()
                finite = all(numpy.isfinite(a.get().astype("float32")).all() for a in results)
                answers.add(name, "ran" if finite else "failed: not finite")
                if algo == "graphs" and not recorded():
                    answers.add(name, "failed: nothing was recorded")
            except v2.UnsupportedError as error:
                answers.add(name, f"refused: {error}")
            except Exception as error:  # the others are still worth running
                answers.add(name, f"failed: {type(error).__name__}: {error}")
    answers.add("all", "end")


def recorded() -> bool:
    """Whether the plan that was used last has a graph."""
    choose = importlib.import_module("cudnn_compat.engines.choose")
    return bool(choose.cudnn_engine().plans.entries()[-1].replays.recorded)


def launch(kernel: str, array: Any) -> None:
    """Let a kernel read every byte of an array."""
    cupy, numpy = importlib.import_module("cupy"), importlib.import_module("numpy")
    module = cupy.RawModule(code=KERNELS)
    sink = cupy.empty(max(array.nbytes, 1), "uint8")
    blocks = (array.nbytes + 127) // 128
    if blocks:
        size = numpy.int32(array.nbytes)
        module.get_function(kernel)((blocks,), (128,), (array, sink, size))
        cupy.cuda.Device().synchronize()


def check_results(v2: Any, answers: Answers) -> None:
    """Read every byte of the results of five cases, and of an array that nobody wrote."""
    cupy = importlib.import_module("cupy")
    for case in five_cases(v2):
        for array in (*forward(v2, case), *backward(v2, case)):
            launch("read_results", array)
        answers.add(case.name, "ran")
    launch("read_unwritten", cupy.empty(64, "uint8"))
    answers.add("all", "end")


def main(program: str, file: str) -> None:
    """Run one program."""
    cupy = importlib.import_module("cupy")
    cupy.cuda.set_allocator(None)  # no pool: each array is an allocation that the tool knows
    os.environ["CUDNN_COMPAT_TUNING"] = "off"  # what is tried does not depend on times
    answers = Answers(Path(file))
    if program == "beyond":
        launch("read_beyond", cupy.zeros(64, "uint8"))
        return
    v2 = importlib.import_module("cudnn_compat.v2")
    if program == "results":
        check_results(v2, answers)
    else:
        check_memory(v2, program, answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
