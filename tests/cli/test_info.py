"""``cudnn-compat info`` and the facts behind it."""

from __future__ import annotations

import ctypes
import json
import platform
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from click.testing import CliRunner
from packaging.version import Version

import cudnn_compat
from cudnn_compat import environment
from cudnn_compat.cli.app import app
from cudnn_compat.cudnn import library
from cudnn_compat.cudnn.symbols import read_manifest
from cudnn_compat.errors import LibraryNotFound

Run = Callable[..., subprocess.CompletedProcess[str]]


def info(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["info", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def line_of(text: str, name: str) -> str:
    """The line about something, spaces folded."""
    (line,) = (line for line in text.splitlines() if line.startswith(name + " "))
    return " ".join(line.split())


def test_it_tells_versions_and_engines() -> None:
    text = info()
    assert cudnn_compat.__version__ in line_of(text, "cudnn_compat")
    assert platform.python_version() in line_of(text, "Python")
    assert line_of(text, "NumPy").startswith(f"NumPy yes {numpy.__version__}, BLAS ")
    assert line_of(text, "engine numpy").startswith("engine numpy yes")
    assert "float32, float64" in line_of(text, "engine numpy")


def test_the_json_has_the_same_facts_under_stable_keys() -> None:
    facts = json.loads(info("--json"))
    assert list(facts) == [
        "cudnn_compat",
        "python",
        "platform",
        "packages",
        "numpy",
        "gpu",
        "cupy",
        "cudnn",
        "engines",
    ]
    assert facts["packages"]["click"]
    assert set(facts["engines"]) == {"numpy", "cudnn"}
    for fact in (facts["gpu"], facts["cupy"], facts["cudnn"], *facts["engines"].values()):
        assert isinstance(fact["available"], bool)
        assert (fact["reason"] is None) == fact["available"]
    assert facts["numpy"]["version"] == numpy.__version__
    assert facts["cudnn"]["sought"]


def test_it_loads_no_package_that_it_only_names(python: Run) -> None:
    program = (
        "import sys\n"
        "from cudnn_compat.environment import collect\n"
        "before = set(sys.modules)\n"
        "collect()\n"
        "print({'torch', 'onnx', 'click', 'rich'} & set(sys.modules))\n"
        "print({'numpy', 'cupy'} & before)\n"
    )
    assert python("-c", program).stdout == "set()\nset()\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("raise ImportError('libnvrtc.so.12 is missing')", "ImportError: libnvrtc.so.12"),
        ("raise RuntimeError('half installed')", "cannot be imported: RuntimeError: half"),
        ("cuda = None", "cannot compute: AttributeError"),
    ],
)
def test_a_broken_cupy_is_a_reason_and_no_crash(
    tmp_path: Path, command: Run, content: str, reason: str
) -> None:
    (tmp_path / "cupy.py").write_text(content, encoding="utf-8")
    metadata = tmp_path / "cupy_cuda13x-13.6.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: cupy-cuda13x\nVersion: 13.6.0\n")
    done = command("info", "--json")
    assert done.returncode == 0, done.stderr
    fact = json.loads(done.stdout)["cupy"]
    assert not fact["available"]
    assert fact["version"] == "13.6.0"
    assert reason in fact["reason"]
    assert "installed: 13.6.0" in command("info").stdout


def test_a_cupy_that_is_not_there_names_the_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(environment, "CUPY_DISTRIBUTIONS", ("no-such-distribution",))
    assert "CuPy usable no not installed (extras cuda12, cuda13)" in line_of(info(), "CuPy usable")


class FakeCuda:
    """What a driver with ``devices`` GPUs answers; ``status`` is that of cuInit."""

    def __init__(self, devices: int, status: int = 0) -> None:
        self.devices, self.status = devices, status

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuGetErrorName(self, status: int, text: Any) -> None:
        text._obj.value = b"CUDA_ERROR_NO_DEVICE"

    def cuDriverGetVersion(self, number: Any) -> None:
        number._obj.value = 12080

    def cuDeviceGetCount(self, number: Any) -> None:
        number._obj.value = self.devices

    def cuDeviceGetName(self, name: Any, size: int, index: int) -> None:
        name.value = f"GPU {index}".encode()

    def cuDeviceTotalMem_v2(self, memory: Any, index: int) -> None:
        memory._obj.value = 80 * 2**30

    def cuDeviceGetAttribute(self, number: Any, attribute: int, index: int) -> None:
        number._obj.value = {75: 9, 76: 0}[attribute]


def loads_only(monkeypatch: pytest.MonkeyPatch, cuda: Any) -> None:
    """The loader finds this driver and no other library."""

    def load(name: str, *rest: Any, **named: Any) -> Any:
        if Path(name).name.startswith(("libcuda", "nvcuda")):
            return cuda
        raise OSError(f"{name}: not here")

    monkeypatch.setattr(ctypes, "CDLL", load)


SOUGHT = [{"place": "libcudnn.so.9", "found_by": "the system's loader", "result": "no such file"}]


def has_cudnn(monkeypatch: pytest.MonkeyPatch, is_here: bool) -> None:
    """A cuDNN is here, or none is."""

    def load() -> Any:
        if not is_here:
            raise LibraryNotFound("no cuDNN that loads: install it. Sought:\n  a place", SOUGHT)
        return types.SimpleNamespace(
            version=Version("9.1.0"),
            cuda_version=Version("12.4"),
            path="/here/libcudnn.so.9",
            found_by="CUDNN_PATH",
            has=lambda name: name not in ("cudnnAdvInferVersionCheck", "cudnnRNNForward"),
            sought=[*SOUGHT, {"place": "/here", "found_by": "CUDNN_PATH", "result": "loaded"}],
        )

    monkeypatch.setattr(library, "load", load)


