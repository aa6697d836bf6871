"""``cudnn-compat matrix``: what it prints and writes. What it measures: ``tests/matrix/``."""

from __future__ import annotations

import datetime
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cudnn_compat import environment, v2
from cudnn_compat.cli.app import app
from cudnn_compat.matrix.format import STATUSES
from cudnn_compat.matrix.rows import all_rows


def summary(**counts: int) -> str:
    """The last line; ``not_tested_here=3``."""
    given = {name.replace("_", " "): count for name, count in counts.items()}
    parts = (f"{given.get(status, 0)} {status}" for status in STATUSES)
    return f"{sum(given.values())} rows: {', '.join(parts)}"


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
    assert "works" in errors
    assert cells(engines) == ["v2", "forward", "works", "not tested here"]
    count = sum("v2/forward/lstm" in row.id for row in all_rows(["numpy"]))
    assert done.output.splitlines()[-1] == summary(works=count, not_tested_here=count)
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
        ["v2", "math_full", "works", "not tested here"],
        ["v2", "math_half", "refused", "not tested here"],
    ]


@pytest.mark.gpu
def test_on_a_gpu_the_same_rows_are_run_on_both_engines(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = matrix("--select", "v2/forward/lstm", "--json", str(file))
    assert done.exit_code == 0, done.output
    for name in ("numpy", "cudnn"):
        assert f"v2 on the {name} engine" in done.output
    *_, engines = (line for line in done.output.splitlines() if " forward " in line)
    rows = json.loads(file.read_text())["rows"]
    refused = [row for row in rows if row["status"] == "refused"]
    assert all("bfloat16" in row["id"] for row in refused)  # CuPy 13 has no such arrays
    works = f"{len(rows) // 2 - len(refused)} works, {len(refused)} refused"
    assert cells(engines) == ["v2", "forward", "works", works if refused else "works"]
    assert "was not run" not in done.output
    host, gpu = ([r["id"] for r in rows if r["engine"] == name] for name in ("numpy", "cudnn"))
    assert [id_.removesuffix("/numpy") for id_ in host] == [
        id_.removesuffix("/cudnn") for id_ in gpu
    ]
    assert len(rows) == 2 * len(host)


def test_rows_that_are_refused_say_why_and_are_no_failure() -> None:
    done = matrix("--only", "v2/math_half/")
    assert done.exit_code == 0
    assert "v2: math_half refused on numpy (8 rows): the NumPy engine has no float16" in (
        done.output
    )
    assert done.output.splitlines()[-1] == summary(refused=8, not_tested_here=8)


def test_what_is_not_offered_says_what_to_use() -> None:
    done = matrix("--only", "api=legacy.cupy.cudnn", "--only", "feature=pooling")
    assert done.exit_code == 0
    text = " ".join(done.output.split())
    assert "legacy.cupy.cudnn: pooling not offered (3 rows): cupy.cudnn.pooling_forward was" in text
    assert "(and 2 more like it)" in text


def test_what_works_differently_says_how() -> None:
    done = matrix("--only", "feature=persistent_plans")
    assert done.exit_code == 0
    assert "persistent_plans works differently (1 row): a plan is only held" in done.output


@pytest.mark.usefixtures("wrong_y")
def test_a_failed_row_is_told_with_error_and_tolerance_and_ends_with_1() -> None:
    done = matrix("--only", "v2/forward/gru/float64/5x3/numpy")
    assert done.exit_code == 1
    assert "v2/forward/gru/float64/5x3/numpy" in done.output
    assert "y is off by 0.001" in done.output
    assert done.output.splitlines()[-1] == summary(failed=1)


@pytest.mark.usefixtures("wrong_y")
def test_failed_prints_only_what_failed() -> None:
    done = matrix("--failed", "--select", "v2/forward/gru/")
    assert done.exit_code == 1
    assert "on the numpy engine" not in done.output
    assert "v2/forward/gru/float64/5x3/numpy" in done.output
    assert "v2/forward/gru/bfloat16/" not in done.output  # 1e-3 is nothing to bfloat16


def test_failed_prints_a_summary_where_nothing_failed() -> None:
    done = matrix("--failed", "--only", "legacy/ngates/lstm/float32", "--only", "engine=numpy")
    assert done.exit_code == 0
    assert done.output.splitlines()[-1] == summary(works=1)


@pytest.mark.parametrize(
    ("wanted", "begins"),
    [
        ("api=legacy.cupy.lib*", "legacy.cupy.libcudnn/"),
        ("feature=rnn_backward_data_ex", "legacy.cupy.cudnn/rnn_backward_data_ex/"),
        ("calls=*.v2.unpack", "v2/pack_and_unpack/"),
        ("engine=library", "cudnn/"),
    ],
)
def test_only_takes_a_key_and_a_pattern(wanted: str, begins: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    more = ("--only", "dtype=float64", "--only", "cell=lstm", "--json", str(file))
    assert matrix("--only", wanted, *more).exit_code == 0
    ids = [row["id"] for row in json.loads(file.read_text())["rows"]]
    assert ids
    assert all(id_.startswith(begins) and "/lstm/float64/" in id_ for id_ in ids)


def test_a_pattern_may_stand_for_what_a_row_has_not(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = matrix("--only", "engine=-", "--only", "feature=constants", "--json", str(file))
    assert done.exit_code == 0
    rows = json.loads(file.read_text())["rows"]
    assert {(row["cell"], row["dtype"], row["engine"]) for row in rows} == {(None, None, None)}


def test_several_selections_must_all_be_in_the_id(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = matrix("--select", "/lstm/", "--select", "float64", "--select", "legacy/forward/",
                  "--select", "/numpy", "--json", str(file))  # fmt: skip
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
    assert content["schema"] == 1
    created = datetime.datetime.fromisoformat(content["created"])
    assert abs(datetime.datetime.now(datetime.UTC) - created).total_seconds() < 60
    assert content["environment"]["engines"]["numpy"]["available"] is True
    assert content["combination"]["tested"] is True
    rows = content["rows"]
    statuses = [row["status"] for row in rows]
    told = {status: count for status, count in content["summary"].items() if count}
    assert told == {
        "rows": len(rows),
        "works": statuses.count("works"),
        "failed": statuses.count("failed"),
        "not tested here": len(rows) // 2,
    }
    (row,) = (row for row in rows if row["id"] == "v2/forward/gru/float64/5x3/numpy")
    assert row["status"] == "failed"
    assert row["error"] == pytest.approx(1e-3, rel=1e-9)
    assert row["tolerance"] == 1e-12
    assert row["reason"] == "y is off by 0.001"


@pytest.mark.usefixtures("wrong_y")
def test_a_brief_file_keeps_the_rows_that_failed(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    matrix("--brief", "--only", "v2/forward/gru/", "--only", "shape=5x3", "--json", str(file))
    content = json.loads(file.read_text(encoding="utf-8"))
    assert {row["dtype"] for row in content["rows"]} == {"float32", "float64"}
    assert content["summary"]["rows"] == 8
    assert content["rows_kept"] == "exceptions"


def pages(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is asked of the module that makes pages."""
    asked: list[Any] = []

    def write_html(paths: Any, out: Path) -> None:
        asked.append((list(paths), out))
        out.write_text("<html>")

    module = ModuleType("cudnn_compat.matrix.page")
    monkeypatch.setattr(module, "write_html", write_html, raising=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return asked


def test_merge_puts_files_on_a_page_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, files = pages(monkeypatch), [tmp_path / f"{name}.json" for name in "abc"]
    for file in files:
        file.write_text("{}")
    page = tmp_path / "page.html"
    done = matrix("--merge", *map(str, files), "--html", str(page))
    assert done.exit_code == 0, done.output
    assert asked == [(files, page)]
    assert done.output == f"3 environments on {page}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--html", "page.html"), "name the files to put on the page by --merge"),
        (("--merge", "a.json"), "say by --html where the page goes"),
        (("--merge", "a.json", "--html", "p.html", "--failed"), "--merge runs nothing"),
        (("--merge", "missing.json", "--html", "p.html"), "does not exist"),
        (("--merge", "a.json", "--html", "missing/p.html"), "does not exist"),
    ],
)
def test_merge_without_what_it_needs_is_wrong_usage(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = pages(monkeypatch)
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text("{}")
    done = matrix(*arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert asked == []


def test_a_json_file_in_a_missing_folder_is_refused_before_anything_runs(tmp_path: Path) -> None:
    done = matrix("--json", str(tmp_path / "missing" / "rows.json"))
    assert done.exit_code == 2
    assert "does not exist" in done.stderr
