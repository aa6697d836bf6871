"""Rows about being found in CuPy, which run in a process of their own: how they judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cudnn_compat.matrix import checks_names
from cudnn_compat.matrix.rows import Row, all_rows
from cudnn_compat.matrix.run import run_row
from tests.legacy.cupy_dialect.cupy_stubs import make_cupy

ROWS = [row for row in all_rows([None]) if row.feature.api == "legacy.cupy"]
INSTALL = [row for row in ROWS if row.feature.check == "installing"]
BESIDE = [row for row in ROWS if row.feature.check == "beside_cupy"]

GOOD: dict[str, Any] = {
    "cupy": "14.0.0",
    "refused": None,
    "at first": "not installed",
    "then": "installed",
    "modules": {"cupy.cudnn": True, "cupy.cuda.cudnn": True},
    "y": [[0.09003057317038046, 0.24472847105479764, 0.6652409557748218]],
    "inside": "installed",
    "at last": "not installed",
    "engine": "numpy",
    "chainer": True,
}
"""What is said where all is well; y is the softmax of 0, 1, 2."""

WRONG: dict[str, dict[str, Any]] = {
    "compute": {"y": [[0.09, 0.24, 0.67]]},
    "install": {"modules": {"cupy.cudnn": True, "cupy.cuda.cudnn": False}},
    "uninstall": {"at last": "installed"},
    "installed": {"inside": "not installed"},
    "state": {"then": "waiting"},
}
"""One thing that is wrong, for each row."""


def told(patch: pytest.MonkeyPatch, **said: Any) -> None:
    patch.setattr(checks_names, "with_cupy", lambda: GOOD | said)


@pytest.mark.parametrize("row", INSTALL + BESIDE, ids=lambda row: row.id)
def test_what_is_well_works(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch)
    assert run_row(row).status == "works"


@pytest.mark.parametrize("row", INSTALL, ids=lambda row: row.id)
def test_what_is_wrong_fails(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    assert row.shape is not None
    told(monkeypatch, **WRONG[row.shape.label])
    assert run_row(row).status == "failed"


@pytest.mark.parametrize("row", INSTALL + BESIDE, ids=lambda row: row.id)
def test_a_program_that_ends_with_an_error_fails(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, error="ImportError: libnothing.so")
    result = run_row(row)
    assert result.status == "failed"
    assert "libnothing.so" in str(result.reason)


def test_another_engine_for_numpy_arrays_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, engine="cudnn")
    assert [run_row(row).status for row in BESIDE] == ["failed"]


def test_a_cupy_with_modules_of_its_own_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, refused="CuPy 13.6.0 has a cupy.cudnn of its own that works")
    results = [run_row(row) for row in INSTALL]
    assert {result.status for result in results} == {"refused"}
    assert {result.reason for result in results} == {
        "CuPy 13.6.0 has a cupy.cudnn of its own that works"
    }


def test_without_a_cupy_nothing_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_names.importlib.util, "find_spec", lambda name: None)
    results = [run_row(row) for row in INSTALL + BESIDE]
    assert {result.status for result in results} == {"not tested here"}
    assert {result.reason for result in results} == {
        "CuPy is not installed (extras cuda12, cuda13)"
    }


def test_the_program_itself_says_all_that_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a folder that only looks like CuPy 14; the records have real ones."""
    monkeypatch.setenv("PYTHONPATH", str(make_cupy(tmp_path / "site", "14.0.0")))
    checks_names.fresh_process.cache_clear()
    try:
        said = checks_names.fresh_process()
    finally:
        checks_names.fresh_process.cache_clear()
    assert said.keys() == GOOD.keys()
    assert said["y"][0] == pytest.approx(GOOD["y"][0], abs=1e-12)
    known = {key: said[key] for key in GOOD.keys() - {"y", "modules"}}
    assert known == {key: GOOD[key] for key in known}
    assert set(said["modules"].values()) == {True}
    assert len(said["modules"]) == 4
