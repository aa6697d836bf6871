"""What is a record, what is none, and what two records make together."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cudnn_compat.errors import ArgumentError, LibraryNotFound
from cudnn_compat.matrix.page import merge, write_html, write_markdown
from cudnn_compat.matrix.page.records import MEANINGS, STATUSES, read_record
from tests.matrix_page.made import Json, Write, capability, record, usual


def small(id_: str = "py3.12", **more: Any) -> Json:
    return record(id_, "3.12.1 2.0.2 - -", capability("v2/forward/numpy"), **more)


def test_what_a_record_says_is_read(write: Write) -> None:
    found = read_record(write(small(gpu="NVIDIA H200")))
    assert (found.id, found.label) == ("py3.12", "the environment py3.12")
    assert found.asked == {"python": "3.12", "numpy": "2.0", "cupy": None, "cudnn": None}
    assert found.versions["numpy"] == "2.0.2"
    assert (found.gpu, found.tested, found.package) == ("NVIDIA H200", True, "2.0.0")
    assert found.created.isoformat() == "2026-11-30T11:30:00+00:00"
    (only,) = found.capabilities.values()
    assert (only.api, only.feature, only.engine) == ("v2", "forward", "numpy")
    assert (only.status, dict(only.counts), only.reasons) == ("works", {"works": 4}, ())


def test_keys_that_a_newer_release_adds_are_passed_over(write: Write) -> None:
    made = small(mood="good")
    made["combination"]["colour"] = "red"
    made["capabilities"][0]["weight"] = 3
    assert read_record(write(made)).id == "py3.12"


REFUSED = {
    "a list": ("[1, 2]", "is no record of the matrix: it has no 'schema'"),
    "another object": ('{"a": 1}', "is no record of the matrix: it has no 'schema'"),
    "no JSON": ("<html>", "is no JSON"),
    "nothing": ("", "is no JSON"),
    "bytes": (b"\xff\xfe\x00", "is no JSON"),
    "a record before there were schemas": (
        '{"created": "2026", "environment": {}, "summary": {}, "rows": []}',
        "is a record of a development version",
    ),
    "a newer schema": ('{"schema": 2}', "of schema 2, and this release of cudnn_compat reads"),
    "a schema that is no number": ('{"schema": true}', "of schema True"),
    "a schema and nothing else": ('{"schema": 1}', "combination is missing; wanted an object"),
}


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=list(REFUSED))
def test_a_file_that_is_no_record_is_refused_with_its_name(
    content: str | bytes, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "given.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ArgumentError) as caught:
        read_record(path)
    assert str(caught.value).startswith(f"{path} ")
    assert words in str(caught.value)
    assert (
        "matrix --json" in str(caught.value) or "wanted" in str(caught.value) or "schema" in words
    )


def test_a_file_that_is_not_there_is_refused_with_the_system_s_words(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"none\.json cannot be read: No such file"):
        read_record(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("combination.id", 3, "combination.id is 3; wanted a text"),
        ("combination.tested", 1, "combination.tested is 1; wanted true or false"),
        ("combination.versions", [], "combination.versions is []; wanted an object"),
        ("combination.gpu", 7, "combination.gpu is 7; wanted a text or null"),
        ("created", "yesterday", "created is 'yesterday'; wanted a date and time with its zone"),
        ("created", "2026-11-30T11:30:00", "wanted a date and time with its zone"),
        ("environment", None, "environment is null; wanted an object"),
        ("capabilities", {}, "capabilities is {}; wanted a list"),
        ("capabilities", [], "says that its environment was tested and has no capability"),
        ("capabilities.0.status", "fine", "capabilities[0].status is 'fine'; wanted one of works"),
        ("capabilities.0.counts", {"works": True}, "counts.works is true; wanted a number of rows"),
        ("capabilities.0.error", "0", 'error is "0"; wanted a number or null'),
        ("capabilities.0.reasons", [{}], "reasons[0].status is missing; wanted a text"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(
    place: str, value: Any, words: str, write: Write
) -> None:
    made = small()
    *way, last = place.split(".")
    inner: Any = made
    for key in way:
        inner = inner[int(key) if key.isdigit() else key]
    inner[last] = value
    with pytest.raises(ArgumentError) as caught:
        read_record(write(made, "given"))
    assert words in str(caught.value)
    assert "given.json" in str(caught.value)


def test_a_missing_key_is_refused_with_its_place(write: Write) -> None:
    made = small()
    del made["capabilities"][0]["engine"]
    with pytest.raises(ArgumentError, match=r"capabilities\[0\]\.engine is missing"):
        read_record(write(made))


def test_a_capability_that_stands_twice_in_a_record_is_refused(write: Write) -> None:
    made = small()
    made["capabilities"] *= 2
    with pytest.raises(ArgumentError, match="has 'v2/forward/numpy' twice"):
        read_record(write(made))


def test_two_records_of_one_environment_are_refused_with_both_names(write: Write) -> None:
    paths = [write(small(), "old"), write(small("other")), write(small(), "new")]
    with pytest.raises(ArgumentError) as caught:
        merge(paths)
    words = str(caught.value)
    assert all(word in words for word in ("old.json", "new.json", "'py3.12'", "one of the two"))
    assert "other.json" not in words


def test_runs_outside_the_table_are_told_apart_by_the_names_of_their_files(write: Write) -> None:
    paths = [write(small("here"), "before"), write(small("here"), "after")]
    assert [each.id for each in merge(paths).records] == ["here-after", "here-before"]
    with pytest.raises(ArgumentError, match="here-before"):
        merge([paths[0], paths[0]])


@pytest.mark.parametrize("make", [write_html, write_markdown])
def test_where_a_record_is_refused_nothing_is_written(
    make: Any, write: Write, tmp_path: Path
) -> None:
    out = tmp_path / "page"
    with pytest.raises(ArgumentError):
        make([write(small()), write({}, "empty")], out)
    with pytest.raises(ArgumentError, match="no record was given"):
        make([], out)
    assert not out.exists()


def test_without_jinja2_it_is_said_what_to_install(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "cudnn_compat.matrix.page.html", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(LibraryNotFound, match=r"pip install 'cudnn-compat\[cli\]'"):
        write_html([write(small())], tmp_path / "page")
    write_markdown([write(small())], tmp_path / "page")  # which needs none


def test_environments_stand_in_the_order_of_their_versions(write: Write) -> None:
    wanted = [
        *("3.9 2.0 - -", "3.10 1.26 - -", "3.10 2.0 13 -", "3.10 2.0 14 -", "3.10 newest - -"),
        *("3.9 2.0 - 8.9", "3.9 2.0 - 9.0", "3.9 2.0 - 9.12"),
    ]
    made = [record(f"e{index}", each, *usual()) for index, each in enumerate(wanted)]
    made.append(record("gpu", "3.9 1.26 - 8.9", *usual(), gpu="NVIDIA H200"))
    paths = [write(each) for each in made]
    for order in (paths, paths[::-1], paths[4:] + paths[:4]):
        assert [each.id for each in merge(order).records] == [*(f"e{n}" for n in range(8)), "gpu"]


def test_what_only_some_records_have_is_not_tested_in_the_others(write: Write) -> None:
    more = small("more")
    more["capabilities"].append(capability("v2/new/numpy"))
    matrix = merge([write(small()), write(more)])
    (group,) = matrix.groups
    cell = group.lines[1].cells["py3.12"]
    assert (group.lines[1].capability.feature, cell.status) == ("new", "not tested here")
    assert cell.reasons[0].text == "nothing of it is in this environment's record"


def test_an_environment_in_which_nothing_of_a_group_ran_has_a_line_and_no_column(
    write: Write,
) -> None:
    lost = record("lost", "3.14 2 - -", tested=False, reason="no interpreter")
    (group,) = merge([write(small()), write(lost)]).groups
    assert group.environments == ("py3.12",)
    assert group.untested == {"lost": "no interpreter"}
    assert {cell.status for cell in group.lines[0].cells.values()} == {"works", "not tested here"}


def test_a_gap_without_a_reason_says_so(write: Write) -> None:
    made = small()
    made["capabilities"].append(capability("v2/odd/numpy", "failed") | {"reasons": []})
    (group,) = merge([write(made)]).groups
    assert group.lines[1].cells["py3.12"].reasons[0].text == "no reason is given"


@pytest.mark.parametrize("make", [write_html, write_markdown])
def test_the_same_records_make_the_same_bytes_in_any_order(
    make: Any, paths: list[Path], tmp_path: Path
) -> None:
    pages = []
    for order in itertools.islice(itertools.permutations(paths), 0, 5000, 1700):
        make(order, tmp_path / "page")
        pages.append((tmp_path / "page").read_bytes())
    assert len(pages) == 3
    assert len(set(pages)) == 1
    assert len(pages[0]) > 5_000


def test_every_status_of_the_format_has_a_meaning_on_the_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for status in STATUSES:
        assert f">{status}</span>" in text


def test_the_records_of_these_tests_are_strict_json(paths: list[Path]) -> None:
    for path in paths:
        json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)


def test_every_status_has_a_meaning() -> None:
    assert tuple(MEANINGS) == STATUSES
