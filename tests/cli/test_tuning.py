"""``cudnn-compat tuning``: shows, clears and takes over what was learnt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cudnn_compat.cli.app import app
from cudnn_compat.engines.tuning import Tuning

ENTRY = {"algo": "standard", "graph": True, "us": {"standard": 2.5, "standard+graph": 1.0}}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("CUDNN_COMPAT_TUNING", str(path))
    return path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["tuning", *arguments])
    return result.exit_code, result.output


def test_it_shows_each_shape_with_the_best_way_and_all_times(path: Path) -> None:
    Tuning().learn("NVIDIA X, cuDNN 9.1.0", "lstm 1×2×3×4", ENTRY)
    code, output = run()
    assert code == 0
    for text in (str(path), "NVIDIA X, cuDNN 9.1.0", "lstm 1×2×3×4", "standard+graph 1"):
        assert text in output


def test_it_says_where_the_file_would_be(path: Path) -> None:
    assert run() == (0, f"{path} (not there)\n")


def test_json_has_the_file_and_all_entries(path: Path) -> None:
    Tuning().learn("here", "a", ENTRY)
    code, output = run("--json")
    assert code == 0
    assert json.loads(output) == {"file": str(path), "best": {"here": {"a": ENTRY}}}


def test_clear_deletes_the_file(path: Path) -> None:
    Tuning().learn("here", "a", ENTRY)
    assert run("--clear")[0] == 0
    assert not path.exists()


def test_what_cannot_be_deleted_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDNN_COMPAT_TUNING", str(tmp_path))
    done = CliRunner().invoke(app, ["tuning", "--clear"])
    assert done.exit_code == 2
    assert f"{tmp_path} cannot be deleted" in done.output


def test_add_takes_over_a_file(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"schema": 1, "best": {"GPU": {"b": ENTRY}}}))
    assert run("--add", str(other))[0] == 0
    assert "GPU" in path.read_text()


def test_add_refuses_a_file_that_holds_nothing(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    code, output = run("--add", str(other))
    assert code == 2
    assert "holds nothing" in output


def test_off_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDNN_COMPAT_TUNING", "off")
    assert run() == (0, "off, by CUDNN_COMPAT_TUNING\n")
    assert run("--clear")[0] == 2
    assert json.loads(run("--json")[1]) == {"file": None, "best": {}}


def test_odd_files_are_shown_as_they_are(path: Path) -> None:
    Tuning().learn("[red]GPU", "a [/b]", ENTRY | {"us": {"standard": "fast", "x": 2}})
    code, output = run()
    assert code == 0
    for text in ("[red]GPU", "a [/b]", "standard ?", "x 2"):
        assert text in output
