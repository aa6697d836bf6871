"""What a difference of two snapshots asks of the version, rule by rule."""

from __future__ import annotations

import random

import pytest
from api_rules import Level, allowed, baselines, changes, overdue, problems, section
from api_text import Snapshot, parse, render
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

SMALL = """\
module m
    name C: class
    name f: function
    name LSTM: value 2

class m.C
    frozen
    base ValueError
    parameter cell: positional 1, required, of str
    value cell lstm
    attribute size: int

method m.C.run
    parameter x: positional 1, required

function m.f
    parameter x: positional 1, required, of Array
    parameter layout: keyword only, default 'time_major', of str
    parameter data: positional only 2, required
    returns: Array

command cudnn-compat matrix
    option --json: file
    argument program: text, required
    exit status of a failed row: 1

environment CUDNN_COMPAT_CUDNN

report cudnn-compat matrix --json
    key rows[].id

warning CC012
    old: m.f
    new: n.f
    since: 2.0
    removal: 3.0
    category: RemovedIn3Warning
"""

BREAKING = [
    ("    name f: function\n", ""),
    ("name LSTM: value 2", "name LSTM: value 3"),
    ("name f: function", "name f: class"),
    ("    frozen\n", "    can be changed\n"),
    ("    base ValueError\n", ""),
    ("    value cell lstm\n", ""),
    ("    attribute size: int\n", ""),
    ("\nmethod m.C.run\n    parameter x: positional 1, required\n", ""),
    ("parameter x: positional 1, required, of", "parameter y: positional 1, required, of"),
    ("x: positional 1, required, of", "x: keyword only, required, of"),
    ("x: positional 1, required, of", "x: positional 2, required, of"),
    ("'time_major', of", "'batch_major', of"),
    ("keyword only, default 'time_major'", "keyword only, required"),
    ("    returns", "    parameter z: keyword only, required\n    returns"),
    ("    option --json: file\n", ""),
    ("option --json: file", "option --json: flag"),
    ("option --json: file", "option --json: file, required"),
    ("    argument", "    option --html: file, required\n    argument"),
    ("exit status of a failed row: 1", "exit status of a failed row: 0"),
    ("environment CUDNN_COMPAT_CUDNN\n", ""),
    ("    key rows[].id\n", ""),
    ("old: m.f", "old: m.g"),
    ("removal: 3.0", "removal: 2.9"),
    ("category: RemovedIn3Warning", "category: LegacyAPIWarning"),
    ("\nwarning CC012\n", "\nwarning CC013\n"),
]
"""(text, what stands in its place): each needs a major version."""

ADDING = [
    ("    name f:", "    name g: function\n    name f:"),
    ("    base ValueError\n", "    base ValueError\n    base KeyError\n"),
    ("    value cell lstm\n", "    value cell lstm\n    value cell gru\n"),
    ("attribute size: int", "attribute size: float"),
    ("\nfunction m.f", "\nmethod m.C.walk\n    returns: int\n\nfunction m.f"),
    ("x: positional 1, required, of Array", "x: positional 1, required, of Array | None"),
    ("x: positional 1, required, of", "x: positional 1, default None, of"),
    ("layout: keyword only,", "layout: positional 3,"),
    ("data: positional only 2", "data: positional 2"),
    ("    returns", "    parameter z: keyword only, default 0\n    returns"),
    ("returns: Array", "returns: tuple[Array]"),
    ("    returns: Array\n", ""),
    ("    option --json", "    option --html: file\n    option --json"),
    ("program: text, required", "program: text"),
    ("environment CUDNN_COMPAT_CUDNN", "environment MORE\n\nenvironment CUDNN_COMPAT_CUDNN"),
    ("    key rows[].id\n", "    key rows[].id\n    key rows[].engine\n"),
    ("new: n.f", "new: n.g"),
    ("removal: 3.0\n    category: RemovedIn3", "removal: 4.0\n    category: RemovedIn4"),
]
"""Each needs a minor version."""


def edited(pair: tuple[str, str]) -> Snapshot:
    assert SMALL.count(pair[0]) == 1, pair
    return parse(SMALL.replace(*pair))


