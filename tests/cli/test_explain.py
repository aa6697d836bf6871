"""``cudnn-compat explain``."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

from cudnn_compat.cli.app import app
from cudnn_compat.legacy.table import TABLE, LegacyName


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.code)
def test_every_code_is_explained_from_its_row(row: LegacyName) -> None:
    done = explain(row.code)
    assert done.exit_code == 0
    words = " ".join(done.output.split())
    for part in (row.code, row.old, row.new, row.summary):
        assert " ".join(part.split()) in words
    assert f"Deprecated since {row.since}, to be removed in {row.removal}." in words
    before, after = done.output.split("Before:")[1].split("After:")
    for example, shown in ((row.before, before), (row.after, after)):
        for line in example.splitlines():
            assert f"      {line}" in shown.splitlines()
    for old, new in row.renamed:
        assert f"{old} is now {new}" in words
    if row.value is not None:
        assert row.value in done.output


def test_a_code_may_be_written_in_lower_case_and_a_name_does_as_well() -> None:
    assert explain("cc012").output == explain("CC012").output == explain("forward").output
    assert explain("cudnn_compat.legacy.forward").output == explain("CC012").output


def test_several_codes_are_explained_in_turn() -> None:
    done = explain("CC012", "CC010")
    assert done.output == explain("CC012").output + "\n" + explain("CC010").output


@pytest.mark.parametrize("arguments", [(), ("--all",)])
def test_no_code_lists_all(arguments: tuple[str, ...]) -> None:
    done = explain(*arguments)
    assert done.exit_code == 0
    for row in TABLE:
        (line,) = (line for line in done.output.splitlines() if row.code in line)
        for part in (row.old, row.new, row.since, row.removal):
            assert part in line


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("CC017", "CC016"),
        ("CC999", TABLE[-1].code),
        ("14", "CC014"),
        ("fowrard", "CC012"),
        ("setweights!", "CC011"),
        ("legacy.backward_data", "CC014"),
    ],
)
def test_an_unknown_code_is_an_error_that_names_the_nearest(given: str, nearest: str) -> None:
    done = explain(given)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert repr(given) in done.stderr
    assert f"the nearest is {nearest}" in " ".join(done.stderr.split())


def test_an_unknown_code_among_known_ones_explains_none() -> None:
    done = explain("CC012", "CC999")
    assert done.exit_code == 2
    assert done.stdout == ""
