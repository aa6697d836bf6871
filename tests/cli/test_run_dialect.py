"""``cudnn-compat run``: the names of CuPy 13 while a program runs, and Chainer's repairs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cudnn_compat.legacy.table import find
from tests.legacy.cupy_dialect.cupy_stubs import make_cupy

Run = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = """\
import sys
from cupy import cudnn
from cupy.cuda import cudnn as libcudnn
import numpy as np
x = np.array([[-1, 2]], "float32")
for _ in range(3):
    y = cudnn.activation_forward(x, libcudnn.CUDNN_ACTIVATION_RELU)
print(y.tolist(), libcudnn.getVersion() >= 8900)
"""
"""Old calls: activation_forward three times in line 7, getVersion once in line 8."""


@pytest.fixture
def program(tmp_path: Path, environment: dict[str, str]) -> Path:
    """The program; CuPy's packages lie where Python looks first."""
    site = make_cupy(tmp_path / "site", "14.0.0")
    environment["PYTHONPATH"] = f"{site}:{environment['PYTHONPATH']}"
    cuda = site / "cupy" / "cuda" / "__init__.py"
    cuda.write_text("def is_available(): return False\n", encoding="utf-8")
    path = tmp_path / "old.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def test_a_program_finds_cupy_s_modules_and_its_calls_are_told(
    program: Path, python: Run, command: Run, tmp_path: Path
) -> None:
    assert "cannot import name 'cudnn'" in python(str(program)).stderr
    done = command("run", "--report", "calls.json", "old.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[[0.0, 2.0]] True\n"
    assert "cudnn-compat: old.py made 4 old calls of 2 old names" in done.stderr
    report = json.loads((tmp_path / "calls.json").read_text(encoding="utf-8"))
    told = {each["code"]: (each["old"], each["sites"]) for each in report["calls"]}
    for name, line, count in (
        ("cudnn_compat.legacy.cupy.cudnn.activation_forward", 7, 3),
        ("cudnn_compat.legacy.cupy.libcudnn.getVersion", 8, 1),
    ):
        row = find(name)
        assert row is not None
        assert told[row.code] == (name, [{"file": str(program), "line": line, "count": count}])
        assert f"{row.code}  {name}" in done.stderr


def test_no_install_leaves_cupy_as_it_is(program: Path, command: Run) -> None:
    done = command("run", "--no-install", "old.py")
    assert done.returncode == 1
    assert "cannot import name 'cudnn' from 'cupy'" in done.stderr


def test_a_cupy_with_modules_of_its_own_keeps_them_and_the_report_says_so(
    tmp_path: Path, environment: dict[str, str], command: Run
) -> None:
    site = make_cupy(tmp_path / "site", "13.6.0", "working")
    environment["PYTHONPATH"] = f"{site}:{environment['PYTHONPATH']}"
    (tmp_path / "old.py").write_text("import cupy.cudnn as c; print(c.get_handle())")
    done = command("run", "old.py")
    assert done.stdout == "CuPy's own\n"
    assert "made no old calls" in done.stderr
    assert done.stderr.endswith(
        "cudnn-compat: this CuPy has a cupy.cudnn of its own: it was used\n"
    )
    assert command("run", "--quiet", "old.py").stderr == ""


@pytest.mark.skipif("sctypes" in vars(np), reason="this NumPy still has what is put back")
def test_chainer_s_repairs_are_made_only_where_they_are_asked_for(
    tmp_path: Path, command: Run
) -> None:
    (tmp_path / "old.py").write_text("import numpy; print('sctypes' in vars(numpy))")
    assert command("run", "old.py").stdout == "False\n"
    done = command("run", "--prepare-chainer", "old.py")
    assert done.stdout == "True\n"
    assert "cudnn-compat: numpy.sctypes: made anew" in done.stderr
    assert command("run", "--prepare-chainer", "-q", "old.py").stderr == ""
