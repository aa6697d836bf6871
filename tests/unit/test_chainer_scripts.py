"""The scripts that run Chainer's own tests: their sources, their bundle and their verdict."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder like a checkout of Chainer 7.8.1, as far as the bundle goes."""
    folder = tmp_path / "chainer-src"
    for name, text in {
        "LICENSE": "MIT",
        "setup.cfg": "",
        "chainer/__init__.py": "",
        "chainer/_version.py": "__version__ = '7.8.1'\n",
        "chainer/big.npz": "data",
        "chainerx/__init__.py": "from chainerx import _build_info",
        "tests/conftest.py": "",
        "tests/chainer_tests/__init__.py": "",
        "tests/chainer_tests/training_tests/test_long.py": "",
        "docs/index.md": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def script(name: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key != "CHAINER_SRC"}
    return subprocess.run(
        [sys.executable, str(SCRIPTS / name), *arguments],
        env=kept | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", ["chainer_tests.py", "chainer_bundle.py"])
def test_without_sources_it_says_how_to_get_them(name: str) -> None:
    done = script(name, *(["x.tar.xz"] if "bundle" in name else []))
    assert done.returncode == 1
    assert "git clone --depth 1 --branch v7.8.1 https://github.com/chainer/chainer" in done.stderr


def test_other_sources_are_refused(checkout: Path) -> None:
    (checkout / "chainer" / "_version.py").write_text("__version__ = '6.0.0'")
    done = script("chainer_tests.py", CHAINER_SRC=str(checkout))
    assert done.returncode == 1
    assert "does not hold the sources of Chainer 7.8.1" in done.stderr


def test_the_bundle_has_packages_and_tests_and_imports_where_it_is_unpacked(
    checkout: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle.tar.xz"
    done = script("chainer_bundle.py", str(bundle), CHAINER_SRC=str(checkout))
    assert done.returncode == 0, done.stderr
    with tarfile.open(bundle) as archive:
        files = {entry.name for entry in archive if entry.isfile()}
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(tmp_path / "site")
    assert files == {
        "LICENSE",
        "setup.cfg",
        "chainer/__init__.py",
        "chainer/_version.py",
        "chainerx/__init__.py",
        "chainerx/_build_info.py",
        "tests/conftest.py",
        "tests/chainer_tests/__init__.py",
    }
    command = [sys.executable, "-c", "import chainerx; print(chainerx._build_info.build_chainerx)"]
    done = subprocess.run(
        command, cwd=tmp_path / "site", capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


GOOD = {
    "mark": "cudnn or gpu",
    "result": {"passed": 504, "failed": 3, "skipped": 334},
    "failed": {f"test_dropout.py::T_{n}::test_forward_dropout_count": "" for n in range(3)},
    "cudnn_enabled": True,
    "library_calls": {"cudnnRNNForward": 9},
    "pytest_exit_status": 1,
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"result": {"passed": 503}}, "503 passed, 504 there"),
        ({"failed": {"test_other": ""}}, "1 tests failed that did not fail there"),
        ({"cudnn_enabled": False}, "did not take cuDNN for usable"),
        ({"library_calls": {}}, "never called"),
        ({"pytest_exit_status": 4}, "pytest ended with 4"),
    ],
)
def test_the_verdict_names_what_is_worse_than_on_the_old_stack(
    change: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    verdict = importlib.import_module("chainer_tests")._verdict(GOOD | change)
    assert len(verdict) == bool(words)
    assert words in "".join(verdict)
