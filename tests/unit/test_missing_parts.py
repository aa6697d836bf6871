"""Machines that lack CuPy, cuDNN or a GPU: each is said in words, and NumPy works everywhere.

Every test is a program of its own. A CuPy without a GPU is played by a stub, whose arrays look like
CuPy's; a cuDNN that is not there by a search that finds nothing. The same with the real CuPy is
in ``tests/gpu/test_without_cudnn.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cudnn_compat.cudnn.library import load
from cudnn_compat.errors import CompatError

ROOT = Path(__file__).parents[2]

STUB = '''
"""As much of CuPy as is looked at before anything is computed."""
import sys, types
import numpy

__version__ = "14.0.0"

class _Device:
    id = 0
    def __init__(self, *args): pass
    def __enter__(self): return self
    def __exit__(self, *error): pass

class _Stream:
    ptr = 0

class _Pointer:
    ptr, device_id = 0, 0

class ndarray(numpy.ndarray):
    device, data = _Device(), _Pointer()

def asarray(a, dtype=None): return numpy.array(a, dtype).view(ndarray)
def arange(n): return numpy.arange(n).view(ndarray)
def zeros(*args): return numpy.zeros(*args).view(ndarray)
def empty(*args): return numpy.empty(*args).view(ndarray)

def _count():
    if DEVICES: return DEVICES
    raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")

cuda = types.ModuleType("cupy.cuda")
cuda.Device, cuda.get_current_stream = _Device, _Stream
cuda.runtime = types.ModuleType("cupy.cuda.runtime")
cuda.runtime.getDeviceCount, cuda.runtime.getDevice = _count, lambda: 0
sys.modules.update({"cupy.cuda": cuda, "cupy.cuda.runtime": cuda.runtime})
'''

NO_CUPY = """
import sys
sys.modules["cupy"] = None
"""
NO_CUDNN = """
import cudnn_compat.cudnn.library as _library
from cudnn_compat.cudnn.find import Candidate as _Candidate
_library.find_cudnn = lambda: iter([_Candidate("libcudnn.so.9", "loader", "hidden by this test")])
"""
A_GPU = """
import cudnn_compat.environment as _environment
_environment._gpu = lambda: {
    "available": True, "reason": None, "driver": "580.0", "cuda": "13.0",
    "devices": [{"name": "Stub", "compute_capability": "9.0", "memory_bytes": 1}],
}
"""
FACTS = """
import json
from cudnn_compat.environment import collect
print(json.dumps(collect()))
"""
INFO = """
from click.testing import CliRunner
from cudnn_compat.cli.app import app
print(CliRunner().invoke(app, ["info"], catch_exceptions=False).output)
"""
CALL = """
import cupy
from cudnn_compat import v2
spec = v2.RNNSpec("lstm", 3, 4)
try:
    v2.rnn_forward(spec, v2.init_weights(spec, seed=0, xp=cupy), cupy.zeros((2, 1, 3), "float32"))
except Exception as error:
    print(type(error).__name__, error)
