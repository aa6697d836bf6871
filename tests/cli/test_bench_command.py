"""``cudnn-compat bench``: what it prints and writes. What it measures: ``unit/test_bench_*.py``."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cudnn_compat import environment
from cudnn_compat.bench import grid, run
from cudnn_compat.bench.grid import Workload
from cudnn_compat.bench.record import write
from cudnn_compat.bench.run import PARTS
from cudnn_compat.cli.app import app
from cudnn_compat.cli.bench import _PARTS
from tests.bench_records import full_record

TINY = (Workload("lstm", 3, 2, 4, 5), Workload("gru", 4, 2, 3, 5, lengths=(1, 4)))


def bench(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", *arguments])


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is one."""
    facts = environment.collect()
    facts["engines"]["cudnn"] = {"available": False, "reason": "there is no GPU"}
    monkeypatch.setattr(environment, "collect", lambda: facts)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid of two small workloads."""
    monkeypatch.setattr(grid, "GRID", TINY)


@pytest.fixture
def record_file(tmp_path: Path) -> Path:
    file = tmp_path / "record.json"
    write(full_record(), file)
    return file


def test_the_parts_of_the_help_are_those_that_can_be_measured() -> None:
    assert tuple(PARTS) == _PARTS
    for part in PARTS:
        assert f"\n  {part} " in bench("--help").output


@pytest.mark.usefixtures("tiny")
def test_it_measures_on_numpy_prints_a_table_and_writes_a_record(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    done = bench("--quick", "--rounds", "1", "--parts", "grid,raw", "--threads", "1",
                 "--json", str(file))  # fmt: skip
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].startswith(f"{environment.collect()['platform']['cpus']} CPUs, 1 threads;")
    for workload in TINY:
        rows = [line.split() for line in lines if line.startswith(workload.name)]
        assert [row[3] for row in rows] == ["inference", "training"]
    assert "raw was not run: the library's own calls need a GPU" in lines
    record = json.loads(file.read_text(encoding="utf-8"))
    assert record["engine"] == "numpy"
    assert record["settings"]["rounds"] == 1
    assert record["settings"]["parts"] == ["grid", "raw"]
    assert [row["workload"] for row in record["parts"]["grid"]["rows"]] == [
        workload.name for workload in TINY for _ in range(2)
    ]
    has_torch = importlib.util.find_spec("torch") is not None
    for row in record["parts"]["grid"]["rows"]:
        assert row["ours_us"] > 0
        assert ("speed_up" in row) == has_torch


def measured(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> run.Settings:
    """The settings that arguments lead to."""
    seen = []

    def instead(settings: run.Settings, *given: Any, **options: Any) -> dict[str, Any]:
        seen.append(settings)
        return full_record()

    monkeypatch.setattr(run, "measure", instead)
    done = bench(*arguments)
    assert done.exit_code == 0, done.output
    return seen[0]


def test_by_default_everything_is_measured_and_with_only_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = measured(monkeypatch)
    assert every.parts == tuple(PARTS)
    assert every.engine == "numpy"
    assert every.workloads == grid.grid_of("numpy")
    some = measured(monkeypatch, "--only", "1x1x", "--budget", "9")
    assert some.parts == ("grid", "raw")
    assert [w.name for w in some.workloads] == ["lstm 1×1×16×32 float32"]
    assert (some.only, some.budget) == ("1x1x", 9.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "nonsense"], "no workload of the engine numpy has 'nonsense' in its name"),
        (["--parts", "grid,fast"], "there is no part 'fast'"),
        (["--engine", "cudnn"], "the engine cudnn cannot be used here: there is no GPU"),
        (["--json", "missing/bench.json"], "does not exist"),
        (["--from", "missing.json"], "does not exist"),
        (["--rounds", "0"], "--rounds"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_measured(arguments: list[str], words: str) -> None:
    done = bench(*arguments)
    assert done.exit_code == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert words in said


def test_from_shows_a_record_without_measuring(record_file: Path) -> None:
    done = bench("--from", str(record_file))
    assert done.exit_code == 0, done.output
    assert done.output.startswith("NVIDIA H200; cuDNN 9.19.0")
    assert "lstm 20–200×32×256×256 bi float32" in done.output


def test_from_and_what_would_be_measured_exclude_each_other(record_file: Path) -> None:
    done = bench("--from", str(record_file), "--quick")
    assert done.exit_code == 2
    assert "--from measures nothing, so --quick means nothing" in done.stderr


def test_the_same_tables_as_markdown(record_file: Path) -> None:
    done = bench("--from", str(record_file), "--markdown")
    assert (
        "| lstm 100×64×512×512 float32 | inference | 1000 | 1500 | 1.50 | 980 | standard graph "
        "| 1.02 | 250.0 | standard graph |"
    ) in done.output.splitlines()


def test_a_picture_is_made_from_a_record(record_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib (extra plots)")
    done = bench("--from", str(record_file), "--plot", str(tmp_path / "bench.png"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_a_plot_is_refused_before_anything_is_measured(
    record_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = bench("--plot", str(tmp_path / "bench.png"))
    assert done.exit_code == 1
    assert "pip install 'cudnn-compat[plots]'" in done.stderr
    assert "Traceback" not in done.output


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    done = bench("--from", str(tmp_path / "other.json"))
    assert done.exit_code == 1
    assert "other.json has schema None; wanted 1" in done.stderr


def test_what_could_not_be_measured_is_told_and_ends_with_1(tmp_path: Path) -> None:
    record = full_record()
    record["parts"]["grid"]["rows"][0] = {
        "workload": "lstm 1×2×3×4 float32",
        "mode": "inference",
        "error": "MemoryError: no memory",
    }
    write(record, tmp_path / "record.json")
    done = bench("--from", str(tmp_path / "record.json"))
    assert done.exit_code == 1
    assert "grid: lstm 1×2×3×4 float32 inference: MemoryError: no memory" in done.output
