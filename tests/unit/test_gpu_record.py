"""The record of a GPU run: what it counts and what it says."""

from __future__ import annotations

import importlib
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"

SUITE = """
import pytest

def test_passes(record_property): record_property("draws of this", 70)

@pytest.mark.parametrize("n", [1, 2])
def test_is_skipped(n): pytest.skip("no GPU here")

def test_fails(): assert 1 == 2, "one is not two"

@pytest.fixture
def broken(): yield; raise RuntimeError("tear-down")

def test_passes_and_breaks_afterwards(broken): pass

@pytest.mark.xfail(reason="known")
def test_is_known_to_fail(): assert 0
"""


@pytest.fixture(scope="module")
def scripts() -> Any:
    """Imports a script by its name, as the scripts import each other."""
    sys.path.insert(0, str(SCRIPTS))
    yield importlib.import_module
    sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="module")
def gpu_record(scripts: Any) -> ModuleType:
    module: ModuleType = scripts("gpu_record")
    return module


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_suite.py").write_text(SUITE)
    return folder


@pytest.fixture(scope="module")
def run(suite: Path) -> tuple[int, Path]:
    """Exit status and record of a run over :data:`SUITE`."""
    own_rules = ["-c", "/dev/null", "--rootdir", str(suite), "-p", "no:cacheprovider", str(suite)]
    script = str(SCRIPTS / "gpu_record.py")
    command = [sys.executable, script, "--out", str(suite / "records"), "--", *own_rules]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (record,) = (suite / "records").glob("*.json")
    return done.returncode, record


def test_each_test_is_counted_once_with_its_reason(run: tuple[int, Path]) -> None:
    status, path = run
    tests = json.loads(path.read_text())["tests"]
    assert status == 1
    assert (tests["passed"], tests["failed"], tests["skipped"], tests["xfailed"]) == (1, 2, 2, 1)
    assert tests["skipped_because"] == {"no GPU here": 2}
    assert [name.split("::")[-1] for name in tests["failures"]] == [
        "test_fails",
        "test_passes_and_breaks_afterwards",
    ]
    assert "one is not two" in tests["failed_because"][tests["failures"][0]]
    assert tests["noted"] == {"draws of this": "70"}


def test_the_record_names_machine_versions_and_sources(
    run: tuple[int, Path], gpu_record: ModuleType
) -> None:
    record = json.loads(run[1].read_text())
    facts = record["environment"]
    assert facts["python"]["version"] == platform.python_version()
    assert facts["numpy"]["version"] == np.__version__
    assert record["sources_sha256"] == gpu_record.sources_sha256()
    assert run[1].name.startswith(record["date"])


def test_the_page_says_what_the_data_says(run: tuple[int, Path]) -> None:
    page = run[1].with_suffix(".md").read_text(encoding="utf-8")
    assert f"| NumPy | {np.__version__} |" in page
    assert "| 1 | 2 | 2 | 1 |" in page
    assert "- 2 × no GPU here" in page
    assert "- draws of this: 70" in page
    assert "test_fails`" in page


def test_a_run_without_a_report_is_recorded_as_a_crash(
    run: tuple[int, Path], gpu_record: ModuleType
) -> None:
    record = {**json.loads(run[1].read_text()), "tests": {}, "exit_status": -11}
    page = gpu_record.as_markdown(record)
    assert "it crashed" in page
    assert "exit status -11" in page


def test_what_pytest_printed_is_counted_where_it_left_no_report(scripts: Any, suite: Path) -> None:
    own_rules = ["-c", "/dev/null", "--rootdir", str(suite), "-p", "no:cacheprovider", "-v"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *own_rules, str(suite)],
        capture_output=True,
        text=True,
        check=False,
    )
    in_parallel = (
        "[gw0] [ 33%] PASSED tests/a.py::test_one \n"
        "[gw1] [ 66%] FAILED tests/a.py::test_two[x y] \n"
        "tests/a.py::test_three \n"
    )
    read = scripts("gpu_junit").read_output
    serial, parallel = read(done.stdout), read(in_parallel)
    # The one that breaks afterwards has two lines, of which the later one counts.
    assert (serial["passed"], serial["failed"], serial["skipped"]) == (1, 2, 2)
    assert (parallel["passed"], parallel["failures"]) == (1, ["tests/a.py::test_two[x y]"])
    assert "incomplete" in serial


