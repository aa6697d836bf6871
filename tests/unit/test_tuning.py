"""The file of what was learnt: found, read whatever is in it, added to, carried, switched off."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudnn_compat.engines import tuning
from cudnn_compat.engines.tuning import (
    Tuning,
    clear_tuning,
    merge_tuning,
    read_tuning,
    tuning_file,
    tuning_is_on,
)

ENTRY = {"algo": "standard", "graph": True, "us": {"standard": 2.0, "standard+graph": 1.0}}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "there" / "tuning.json"
    monkeypatch.setenv("CUDNN_COMPAT_TUNING", str(path))
    return path


def test_without_a_name_it_is_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDNN_COMPAT_TUNING")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tuning_file() == tmp_path / "cudnn_compat" / "tuning.json"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tuning_file() == tmp_path / ".cache" / "cudnn_compat" / "tuning.json"


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no"])
def test_it_can_be_switched_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDNN_COMPAT_TUNING", word)
    assert not tuning_is_on()
    assert tuning_file() is None
    assert read_tuning() == {}
    clear_tuning()
    Tuning().learn("here", "shape", ENTRY)


def test_what_one_process_learns_the_next_one_finds(path: Path) -> None:
    Tuning().learn("GPU, cuDNN 9", "lstm", ENTRY)
    assert Tuning().find("GPU, cuDNN 9", "lstm") == ENTRY
    assert Tuning().find("GPU, cuDNN 9", "gru") is None
    assert Tuning().find("other", "lstm") is None
    assert {file.name for file in path.parent.iterdir()} == {"tuning.json", "tuning.json.lock"}


def test_what_another_process_wrote_meanwhile_is_kept(path: Path) -> None:
    one, other = Tuning(), Tuning()
    assert one.find("here", "a") is None
    other.learn("here", "b", ENTRY)
    one.learn("here", "a", ENTRY)
    assert set(read_tuning()["here"]) == {"a", "b"}


def test_of_too_many_shapes_the_last_are_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_MOST", 3)
    known = Tuning()
    for name in "abcab":
        known.learn("here", name, ENTRY)
    known.learn("here", "d", ENTRY)
    assert list(read_tuning()["here"]) == ["a", "b", "d"]


def test_a_file_is_taken_over_from_another_machine(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"schema": 1, "best": {"GPU": {"a": ENTRY, "b": ENTRY}}}))
    Tuning().learn("GPU", "c", ENTRY)
    assert merge_tuning(other) == 2
    assert set(read_tuning()["GPU"]) == {"a", "b", "c"}


def test_it_is_cleared(path: Path) -> None:
    clear_tuning()
    Tuning().learn("here", "a", ENTRY)
    clear_tuning()
    assert not path.exists()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values | st.fixed_dictionaries({"schema": st.just(1), "best": values}))
def test_whatever_is_in_the_file_only_entries_come_out(value: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", lambda *_, **__: json.dumps(value))
        for shapes in read_tuning(Path("any")).values():
            for entry in shapes.values():
                assert isinstance(entry["algo"], str)
                assert isinstance(entry["graph"], bool)


def test_where_it_cannot_be_written_the_process_still_knows(path: Path) -> None:
    path.mkdir(parents=True)
    known = Tuning()
    known.learn("here", "a", ENTRY)
    assert known.find("here", "a") == ENTRY


def test_a_file_of_a_later_release_is_left_alone(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": 2, "best": {}}')
    known = Tuning()
    known.learn("here", "a", ENTRY)
    assert known.find("here", "a") == ENTRY
    assert path.read_text() == '{"schema": 2, "best": {}}'


def test_a_damaged_file_is_replaced(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("{")
    Tuning().learn("here", "a", ENTRY)
    assert read_tuning() == {"here": {"a": ENTRY}}


def test_what_could_not_be_written_leaves_nothing_behind(path: Path) -> None:
    path.mkdir(parents=True)
    Tuning().learn("here", "a", ENTRY)
    assert list(path.iterdir()) == []
    assert {file.name for file in path.parent.iterdir()} == {"tuning.json", "tuning.json.lock"}


def test_many_processes_may_add_at_once(path: Path) -> None:
    program = (
        "import sys; from cudnn_compat.engines.tuning import Tuning; known = Tuning()\n"
        "for k in range(20): known.learn('here', f'{sys.argv[1]} {k}', "
        "{'algo': 'standard', 'graph': False})"
    )
    started = [subprocess.Popen([sys.executable, "-c", program, name]) for name in "abc"]
    assert [one.wait() for one in started] == [0, 0, 0]
    assert len(read_tuning()["here"]) == 60


def test_a_user_without_a_home_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("CUDNN_COMPAT_TUNING")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)
    assert tuning_file() is None
    Tuning().learn("here", "a", ENTRY)
