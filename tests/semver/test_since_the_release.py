"""This tree against the newest releases: what has changed, and whether its version may."""

from __future__ import annotations

import re
from pathlib import Path

from api_command import keys
from api_public import MODULES, REPORTS
from api_rules import Level, allowed, changes, overdue, problems, section
from api_text import Snapshot
from packaging.version import Version
from release import files_of, released, tree_version

import cudnn_compat
from cudnn_compat.legacy.table import TABLE
from tests.semver.conftest import ROOT, Oracle
from tests.semver.surface import griffe_says

VERSION = tree_version(ROOT)


def changelog() -> str:
    return section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), VERSION) or ""


def test_the_changelog_has_a_section_for_the_version_of_the_tree() -> None:
    assert str(VERSION) == cudnn_compat.__version__
    assert changelog().count("\n") > 1


def test_every_change_of_the_public_surface_is_one_that_the_version_may_make(
    oracle: Oracle, tree: Snapshot
) -> None:
    assert problems(oracle.snapshot, oracle.version, tree, VERSION, changelog()) == []


def test_griffe_finds_nothing_broken_that_the_version_may_not_break(
    oracle: Oracle, tree: Snapshot
) -> None:
    said = griffe_says(oracle.package, ROOT)
    # What a version may break is argued in the changelog by the names of the snapshot.
    if allowed(oracle.version, VERSION) is Level.MAJOR:
        argued = {c.name for c in changes(oracle.snapshot, tree) if c.level is Level.MAJOR}
        said = [each for each in said if not argued & set(re.split(r"\W+", each.obj.path))]
    assert [each.explain() for each in said] == []


def test_no_old_name_is_overdue(tree: Snapshot) -> None:
    assert overdue(tree, VERSION) == []


def test_old_names_stay_for_a_major_version_at_least(tree: Snapshot) -> None:
    rows = [facts for entry, facts in tree.items() if entry.startswith("warning ")]
    assert len(rows) == len(TABLE)
    for row in rows:
        since, removal = Version(row["since"]), Version(row["removal"])
        assert removal.major > since.major
        assert (removal.minor, removal.micro) == (0, 0)


def test_a_tree_that_is_no_development_version_is_released() -> None:
    assert VERSION.is_devrelease or VERSION in released(ROOT)
    assert max([VERSION, *released(ROOT)]) == VERSION, "the newest release is later than the tree"


def test_every_release_has_its_three_files_and_no_file_is_of_no_release() -> None:
    expected = {path for each in released(ROOT) for path in files_of(ROOT, each).values()}
    folders = [ROOT / "tests" / "semver" / name for name in ("api", "wheels", "pickles")]
    assert expected == {path for folder in folders for path in folder.glob("*") if path.is_file()}


def test_every_public_name_can_be_imported_and_is_in_the_snapshot(tree: Snapshot) -> None:
    for entry in MODULES:
        facts = tree.get(f"module {entry}")
        if facts is None:
            assert entry == "cudnn_compat.migrate"  # not every version has the rewriter
            continue
        module = __import__(entry, fromlist=["__all__"])
        assert {fact.removeprefix("name ") for fact in facts} == set(module.__all__)


def test_every_command_that_writes_json_has_a_recipe_for_its_keys(tree: Snapshot) -> None:
    """So that the keys of a new report do not go unseen."""
    writing = {
        f"{entry.removeprefix('command cudnn-compat ')} {option}"
        for entry, facts in tree.items()
        for option in ("--json", "--report")
        if entry.startswith("command ") and f"option {option}" in facts
    }
    known = {each for each in REPORTS if f"command cudnn-compat {each.split()[0]}" in tree}
    assert writing == known, "scripts/api_public.py: REPORTS"
    assert all(len(tree[f"report cudnn-compat {name}"]) >= 2 for name in known)


def test_keys_are_told_with_their_way_from_the_top() -> None:
    content = {"a": 1, "rows": [{"id": 2}, {"id": 3, "more": {"x": None}}], "none": []}
    wanted = ["a", "rows", "rows[].id", "rows[].more", "rows[].more.x", "none"]
    assert [*dict.fromkeys(keys(content))] == wanted


def test_every_environment_variable_of_our_own_is_in_the_snapshot(tree: Snapshot) -> None:
    text = "".join(p.read_text(encoding="utf-8") for p in Path(ROOT, "cudnn_compat").rglob("*.py"))
    named = set(re.findall(r"\bCUDNN_COMPAT_[A-Z_]+\b", text))
    assert {f"environment {name}" for name in named} <= set(tree)
    assert len(named) >= 2
