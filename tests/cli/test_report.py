"""``cudnn-compat run``: what it tells about the old calls of a program."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import cudnn_compat
from cudnn_compat.cli.report import MOST_LINES
from cudnn_compat.legacy.table import find

Run = Callable[..., subprocess.CompletedProcess[str]]

CALLS = {
    "CC010": {5: 1},
    "CC011": {7: 1},
    "CC012": {11: 5, 12: 1},
}
"""Calls of the legacy program: code, line, how often."""


def test_the_report_tells_what_how_often_from_where_and_what_replaces_it(
    legacy_program: Path, python: Run, command: Run
) -> None:
    done = command("run", "old.py", "--steps", "3")
    assert done.returncode == 0
    assert done.stdout == python("old.py", "--steps", "3").stdout == "['--steps', '3'] (4, 2)\n"
    assert "cudnn-compat: old.py made 8 old calls of 3 old names" in done.stderr
    assert "cudnn-compat explain CC012 CC010 CC011" in done.stderr
    source = legacy_program.read_text(encoding="utf-8").splitlines()
    blocks = done.stderr.split("\n\n")
    for code, lines in CALLS.items():
        row = find(code)
        assert row is not None
        (block,) = (block for block in blocks if block.startswith(code))
        first, second, *rest = block.splitlines()
        many = sum(lines.values())
        assert first == f"{code}  {row.old}  {many} call{'s' * (many > 1)}"
        assert second.strip() == f"use {row.new}: {row.summary}"
        found = [re.fullmatch(r" *(\d+)  old\.py:(\d+)  (.*)", line) for line in rest]
        assert [(int(m[2]), int(m[1]), m[3]) for m in found if m] == [
            (line, count, source[line - 1].strip()) for line, count in lines.items()
        ]


def test_the_report_file_has_the_same_as_json(
    legacy_program: Path, command: Run, tmp_path: Path
) -> None:
    text = legacy_program.read_text(encoding="utf-8")
    legacy_program.write_text(text + "import os; os.chdir('/'); sys.exit(3)\n", encoding="utf-8")
    done = command("run", "--report", "calls.json", "--quiet", "old.py", "a", "--b")
    assert done.returncode == 3
    assert done.stderr == ""
    report = json.loads((tmp_path / "calls.json").read_text(encoding="utf-8"))
    told = report.pop("calls")
    assert report == {
        "cudnn_compat": cudnn_compat.__version__,
        "program": "old.py",
        "arguments": ["a", "--b"],
        "status": 3,
        "total": 8,
    }
    assert {
        each["code"]: {site["line"]: site["count"] for site in each["sites"]} for each in told
    } == CALLS
    assert {site["file"] for each in told for site in each["sites"]} == {str(legacy_program)}
    for each in told:
        row = find(each["code"])
        assert row is not None
        assert each["old"] == row.old
        assert each["new"] == row.new
        assert each["summary"] == row.summary
        assert (each["since"], each["removal"]) == (row.since, row.removal)
        assert each["count"] == sum(CALLS[each["code"]].values())


def test_a_report_file_that_cannot_be_written_is_refused_before_the_program_runs(
    legacy_program: Path, command: Run
) -> None:
    done = command("run", "--report", "missing/calls.json", "old.py")
    assert done.returncode == 2
    assert "does not exist" in done.stderr
    assert done.stdout == ""


def test_a_program_without_old_calls_is_told_so(tmp_path: Path, command: Run) -> None:
    (tmp_path / "new.py").write_text("print('new')", encoding="utf-8")
    done = command("run", "new.py")
    assert done.stdout == "new\n"
    assert done.stderr.strip() == "cudnn-compat: new.py made no old calls"
    assert command("run", "--quiet", "new.py").stderr == ""


def test_warnings_are_not_shown_beside_the_report(
    legacy_program: Path, python: Run, command: Run
) -> None:
    assert python("old.py").stderr.count("RemovedIn3Warning") == 4
    assert "RemovedIn3Warning" not in command("run", "old.py").stderr


def test_other_warnings_of_the_program_are_shown(tmp_path: Path, command: Run) -> None:
    text = "import warnings\nwarnings.warn('look', DeprecationWarning)\n"
    (tmp_path / "new.py").write_text(text, encoding="utf-8")
    assert "DeprecationWarning: look" in command("run", "new.py").stderr


@pytest.mark.parametrize(
    "variables", [{"CUDNN_COMPAT_DEPRECATIONS": "default"}, {"PYTHONWARNINGS": "default"}]
)
def test_warnings_that_the_user_asked_for_are_shown_as_well(
    legacy_program: Path, command: Run, variables: dict[str, str]
) -> None:
    done = command("run", "old.py", **variables)
    assert done.stderr.count("RemovedIn3Warning") == 4
    assert "made 8 old calls" in done.stderr


def test_warnings_as_errors_stop_the_program_at_its_first_old_call(
    legacy_program: Path, command: Run
) -> None:
    done = command("run", "old.py", CUDNN_COMPAT_DEPRECATIONS="error")
    assert done.returncode == 1
    assert "RemovedIn3Warning: [CC010]" in done.stderr
    assert "made 1 old call of 1 old name" in done.stderr


def test_filters_that_the_program_sets_win(legacy_program: Path, command: Run) -> None:
    text = "import warnings\nwarnings.simplefilter('error')\n" + legacy_program.read_text()
    legacy_program.write_text(text, encoding="utf-8")
    done = command("run", "old.py")
    assert done.returncode == 1
    assert "RemovedIn3Warning: [CC010]" in done.stderr


def test_calls_in_a_thread_that_outlives_the_main_program_are_counted(
    tmp_path: Path, command: Run
) -> None:
    text = """
        import threading, time
        from cudnn_compat.legacy import CUDNN_GRU, ngates
        def later():
            time.sleep(0.2)
            ngates(CUDNN_GRU)
        threading.Thread(target=later).start()
        """
    (tmp_path / "threads.py").write_text(textwrap.dedent(text), encoding="utf-8")
    assert "made 1 old call of 1 old name" in command("run", "threads.py").stderr


def test_lines_beyond_a_dozen_are_summed_up(tmp_path: Path, command: Run) -> None:
    more = 3
    text = "from cudnn_compat.legacy import ngates\n" + "ngates(3)\n" * (MOST_LINES + more)
    (tmp_path / "long.py").write_text(text, encoding="utf-8")
    done = command("run", "--report", "long.json", "long.py")
    assert done.stderr.count("long.py:") == MOST_LINES
    assert f"{more}  from {more} more lines" in done.stderr
    report = json.loads((tmp_path / "long.json").read_text())
    assert len(report["calls"][0]["sites"]) == MOST_LINES + more


def test_a_source_line_that_the_terminal_cannot_show_is_no_error(
    tmp_path: Path, command: Run
) -> None:
    text = "from cudnn_compat.legacy import ngates\nngates(3)  # größer ≥\n"
    (tmp_path / "signs.py").write_text(text, encoding="utf-8")
    done = command("run", "signs.py", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "gr\\xf6\\xdfer \\u2265" in done.stderr


def test_long_paths_are_never_broken(tmp_path: Path, command: Run) -> None:
    folder = tmp_path / ("long" * 50)
    folder.mkdir()
    program = folder / "program.py"
    program.write_text("from cudnn_compat.legacy import ngates\nngates(3)\n", encoding="utf-8")
    done = command("run", str(program))
    assert f"{program.relative_to(tmp_path)}:2  ngates(3)\n" in done.stderr
