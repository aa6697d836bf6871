"""The table of old names: complete, stable, and true."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.version import Version

import cudnn_compat
from cudnn_compat import legacy
from cudnn_compat.legacy.deprecations import CATEGORIES
from cudnn_compat.legacy.table import PRELUDE, TABLE, LegacyName, find

CODES = {
    "CC001": "CUDNN_RNN_RELU",
    "CC002": "CUDNN_RNN_TANH",
    "CC003": "CUDNN_LSTM",
    "CC004": "CUDNN_GRU",
    "CC010": "RNNDesc",
    "CC011": "setweights",
    "CC012": "forward",
    "CC013": "forwardTrain",
    "CC014": "backwardData",
    "CC015": "backwardWeights",
    "CC016": "pullback",
    "CC020": "ngates",
    "CC021": "params",
    "CC022": "hBatch",
    "CC023": "hDesc",
    "CC024": "xDesc",
}
"""What people have written into their filters: add to it, change nothing."""

each_row = pytest.mark.parametrize("row", TABLE, ids=lambda row: row.code)


def resolve(qualified: str) -> Any:
    """The object of a qualified name: a module's, or a class's."""
    parts = qualified.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"no module of {qualified}")


def test_codes_are_given_once_and_keep_their_meaning() -> None:
    assert {row.code: row.name for row in TABLE} == CODES
    assert len(TABLE) == len(CODES)


def test_every_public_old_name_has_a_row_and_every_row_is_public() -> None:
    old = {
        name
        for name in legacy.__all__
        if not (
            inspect.isclass(getattr(legacy, name)) and issubclass(getattr(legacy, name), Warning)
        )
    }
    assert {row.old for row in TABLE} == {f"cudnn_compat.legacy.{name}" for name in old}


def test_every_public_name_can_be_imported_and_listed() -> None:
    everything: dict[str, Any] = {}
    exec("from cudnn_compat.legacy import *", everything)
    assert set(legacy.__all__) <= set(everything)
    assert set(legacy.__all__) <= set(dir(legacy))
    with pytest.raises(AttributeError, match="cudnn_compat.legacy.*forwards"):
        _ = legacy.forwards


@each_row
def test_the_kind_is_what_the_old_name_is(row: LegacyName) -> None:
    found = resolve(row.old)
    kinds = {"class": inspect.isclass, "function": inspect.isfunction}
    assert kinds.get(row.kind, lambda value: type(value) is int)(found)
    assert (row.value is not None) == (row.kind == "constant")


@each_row
def test_what_to_use_instead_exists(row: LegacyName) -> None:
    assert resolve(row.new) is not None


@each_row
def test_renamed_parameters_exist_on_both_sides(row: LegacyName) -> None:
    old, new = (
        set(inspect.signature(resolve(name)).parameters) if row.renamed else set()
        for name in (row.old, row.new)
    )
    if row.name == "backwardData":
        old |= {"dco", "h", "c", "reserve"}  # its two forms
    for before, after in row.renamed:
        assert before in old
        assert after in new
        assert before not in new


@each_row
def test_the_message_names_code_old_new_and_both_versions_and_no_numbers_of_a_call(
    row: LegacyName,
) -> None:
    assert row.message == (
        f"[{row.code}] {row.old} is deprecated: use {row.new}. "
        f"Deprecated since {row.since}, to be removed in {row.removal}."
    )
    assert re.fullmatch(r"CC\d{3}", row.code)


def test_the_message_of_forward_is_the_one_that_is_documented() -> None:
    row = find("CC012")
    assert row is not None
    assert row.message == (
        "[CC012] cudnn_compat.legacy.forward is deprecated: use cudnn_compat.v2.rnn_forward. "
        "Deprecated since 2.0, to be removed in 3.0."
    )


@each_row
def test_no_name_is_overdue_and_each_has_its_warning_class(row: LegacyName) -> None:
    here = Version(cudnn_compat.__version__)
    assert Version(row.since).release <= here.release
    assert here.release < Version(row.removal).release
    assert issubclass(CATEGORIES[row.removal], legacy.LegacyAPIWarning)


@each_row
def test_the_summary_is_one_line_that_ends_like_a_sentence(row: LegacyName) -> None:
    assert "\n" not in row.summary
    assert row.summary.endswith((".", f"cell={row.value}."))
    assert len(row.summary) <= 100


@each_row
def test_before_and_after_compute_the_same(row: LegacyName) -> None:
    before, after = changes_by(row.before), changes_by(row.after)
    both = before.keys() & after.keys()
    assert both
    for name in both:
        np.testing.assert_array_equal(before[name], after[name])
    assert row.name in row.before
    assert "legacy" not in row.after
    assert row.new.rpartition(".")[2] in row.after


def changes_by(program: str) -> dict[str, Any]:
    """The names that a program binds, or whose array it writes to, with their values."""
    names: dict[str, Any] = {}
    exec(PRELUDE, names)
    start = names | {"w": names["w"].copy()}
    exec(program, names)
    return {
        name: value
        for name, value in names.items()
        if name not in start
        or (value is not start[name] and not (name == "w" and np.array_equal(value, start[name])))
    }


def test_the_examples_show_weights_that_are_not_zero() -> None:
    """Two wrong answers of zeros would agree."""
    names: dict[str, Any] = {}
    exec(PRELUDE, names)
    assert np.count_nonzero(names["w"]) == 16 * (3 + 4 + 1)
    assert names["spec"] == names["desc"].spec.replace(algo="auto")


@pytest.mark.parametrize(
    "key", ["CC012", "cc012", " CC012 ", "cudnn_compat.legacy.forward", "forward"]
)
def test_a_row_is_found_by_code_and_by_name(key: str) -> None:
    assert find(key) is find("CC012")
    assert find(key) is not None


@pytest.mark.parametrize("key", ["CC999", "forwards", "", "legacy.forward"])
def test_what_is_not_in_the_table_is_not_found(key: str) -> None:
    assert find(key) is None


def test_the_table_is_importable_without_numpy() -> None:
    program = (
        "import sys\n"
        "from cudnn_compat.legacy.table import TABLE\n"
        "from cudnn_compat.legacy.deprecations import record_calls\n"
        "from cudnn_compat.legacy import LegacyAPIWarning\n"
        "print(len(TABLE), 'numpy' in sys.modules)"
    )
    root = Path(cudnn_compat.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(len(TABLE)), "False"]
