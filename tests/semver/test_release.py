"""Releases are made by one command, or refused with a reason and nothing written."""

from __future__ import annotations

import datetime
import hashlib
import shutil
from pathlib import Path

import pytest
from api_text import Snapshot, parse
from packaging.version import Version
from release import Refused, build_wheel, files_of, main, release, released, tree_version

from tests.semver.conftest import TRIAL

DATE = datetime.date(2026, 1, 2)
RC1 = Version("2.0.0rc1")


@pytest.fixture
def root(trial: Path, tmp_path: Path) -> Path:
    """A tree that has one release, and may be released again."""
    shutil.copytree(trial, tmp_path / "tree")
    return tmp_path / "tree"


def say(root: Path, heading: str, text: str = "- A change.") -> None:
    """Put a section on top of the changelog."""
    file = root / "CHANGELOG.md"
    log = file.read_text(encoding="utf-8")
    file.write_text(log.replace("\n## ", f"\n{heading}\n\n{text}\n\n## ", 1), encoding="utf-8")


def content(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_a_release_is_a_version_a_snapshot_a_wheel_and_pickles(trial: Path) -> None:
    assert tree_version(trial) == TRIAL
    assert released(trial) == [TRIAL]
    made = files_of(trial, TRIAL)
    assert all(file.is_file() for file in made.values())
    text = made["snapshot"].read_text(encoding="utf-8")
    assert text.startswith(f"# The public API of cudnn_compat {TRIAL},")
    assert len(parse(text)) > 300
    assert made["wheel"].stat().st_size < 600_000


@pytest.fixture
def surface(trial: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """What the next release is told to offer: the trial's, to be changed; asking takes long."""
    text = files_of(trial, TRIAL)["snapshot"].read_text(encoding="utf-8")
    snapshot = parse(text)
    monkeypatch.setattr("release.snapshots", lambda roots: [snapshot])
    return snapshot


def test_the_next_release_says_what_has_changed_since_the_last(
    root: Path, surface: Snapshot, capsys: pytest.CaptureFixture[str]
) -> None:
    say(root, f"## {RC1} ({DATE})", "- New: `unpacked`.")
    surface["module cudnn_compat.v2"]["name unpacked"] = "value True"
    main([str(RC1), "--root", str(root)])
    printed = capsys.readouterr().out
    assert released(root) == [TRIAL, RC1]
    assert tree_version(root) == RC1
    for file in files_of(root, RC1).values():
        assert file.relative_to(root).as_posix() in printed
    assert f"Since {TRIAL}:\n  minor   module cudnn_compat.v2: new name unpacked" in printed


def test_the_same_files_and_date_make_the_same_wheel_anywhere(
    trial: Path, root: Path, tmp_path: Path
) -> None:
    for path in root.rglob("*.py"):
        path.touch()
    (tmp_path / "again").mkdir()
    wheel = build_wheel(root, tmp_path / "again", DATE)
    made = files_of(trial, TRIAL)["wheel"]
    assert wheel.name == made.name
    assert wheel.read_bytes() == made.read_bytes()


@pytest.mark.parametrize(
    ("version", "heading", "reason"),
    [
        (str(TRIAL), "", "is released already"),
        ("1.9", f"## 1.9 ({DATE})", "is earlier than 2.0.0rc0"),
        ("2.0.0.dev1", f"## 2.0.0.dev1 ({DATE})", "is no version to release"),
        ("2.0.0rc1", "", "has no section for 2.0.0rc1"),
        ("2.0.0rc1", "## 2.0.0rc1 (unreleased)", "without a date or text"),
        ("2.0.0rc1", f"## 2.0.0rc1 ({DATE})\n\n## 1 (old)", "without a date or text"),
        ("two", "", "Invalid version"),
    ],
)
def test_a_release_that_must_not_be_is_refused_and_nothing_is_written(
    root: Path, version: str, heading: str, reason: str
) -> None:
    if heading:
        say(root, heading)
    before = content(root)
    with pytest.raises(SystemExit, match="release.py: ") as refusal:
        main([version, "--root", str(root)])
    assert reason in str(refusal.value)
    assert content(root) == before


def test_a_release_is_refused_with_everything_that_is_wrong(root: Path, surface: Snapshot) -> None:
    del surface["class cudnn_compat.v2.RNNSpec"]["value algo persist_small_h"]
    say(root, f"## 3.0.0 ({DATE})", "- Breaking: `something_else`.")
    before = content(root)
    with pytest.raises(Refused) as refusal:
        release(root, Version("3.0.0"))
    reasons = str(refusal.value).split("\n- ")
    assert "names `persist_small_h` and says why" in reasons[-1]
    assert "CC012 cudnn_compat.legacy.forward was to be removed in 3.0" in reasons
    assert content(root) == before
