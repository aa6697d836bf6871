"""Can each check of the compatibility matrix fail?"""

from __future__ import annotations

import pytest

from cudnn_compat.cudnn.library import load
from cudnn_compat.errors import CompatError
from cudnn_compat.matrix.rows import FEATURES
from cudnn_compat.matrix.run import run_row
from cudnn_compat.matrix.shapes import SequenceShape
from tests.matrix import plants_dialect, plants_v2
from tests.matrix.planting import ROWS, Plant, off, row_of
from tests.matrix.plants_dialect import ABSENT, ELSEWHERE, REFUSED, SECOND

PLANTS = plants_v2.PLANTS | plants_dialect.PLANTS


def test_there_is_a_planted_error_for_every_check() -> None:
    checks = {(feature.api, feature.check) for feature in FEATURES}
    assert checks == set(PLANTS) | set(REFUSED) | set(ABSENT) | ELSEWHERE


@pytest.mark.parametrize(
    ("api", "check", "plant"),
    [
        pytest.param(*key, plant, id=f"{key[0]}-{key[1]}-{index}")
        for key, plants in PLANTS.items()
        for index, plant in enumerate(plants)
    ],
)
def test_a_planted_error_makes_a_row_fail(
    api: str, check: str, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = row_of(api, check)
    if row.engine == "library":
        try:
            load()
        except CompatError as error:
            pytest.skip(f"needs a cuDNN, which also runs without a GPU: {error}")
    assert run_row(row).status in ("works", "works differently")
    plant(monkeypatch)
    result = run_row(row)
    assert result.status == "failed"
    assert result.reason


@pytest.mark.parametrize(("name", "plant"), SECOND.items(), ids=SECOND)
def test_a_planted_error_makes_a_row_fail_of_each_call_that_shares_a_check(
    name: str, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = next(row for row in ROWS if (row.feature.name, row.dtype) == (name, "float64"))
    assert run_row(row).status == "works"
    plant(monkeypatch)
    assert run_row(row).status == "failed"


@pytest.mark.parametrize(("key", "plant"), REFUSED.items(), ids=map("-".join, REFUSED))
def test_what_is_taken_although_it_is_to_be_refused_is_a_failure(
    key: tuple[str, str], plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = row_of(*key)
    assert run_row(row).status == "refused"
    plant(monkeypatch)
    assert run_row(row).status == "failed"


@pytest.mark.parametrize(("key", "plant"), ABSENT.items(), ids=map("-".join, ABSENT))
def test_what_is_there_although_it_is_not_offered_is_a_failure(
    key: tuple[str, str], plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = row_of(*key)
    assert run_row(row).status == "not offered"
    plant(monkeypatch)
    assert run_row(row).status == "failed"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_error_of_a_thousandth_in_y_fails_every_row_that_has_a_y(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    off("y")(monkeypatch)
    rows = [
        row
        for row in ROWS
        if row.feature.check in ("forward", "network", "strided", "padding")
        and row.feature.api == "v2"
        and (row.dtype, row.cell) == (dtype, "gru")
        and row.feature.name != "math_half"
        and isinstance(row.shape, SequenceShape)
        and row.shape.steps * row.shape.batch > 0
    ]
    assert len(rows) > 50
    assert [row.id for row in rows if run_row(row).status != "failed"] == []
