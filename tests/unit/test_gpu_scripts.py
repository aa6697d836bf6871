"""What the parts of `make gpu` conclude from what they see; they themselves need a GPU."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cudnn_compat.bench.aims import aims_of
from tests.bench_records import full_record

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> Any:
    """Imports a script by its name."""
    folder = str(ROOT / "scripts")
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def sanitizer(script: Any) -> ModuleType:
    module: ModuleType = script("gpu_sanitizer")
    return module


LOG = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 1 bytes
=========     at read_results+0x70
=========     by thread (3,0,0) in block (0,0,0)
=========     Address 0x7f0000000003
=========
========= Uninitialized __global__ memory read of size 4 bytes
=========     at 0x150 in void cudnn::kernel<int>(float const *,int)
=========     by thread (0,0,0) in block (0,0,0)
========= Uninitialized __global__ memory read of size 1 bytes
=========     at 0x70 in read_unwritten
========= Invalid __global__ write of size 4 bytes
=========     at other_kernel(float*)+0x90
========= ERROR SUMMARY: 4 errors
"""


def test_errors_in_the_tool_s_log_are_told_apart_by_kernel(sanitizer: ModuleType) -> None:
    found = sanitizer.problems_in(LOG)
    assert [each["kind"].split()[0] for each in found] == ["Uninitialized"] * 3 + ["Invalid"]
    kernels = ("read_results", "cudnn::kernel", "read_unwritten", "other_kernel")
    for kernel, each in zip(kernels, found, strict=True):
        assert kernel in each["where"]
    assert sanitizer.summary_in(LOG) == 4
    assert sanitizer.summary_in("========= COMPUTE-SANITIZER\n") is None


def test_reports_that_the_tool_dropped_are_counted(sanitizer: ModuleType) -> None:
    log = "========= 1152 errors were skipped (error buffer overflow)\n"
    assert sanitizer.dropped_in(log) == 1152
    assert sanitizer.dropped_in("========= ERROR SUMMARY: 0 errors\n") == 0


def process(program: str, *results: str, **more: Any) -> dict[str, Any]:
    return {
        "check": "memcheck",
        "program": program,
        "status": 0,
        "seconds": 1.0,
        "cases": [{"case": "one", "result": result} for result in results],
        "problems": [],
        "errors": 0,
        "dropped": 0,
        "said": "",
        **more,
    }


def judged(sanitizer: ModuleType, **changes: Any) -> Any:
    planted = {"kind": "Uninitialized", "where": "at read_unwritten+0x70"}
    given = {
        "memcheck": process("standard", "ran", "refused: no", "end"),
        "control": process("beyond", problems=[{"kind": "Invalid", "where": ""}], errors=64),
        "initcheck": process("results", "ran", "end", problems=[planted], errors=64),
    } | changes
    return sanitizer.judge([given["memcheck"]], given["control"], given["initcheck"])


def test_a_run_is_clean_only_if_the_tool_saw_what_was_planted_and_nothing_else(
    sanitizer: ModuleType,
) -> None:
    assert sanitizer.is_clean(judged(sanitizer))
    assert judged(sanitizer)["memcheck"]["by_algo"]["standard"]["refused_by_the_library"] == 1
    planted = {"kind": "Uninitialized", "where": "at read_unwritten+0x70"}
    unwritten = {"kind": "Uninitialized", "where": "at read_results+0x70"}
    scattered = {"kind": "Uninitialized", "where": "at cupy_scatter_update__float16+0x40"}
    for changes in (
        {"memcheck": process("standard", "ran", "end", errors=1)},
        {"memcheck": process("standard", "ran")},
        {"memcheck": process("standard", "ran", "end", status=None)},
        {"memcheck": process("standard", "failed: CUDARuntimeError", "end")},
        {"control": process("beyond")},
        {"initcheck": process("results", "ran", "end")},
        {"initcheck": process("results", "ran", "end", problems=[planted, unwritten])},
        {"initcheck": process("results", "ran", "end", problems=[planted, scattered])},
    ):
        assert not sanitizer.is_clean(judged(sanitizer, **changes)), changes


def test_a_curve_that_grows_slowly_is_not_flat(script: Any) -> None:
    judge = script("gpu_soak").judge
    warm = [{"step": i, "host_rss": 1e8 + 1e7 * min(i, 20)} for i in range(100)]
    leak = [{**each, "host_rss": each["host_rss"] + 2e5 * i} for i, each in enumerate(warm)]
    assert judge(warm, {"host_rss": 8 << 20})["host_rss"]["flat"]
    assert not judge(leak, {"host_rss": 8 << 20})["host_rss"]["flat"]


def test_recorded_results_are_counted_on_the_numpy_engine_too(tmp_path: Path) -> None:
    result = tmp_path / "golden.json"
    command = [sys.executable, "scripts/gpu_golden.py", "--engine", "numpy", "--json", str(result)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    counts = json.loads(result.read_text())["counts"]
    full = [row for row in counts if row["math"] == "full"]
    assert sum(row["cases"] for row in full) == 64 + 34 + 1
    # The generator of dropout masks is the library's own.
    assert sum(row["off"] for row in full) == 1
    assert all(row["exact"] + row["close"] + row["off"] == row["cases"] for row in counts)


def measured(**changes: Any) -> dict[str, Any]:
    """A record of the part bench, with its aims."""
    record = full_record()
    record["parts"]["grid"]["geometric_mean"] |= changes
    return record | {"aims": aims_of(record["parts"])}


def test_the_benchmark_says_which_aims_were_missed_and_what_could_not_be_measured(
    script: Any,
) -> None:
    missed = script("gpu_bench").missed
    assert missed(measured()) == []
    assert missed(measured(training=1.5)) == [
        "geometric mean of the speed-ups over PyTorch, training: 1.50, not at least 2.00"
    ]
    failed = measured()
    row = {"call": "legacy.forward", "cell": "gru", "error": "no memory"}
    failed["parts"]["host"]["rows"] = [row]
    assert missed(failed) == ["host: legacy.forward gru: no memory"]


def test_the_benchmark_s_page_has_its_tables_and_what_was_left_out(script: Any) -> None:
    page = script("gpu_bench").page
    lines = list(page(measured() | {"left_out": ["scaling: T = 1"]}))
    titles = [line for line in lines if line.startswith("### ")]
    assert len(titles) == 5
    assert any(line.startswith("| lstm 1×1×16×32 float32 | training |") for line in lines)
    assert lines[-1] == "- no time was left for scaling: T = 1"
    assert list(page({"rows": []})) == []  # a record of before


@pytest.mark.parametrize("arguments", [["--parts", "grid,fast"], ["--only", "nonsense"]])
def test_the_benchmark_refuses_what_it_cannot_measure(script: Any, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        script("gpu_bench").main(arguments)
    assert stopped.value.code == 2
