"""The package's own kernels without a GPU: compiled for the CPU, on an emulation of CUDA.

``fused_emulator.hpp`` runs the threads of each block in random order, so that a missing barrier
shows. What computes on a GPU is the same source; only ``machine.cu`` has a substitute.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.engines.cudnn.fused import FusedNetwork, kernels, products
from cudnn_compat.engines.cudnn.fused.blocks import Blocks
from cudnn_compat.matrix.tolerances import tolerance
from cudnn_compat.sequences import make_sequences
from tests.engines.networks import GRADIENTS, OUTPUTS, draw, expected, largest, scale

COMPILER = shutil.which("g++")
HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

LAUNCH = """
extern "C" void launch_{name}(const int* grid, const int* block, unsigned seed, void** args) {{
    emulator::launch(Index{{grid[0], grid[1], grid[2]}}, Index{{block[0], block[1], 1}}, C, seed,
                     [=] {{ {name}({args}); }});
}}
"""


class Address:
    def __init__(self, array: np.ndarray) -> None:
        self.ptr = array.__array_interface__["data"][0]


class DeviceArray(np.ndarray):
    """An array that says where it lies as CuPy's do."""

    @property
    def data(self) -> Address:  # type: ignore[override]
        return Address(self)


def empty(shape: Any, dtype: Any = "float32") -> DeviceArray:
    """Aligned memory in which every float is NaN."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.full(size + 64, 255, "uint8")
    start = -Address(memory).ptr % 64  # type: ignore[arg-type]
    return memory[start : start + size].view(dtype).reshape(shape).view(DeviceArray)


def put(array: Any) -> Any:
    if array is None:
        return None
    out = empty(array.shape, array.dtype)
    out[...] = array
    return out


def prepared(code: str, index: int | str = "") -> tuple[str, dict[str, str]]:
    """A program as C++ for ``fused_emulator.hpp``, and the functions that launch its kernels.

    ``index`` goes to the end of their names: "C" functions of one name are one, in any namespace.
    """
    code = code[code.index("// What both recurrence kernels share") :]
    code = re.sub(
        r"(__shared__ .*?(\w+)(?:\[[^;]*\])+;)", r"\1 emulator::anything(&\2, sizeof \2);", code
    )
    functions = {}
    for name, parameters in re.findall(r"__global__[^{;]*?(\w+)\(([^()]*)\) \{", code):
        kinds = [re.match(r"(.*?)\w+$", p.strip())[1] for p in parameters.split(",")]  # type: ignore[index]
        args = ", ".join(
            f"*({kind.replace('const __grid_constant__ ', '')}*)args[{place}]"
            for place, kind in enumerate(kinds)
        )
        code = re.sub(rf"\b{name}\(", f"{name}{index}(", code)
        code += LAUNCH.format(name=f"{name}{index}", args=args)
        functions[name] = f"launch_{name}{index}"
    return code, functions


def compiled(folder: Path, *codes: str, options: tuple[str, ...] = ()) -> list[ctypes.CDLL]:
    """Programs, compiled side by side."""
    command = ["g++", "-std=c++20", "-O1", "-w", "-fPIC", "-shared", "-pthread", f"-I{HERE}"]
    programs, running = [], []
    for code in codes:
        source = folder / f"{len(list(folder.iterdir()))}.cpp"
        source.write_text('#include "fused_emulator.hpp"\n' + code)
        programs.append(source.with_suffix(".so"))
        running.append(subprocess.Popen([*command, *options, str(source), "-o", programs[-1]]))
    failed = [each.wait() for each in running]  # of all, not only up to the first that failed
    assert not any(failed)
    return [ctypes.CDLL(str(program)) for program in programs]


_seeds = itertools.count(1)


def launch(function: Any, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
    values = [np.array(a.data.ptr if isinstance(a, DeviceArray) else a) for a in args]
    places = (ctypes.c_void_p * len(values))(*(Address(v).ptr for v in values))
    sizes = [(ctypes.c_int * 3)(*(*size, 1, 1)[:3]) for size in (grid, block)]
    function(*sizes, next(_seeds), places)


class Module:
    """``cupy.RawModule``: one program, all of whose kernels are compiled at once."""

    def __init__(self, folder: Path, code: str, options: tuple[str, ...]) -> None:
        code, self._functions = prepared(code)
        defined = tuple(option for option in options if option.startswith("-D"))
        (self._program,) = compiled(folder, code, options=defined)

    def get_function(self, name: str) -> Any:
        return functools.partial(launch, getattr(self._program, self._functions[name]))


class Blas:
    """The calls of cuBLAS, on the CPU."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: 0

    def cublasGemmEx(
        self, _: int, left: int, right: int, m: int, n: int, k: int, *rest: Any
    ) -> int:
        _, a, a_type, a_row, b, b_type, b_row, beta, c, _, c_row, _, _ = rest
        first = matrix(a, a_type, (m, k) if left else (k, m), a_row)
        second = matrix(b, b_type, (k, n) if right else (n, k), b_row)
        out = matrix(c, 0, (n, m), c_row)
        product = (second.T if right else second) @ (first.T if left else first)
        out[...] = product + (out if ctypes.c_float.from_address(beta).value else 0)
        return 0


