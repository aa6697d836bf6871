"""Copies of the package are broken in many ways: each is noticed; what breaks nothing may pass.

All damages of a kind share a copy, because a copy takes long to read: each has words of its own.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
from pathlib import Path

import griffe
import pytest
from api_public import SLOW
from api_rules import Change, Level, changes, overdue, problems
from api_snapshot import snapshots
from api_text import Snapshot
from packaging.version import Version

from tests.semver.breaks import BREAKS, HARMLESS, ROOT, UNSEEN, copy_with
from tests.semver.surface import griffe_says, public_part

OLD, PATCH, MINOR, MAJOR = map(Version, ("1.4.0", "1.4.1", "1.5.0", "2.0.0"))
ALL = BREAKS | HARMLESS | UNSEEN


@dataclasses.dataclass(frozen=True)
class Copy:
    """A copy of the package, what was done to it, and what it offers now."""

    package: Path
    damages: list[str]
    snapshot: Snapshot

    def found(self, whole: Copy) -> list[Change]:
        return changes(whole.snapshot, self.snapshot)

    def judged(self, whole: Copy, version: Version, changelog: str = "") -> list[str]:
        return problems(whole.snapshot, OLD, self.snapshot, version, changelog)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Copy]:
    """The copy that has a damage, by the damage."""
    folder = tmp_path_factory.mktemp("copies")
    together = [[], [*BREAKS], [*HARMLESS], [*UNSEEN]]
    packages = [
        copy_with(folder / str(number), [ALL[name] for name in names])
        for number, names in enumerate(together)
    ]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        halves = pool.map(lambda half: snapshots(half, skip=SLOW), (packages[:2], packages[2:]))
        taken = [snapshot for half in halves for snapshot in half]
    made = [Copy(*each) for each in zip(packages, together, taken, strict=True)]
    return {name: copy for copy in made for name in copy.damages or ["none"]}


@pytest.fixture(scope="module")
def whole(copies: dict[str, Copy]) -> Copy:
    return copies["none"]


def test_a_copy_without_damage_has_the_surface_of_the_tree(whole: Copy, tree: Snapshot) -> None:
    assert whole.snapshot == {e: facts for e, facts in tree.items() if e not in SLOW}


@pytest.mark.parametrize("name", BREAKS)
def test_what_breaks_programs_needs_a_major_version(
    copies: dict[str, Copy], whole: Copy, name: str
) -> None:
    found = [c for c in copies[name].found(whole) if BREAKS[name].seen in c.text]
    assert found
    assert {change.level for change in found} == {Level.MAJOR}
    for version in (PATCH, MINOR):
        refused = copies[name].judged(whole, version, f"- Breaking: `{found[0].name}`, because.")
        assert [each for each in refused if each.startswith(found[0].text)]


@pytest.mark.parametrize("name", BREAKS)
def test_a_major_version_may_do_it_where_the_changelog_says_so(
    copies: dict[str, Copy], whole: Copy, name: str
) -> None:
    says = "".join(f"- Breaking: `{c.name}`, because.\n" for c in copies[name].found(whole))
    assert copies[name].judged(whole, MAJOR, says) == []
    unsaid = copies[name].judged(whole, MAJOR, "- Breaking: something else.\n")
    assert [each for each in unsaid if BREAKS[name].seen in each]


def test_nothing_is_seen_that_was_not_done(copies: dict[str, Copy], whole: Copy) -> None:
    """Every break of a copy is told by one of its damages, or follows from it."""
    follows = (
        *("is added", "new base Exception", "new option --as-json"),
        "function cudnn_compat.v2.pack: new parameter sizes",  # in place of lengths
        "report cudnn-compat info --json is removed",  # with its option
        *("matrix --json: key environment was", "matrix --json: new key environment"),
        "warning CC023: ",  # which has changed places with CC024
    )
    for copy in copies.values():
        for change in copy.found(whole):
            told = any(ALL[name].seen and ALL[name].seen in change.text for name in copy.damages)
            assert told or any(each in change.text for each in follows), change


@pytest.mark.parametrize("name", HARMLESS)
def test_an_addition_needs_a_minor_version_and_a_word(
    copies: dict[str, Copy], whole: Copy, name: str
) -> None:
    found = copies[name].found(whole)
    (change,) = (change for change in found if HARMLESS[name].seen in change.text)
    assert {each.level for each in found} == {Level.MINOR}
    says = " ".join(f"`{each.name}`" for each in found)
    assert copies[name].judged(whole, MINOR, says) == []
    (unsaid,) = copies[name].judged(whole, MINOR, says.replace(f"`{change.name}`", ""))
    assert f"needs `{change.name}`" in unsaid
    refused = copies[name].judged(whole, PATCH, says)
    assert [each for each in refused if each.startswith(change.text)]


@pytest.mark.parametrize("name", UNSEEN)
def test_what_is_not_public_may_change_in_any_version(
    copies: dict[str, Copy], whole: Copy, name: str
) -> None:
    assert copies[name].found(whole) == []


def test_a_tree_that_kept_its_old_names_for_too_long_is_told_which(tree: Snapshot) -> None:
    rows = {entry.partition(" ")[2] for entry in tree if entry.startswith("warning ")}
    late = overdue(tree, Version("3.0.0rc1"))
    assert {each.split()[0] for each in late} == rows
    assert len(rows) > 100


SEEN_BY_GRIFFE = {
    "a name is gone": griffe.BreakageKind.OBJECT_REMOVED,
    "a parameter has another name": griffe.BreakageKind.PARAMETER_REMOVED,
    "a default has changed": griffe.BreakageKind.PARAMETER_CHANGED_DEFAULT,
    "an error is no longer a TypeError": griffe.BreakageKind.CLASS_REMOVED_BASE,
    "a new parameter must be given": griffe.BreakageKind.PARAMETER_ADDED_REQUIRED,
    "a parameter is taken by keyword only": griffe.BreakageKind.PARAMETER_CHANGED_KIND,
    "a method is gone": griffe.BreakageKind.OBJECT_REMOVED,
    "a result has one value less": griffe.BreakageKind.OBJECT_REMOVED,
}
"""What it can see: it knows nothing of values, tables and the command."""


@pytest.mark.parametrize("name", SEEN_BY_GRIFFE)
def test_griffe_sees_it_too(copies: dict[str, Copy], name: str) -> None:
    """The other judge, who reads the source and imports nothing."""
    said = griffe_says(ROOT, copies[name].package)
    assert SEEN_BY_GRIFFE[name] in {each.kind for each in said}


def test_griffe_finds_nothing_broken_where_nothing_is(copies: dict[str, Copy]) -> None:
    for package in {copies[name].package for name in HARMLESS | UNSEEN}:
        assert griffe_says(ROOT, package) == []


def test_griffe_looks_at_the_names_that_people_import() -> None:
    names = public_part(ROOT).members
    assert len(names) > 150
    wanted = {"v2.rnn_forward", "legacy.CUDNN_LSTM", "legacy.pullback", "legacy.cupy.CuDNNError"}
    assert {f"cudnn_compat.{name}" for name in wanted} <= set(names)
