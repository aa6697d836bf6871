"""The frozen Flux-style program and the example, moved: on v2 alone, the same numbers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.migrate.conftest import ROOT, WITHOUT_LEGACY, RunPython

pytest.importorskip("libcst", reason="needs libcst (extra migrate)")

FLUX = ROOT / "tests" / "downstream" / "flux_style"
NOT_CODE = shutil.ignore_patterns("__pycache__")


def migrate(python: RunPython, folder: Path, *options: str) -> str:
    """Moves a folder by the command; what was reported."""
    done = python("-m", "cudnn_compat", "migrate", ".", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stderr


def run_without_legacy(python: RunPython, program: Path, *arguments: str) -> str:
    """What a program prints where ``cudnn_compat.legacy`` cannot be imported; no warning."""
    command = ("-W", "error", "-c", WITHOUT_LEGACY, str(program), *arguments)
    done = python(*command, cwd=program.parent)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


@pytest.fixture
def moved(python: RunPython, tmp_path: Path) -> Path:
    """The frozen program, moved."""
    folder = tmp_path / "flux_style"
    shutil.copytree(FLUX, folder, ignore=NOT_CODE)
    assert migrate(python, folder, "--write").endswith("places: 11 moved, 0 left\n")
    return folder


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_moved_program_prints_the_same_numbers_on_v2_alone(
    dtype: str, moved: Path, python: RunPython
) -> None:
    old = python("train.py", dtype, "2", cwd=FLUX)
    assert old.returncode == 0, old.stderr
    assert old.stdout.count("\n") == 15
    assert run_without_legacy(python, moved / "train.py", dtype, "2") == old.stdout


def test_the_program_as_it_was_does_not_run_where_the_old_api_is_missing(
    python: RunPython,
) -> None:
    done = python("-c", WITHOUT_LEGACY, str(FLUX / "train.py"), cwd=FLUX)
    assert done.returncode == 1
    assert "cudnn_compat.legacy" in done.stderr


def test_only_the_file_with_old_names_changes_and_only_once(moved: Path, python: RunPython) -> None:
    written = {path: path.read_bytes() for path in moved.rglob("*.py")}
    changed = [
        path.relative_to(moved).as_posix()
        for path, content in written.items()
        if content != (FLUX / path.relative_to(moved)).read_bytes()
    ]
    assert changed == ["fluxlike/curnn.py"]
    assert "0 changed; places: 0 moved, 0 left" in migrate(python, moved, "--write")
    assert {path: path.read_bytes() for path in moved.rglob("*.py")} == written


def test_the_example_on_the_moved_library_reports_the_same(
    python: RunPython, tmp_path: Path
) -> None:
    for part in ("examples", "tests/downstream/flux_style"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=NOT_CODE)
    options = ("--steps", "20", "--hidden", "16", "--batch", "8", "--cell", "lstm")

    def report(text: str) -> str:
        return re.sub(r"in \d+\.\d+ s", "", text)  # the one thing that is of the clock

    example = tmp_path / "examples" / "char_model.py"
    old = python("char_model.py", *options, cwd=example.parent)
    assert old.returncode == 0, old.stderr
    migrate(python, tmp_path, "--write")
    new = run_without_legacy(python, example, *options)
    assert report(new) == report(old.stdout)
    assert "bits per character" in new