@pytest.mark.parametrize("pair", BREAKING)
def test_what_can_break_a_program_needs_a_major_version(pair: tuple[str, str]) -> None:
    levels = [change.level for change in changes(parse(SMALL), edited(pair))]
    assert Level.MAJOR in levels


@pytest.mark.parametrize("pair", ADDING)
def test_what_breaks_no_program_needs_a_minor_version(pair: tuple[str, str]) -> None:
    levels = {change.level for change in changes(parse(SMALL), edited(pair))}
    assert levels == {Level.MINOR}


def test_the_removal_of_a_class_says_nothing_of_its_methods() -> None:
    parts = ("    name C: class\n", SMALL[SMALL.index("class m.C") : SMALL.index("function m.f")])
    without = SMALL
    for part in parts:
        without = without.replace(part, "")
    (change,) = changes(parse(SMALL), parse(without))
    assert (change.level, change.name) == (Level.MAJOR, "C")


@pytest.mark.parametrize(
    ("old", "new", "limit"),
    [
        ("2.0.0", "2.0.0", Level.NOTHING),
        ("2.1.0", "2.0.9", Level.NOTHING),
        ("2.0.0", "2.0.1", Level.NOTHING),
        ("2.0.0", "2.0.0.post1", Level.NOTHING),
        ("2.0.0", "2.1.0", Level.MINOR),
        ("2.0.3", "2.1.0.dev0", Level.MINOR),
        ("2.0.0", "2.1.0rc1", Level.MINOR),
        ("2.9.0", "3.0.0", Level.MAJOR),
        ("2.9.0", "3.0.0rc1", Level.MAJOR),
        ("2.0.0rc1", "2.0.0rc2", Level.MAJOR),
        ("2.0.0rc1", "2.0.0rc2.dev0", Level.MAJOR),
        ("2.0.0rc2", "2.0.0", Level.MINOR),
        ("2.0.0rc2", "2.0.1", Level.NOTHING),
        ("2.0.0rc2", "2.0.0rc1", Level.NOTHING),
    ],
)
def test_a_version_may_change_what_its_number_says(old: str, new: str, limit: Level) -> None:
    assert allowed(Version(old), Version(new)) is limit


def test_a_candidate_is_held_against_the_last_final_release_as_well() -> None:
    releases = [*map(Version, ("2.0.0rc1", "2.0.0", "2.1.0rc1", "2.1.0rc2"))]
    assert baselines(releases, Version("2.1.0rc3")) == [Version("2.0.0"), Version("2.1.0rc2")]
    assert baselines(releases, Version("2.1.0rc2")) == [Version("2.0.0"), Version("2.1.0rc2")]
    assert baselines(releases[:1], Version("2.0.0rc2")) == releases[:1]
    assert baselines([], Version("2.0.0rc1")) == []


RC1, RC2 = Version("2.0.0rc1"), Version("2.0.0rc2")
RENAMED = ("parameter x: positional 1, required, of", "parameter y: positional 1, required, of")


@pytest.mark.parametrize(
    ("changelog", "refused"),
    [
        ("- Breaking: `x` of `f` is `y`, because x is taken.\n- New: y.", 0),
        ("- Breaking: x is gone.", 1),  # and y is not mentioned
        ("- Breaking: maximum is gone, y is new.", 1),  # x in a word is not x
        ("- `x` is called `y`.", 2),  # not as an item of its own that begins with Breaking
        ("", 2),
    ],
)
def test_a_candidate_may_break_what_its_changelog_names(changelog: str, refused: int) -> None:
    found = problems(parse(SMALL), RC1, edited(RENAMED), RC2, changelog)
    assert len(found) == refused


def test_a_released_version_changes_no_more() -> None:
    for pair in BREAKING + ADDING:
        for each in problems(parse(SMALL), RC1, edited(pair), RC1, "- Breaking: everything"):
            assert "give the tree a later version first" in each


