"""The real library where there is one, and folders and libraries that only look like it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cudnn_compat.cudnn import find
from cudnn_compat.cudnn import library as loading
from cudnn_compat.cudnn.library import Library, load
from cudnn_compat.errors import CompatError
from tests.cudnn_8 import cudnn_8_home

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def library() -> Library:
    """The cuDNN of this process."""
    try:
        return load()
    except CompatError as error:
        pytest.skip(f"needs a cuDNN, which also runs without a GPU: {str(error).splitlines()[0]}")


@pytest.fixture(scope="session", params=["of this process", "8.9"])
def each_library(request: pytest.FixtureRequest) -> Library:
    """The cuDNN of this process, and 8.9 where ``CUDNN8_HOME`` names one."""
    if request.param == "of this process":
        found: Library = request.getfixturevalue("library")
        return found
    home = cudnn_8_home()
    with contextlib.suppress(CompatError):
        load()  # first, because afterwards the search would meet the 8.9 that is loaded here
    return load(home / "lib" / "libcudnn.so.8")


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No place has a cuDNN, not even this process or the system; what is loaded is forgotten."""
    monkeypatch.setattr(loading, "_library", None)
    monkeypatch.setattr(find, "mapped_files", list)
    monkeypatch.setattr(find, "NAMES", {9: "libcudnn_test.so.9", 8: "libcudnn_test.so.8"})
    monkeypatch.setattr(find, "WHEELS", ("no-such-wheel-13", "no-such-wheel-12"))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    for name in (find.VARIABLE, *find.FOLDERS):
        monkeypatch.delenv(name, raising=False)


FAKE = """
#include <stddef.h>
size_t cudnnGetVersion(void) { return VERSION; }
size_t cudnnGetCudartVersion(void) { return 12090; }
const char *cudnnGetErrorString(int status) { return "CUDNN_STATUS_FAKE"; }
int cudnnAdvVersionCheck(void) { return CHECK; }
int cudnnAdvInferVersionCheck(void) { return CHECK; }
int cudnnCreate(void **handle) { return 1001; }
"""
"""Nearly a cuDNN: it has a version and a few functions, and lacks all others."""


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., Path]:
    """``fake("folder", 91900)`` compiles a library and puts its parts beside it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler (cc) to make libraries that only look like cuDNN")

    def compile_to(path: Path, version: int, check: int = 0) -> None:
        flags = [f"-DVERSION={version}", f"-DCHECK={check}", "-shared", "-fPIC", "-xc", "-"]
        command = [compiler, *flags, "-o", str(path)]
        subprocess.run(command, input=FAKE, text=True, check=True)

    def make(folder: str, version: int, *, check: int = 0, parts: bool = True) -> Path:
        major = 8 if version < 90_000 else version // 10_000
        path = tmp_path / folder / f"libcudnn.so.{major}"
        path.parent.mkdir(parents=True)
        compile_to(path, version, check)
        names = {8: ("ops_infer", "ops_train", "adv_infer", "adv_train")}
        for part in names.get(major, ("graph", "ops", "adv")) if parts else ():
            compile_to(path.with_name(f"libcudnn_{part}.so.{major}"), version)
        return path

    return make


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., str]:
    """Runs lines of Python in a process of their own, where nothing is loaded yet."""

    def run(*lines: str, **variables: str) -> str:
        ours = (find.VARIABLE, *find.FOLDERS)
        kept: dict[str, Any] = {k: v for k, v in os.environ.items() if k not in ours}
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(lines)],
            cwd=tmp_path,
            env=kept | {"PYTHONPATH": str(ROOT)} | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
