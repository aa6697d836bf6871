"""Each row of the CuPy dialect moves in some case, or is always left and says why."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

pytest.importorskip("libcst", reason="needs libcst (extra migrate)")

from cudnn_compat.legacy.table import TABLE, LegacyName
from cudnn_compat.migrate import Finding, migrate_program, migrate_source
from cudnn_compat.migrate.rules import RULES
from tests.migrate.case import CASES

ROWS = [row for row in TABLE if row.module.startswith("cudnn_compat.legacy.cupy")]
FROZEN = Path(__file__).parents[2] / "downstream" / "cupy_style"

NOTHING_IN_V2 = {
    *("CC114", "CC115", "CC254", "CC255", "CC256"),  # dropout of its own
    *("CC130", "CC131", "CC265", "CC266"),  # softmax
    *("CC132", "CC133", "CC260", "CC261", "CC262", "CC263", "CC264"),  # activations
    *("CC140", "CC142", "CC200"),  # questions to the library
    *("CC203", "CC204"),  # streams of handles
}
"""What is always left."""
FOLLOWS_A_DESCRIPTOR_BACK = {"CC107", "CC214", "CC218", "CC226", "CC234"}
"""What changes a descriptor in use, or asks what one says: left, with the calls that it serves."""

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)


@functools.cache
def moved_somewhere() -> frozenset[str]:
    """The codes of what moves in the cases and in the frozen program."""
    programs = [case.before for case in CASES if case.path.parent.name.startswith("cupy")]
    programs.append({path.name: path.read_text() for path in FROZEN.glob("*.py")})
    found: set[str] = set()
    for sources in programs:
        done = migrate_program({path: text.encode() for path, text in sources.items()})
        found |= {f.code for each in done.values() for f in each.findings if f.what == "moved"}
    return frozenset(found)


def findings(program: str) -> list[Finding]:
    (done,) = migrate_program({"program.py": program.encode()}).values()
    return list(done.findings)


@each_row
def test_a_row_has_a_rule_and_moves_or_is_one_of_those_that_cannot(row: LegacyName) -> None:
    assert row.code in RULES[row.old].codes
    always_left = row.code in NOTHING_IN_V2 | FOLLOWS_A_DESCRIPTOR_BACK
    assert (row.code in moved_somewhere()) != always_left


@pytest.mark.parametrize("code", sorted(NOTHING_IN_V2 | FOLLOWS_A_DESCRIPTOR_BACK))
def test_what_is_left_says_what_to_do(code: str) -> None:
    (row,) = (row for row in ROWS if row.code == code)
    found = findings(row.prelude + row.before + "\n")
    mine = [each for each in found if each.code == code]
    assert mine
    for each in mine:
        assert each.what == "left"
        assert len(each.reason) > 20


HIGH = [row for row in ROWS if row.module.endswith(".cudnn")]


@pytest.mark.parametrize("row", HIGH, ids=lambda row: row.code)
def test_the_example_of_a_row_of_the_high_level_is_moved_or_left_with_a_reason(
    row: LegacyName,
) -> None:
    program = f"{row.prelude}\n{row.before}\n"
    mine = [each for each in findings(program) if each.code == row.code]
    assert mine
    assert all(each.reason for each in mine if each.what == "left")
    once = migrate_source(program)
    assert migrate_source(once) == once
