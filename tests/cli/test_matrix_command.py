"""``cudnn-compat matrix``: what it prints and writes. What it measures: ``unit/test_matrix.py``."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cudnn_compat import v2
from cudnn_compat.cli.app import app
from cudnn_compat.matrix.rows import all_rows

KEYS = [
    "id",
    "api",
    "feature",
    "cell",
    "dtype",
    "shape",
    "engine",
    "status",
    "error",
    "tolerance",
    "reason",
]


def matrix(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["matrix", *arguments])


@pytest.fixture
def wrong_y(monkeypatch: pytest.MonkeyPatch) -> None:
    """``v2.rnn_forward`` gives a y that is off by 1e-3."""
    right = v2.rnn_forward

    def wrong(*arguments: Any, **named: Any) -> v2.RNNOutput:
        out = right(*arguments, **named)
        out.y = out.y + out.y.dtype.type(1e-3)
        return out

    monkeypatch.setattr(v2, "rnn_forward", wrong)


def test_it_prints_errors_by_feature_and_a_summary() -> None:
    done = matrix("--select", "v2/forward/lstm")
    assert done.exit_code == 0, done.output
    assert "v2 on the numpy engine" in done.output
    (line,) = (line for line in done.output.splitlines() if " forward " in line)
    assert "ok" in line
    count = sum("v2/forward/lstm" in row.id for row in all_rows(["numpy"]))
    assert done.output.splitlines()[-1] == f"{count} rows: {count} ok, 0 failed, 0 not supported"
    assert "engine cudnn was not run: the cuDNN engine is not part of this release" in done.output


def test_rows_that_are_not_supported_say_why_and_are_no_failure() -> None:
    done = matrix("--select", "v2/math_half/")
    assert done.exit_code == 0
    assert "math_half is not supported by numpy (8 rows): the NumPy engine has no float16" in (
        done.output
    )
    assert "8 rows: 0 ok, 0 failed, 8 not supported" in done.output


@pytest.mark.usefixtures("wrong_y")
def test_a_failed_row_is_told_with_error_and_tolerance_and_ends_with_1() -> None:
    done = matrix("--select", "v2/forward/gru/float64/5x3/")
    assert done.exit_code == 1
    assert "v2/forward/gru/float64/5x3/numpy" in done.output
    assert "y is off by 0.001" in done.output
    assert "1 rows: 0 ok, 1 failed, 0 not supported" in done.output


@pytest.mark.usefixtures("wrong_y")
def test_failed_prints_only_what_failed() -> None:
    done = matrix("--failed", "--select", "v2/forward/gru/")
    assert done.exit_code == 1
    assert "on the numpy engine" not in done.output
    assert "v2/forward/gru/float64/5x3/numpy" in done.output
    assert "v2/forward/gru/bfloat16/" not in done.output  # 1e-3 is nothing to bfloat16


def test_failed_prints_a_summary_where_nothing_failed() -> None:
    done = matrix("--failed", "--select", "legacy/ngates/lstm/float32")
    assert done.exit_code == 0
    assert done.output.splitlines()[-1] == "1 rows: 1 ok, 0 failed, 0 not supported"


def test_several_selections_must_all_be_in_the_id(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = matrix("--select", "/lstm/", "--select", "float64", "--select", "legacy/forward/",
                  "--json", str(file))  # fmt: skip
    assert done.exit_code == 0
    ids = [row["id"] for row in json.loads(file.read_text())["rows"]]
    assert len(ids) == 7
    assert all(id_.startswith("legacy/forward/lstm/float64/") for id_ in ids)


def test_a_selection_without_rows_is_wrong_usage() -> None:
    done = matrix("--select", "nonsense")
    assert done.exit_code == 2
    assert "'nonsense'" in done.stderr
    assert "v2/forward/lstm/float32/5x3/numpy" in " ".join(done.stderr.split())


@pytest.mark.usefixtures("wrong_y")
def test_the_json_file_has_stable_keys(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = matrix("--select", "v2/forward/gru/float64", "--json", str(file))
    assert done.exit_code == 1
    content = json.loads(file.read_text(encoding="utf-8"))
    assert list(content) == ["created", "environment", "summary", "rows"]
    created = datetime.datetime.fromisoformat(content["created"])
    assert abs(datetime.datetime.now(datetime.UTC) - created).total_seconds() < 60
    assert content["environment"]["engines"]["numpy"]["available"] is True
    rows = content["rows"]
    statuses = [row["status"] for row in rows]
    assert content["summary"] == {
        "rows": len(rows),
        "ok": statuses.count("ok"),
        "failed": statuses.count("failed"),
        "not supported": 0,
    }
    (row,) = (row for row in rows if row["shape"] == "5x3")
    assert list(row) == KEYS
    assert row["id"] == "v2/forward/gru/float64/5x3/numpy"
    assert row["status"] == "failed"
    assert row["error"] == pytest.approx(1e-3, rel=1e-9)
    assert row["tolerance"] == 1e-12
    assert row["reason"] == "y is off by 0.001"


def test_a_json_file_in_a_missing_folder_is_refused_before_anything_runs(tmp_path: Path) -> None:
    done = matrix("--json", str(tmp_path / "missing" / "rows.json"))
    assert done.exit_code == 2
    assert "does not exist" in done.stderr
