"""The JSON of a run: its keys, and what it makes of rows."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from cudnn_compat.matrix.document import as_json
from cudnn_compat.matrix.environments import TABLE
from cudnn_compat.matrix.features import Feature, Row
from cudnn_compat.matrix.format import STATUSES, Status, not_tested, overall, to_text
from cudnn_compat.matrix.run import Result
from cudnn_compat.matrix.shapes import SequenceShape

ENVIRONMENT: dict[str, Any] = {
    "python": {"version": "3.12.1"},
    "numpy": {"version": "2.0.2"},
    "cupy": {"version": None},
    "cudnn": {"version": "9.19.0"},
    "gpu": {"devices": [{"name": "NVIDIA H200"}]},
}
FEATURE = Feature("v2", "forward", "forward", (SequenceShape(5, 3),), calls=("cudnn_compat.v2.x",))
OTHER = Feature("v2", "other", "forward", (SequenceShape(5, 3),))


def result(
    status: Status,
    *,
    feature: Feature = FEATURE,
    cell: str = "lstm",
    dtype: str = "float32",
    engine: str = "numpy",
    **more: Any,
) -> Result:
    row = Row(feature, cell, dtype, feature.shapes[0], engine)
    return Result(row, status, **({"reason": None if status == "works" else "why"} | more))


RESULTS = [
    result("works", error=1e-6, tolerance=2e-5),
    result("works", dtype="float64", error=1e-12, tolerance=1e-12),
    result("refused", cell="gru"),
    result("failed", feature=OTHER, error=math.nan, tolerance=2e-5),
    result("not tested here", engine="cudnn"),
]

TOP = (
    "schema created combination environment summary capabilities rows_kept rows".split()  # noqa: SIM905
)
ROW = [
    *("id", "api", "feature", "cell", "dtype", "shape", "engine"),
    *("status", "error", "tolerance", "reason"),
]
CAPABILITY = [
    *("id", "api", "feature", "engine", "entry_points", "status", "counts", "cells", "dtypes"),
    *("error", "tolerance", "reasons"),
]
COMBINATION = [
    *("id", "label", "python", "numpy", "cupy", "cudnn"),
    *("versions", "gpu", "tested", "reason"),
]


def test_the_keys_are_those_that_the_guide_tells() -> None:
    document = as_json(RESULTS, ENVIRONMENT)
    assert document["schema"] == 1
    assert list(document) == TOP
    assert list(document["combination"]) == COMBINATION
    assert {tuple(row) for row in document["rows"]} == {tuple(ROW)}
    assert {tuple(each) for each in document["capabilities"]} == {tuple(CAPABILITY)}
    assert list(document["summary"]) == ["rows", *STATUSES]


def test_a_run_outside_of_the_table_says_what_is_there() -> None:
    combination = as_json(RESULTS, ENVIRONMENT)["combination"]
    assert combination["id"] == "here"
    assert combination["label"] == "Python 3.12.1, NumPy 2.0.2, cuDNN 9.19.0"
    assert combination["versions"] == {
        "python": "3.12.1",
        "numpy": "2.0.2",
        "cupy": None,
        "cudnn": "9.19.0",
    }
    assert combination["gpu"] is None  # no row ran there


def test_a_gpu_is_named_where_rows_ran_on_it() -> None:
    results = [result("works", engine="cudnn", error=0.0, tolerance=1.0)]
    assert as_json(results, ENVIRONMENT)["combination"]["gpu"] == "NVIDIA H200"


def test_rows_of_a_feature_on_an_engine_are_one_capability() -> None:
    first, other, gpu = as_json(RESULTS, ENVIRONMENT)["capabilities"]
    assert first["id"] == "v2/forward/numpy"
    assert first["entry_points"] == ["cudnn_compat.v2.x"]
    assert first["status"] == "works differently"
    assert first["counts"] == {"works": 2, "refused": 1}
    assert first["cells"] == {"lstm": "works", "gru": "refused"}
    assert first["dtypes"] == {"float32": "works differently", "float64": "works"}
    assert (first["error"], first["tolerance"]) == (1e-12, 1e-12)  # nearest to its tolerance
    assert first["reasons"] == [
        {
            "status": "refused",
            "reason": "why",
            "rows": 1,
            "example": "v2/forward/gru/float32/5x3/numpy",
        }
    ]
    assert (other["status"], other["error"], other["tolerance"]) == ("failed", None, 2e-5)
    assert (gpu["id"], gpu["status"]) == ("v2/forward/cudnn", "not tested here")


@pytest.mark.parametrize(
    ("statuses", "wanted"),
    [
        (["works"], "works"),
        (["works", "not tested here"], "works"),
        (["works", "refused"], "works differently"),
        (["refused", "refused"], "refused"),
        (["not tested here"], "not tested here"),
        (["works", "refused", "failed"], "failed"),
        ([], "not tested here"),
    ],
)
def test_one_status_for_several_rows(statuses: list[Status], wanted: Status) -> None:
    assert overall(statuses) == wanted


def test_a_brief_document_keeps_the_rows_that_failed_or_were_refused() -> None:
    document = as_json(RESULTS, ENVIRONMENT, brief=True)
    assert document["rows_kept"] == "exceptions"
    assert [row["status"] for row in document["rows"]] == ["refused", "failed"]
    assert document["summary"]["rows"] == len(RESULTS)
    assert document["capabilities"] == as_json(RESULTS, ENVIRONMENT)["capabilities"]


@pytest.mark.parametrize("results", [RESULTS, []], ids=["rows", "no rows"])
def test_the_text_is_strict_json_with_a_line_for_each_row(results: list[Result]) -> None:
    document = as_json(results, ENVIRONMENT)
    text = to_text(document)
    assert json.loads(text, parse_constant=lambda name: pytest.fail(name)) == document
    lines = [line for line in text.splitlines() if line.startswith('  {"id"')]
    assert len(lines) == len(document["rows"]) + len(document["capabilities"])


def test_an_environment_that_was_not_made_says_why() -> None:
    document = not_tested(TABLE[0], "no interpreter")
    assert list(document) == TOP
    assert list(document["combination"]) == COMBINATION
    assert document["combination"]["tested"] is False
    assert document["combination"]["reason"] == "no interpreter"
    assert document["environment"] is None
    assert document["rows"] == document["capabilities"] == []
    assert set(document["summary"].values()) == {0}
    assert json.loads(to_text(document)) == document
