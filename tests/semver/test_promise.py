"""The written promise and the tests of it are about the same things."""

from __future__ import annotations

import ast
import re

import pytest
from api_public import MODULES, REPORTS

from cudnn_compat.legacy.table import TABLE
from tests.semver.conftest import ROOT

PROMISE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PROMISE)
RULES = [
    line
    for line in PROMISE.splitlines()
    if line.startswith("| ") and "held by" not in line and "---" not in line
]


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED)))
def test_a_rule_names_a_test_that_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_rule_names_a_test() -> None:
    assert len(RULES) > 15
    for rule in RULES:
        assert re.search(r"\| `tests/\S+::test_\S+` \|$", rule), rule


def test_the_promise_names_every_public_module_and_report() -> None:
    (names,) = (rule for rule in RULES if rule.startswith("| names |"))
    (reports,) = (rule for rule in RULES if rule.startswith("| JSON |"))
    told = set(re.findall(r"`([\w.]+)`", names)) - {"__all__"}
    assert told == {name.removeprefix("cudnn_compat.") for name in MODULES}
    assert set(re.findall(r"`(\w+ --\w+)`", reports)) == set(REPORTS)


def test_the_promise_says_when_the_old_names_go() -> None:
    (removal,) = {row.removal for row in TABLE}
    assert f"Nothing of it goes before {removal}" in PROMISE


def test_the_ranges_of_codes_are_those_of_the_table() -> None:
    page = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    ranges = [(int(a), int(b)) for a, b in re.findall(r"(\d\d\d)–(\d\d\d)", page)]
    assert len(ranges) == 4
    modules = [
        {row.module for row in TABLE if low <= int(row.code[2:]) <= high} for low, high in ranges
    ]
    assert modules[:3] == [
        {"cudnn_compat.legacy"},
        {"cudnn_compat.legacy.cupy.cudnn"},
        {"cudnn_compat.legacy.cupy.libcudnn"},
    ]
    assert all(any(low <= int(row.code[2:]) <= high for low, high in ranges) for row in TABLE)