def matrix(address: int, kind: int, shape: tuple[int, int], row: int) -> np.ndarray:
    """Device memory; of short dtypes a copy in float32."""
    dtype = numpy_dtype({0: "float32", 2: "float16", 14: "bfloat16"}[kind])
    size = (shape[0] - 1) * row + shape[1]
    memory = np.frombuffer((ctypes.c_char * (size * dtype.itemsize)).from_address(address), dtype)
    strides = (row * dtype.itemsize, dtype.itemsize)
    return np.lib.stride_tricks.as_strided(memory, shape, strides).astype("float32", copy=False)


class Cuda:
    """``cupy.cuda``, of an H200."""

    def __init__(self) -> None:
        self.device = self.runtime = self

    ptr = 0

    def get_cublas_handle(self) -> int:
        return 0

    def runtimeGetVersion(self) -> int:
        return 13000

    def get_current_stream(self) -> Cuda:
        return self

    def getDeviceProperties(self, _: int) -> dict[str, int]:
        return {"major": 9, "minor": 0, "multiProcessorCount": 132}


class Cupy:
    def __init__(self, folder: Path) -> None:
        self._folder, self.cuda = folder, Cuda()

    empty, asarray = staticmethod(empty), staticmethod(put)

    def RawModule(self, code: str, options: tuple[str, ...]) -> Module:
        return Module(self._folder, code, options)


def plain(
    blocks: int, lanes: int, per_thread: int, chunk: int, threads: int, hidden: int = 32
) -> Blocks:
    return Blocks(blocks, lanes, per_thread, chunk, 1, hidden, threads)


def tensor(hidden: int, blocks: int, threads: int) -> Blocks:
    return Blocks(blocks, 4, 1, 8, 1, hidden, threads, tiles=1)


CASES = {
    "lstm, two blocks, two directions": (
        v2.RNNSpec("lstm", 3, 30, bidirectional=True, math="full", clip=(-9.0, 9.0)),
        (plain(2, 8, 1, 2, 128), plain(2, 8, 4, 2, 64)),
    ),
    "gru, one block": (
        v2.RNNSpec("gru", 3, 32, math="full"),
        (plain(1, 8, 2, 1, 128), plain(1, 8, 4, 1, 64)),
    ),
    "tanh, two blocks, four sequences": (
        v2.RNNSpec("tanh", 3, 32, math="full", num_layers=2),
        (plain(2, 8, 4, 4, 32), plain(2, 8, 4, 4, 64)),
    ),
    "lstm, eight blocks, four sequences, two layers of two directions": (
        v2.RNNSpec("lstm", 3, 64, math="full", num_layers=2, bidirectional=True),
        (plain(8, 16, 2, 4, 64, hidden=64), plain(8, 8, 4, 4, 128, hidden=64)),
    ),
    "lstm in float16 on tensor cores": (
        v2.RNNSpec("lstm", 4, 64, dtype="float16"),
        (tensor(64, 4, 128), tensor(64, 4, 128)),
    ),
}


