"""The table of environments, and the script that makes them."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cudnn_compat.matrix.environments import AXES, CI, RULES, TABLE, requirements, select, why_not
from cudnn_compat.matrix.format import STATUSES
from cudnn_compat.matrix.rows import FEATURES
from scripts import matrix_environments as script

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs" / "records" / "matrix"


def test_every_version_of_every_axis_is_run_somewhere() -> None:
    for axis, versions in AXES.items():
        assert {getattr(each, axis) for each in TABLE} == set(versions)
        for rule in RULES:
            assert rule.version in AXES[rule.axis]
            assert set(rule.allowed) <= set(AXES[rule.other])


def test_every_valid_combination_of_python_numpy_and_cupy_is_run() -> None:
    """Written down from the projects' own wheels."""
    valid = set()
    for python, numpy, cupy in itertools.product(AXES["python"], AXES["numpy"], AXES["cupy"]):
        old_numpy = numpy in ("1.26", "2.0")
        if old_numpy and python in ("3.13", "3.14"):
            continue
        if cupy == "14" and numpy == "1.26":
            continue
        if cupy == "13" and python == "3.14":
            continue
        valid.add((python, numpy, cupy))
    assert len(valid) == 21
    assert {(each.python, each.numpy, each.cupy) for each in TABLE} == valid


def test_no_combination_breaks_a_rule_and_each_is_there_once() -> None:
    for each in TABLE:
        assert why_not(str(each.python), str(each.numpy), each.cupy, each.cudnn) is None
    assert len({each.id for each in TABLE}) == len(TABLE)
    assert why_not("3.13", "1.26", None, None) == "NumPy 1.26 ends at Python 3.12"
    assert why_not("3.12", "1.26", "14", None) == "CuPy 14 needs NumPy 2"
    assert why_not("3.14", "newest", "13", None) == "CuPy 13 has no Python 3.14"


def test_each_cudnn_is_run_with_each_python() -> None:
    pairs = {(each.python, each.cudnn) for each in TABLE}
    assert pairs >= set(itertools.product(AXES["python"], AXES["cudnn"]))


def test_ids_and_labels_tell_the_versions() -> None:
    (found,) = select(["python-3.12-numpy-2.0-cupy-14-*"])
    assert found.id == "python-3.12-numpy-2.0-cupy-14-cudnn-newest"
    assert found.label == "Python 3.12, NumPy 2.0, CuPy 14, newest cuDNN"
    assert requirements(found) == ["numpy==2.0.*", "cupy-cuda12x==14.*"]
    (found,) = select(["python-3.13-numpy-newest"])
    assert requirements(found) == ["numpy"]


def test_patterns_choose_and_none_chooses_all() -> None:
    assert select([]) == TABLE
    assert {each.python for each in select(["python-3.12-*"])} == {"3.12"}
    assert [each.id for each in select(CI)] == list(CI)
    with pytest.raises(ValueError, match=r"'python-2\*'.*python-3\.11-numpy-1\.26"):
        select(["python-2*"])


def test_the_table_can_be_read_without_numpy() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "from cudnn_compat.matrix.environments import TABLE\n"
        "print(len(TABLE))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == str(len(TABLE)), done.stderr


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "build_wheel", lambda folder: folder / "none.whl")


@pytest.mark.usefixtures("no_wheel")
def test_an_interpreter_that_is_not_there_is_told_in_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(version: str) -> str:
        raise script.NotHere(f"no interpreter of Python {version} was found (path, pyenv, uv)")

    monkeypatch.setattr(script, "find_interpreter", nowhere)
    places = ["--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
    assert script.main([*places, "python-3.14-numpy-newest"]) == 0
    (file,) = (tmp_path / "out").iterdir()
    document = json.loads(file.read_text())
    assert file.stem == document["combination"]["id"] == "python-3.14-numpy-newest"
    assert document["combination"]["tested"] is False
    assert "no interpreter of Python 3.14" in document["combination"]["reason"]
    assert "not tested here: no interpreter of Python 3.14" in capsys.readouterr().out


@pytest.mark.usefixtures("no_wheel")
def test_a_row_that_failed_makes_the_command_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(combination: Any, cache: Path, wheel: Path) -> dict[str, Any]:
        document = script.not_tested(combination, "")
        document["combination"]["tested"] = True
        document["summary"]["failed"] = 1
        return document

    monkeypatch.setattr(script, "run", failing)
    places = ["--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
    assert script.main([*places, CI[0]]) == 1


def test_an_unknown_pattern_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        script.main(["ruby-*"])
    assert "no environment fits 'ruby-*'" in capsys.readouterr().err


def test_the_interpreter_of_this_python_is_found() -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = script.find_interpreter(version)
    asked = subprocess.run([found, "-c", "import sys; print(sys.version_info[:2])"],
                           capture_output=True, text=True)  # fmt: skip
    assert asked.stdout.strip() == str(sys.version_info[:2])
    with pytest.raises(script.NotHere, match=r"no interpreter of Python 3\.1 was found"):
        script.find_interpreter("3.1")


def newest_records() -> Path:
    return max(path for path in RECORDS.iterdir() if path.is_dir())


def test_the_newest_records_are_those_of_the_table() -> None:
    files = {file.stem: json.loads(file.read_text()) for file in newest_records().glob("*.json")}
    assert set(files) >= {each.id for each in TABLE}
    apis = {feature.api for feature in FEATURES}
    for name, document in files.items():
        combination = document["combination"]
        if combination["tested"]:
            assert {each["api"] for each in document["capabilities"]} == apis, name
            assert document["summary"]["rows"] == sum(document["summary"][s] for s in STATUSES)
            assert document["summary"]["failed"] == 0, name
        else:
            assert combination["reason"], name


def test_records_have_the_versions_that_were_asked_for() -> None:
    for file in newest_records().glob("*.json"):
        combination = json.loads(file.read_text())["combination"]
        for axis in AXES if combination["tested"] else ():
            asked, found = combination[axis], combination["versions"][axis]
            if asked not in (None, "newest"):
                assert f"{found}.".startswith(f"{asked}."), (file.name, axis)


def test_nox_has_the_session_and_reads_no_other_table() -> None:
    text = (ROOT / "noxfile.py").read_text()
    assert "def matrix(session" in text
    assert "scripts/matrix_environments.py" in text
    assert not any(f'"{each.id}"' in text for each in TABLE)
