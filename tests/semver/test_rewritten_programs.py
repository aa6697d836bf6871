"""Frozen programs moved by the rewriter: on v2 alone, and with the numbers that they had."""

from __future__ import annotations

import functools
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.semver.conftest import ROOT
from tests.semver.programs import (
    DOWNSTREAM,
    PROGRAMS,
    Outcome,
    Program,
    differences,
    environment,
    numbers,
)

WITHOUT_LEGACY = """\
import runpy, sys
sys.modules["cudnn_compat.legacy"] = None
sys.path.insert(0, sys.argv[1])
sys.argv[:] = ["train.py", *sys.argv[2:]]
runpy.run_path(sys.path[0] + "/train.py", run_name="__main__")
assert not [name for name in sys.modules if name.startswith("cudnn_compat.legacy.")]
"""
"""``python -c … FOLDER ARGUMENTS`` runs a program where the old API cannot be imported."""

HAVE_REWRITER = importlib.util.find_spec("cudnn_compat.migrate") is not None


@functools.cache
def moved(folder: Path) -> dict[str, bytes]:
    """The files of a program after the rewriter, by their names below its folder."""
    assert HAVE_REWRITER, "there is no cudnn_compat.migrate: nothing shows that programs can move"
    from cudnn_compat.migrate import migrate_program

    files = [path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts]
    done = migrate_program({str(path): path.read_bytes() for path in files})
    for path, file in done.items():
        assert not file.error, f"{path}: {file.error}"
        left = [str(each) for each in file.findings if each.what == "left"]
        assert left == [], "\n".join(left)
    return {str(path.relative_to(folder)): done[str(path)].after for path in files}


def run_moved(program: Program, folder: Path) -> Outcome:
    source, out = folder / "source", folder / "out"
    out.mkdir()
    for name, content in moved(DOWNSTREAM / program.folder).items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content)
    paths = [ROOT, *([DOWNSTREAM / "stand_in"] if program.stands_in else [])]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_LEGACY, str(source), *program.arguments],
        env=environment(paths),
        cwd=out,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return Outcome(numbers(done.stdout, out), [], set())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_moved_program_gives_its_numbers_where_the_old_api_cannot_be_imported(
    name: str, on_tree: dict[str, Outcome], tmp_path: Path
) -> None:
    after = run_moved(PROGRAMS[name], tmp_path)
    assert len(after.numbers) > 10
    assert differences(on_tree[name], after, PROGRAMS[name].tolerance) == []


@pytest.mark.parametrize("folder", sorted({program.folder for program in PROGRAMS.values()}))
def test_a_moved_program_has_no_old_name_left(folder: str) -> None:
    text = b"\n".join(moved(DOWNSTREAM / folder).values()).decode()
    assert re.findall(r"cudnn_compat\.legacy|cupy(?:x|\.cuda)? import cudnn|libcudnn\.", text) == []
    assert "v2" in text


def test_where_the_old_api_cannot_be_imported_an_unmoved_program_does_not_run() -> None:
    command = ["-c", WITHOUT_LEGACY, str(DOWNSTREAM / "flux_style"), "float32", "1"]
    done = subprocess.run(
        [sys.executable, *command],
        env=environment([ROOT]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "cudnn_compat.legacy" in done.stderr.splitlines()[-1]