def test_a_part_that_runs_too_long_is_ended_with_its_children(scripts: Any, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    child = f"import time; time.sleep(4); open({str(alive)!r}, 'w')"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    start = time.monotonic()
    status = scripts("gpu_process").run_limited(
        [sys.executable, "-c", parent], output=tmp_path / "log", limit=1.5, env={}, cwd=tmp_path
    )
    assert status is None
    assert time.monotonic() - start < 3.5
    time.sleep(max(0.0, 4.5 - (time.monotonic() - start)))
    assert not alive.exists()


FACTS = {"gpu": {"devices": [{"name": "NVIDIA H200"}]}}


def test_a_record_takes_the_name_of_no_other(gpu_record: ModuleType, tmp_path: Path) -> None:
    record = {"date": "2001-02-03", "environment": FACTS}
    names = []
    for _ in range(3):
        names.append(gpu_record.free_name(tmp_path, record))
        names[-1].touch()
    wanted = ["2001-02-03-nvidia-h200", "2001-02-03-nvidia-h200-2", "2001-02-03-nvidia-h200-3"]
    assert [name.stem for name in names] == wanted


def counts(passed: int, *failed: str) -> dict[str, Any]:
    because = {"no second GPU": 1} if passed else {}
    return {
        "passed": passed,
        "failed": len(failed),
        "skipped": len(because),
        "xfailed": 0,
        "skipped_because": because,
        "failures": list(failed),
        "failed_because": dict.fromkeys(failed, "why"),
    }


def part(status: int | None, result: Any, **more: Any) -> dict[str, Any]:
    known = {"about": "something", "started": "2001-02-03T04:05:06", "command": "python x"}
    return {**known, "exit_status": status, "seconds": 1, "result": result, **more}


def test_parts_are_summed_up_and_one_failure_is_the_failure_of_all(
    run: tuple[int, Path], gpu_record: ModuleType
) -> None:
    record = json.loads(run[1].read_text())
    record["parts"] = {
        "tests": part(0, counts(10)),
        "golden": part(0, {}),
        "memory": part(0, counts(2)),
    }
    summed = gpu_record.summed_up(record)
    assert (summed["exit_status"], summed["tests"]["passed"]) == (0, 12)
    assert summed["tests"]["skipped_because"] == {"no second GPU": 2}
    record["parts"]["memory"] = part(1, counts(1, "test_leaks"))
    record["parts"]["soak"] = part(None, {}, note="ended after 5 s")
    summed = gpu_record.summed_up(record)
    assert summed["exit_status"] == 1
    assert summed["tests"]["failures"] == ["test_leaks"]
    page = gpu_record.as_markdown(summed)
    assert "| soak | something | None | 1 | ended after 5 s |" in page
    record["parts"] = {"tests": part(0, counts(1)), "soak": part(None, {})}
    assert gpu_record.summed_up(record)["exit_status"] == 1


def test_a_record_of_parts_keeps_the_others_of_a_record_that_it_is_merged_with(
    run: tuple[int, Path], tmp_path: Path
) -> None:
    old = json.loads(run[1].read_text())
    old["parts"] = {"tests": part(0, counts(10), sources_sha256="other")}
    before = tmp_path / "before.json"
    before.write_text(json.dumps(old))
    command = [sys.executable, str(SCRIPTS / "gpu_record.py"), "--out", str(tmp_path / "records")]
    command += ["--parts", "sanitizer", "--merge", str(before), "--budget", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (path,) = (tmp_path / "records").glob("*.json")
    record = json.loads(path.read_text())
    assert list(record["parts"]) == ["tests", "sanitizer"]
    assert record["tests"]["passed"] == 10
    assert record["parts"]["sanitizer"]["note"] == "no time was left for it"
    assert "other sources" in path.with_suffix(".md").read_text(encoding="utf-8")
    assert done.returncode == record["exit_status"] == 1


def test_an_unknown_part_is_refused(gpu_record: ModuleType) -> None:
    with pytest.raises(SystemExit):
        gpu_record.parse(["--parts", "tests,gold"])
    chosen = gpu_record.parse(["--without", "bench,soak,chainer"]).parts
    names = ["tests", "golden", "matrix", "sanitizer", "dialect", "memory", "chainer_train"]
    assert [each.name for each in chosen] == names


def test_what_measures_time_or_memory_runs_alone_and_after_the_others(
    gpu_record: ModuleType,
) -> None:
    parts = gpu_record.parse([]).parts
    together = ["tests", "golden", "matrix", "sanitizer", "chainer"]
    alone = ["dialect", "memory", "bench", "chainer_train", "soak"]
    assert [each.name for each in parts if not each.alone] == together
    assert [each.name for each in parts if each.alone] == alone
    assert [each.name for each in parts] == together + alone


def test_the_benchmark_is_told_to_end_before_its_time_is_over(gpu_record: ModuleType) -> None:
    (bench,) = gpu_record.parse(["--parts", "bench"]).parts
    setting = gpu_record.Setting(Path())
    for limit, budget in ((480, "440"), (100, "60"), (20, "1")):
        command = bench.command(setting, Path("result.json"), limit)
        assert command[command.index("--budget") + 1] == budget


def test_the_page_names_the_parts_that_had_no_time(
    run: tuple[int, Path], gpu_record: ModuleType
) -> None:
    record = json.loads(run[1].read_text())
    not_run = {"about": "something", "started": "2001-02-03T04:05:06", "seconds": 0}
    record["parts"] = {
        "tests": part(0, counts(10)),
        "chainer": {**not_run, "exit_status": 0, "note": "CHAINER_SRC names no sources"},
        "soak": {**not_run, "exit_status": None, "note": "no time was left for it"},
        "memory": {**not_run, "exit_status": None, "note": "no time was left for it"},
    }
    page = gpu_record.as_markdown(gpu_record.summed_up(record))
    assert "| chainer | something | not run | 0 | CHAINER_SRC names no sources |" in page
    assert "| soak | something | not run | 0 | no time was left for it |" in page
    assert "No time was left for soak and memory; a run of `--parts soak,memory`" in page
