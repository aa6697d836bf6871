"""The record of a GPU run: what it counts and what it says."""

from __future__ import annotations

import importlib.util
import json
import platform
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu_record.py"

SUITE = """
import pytest

def test_passes(): pass

@pytest.mark.parametrize("n", [1, 2])
def test_is_skipped(n): pytest.skip("no GPU here")

def test_fails(): assert 1 == 2

@pytest.fixture
def broken(): yield; raise RuntimeError("tear-down")

def test_passes_and_breaks_afterwards(broken): pass

@pytest.mark.xfail(reason="known")
def test_is_known_to_fail(): assert 0
"""


@pytest.fixture(scope="module")
def gpu_record() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_record", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    """Exit status and record of a run over :data:`SUITE`."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_suite.py").write_text(SUITE)
    own_rules = ["-c", "/dev/null", "--rootdir", str(folder), str(folder)]
    command = [sys.executable, str(SCRIPT), "--out", str(folder / "records"), "--", *own_rules]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (record,) = (folder / "records").glob("*.json")
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
    assert "test_fails`" in page


def test_a_run_without_a_report_is_recorded_as_a_crash(
    run: tuple[int, Path], gpu_record: ModuleType
) -> None:
    record = {**json.loads(run[1].read_text()), "tests": {}, "exit_status": -11}
    page = gpu_record.as_markdown(record)
    assert "it crashed" in page
    assert "exit status -11" in page
