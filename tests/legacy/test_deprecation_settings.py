"""``CUDNN_COMPAT_DEPRECATIONS``, ``-W`` and Python's defaults, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cudnn_compat

ROOT = Path(cudnn_compat.__file__).parents[1]
PROGRAM = """\
import warnings
from cudnn_compat import legacy
import helper
desc = legacy.RNNDesc(legacy.CUDNN_GRU, 3, 4)
for _ in range(3):
    helper.gates(desc)
    legacy.ngates(desc)
print("end")
"""
HELPER = """\
from cudnn_compat import legacy
def gates(desc):
    return legacy.ngates(desc)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text(HELPER)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def run(program: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CUDNN_"))}
    environment |= {"PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, *options, str(program)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def shown(done: subprocess.CompletedProcess[str]) -> list[str]:
    """``file:line code`` of each warning that was printed."""
    found = []
    for line in done.stderr.splitlines():
        if "Warning: [CC" in line:
            place, _, rest = line.partition(": RemovedIn3Warning: [")
            found.append(
                f"{Path(place.rpartition(':')[0]).name}:{place.rpartition(':')[2]} {rest[:5]}"
            )
    return found


IN_MAIN = ["program.py:4 CC010", "program.py:7 CC020"]
EVERYWHERE = ["program.py:4 CC010", "helper.py:3 CC020", "program.py:7 CC020"]


def test_by_default_pythons_filters_show_the_main_program_once_per_line(program: Path) -> None:
    done = run(program)
    assert done.returncode == 0
    assert done.stdout == "end\n"
    assert shown(done) == IN_MAIN
    assert "  desc = legacy.RNNDesc(legacy.CUDNN_GRU, 3, 4)\n" in done.stderr


@pytest.mark.parametrize("value", ["default", " default "])
def test_default_shows_each_site_once_in_libraries_too(program: Path, value: str) -> None:
    done = run(program, CUDNN_COMPAT_DEPRECATIONS=value)
    assert done.stdout == "end\n"
    assert shown(done) == EVERYWHERE


def test_default_leaves_later_filters_their_say(program: Path) -> None:
    quiet = 'warnings.filterwarnings("ignore", message=r"\\[CC020\\]")\n'
    program.write_text(PROGRAM.replace("desc =", quiet + "desc ="))
    done = run(program, CUDNN_COMPAT_DEPRECATIONS="default")
    assert shown(done) == ["program.py:5 CC010"]


@pytest.mark.parametrize("options", [(), ("-W", "error"), ("-W", "always")])
def test_ignore_shows_and_raises_nothing_whatever_the_filters_say(
    program: Path, options: tuple[str, ...]
) -> None:
    always = "warnings.simplefilter('always')\n"
    program.write_text(PROGRAM.replace("desc =", always + "desc =") if not options else PROGRAM)
    done = run(program, *options, CUDNN_COMPAT_DEPRECATIONS="ignore")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.parametrize("options", [(), ("-W", "ignore")])
def test_error_raises_whatever_the_filters_say(program: Path, options: tuple[str, ...]) -> None:
    done = run(program, *options, CUDNN_COMPAT_DEPRECATIONS="error")
    assert done.returncode == 1
    assert "RemovedIn3Warning: [CC010] cudnn_compat.legacy.RNNDesc is deprecated" in done.stderr
    assert 'program.py", line 4' in done.stderr


def test_w_error_raises(program: Path) -> None:
    done = run(program, "-W", "error")
    assert done.returncode == 1
    assert "RemovedIn3Warning: [CC010]" in done.stderr


def test_w_takes_a_code(program: Path) -> None:
    done = run(program, "-W", "default", "-W", "ignore:[CC020]")
    assert shown(done) == ["program.py:4 CC010"]


def test_w_takes_a_class_where_the_package_is_on_pythonpath(program: Path) -> None:
    done = run(program, "-W", "ignore::cudnn_compat.legacy.LegacyAPIWarning")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_another_value_is_reported_and_has_no_effect(program: Path) -> None:
    done = run(program, CUDNN_COMPAT_DEPRECATIONS="quiet")
    assert done.returncode == 0
    assert "CUDNN_COMPAT_DEPRECATIONS is 'quiet'; wanted ignore, default or error" in done.stderr
    assert "IneffectiveOptionWarning" in done.stderr
    assert shown(done) == IN_MAIN


def test_an_empty_value_is_none(program: Path) -> None:
    done = run(program, CUDNN_COMPAT_DEPRECATIONS="")
    assert "IneffectiveOptionWarning" not in done.stderr
    assert shown(done) == IN_MAIN


@pytest.mark.parametrize("value", ["ignore", "error"])
def test_calls_are_recorded_under_every_setting(program: Path, value: str) -> None:
    program.write_text(
        "from cudnn_compat import legacy\n"
        "from cudnn_compat.legacy.deprecations import record_calls\n"
        "with record_calls() as recorder:\n"
        "    try:\n"
        "        legacy.ngates(3)\n"
        "    except legacy.LegacyAPIWarning:\n"
        "        pass\n"
        "((code, file, line), count), = recorder.calls.items()\n"
        "print(code, file == __file__, line, count)\n"
    )
    done = run(program, CUDNN_COMPAT_DEPRECATIONS=value)
    assert done.stdout == "CC020 True 5 1\n"
