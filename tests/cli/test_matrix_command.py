"""``cudnn-compat matrix``: what it prints and writes. What it measures: ``unit/test_matrix.py``."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cudnn_compat import environment, v2
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


NO_GPU = {"available": False, "reason": "there is no GPU on this machine"}


@pytest.fixture(autouse=True)
def without_a_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is one, but in tests that are about it."""
    if not request.node.get_closest_marker("gpu"):
        facts = environment.collect()
        facts["engines"]["cudnn"] = NO_GPU
        monkeypatch.setattr(environment, "collect", lambda: facts)


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
    errors, engines = (line for line in done.output.splitlines() if " forward " in line)
    assert "ok" in errors
    assert cells(engines) == ["v2", "forward", "ok", "not run"]
    count = sum("v2/forward/lstm" in row.id for row in all_rows(["numpy"]))
    assert done.output.splitlines()[-1] == f"{count} rows: {count} ok, 0 failed, 0 not supported"
    assert "engine cudnn was not run: there is no GPU on this machine" in done.output


def cells(line: str) -> list[str]:
    """What stands between the bars of a table."""
    return [cell.strip() for cell in re.split("[│|]", line)[1:-1]]


def test_every_engine_has_a_column_whatever_was_run() -> None:
    done = matrix("--select", "v2/math_", "--select", "/lstm/")
    lines = done.output.splitlines()
    table = lines[lines.index("each engine") :]
    header = next(line for line in table if "feature" in line)
    assert [cell.strip() for cell in re.split("[┃│|]", header)[1:-1]] == [
        "api",
        "feature",
        "numpy",
        "cudnn",
    ]
    rows = [cells(line) for line in table if " math_" in line and "│" in line]
    assert rows == [
        ["v2", "math_full", "ok", "not run"],
        ["v2", "math_half", "not supported", "not run"],
    ]


@pytest.mark.gpu
def test_on_a_gpu_the_same_rows_are_run_on_both_engines(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = matrix("--select", "v2/forward/lstm", "--json", str(file))
    assert done.exit_code == 0, done.output
    for name in ("numpy", "cudnn"):
        assert f"v2 on the {name} engine" in done.output
    *_, engines = (line for line in done.output.splitlines() if " forward " in line)
    assert cells(engines) == ["v2", "forward", "ok", "ok"]
    assert "was not run" not in done.output
    rows = json.loads(file.read_text())["rows"]
    host, gpu = ([r["id"] for r in rows if r["engine"] == name] for name in ("numpy", "cudnn"))
    assert [id_.removesuffix("/numpy") for id_ in host] == [
        id_.removesuffix("/cudnn") for id_ in gpu
    ]
    assert len(rows) == 2 * len(host)


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
