"""No public name is without a row, and what a feature says it calls is called."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

import pytest

from cudnn_compat import legacy, v2
from cudnn_compat.legacy import cupy
from cudnn_compat.legacy.cupy import cudnn, libcudnn
from cudnn_compat.legacy.cupy.absent import ABSENT
from cudnn_compat.legacy.table import TABLE
from cudnn_compat.matrix.rows import FEATURES, Feature, all_rows
from cudnn_compat.matrix.run import run_row

MODULES = (v2, v2.convert, legacy, cupy, cudnn, libcudnn)
CLAIMED = {name for feature in FEATURES for name in feature.calls}


def found(qualified: str) -> tuple[Any, str]:
    """Where a qualified name is an attribute, and which."""
    owner, _, name = qualified.rpartition(".")
    try:
        return importlib.import_module(owner), name
    except ModuleNotFoundError:
        module, attribute = found(owner)
        return getattr(module, attribute), name


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_name_has_rows(module: Any) -> None:
    public = {f"{module.__name__}.{name}" for name in module.__all__}
    assert len(public) >= 8
    assert public - CLAIMED == set()


def test_every_name_of_the_table_of_old_names_has_rows() -> None:
    old = {row.old for row in TABLE}
    assert len(old) > 120
    assert old - CLAIMED == set()


def test_every_name_that_is_not_offered_has_a_row() -> None:
    rows = [row for row in all_rows([None]) if row.feature.check == "absent"]
    ids = [(row.feature.api, row.shape and row.shape.label) for row in rows]
    names = [("legacy.cupy.cudnn", name) for group in ABSENT for name in group.high]
    names += [("legacy.cupy.libcudnn", name) for group in ABSENT for name in group.low]
    assert sorted(ids) == sorted(names)


def test_every_name_that_a_feature_calls_exists() -> None:
    for name in CLAIMED:
        owner, attribute = found(name)
        assert hasattr(owner, attribute), name


FUNCTIONS = sorted(name for name in CLAIMED if inspect.isfunction(getattr(*found(name))))
HERE = ("numpy", "library", None)


def test_a_feature_calls_every_function_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    called: set[str] = set()

    def note(name: str) -> None:
        owner, attribute = found(name)
        right = getattr(owner, attribute)

        @functools.wraps(right)
        def noting(*arguments: Any, **named: Any) -> Any:
            called.add(name)
            return right(*arguments, **named)

        monkeypatch.setattr(owner, attribute, noting)

    elsewhere = {"installing", "chainer"}  # in a process of their own
    refused = {"math_half"}  # on NumPy, before there is anything to go back from
    for name in FUNCTIONS:
        note(name)
    silent: dict[str, set[str]] = {}
    for feature in FEATURES:
        if feature.check not in elsewhere and feature.name not in refused:
            called.clear()
            run_some(feature)
            if missing := {name for name in feature.calls if name in FUNCTIONS} - called:
                silent[f"{feature.api}/{feature.name}"] = missing
    assert silent == {}


def run_some(feature: Feature) -> None:
    """A row for each cell, because a layer's class is its cell's."""
    cells = set()
    for row in all_rows(HERE, [feature]):
        if row.cell not in cells:
            cells.add(row.cell)
            run_row(row)
