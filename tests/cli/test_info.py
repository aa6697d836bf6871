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

import cudnn_compat
from cudnn_compat import environment
from cudnn_compat.cli.app import app

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


def test_the_cudnn_engine_is_honestly_not_there() -> None:
    assert line_of(info(), "engine cudnn").startswith(
        "engine cudnn no the cuDNN engine is not part"
    )


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


def loads_only(monkeypatch: pytest.MonkeyPatch, **libraries: Any) -> None:
    """The loader finds these libraries, by the start of their names, and no other."""

    def load(name: str, *rest: Any, **named: Any) -> Any:
        for start, library in libraries.items():
            if Path(name).name.startswith(start):
                return library
        raise OSError(f"{name}: not here")

    monkeypatch.setattr(ctypes, "CDLL", load)


def test_gpu_and_cupy_and_cudnn_are_separate_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    loads_only(monkeypatch, libcuda=FakeCuda(2), nvcuda=FakeCuda(2))
    facts = environment.collect()
    assert facts["gpu"]["available"]
    assert facts["gpu"]["cuda"] == "12.8"
    assert [device["name"] for device in facts["gpu"]["devices"]] == ["GPU 0", "GPU 1"]
    assert not facts["cupy"]["available"]
    assert not facts["cudnn"]["available"]
    assert [place["place"] for place in facts["cudnn"]["sought"]][-2:] == [
        "libcudnn.so.9",
        "libcudnn.so.8",
    ]
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
    loads_only(monkeypatch, libcuda=cuda, nvcuda=cuda)
    fact = environment.collect()["gpu"]
    assert not fact["available"]
    assert reason in fact["reason"]


@pytest.mark.parametrize(("number", "version"), [(8907, "8.9.7"), (91900, "9.19.0")])
def test_cudnn_is_found_where_a_variable_points_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, version: str
) -> None:
    library = types.SimpleNamespace(cudnnGetVersion=lambda: number)
    # A function of a C library takes attributes; so does one of Python.
    library.cudnnGetVersion.restype = None
    loads_only(monkeypatch, libcudnn=library)
    monkeypatch.setattr(environment, "CUDNN_DISTRIBUTIONS", ())
    for name in environment.CUDNN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "lib" / "libcudnn.so.9"
    place.parent.mkdir()
    place.touch()
    monkeypatch.setenv("CUDNN_PATH", str(tmp_path))
    fact = environment.collect()["cudnn"]
    assert fact["available"]
    assert fact["version"] == version
    assert fact["sought"] == [{"place": str(place), "result": f"loaded, version {version}"}]


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
