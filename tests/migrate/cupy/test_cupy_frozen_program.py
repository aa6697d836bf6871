"""The frozen program for cupy.cudnn, moved: on v2 alone, the same numbers, bit for bit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("libcst", reason="needs libcst (extra migrate)")

from cudnn_compat.migrate import migrate_program

ROOT = Path(__file__).parents[3]
DOWNSTREAM = ROOT / "tests" / "downstream"
FROZEN = DOWNSTREAM / "cupy_style"

ALONE = """\
import runpy, sys
sys.modules["cudnn_compat.legacy"] = None  # importing it fails
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
old = [name for name in sys.modules if name.endswith(".cudnn") and name.startswith("cupy")]
assert not old, old
"""


def python(*arguments: str, cwd: Path) -> str:
    """What ``python …`` prints where CuPy's arrays are NumPy's."""
    settings = ("PYTHONPATH", "PYTHONWARNINGS", "CUDNN_COMPAT_DEPRECATIONS")
    environment = {name: value for name, value in os.environ.items() if name not in settings}
    environment["PYTHONPATH"] = os.pathsep.join([str(DOWNSTREAM / "stand_in"), str(ROOT)])
    environment["OPENBLAS_NUM_THREADS"] = "1"
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the moved program."""
    folder = tmp_path_factory.mktemp("moved") / "program"
    shutil.copytree(FROZEN, folder, ignore=shutil.ignore_patterns("__pycache__"))
    paths = sorted(folder.glob("*.py"))
    done = migrate_program({str(path): path.read_bytes() for path in paths})
    left = [str(found) for each in done.values() for found in each.findings if found.what == "left"]
    assert left == []
    for path, each in done.items():
        Path(path).write_bytes(each.after)
    return folder


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_the_moved_program_gives_the_same_numbers_on_v2_alone(
    dtype: str, moved: Path, tmp_path: Path
) -> None:
    run = ("-m", "cudnn_compat", "run", "-q", str(FROZEN / "train.py"), "old.npz", dtype)
    old = python(*run, cwd=tmp_path)
    new = python(
        "-W", "error", "-c", ALONE, str(moved / "train.py"), "new.npz", dtype, cwd=tmp_path
    )
    assert new == old
    assert old.count("lstm") == 9
    with np.load(tmp_path / "old.npz") as before, np.load(tmp_path / "new.npz") as after:
        assert sorted(before) == sorted(after)
        assert len(before.files) > 60
        for name in before:
            assert (before[name].dtype, before[name].shape) == (
                after[name].dtype,
                after[name].shape,
            )
            assert before[name].tobytes() == after[name].tobytes(), name


def test_nothing_of_the_old_way_stays_in_its_text(moved: Path) -> None:
    text = "".join((moved / name).read_text() for name in ("bigru.py", "stacked_lstm.py"))
    code = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
    for word in ("libcudnn", "import cudnn", "ctypes.c_", "Descriptor", "cudnn-compat: left"):
        assert word not in code
    assert code.count("v2.rnn_forward(") == 3
    # What has nothing to do with it is as it was, comments too.
    assert "# Start with open forget gates." in code
    assert "# A GRU has no cell: 0 for its descriptors and its memory." in code


def test_a_second_run_changes_nothing(moved: Path) -> None:
    sources = {str(path): path.read_bytes() for path in moved.glob("*.py")}
    again = migrate_program(sources)
    assert {path: each.after for path, each in again.items()} == sources
