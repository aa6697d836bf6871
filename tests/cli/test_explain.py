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
def test_no_code_lists_all_by_module(arguments: tuple[str, ...]) -> None:
    done = explain(*arguments)
    assert done.exit_code == 0
    lines = iter(done.output.splitlines())
    for module in dict.fromkeys(row.module for row in TABLE):
        assert next(line for line in lines if line.startswith(module)).split(",")[0] == module
        assert next(lines).split() == ["code", "old", "use", "since", "removed", "in"]
        for row in TABLE:
            if row.module == module:
                assert next(lines).split() == [row.code, row.name, row.new, row.since, row.removal]


def test_the_list_says_under_which_names_the_modules_are_installed() -> None:
    assert "cupy.cudnn, installed as cupy.cudnn and cupyx.cudnn\n" in explain().output


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


@pytest.mark.parametrize(
    ("given", "module"),
    [
        ("cupy.cudnn.convolution_forward", "cupy.cudnn"),
        ("pooling_forward", "cupy.cudnn"),
        ("cupy.cuda.cudnn.convolutionForward", "cupy.cuda.cudnn"),
    ],
)
def test_a_name_that_is_not_offered_is_told_what_it_was_and_what_to_use(
    given: str, module: str
) -> None:
    done = explain(given)
    assert done.exit_code == 2
    said = " ".join(done.stderr.split())
    assert f"{module}.{given.rpartition('.')[2]} was a part of" in said
    assert "which cudnn_compat does not offer" in said
    assert "Use CuPy's own functions" in said


def test_a_name_may_be_given_as_cupy_had_it() -> None:
    given = "cupy.cudnn.rnn_forward_training"
    assert explain(given).output == explain("rnn_forward_training").output
    assert explain("cupyx.cudnn.get_handle").output == explain("CC100").output