LENGTHS = (3, 0, 4, 2, 1, 4, 3)
"""At each place of a chunk some sequence has two steps or more, so that the h of every place is
multiplied once it was sent."""


class Run:
    """A forward, and in training a backward, on the emulation."""

    def __init__(
        self, folder: Path, spec: v2.RNNSpec, lengths: tuple[int, ...], layout: str
    ) -> None:
        self.cupy, self.spec, self.lengths, self.layout = Cupy(folder), spec, lengths, layout
        data = draw(spec, lengths, layout=layout)
        self.data = data.replace(w=(data.w / np.sqrt(spec.hidden_size / 4)).astype(data.w.dtype))

    def __call__(self, cuts: tuple[Blocks, ...] | None, *, training: bool) -> dict[str, Any]:
        spec, data, batch = self.spec, self.data, len(self.lengths)
        given = {name: put(array) for name, array in vars(data).items()}
        sequences = make_sequences(self.layout, data.x.shape, lengths=self.lengths)
        network = FusedNetwork(self.cupy, 0, spec, batch, training=training)  # type: ignore[arg-type]
        network.cuts = cuts or network.cuts
        rows, state = network.rows(sequences), spec.state_shape(batch)
        w, x, hx, cx = (given[name] for name in ("w", "x", "hx", "cx"))
        y, hy = empty((*data.x.shape[:-1], spec.output_size), spec.dtype), empty(state, spec.dtype)
        cy, dcx = (empty(state, spec.dtype) if spec.has_cell else None for _ in range(2))
        reserve = empty((network.reserve_bytes(sequences),), "uint8") if training else None
        network.forward(rows, w, x, hx, cx, y=y, hy=hy, cy=cy, reserve=reserve)
        outputs = dict(zip(OUTPUTS, (y, hy, cy), strict=True))
        if not training:
            return outputs
        dx, dhx, dw = empty(data.x.shape, spec.dtype), empty(state, spec.dtype), put(0 * data.w)
        gradients = {name: given[name] for name in ("dy", "dhy", "dcy")}
        network.backward_data(rows, w, cx, reserve, **gradients, dx=dx, dhx=dhx, dcx=dcx)
        network.backward_weights(rows, x, reserve, dw=dw)
        return outputs | dict(zip(GRADIENTS, (dx, dhx, dcx, dw), strict=True))

    def check(self, got: dict[str, Any]) -> None:
        """Against the slow reference in float64."""
        spec, wanted = self.spec, expected(self.spec, self.data, self.lengths, layout=self.layout)
        for name, value in got.items():
            if value is not None:
                what = "output" if name in OUTPUTS else "gradient"
                bound = tolerance(spec.dtype, spec.math, engine="cudnn", what=what)
                assert largest(value, wanted[name]) <= bound * scale(wanted[name]), name


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: Any) -> None:
    monkeypatch.setattr(kernels, "_kernels", {})
    monkeypatch.setattr(products, "_cublas", lambda _: Blas())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_kernels_are_right_on_an_emulation_of_cuda(
    case: tuple[v2.RNNSpec, tuple[Blocks, Blocks]], tmp_path: Path
) -> None:
    spec, cuts = case
    run = Run(tmp_path, spec, LENGTHS, "packed")
    run.check(run(cuts, training=True))


def test_a_cut_that_is_chosen_for_a_large_network_is_right_in_inference(tmp_path: Path) -> None:
    spec = v2.RNNSpec("lstm", 8, 256, num_layers=2, bidirectional=True, math="full")
    run = Run(tmp_path, spec, (4,) * 16, "time_major")
    run.check(run(None, training=False))