def has_cupy(monkeypatch: pytest.MonkeyPatch, computes: bool) -> None:
    """A CuPy that computes on a GPU is here, or none is."""
    fact = {"available": computes, "reason": None if computes else "not installed", "version": "14"}
    monkeypatch.setattr(environment, "_cupy", lambda: fact)


def test_gpu_and_cupy_and_cudnn_are_separate_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    loads_only(monkeypatch, FakeCuda(2))
    has_cudnn(monkeypatch, False)
    facts = environment.collect()
    assert facts["gpu"]["available"]
    assert facts["gpu"]["cuda"] == "12.8"
    assert [device["name"] for device in facts["gpu"]["devices"]] == ["GPU 0", "GPU 1"]
    assert not facts["cupy"]["available"]
    assert not facts["cudnn"]["available"]
    assert "GPU available yes GPU 0 (compute capability 9.0, 80 GiB)" in line_of(
        info(), "GPU available"
    )


@pytest.mark.parametrize(
    ("cuda", "reason"),
    [
        (FakeCuda(0), "the driver sees no GPU"),
        (FakeCuda(1, status=100), "cuInit: CUDA_ERROR_NO_DEVICE (100)"),
        (object(), "does not answer: AttributeError"),
    ],
)
def test_a_driver_without_a_gpu_is_no_gpu(
    monkeypatch: pytest.MonkeyPatch, cuda: Any, reason: str
) -> None:
    loads_only(monkeypatch, cuda)
    fact = environment.collect()["gpu"]
    assert not fact["available"]
    assert reason in fact["reason"]


def test_a_missing_cudnn_is_told_with_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    has_cudnn(monkeypatch, False)
    fact = environment.collect()["cudnn"]
    assert fact["reason"] == "no cuDNN that loads: install it. Sought:"
    assert fact["sought"] == SOUGHT
    text = info()
    assert line_of(text, "cuDNN available").startswith("cuDNN available no no cuDNN that loads")
    assert "sought libcudnn.so.9 (the system's loader): no such file" in " ".join(text.split())


def test_a_cudnn_is_told_with_its_cuda_and_how_it_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_cudnn(monkeypatch, True)
    fact = environment.collect()["cudnn"]
    assert (fact["version"], fact["cuda"]) == ("9.1.0", "12.4")
    assert (fact["path"], fact["found_by"]) == ("/here/libcudnn.so.9", "CUDNN_PATH")
    assert line_of(info(), "cuDNN available") == (
        "cuDNN available yes 9.1.0 for CUDA 12.4, /here/libcudnn.so.9 (CUDNN_PATH)"
    )


def test_what_a_cudnn_lacks_is_told_with_the_versions_that_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_cudnn(monkeypatch, True)
    newest = list(read_manifest().releases)[-1]
    assert environment.collect()["cudnn"]["lacks"] == {
        "cudnnAdvInferVersionCheck": "it ended with cuDNN 8.9",
        "cudnnRNNForward": f"every released cuDNN from 8.8 to {newest} has it",
    }
    text = " ".join(info().split())
    assert "without cudnnAdvInferVersionCheck: it ended with cuDNN 8.9" in text


def test_a_cudnn_that_breaks_while_loading_is_a_reason_and_no_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load() -> None:
        raise RuntimeError("half installed")

    monkeypatch.setattr(library, "load", load)
    fact = environment.collect()["cudnn"]
    assert (fact["reason"], fact["sought"]) == ("RuntimeError: half installed", [])


@pytest.mark.parametrize(
    ("cupy", "cudnn", "gpus", "reason"),
    [
        (True, False, 1, "CuPy computes on the GPU, but there is no cuDNN: no cuDNN that loads"),
        (False, True, 0, "cuDNN 9.1.0 is here, but no GPU: the driver sees no GPU"),
        (False, False, 0, "neither a GPU nor cuDNN is here: the driver sees no GPU; no cuDNN"),
        (False, True, 1, "a GPU and cuDNN are here, but no CuPy that computes on it: not inst"),
        (False, False, 1, "a GPU is here, but neither cuDNN nor CuPy: no CuPy that computes"),
    ],
)
def test_the_cudnn_engine_says_which_of_gpu_cupy_and_cudnn_is_missing(
    monkeypatch: pytest.MonkeyPatch, cupy: bool, cudnn: bool, gpus: int, reason: str
) -> None:
    loads_only(monkeypatch, FakeCuda(gpus))
    has_cupy(monkeypatch, cupy)
    has_cudnn(monkeypatch, cudnn)
    fact = environment.collect()["engines"]["cudnn"]
    assert not fact["available"]
    assert fact["reason"].startswith(reason)


def test_missing_bfloat16_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from cudnn_compat.arrays import numpy_dtype

    numpy_dtype.cache_clear()
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    text = info()
    assert "bfloat16" not in line_of(text, "engine numpy")
    assert "without bfloat16: bfloat16 arrays on the host need the package ml_dtypes" in text


@pytest.mark.gpu
def test_a_gpu_that_cupy_computes_on_is_told() -> None:
    facts = environment.collect()
    assert facts["gpu"]["available"], facts["gpu"]["reason"]
    assert facts["gpu"]["devices"][0]["memory_bytes"] > 0
    assert facts["cupy"]["available"], facts["cupy"]["reason"]
