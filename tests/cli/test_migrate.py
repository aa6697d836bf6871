"""``cudnn-compat migrate``: what it shows, lists and writes, and how it ends."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("libcst", reason="needs libcst (extra migrate)")

from cudnn_compat.cli import main
from cudnn_compat.cli.files import find_sources, write_over
from tests.cli.conftest import LEGACY_PROGRAM

Run = Callable[..., subprocess.CompletedProcess[str]]

LEFT = "from cudnn_compat.legacy import hDesc\nd, h = hDesc(None)\n"


@pytest.mark.parametrize("option", [(), ("--diff",)])
def test_by_default_it_shows_a_diff_and_changes_nothing(
    option: tuple[str, ...], command: Run, legacy_program: Path
) -> None:
    done = command("migrate", "old.py", *option)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("--- a/old.py\n+++ b/old.py\n@@ ")
    assert "\n-y, h = forward(desc, x, h)\n" in done.stdout
    assert "\n+y, h = desc.step(x, h)\n" in done.stdout
    assert "old.py:12:8: moved CC012 forward\n" in done.stderr
    assert "1 files read, 1 would be changed; places: 5 would be moved, 0 left" in done.stderr
    assert legacy_program.read_text(encoding="utf-8") == LEGACY_PROGRAM


@pytest.mark.parametrize(
    ("encoding", "first"),
    [("latin-1", "# -*- coding: latin-1 -*-"), ("utf-8-sig", "# BOM"), ("utf-8", "# \x0c\u2028")],
)
def test_the_diff_of_a_file_in_any_encoding_can_be_applied(
    encoding: str, first: str, command: Run, tmp_path: Path, environment: dict[str, str]
) -> None:
    old = tmp_path / "old.py"
    before = f"{first}\n# \u00e9\n{LEGACY_PROGRAM}".encode(encoding)
    old.write_bytes(before)
    shown = subprocess.run(
        [sys.executable, "-m", "cudnn_compat", "migrate", "old.py"],
        env=environment | {"PYTHONIOENCODING": "ascii"},
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=shown.stdout, check=True)
    after = old.read_bytes()
    assert after != before
    old.write_bytes(before)
    assert command("migrate", "--write", "old.py").returncode == 0
    assert old.read_bytes() == after


def test_the_diff_can_be_applied(command: Run, tmp_path: Path, legacy_program: Path) -> None:
    (tmp_path / "tail.py").write_text(LEFT.rstrip("\n"), encoding="utf-8")
    diff = command("migrate", ".").stdout
    applied = subprocess.run(
        ["git", "apply", "-"], cwd=tmp_path, input=diff, text=True, check=False
    )
    assert applied.returncode == 0
    after = legacy_program.read_text(encoding="utf-8"), (tmp_path / "tail.py").read_bytes()
    legacy_program.write_text(LEGACY_PROGRAM, encoding="utf-8")
    (tmp_path / "tail.py").write_text(LEFT.rstrip("\n"), encoding="utf-8")
    assert command("migrate", "--write", ".").returncode == 0
    assert after == (
        legacy_program.read_text(encoding="utf-8"),
        (tmp_path / "tail.py").read_bytes(),
    )


def test_check_lists_what_would_change_and_ends_with_1(
    command: Run, tmp_path: Path, legacy_program: Path
) -> None:
    (tmp_path / "new.py").write_text("x = 1\n", encoding="utf-8")
    done = command("migrate", "--check", ".")
    assert (done.returncode, done.stdout) == (1, "would change old.py\n")
    assert legacy_program.read_text(encoding="utf-8") == LEGACY_PROGRAM
    assert command("migrate", "--write", ".").returncode == 0
    done = command("migrate", "--check", ".")
    assert (done.returncode, done.stdout) == (0, "")


def test_written_programs_run_and_make_no_old_calls(
    command: Run, python: Run, legacy_program: Path
) -> None:
    before = python("old.py").stdout
    assert command("migrate", "--write", "old.py").returncode == 0
    after = python("-W", "error", "old.py")
    assert after.returncode == 0, after.stderr
    assert after.stdout == before == "[] (4, 2)\n"


def test_what_is_left_is_reported_where_it_stands_after_writing(
    command: Run, tmp_path: Path
) -> None:
    (tmp_path / "left.py").write_text(LEFT, encoding="utf-8")
    done = command("migrate", "--write", "--quiet", "left.py")
    assert done.returncode == 0
    assert "left.py:3:8: left CC023 hDesc: " in done.stderr
    assert "1 files read, 1 changed; places: 0 moved, 1 left" in done.stderr
    lines = (tmp_path / "left.py").read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith("# cudnn-compat: left, CC023 hDesc: ")


def test_quiet_lists_only_what_is_left(command: Run, legacy_program: Path) -> None:
    assert "moved CC" not in command("migrate", "--quiet", "old.py").stderr


def test_a_file_that_is_not_python_ends_with_3_after_the_others(
    command: Run, tmp_path: Path, legacy_program: Path
) -> None:
    (tmp_path / "bad.py").write_text("def cudnn(:\n", encoding="utf-8")
    done = command("migrate", "--write", ".")
    assert done.returncode == 3
    assert "bad.py: not Python: line 1" in done.stderr
    assert "desc.step" in legacy_program.read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [(), ("nothing.py",), ("empty",)])
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], command: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = command("migrate", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_without_libcst_it_says_which_extra_to_install(python: Run, legacy_program: Path) -> None:
    program = "import sys; sys.modules['libcst'] = None; from cudnn_compat.cli import main; main()"
    done = python("-c", program, "migrate", "old.py")
    assert done.returncode == 2
    assert "pip install 'cudnn-compat[migrate]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert python("-c", program, "info").returncode == 0


def test_folders_that_hold_nobody_s_own_code_are_skipped(tmp_path: Path) -> None:
    kept = ["a.py", "package/__init__.py", "package/b.py", "z.py"]
    skipped = [".git/x.py", ".venv/x.py", "env/lib/x.py", "p/__pycache__/x.py", "q/notes.txt"]
    for name in kept + skipped:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    found = [path.relative_to(tmp_path).as_posix() for path in find_sources([tmp_path])]
    assert found == ["a.py", "z.py", "package/__init__.py", "package/b.py"]
    # What is named is meant, whatever it is called; and each file is treated once.
    hidden = tmp_path / ".git" / "x.py"
    twice = list(find_sources([hidden, tmp_path / "a.py", tmp_path]))
    assert twice[:2] == [hidden, tmp_path / "a.py"]
    assert len(twice) == 5


def test_a_written_file_keeps_its_permissions_and_links(tmp_path: Path) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_bytes(b"old")
    real.chmod(0o755)
    link.symlink_to(real)
    write_over(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o755
    assert sorted(os.listdir(tmp_path)) == ["link.py", "real.py"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_over(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.py"]


@pytest.mark.parametrize(
    ("option", "shown"), [("--diff", "+y, h = desc.step"), ("--check", "old.py")]
)
def test_it_prints_to_a_stdout_that_takes_text_alone(
    option: str, shown: str, legacy_program: Path
) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main(["migrate", option, str(legacy_program)])
    assert shown in out.getvalue()
