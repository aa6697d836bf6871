"""Frozen programs on the newest releases and on this tree: the same numbers, the warnings of the
table, at the programs' own lines."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from pathlib import Path

import pytest
from api_text import Snapshot

from tests.semver.breaks import Damage, append, copy_with
from tests.semver.conftest import Oracle
from tests.semver.programs import DOWNSTREAM, PROGRAMS, Outcome, differences, run, run_all

each_program = pytest.mark.parametrize("name", PROGRAMS)

Outcomes = dict[str, Outcome]

BY_ANOTHER_NAME = {"get": ("getRNNLinLayerMatrixParams", "getRNNLinLayerBiasParams")}
"""Variables of the programs that hold an old function."""


@pytest.fixture(scope="session")
def on_release(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return run_all(oracle.package, tmp_path_factory.mktemp("on_release"))


@each_program
def test_a_program_gives_the_numbers_that_it_gave_on_the_release(
    name: str, on_tree: Outcomes, on_release: Outcomes
) -> None:
    assert len(on_release[name].numbers) > 10
    assert differences(on_release[name], on_tree[name], PROGRAMS[name].tolerance) == []


@each_program
def test_the_warnings_are_those_of_the_table_once_for_each_line_that_calls(
    name: str, on_tree: Outcomes, tree: Snapshot
) -> None:
    outcome = on_tree[name]
    assert Counter((code, file, line) for code, _, file, line in outcome.warned) == Counter(
        outcome.called
    )
    assert outcome.called
    for code, category, _, _ in outcome.warned:
        assert tree[f"warning {code}"]["category"] == category


@each_program
def test_a_warning_names_the_program_s_own_line_and_what_is_called_there(
    name: str, on_tree: Outcomes, tree: Snapshot
) -> None:
    folder = DOWNSTREAM / PROGRAMS[name].folder
    for code, _, file, line in on_tree[name].warned:
        assert Path(file).is_relative_to(folder)
        old = tree[f"warning {code}"]["old"].split(".")
        called = callees(Path(file), line)
        # A class is warned about where it is made; `cls[…](…)` makes a descriptor.
        assert called & {old[-1], "cls"}, f"{file}:{line} calls {called}, not {old[-1]}"


@each_program
def test_no_line_that_warned_on_the_release_has_fallen_silent(
    name: str, on_tree: Outcomes, on_release: Outcomes
) -> None:
    """A version may add to the table; it may not forget, nor give a code another meaning."""
    assert set(on_release[name].warned) <= set(on_tree[name].warned)


@functools.cache
def callees(file: Path, line: int) -> set[str]:
    """Names of what is called on a line: `f` of `f(…)`, `m.f(…)`, `f[…](…)`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or line):
            called = node.func.value if isinstance(node.func, ast.Subscript) else node.func
            if isinstance(called, (ast.Name, ast.Attribute)):
                name = called.id if isinstance(called, ast.Name) else called.attr
                found |= {name, *BY_ANOTHER_NAME.get(name, ())}
    return found


WRONG_NUMBER = Damage(
    "legacy/gradients.py",
    append(
        "_right = pullback\n"
        "def pullback(desc, x, h, c=None):\n"
        "    results, back = _right(desc, x, h) if c is None else _right(desc, x, h, c)\n"
        "    return (results[0] * 1.001, *results[1:]), back\n"
    ),
    "",
)
ELSEWHERE = Damage(
    "legacy/deprecations.py",
    append('_HERE = "no such folder"\n'),
    "",
)


def test_a_changed_number_and_a_warning_elsewhere_are_noticed(
    on_tree: Outcomes, tmp_path: Path
) -> None:
    package = copy_with(tmp_path / "copy", [WRONG_NUMBER, ELSEWHERE])
    (tmp_path / "out").mkdir()
    program, right = PROGRAMS["flux_style float32"], on_tree["flux_style float32"]
    outcome = run(program, package, tmp_path / "out")
    wrong = differences(right, outcome, program.tolerance)
    assert any("lstm batch5" in each for each in wrong)
    away = {file for _, _, file, _ in outcome.warned if not file.startswith(str(DOWNSTREAM))}
    assert {Path(file).name for file in away} == {"deprecations.py"}
