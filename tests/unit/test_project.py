"""What the package promises before a single function of it is called."""

from __future__ import annotations

import hashlib
import importlib.metadata
import subprocess
import sys
import tomllib
import warnings
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

import cudnn_compat
from cudnn_compat.legacy import LegacyAPIWarning

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"

WITHOUT_CUPY = """
import sys
class NoCuPy:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cupy", "cupyx", "cupy_backends"):
            raise ImportError(f"{name} was made unimportable for this test")
sys.meta_path.insert(0, NoCuPy())
"""


def run_python(program: str) -> str:
    """What a fresh interpreter prints for ``program``, run where the package is importable."""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_loads_neither_numpy_nor_cupy() -> None:
    loaded = run_python("import cudnn_compat, sys; print(*sys.modules)").split()
    assert "cudnn_compat" in loaded
    assert not {"numpy", "cupy", "cupy_backends", "torch", "ctypes"} & set(loaded)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc/self/maps (Linux)")
def test_importing_the_package_maps_no_library_of_cuda() -> None:
    mapped = run_python("import cudnn_compat; print(open('/proc/self/maps').read())")
    assert "python" in mapped  # the file was read
    for library in ("libcuda", "libcudnn", "libcublas", "libnvrtc", "libopenblas"):
        assert library not in mapped


def test_everything_imports_and_computes_without_cupy() -> None:
    program = WITHOUT_CUPY + (
        "import numpy, cudnn_compat\n"
        "from cudnn_compat import errors, legacy, v2\n"
        "spec = v2.RNNSpec('gru', 3, 4)\n"
        "x = numpy.ones((2, 1, 3), 'float32')\n"
        "print(v2.rnn_forward(spec, v2.init_weights(spec, seed=0), x).y.shape)"
    )
    assert run_python(program) == "(2, 1, 4)"


def test_both_namespaces_are_found_from_the_package_alone() -> None:
    program = "import cudnn_compat as c; print(c.v2.__name__, c.legacy.__name__, c.errors.__name__)"
    assert run_python(program).split() == [
        "cudnn_compat.v2",
        "cudnn_compat.legacy",
        "cudnn_compat.errors",
    ]


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="v1"):
        cudnn_compat.v1  # noqa: B018


def test_the_installed_version_is_the_package_s_own() -> None:
    try:
        installed = importlib.metadata.version("cudnn-compat")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed here, only importable")
    assert installed == cudnn_compat.__version__


def test_a_legacy_warning_is_an_error_outside_the_tests_of_old_names() -> None:
    with pytest.raises(LegacyAPIWarning):
        warnings.warn("old", LegacyAPIWarning, stacklevel=1)


@pytest.mark.gpu
def test_a_test_marked_gpu_runs_only_where_cupy_computes() -> None:
    import cupy

    assert int(cupy.arange(4).sum()) == 6


def test_the_recorded_results_are_as_they_were_recorded() -> None:
    sums = dict(
        line.split()[::-1] for line in (DATA / "SHA256SUMS").read_text().splitlines() if line
    )
    assert sorted(sums) == sorted(path.name for path in DATA.glob("*.npz"))
    for name, expected in sums.items():
        assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == expected, name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from this tree."""
    pytest.importorskip("hatchling", reason="building a wheel needs hatchling (group dev)")
    target = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = target.glob("*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(
    wheel: zipfile.ZipFile,
) -> None:
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "cudnn_compat").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "cudnn_compat/py.typed" in package
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == package


def test_the_wheel_carries_version_licence_and_command(wheel: zipfile.ZipFile) -> None:
    (info,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
    assert info == f"cudnn_compat-{cudnn_compat.__version__}.dist-info"
    metadata = BytesParser().parsebytes(wheel.read(f"{info}/METADATA"))
    assert metadata["Version"] == cudnn_compat.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert wheel.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    commands = wheel.read(f"{info}/entry_points.txt").decode().split()
    assert commands == ["[console_scripts]", "cudnn-compat", "=", "cudnn_compat.cli:main"]


def test_every_package_that_ci_installs_by_name_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    groups = project["dependency-groups"]
    wanted = [*project["project"]["dependencies"], *groups["build"]]
    wanted += [each for extra in ("cli", "migrate", "test", "peers") for each in extras[extra]]
    wanted += [each for each in groups["dev"] if isinstance(each, str)]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.lower().split("==") for line in lines if line and not line.startswith("#"))
    names = {each.split(">")[0].split("<")[0].strip().lower() for each in wanted}
    assert len(names) > 10
    assert names <= set(pins)