def test_a_removal_that_was_announced_needs_no_argument() -> None:
    gone = SMALL[: SMALL.index("warning")].replace("    name f: function\n", "")
    gone = gone[: gone.index("function m.f")] + gone[gone.index("command") :]
    old, new = parse(SMALL), parse(gone)
    assert problems(old, Version("2.5.0"), new, Version("3.0.0"), "") == []
    early = problems(old, Version("2.5.0"), new, Version("2.6.0"), "- Breaking: `f` and CC012")
    assert len(early) == 2


@pytest.mark.parametrize(
    ("version", "late"),
    [("2.9.9", 0), ("3.0.0.dev0", 0), ("3.0.0rc1", 1), ("3.0.0", 1), ("3.1.0", 1), ("10.0", 1)],
)
def test_a_row_is_overdue_from_the_first_candidate_of_its_removal_on(
    version: str, late: int
) -> None:
    assert len(overdue(parse(SMALL), Version(version))) == late


def test_the_section_of_a_version_ends_where_the_next_begins() -> None:
    log = "# Changes\n\n## 2.0.0rc1 (2026-12-01)\n\n- Two.\n\n## 2.0.0 (2027-01-01)\n- One.\n"
    assert section(log, RC1) == "## 2.0.0rc1 (2026-12-01)\n\n- Two.\n\n"
    assert section(log, Version("2.0.0")) == "## 2.0.0 (2027-01-01)\n- One.\n"
    assert section(log, RC2) is None


WORD = st.text("abcxyz_.", min_size=1, max_size=6).map(lambda text: f"a{text}")
FACT = st.sampled_from(["name", "parameter", "attribute", "value", "key"])
FACTS = st.dictionaries(
    st.tuples(FACT, WORD).map(" ".join), st.sampled_from(["", "positional 1, required", "one: two"])
)
KIND = st.sampled_from(["module", "class", "function", "command", "environment", "report"])
SNAPSHOTS = st.dictionaries(st.tuples(KIND, WORD).map(" ".join), FACTS, max_size=6)
SHAPES = ["{}.{}.{}", "{}.{}.{}rc1", "{}.{}.{}rc2", "{}.{}.{}.dev0"]
VERSIONS = st.builds(
    lambda shape, *parts: Version(shape.format(*parts)),
    st.sampled_from(SHAPES),
    *(st.integers(0, 3) for _ in range(3)),
)


@settings(max_examples=25)
@given(SNAPSHOTS)
def test_the_text_of_a_snapshot_is_read_back_as_it_was(snapshot: Snapshot) -> None:
    text = render(snapshot, "A heading\n\nof three lines")
    assert parse(text) == snapshot
    shuffled = list(snapshot.items())
    random.Random(0).shuffle(shuffled)
    assert render(dict(shuffled), "A heading\n\nof three lines") == text


@settings(max_examples=25)
@given(SNAPSHOTS)
def test_a_snapshot_does_not_differ_from_itself(snapshot: Snapshot) -> None:
    assert changes(snapshot, dict(reversed(snapshot.items()))) == []


@settings(max_examples=25)
@given(SNAPSHOTS, SNAPSHOTS)
def test_snapshots_that_differ_have_a_change_and_one_that_lost_something_broke(
    old: Snapshot, new: Snapshot
) -> None:
    found = changes(old, new)
    assert bool(found) == (old != new)
    lost = any(fact not in new.get(entry, {}) for entry in old for fact in old[entry])
    if lost or old.keys() - new.keys():
        assert found[0].level is Level.MAJOR


@settings(max_examples=25)
@given(SNAPSHOTS, SNAPSHOTS, VERSIONS, VERSIONS)
def test_no_version_is_refused_what_a_smaller_step_may(
    old: Snapshot, new: Snapshot, before: Version, after: Version
) -> None:
    refused = problems(old, before, new, after, "")
    major = Version(f"{before.major + 1}.0.0")
    words = " ".join(f"\n- Breaking: {change.name}" for change in changes(old, new))
    assert problems(old, before, new, major, words) == []
    assert refused == [] or old != new
    if allowed(before, after) is Level.NOTHING:
        assert bool(refused) == (old != new)


@pytest.mark.parametrize(
    "text", ["    fact: 1\n", "e\n    f: 1\n    f: 2\n", "e\n\ne\n", "e\n     f"]
)
def test_a_text_that_is_no_snapshot_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        parse(text)