"""
NUMPY = """
import numpy
from cudnn_compat import legacy, v2
spec = v2.RNNSpec("lstm", 3, 4, bidirectional=True)
w, x = v2.init_weights(spec, seed=0), numpy.ones((2, 1, 3), "float32")
out = v2.rnn_forward(spec, w, x, training=True)
gradients = v2.rnn_backward(out, out.y)
y, state = v2.GRU(3, 4)(x)
print(out.engine, gradients.dw.shape == w.shape, y.shape)
"""


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    """Runs a program on a machine with so many stub GPUs for CuPy; what it prints."""

    def run(program: str, *, devices: int | None = None) -> str:
        path = [str(ROOT)]
        if devices is not None:
            (tmp_path / "cupy.py").write_text(f"DEVICES = {devices}\n{STUB}", encoding="utf-8")
            path.insert(0, str(tmp_path))
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "COLUMNS": "300"}
        environment["PYTHONPATH"] = os.pathsep.join(path)
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def _cudnn() -> None:
    try:
        load()
    except CompatError as error:
        pytest.skip(f"needs a cuDNN that loads: {str(error).splitlines()[0]}")


def usable(facts: Any) -> dict[str, bool]:
    names = ("gpu", "cupy", "cudnn")
    return {
        **{name: facts[name]["available"] for name in names},
        "engine": facts["engines"]["cudnn"]["available"],
    }


def test_cupy_without_cudnn_is_said_by_info(machine: Any) -> None:
    program = A_GPU + NO_CUDNN
    facts = json.loads(machine(program + FACTS, devices=1))
    assert usable(facts) == {"gpu": True, "cupy": True, "cudnn": False, "engine": False}
    reason = facts["engines"]["cudnn"]["reason"]
    assert "CuPy computes" in reason
    assert "no cuDNN" in reason
    said = machine(program + INFO, devices=1)
    assert "hidden by this test" in said
    assert "pip install" in said


def test_cupy_without_cudnn_a_call_says_what_to_install(machine: Any) -> None:
    said = machine(A_GPU + NO_CUDNN + CALL, devices=1)
    assert said.startswith("LibraryNotFound ")
    assert "pip install 'cudnn-compat[cuda13]'" in said
    assert "loader: libcudnn.so.9: hidden by this test" in said


@pytest.mark.usefixtures("_cudnn")
def test_cudnn_without_a_gpu_is_said_by_info(machine: Any) -> None:
    facts = json.loads(machine(NO_CUPY + FACTS))
    assert usable(facts) == {"gpu": False, "cupy": False, "cudnn": True, "engine": False}
    assert "no GPU" in facts["engines"]["cudnn"]["reason"]
    assert facts["cudnn"]["version"]


@pytest.mark.usefixtures("_cudnn")
def test_cudnn_without_a_gpu_a_call_says_that_there_is_none(machine: Any) -> None:
    said = machine(CALL, devices=0)
    assert said.startswith("LibraryNotInitialized cudnnCreate: ")
    assert "is there a GPU" in said


@pytest.mark.usefixtures("_cudnn")
def test_cudnn_and_a_gpu_without_cupy_are_said_by_info(machine: Any) -> None:
    facts = json.loads(machine(NO_CUPY + A_GPU + FACTS))
    assert usable(facts) == {"gpu": True, "cupy": False, "cudnn": True, "engine": False}
    assert "CuPy" in facts["engines"]["cudnn"]["reason"]


def test_neither_is_said_by_info(machine: Any) -> None:
    facts = json.loads(machine(NO_CUPY + NO_CUDNN + FACTS))
    assert usable(facts) == {"gpu": False, "cupy": False, "cudnn": False, "engine": False}
    reason = facts["engines"]["cudnn"]["reason"]
    assert "neither a GPU nor cuDNN" in reason


def test_an_engine_asked_for_by_name_says_which_arrays_it_takes(machine: Any) -> None:
    program = (
        NO_CUPY
        + NO_CUDNN
        + NUMPY
        + (
            "try:\n    v2.rnn_forward(spec, w, x, engine='cudnn')\n"
            "except v2.UnsupportedError as error:\n    print(error)\n"
        )
    )
    assert "pass CuPy arrays" in machine(program)


@pytest.mark.parametrize(
    ("program", "devices"),
    [(NO_CUDNN, 1), (NO_CUDNN, 0), ("", 0), (NO_CUPY, None), (NO_CUPY + NO_CUDNN, None)],
    ids=["CuPy alone", "CuPy without a GPU", "cuDNN without a GPU", "cuDNN alone", "neither"],
)
def test_everything_on_numpy_works(machine: Any, program: str, devices: int | None) -> None:
    assert machine(program + NUMPY, devices=devices) == "numpy True (2, 1, 4)\n"
