"""Chainer 7.8.1's own tests of its RNNs and of dropout, unmodified, over the dialect.

    CHAINER_SRC=../chainer-src python scripts/chainer_tests.py [--json FILE] [--mark EXPRESSION]
                                                                 [-- PYTEST ARGUMENTS]

``chainer_setup.py`` says how to get the sources. The tests are run from there as they are, and
nothing is deselected but by ``--mark`` (default: "cudnn or gpu"). What needs ChainerX is skipped by
Chainer's own conftest, what needs more GPUs than there are by its CHAINER_TEST_GPU_LIMIT; every
skip is listed with its reason. Warnings are no errors here, unlike in Chainer's setup.cfg: NumPy
and Python have deprecated much since. pytest's "mock" is Python's own.

It proves that cuDNN ran: ``chainer.backends.cuda.cudnn_enabled``, the calls of each old name, and
the calls of the C library itself. The exit status is 0 where at least as many tests passed as on
the real old stack, no others failed than there, and cuDNN was called.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import unittest.mock
from collections import Counter
from pathlib import Path
from typing import Any

from chainer_setup import ROOT, count_library_calls, prepare, sources
from chainer_setup import __doc__ as about

FILES = (
    "functions_tests/rnn_tests/test_function_n_step_lstm.py",
    "functions_tests/rnn_tests/test_function_n_step_gru.py",
    "functions_tests/rnn_tests/test_function_n_step_rnn.py",
    "links_tests/rnn_tests/test_link_n_step_lstm.py",
    "links_tests/rnn_tests/test_link_n_step_gru.py",
    "links_tests/rnn_tests/test_link_n_step_rnn.py",
    "functions_tests/noise_tests/test_dropout.py",
)

MARK = "cudnn or gpu"

OLD_STACK = {"passed": 504, "failed": 3, "skipped": 334}
"""CuPy 13.6, cuDNN 8.9.7, TF32 off, selected with MARK."""
OLD_FAILURE = "test_forward_dropout_count"
"""The one test (with three parameters) that failed there, with cuDNN off too."""

SETTINGS = """\
[pytest]
python_files = test_*.py
python_classes = Test
python_functions = test
markers =
    chainerx: needs ChainerX
    cudnn: uses cuDNN
    gpu: runs on a GPU
    ideep: needs iDeep
    slow: takes time
"""
"""Chainer's own settings, without what makes warnings errors."""


class Results:
    """A plugin of pytest that keeps what became of each test."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.failed: dict[str, str] = {}
        self.skipped: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One of setup, call and teardown of a test."""
        if report.failed:
            if report.nodeid not in self.failed:
                self.outcomes["failed"] += 1
            self.failed.setdefault(report.nodeid, _last_line(report.longreprtext))
        elif report.skipped:
            self.outcomes["skipped"] += 1
            self.skipped[str(report.longrepr[2] if report.longrepr else "")] += 1
        elif report.when == "call":
            self.outcomes["passed"] += 1


def _last_line(text: str) -> str:
    told = [line[1:].strip() for line in text.splitlines() if line.startswith("E")]
    return (told or text.splitlines() or [""])[-1][:300]


def main() -> int:
    """Run, print, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--mark", default=MARK, help=f"pytest's -m; default {MARK!r}")
    parser.add_argument("pytest", nargs="*", metavar="PYTEST_ARGUMENT")
    options = parser.parse_args()
    folder = sources()
    if folder is None:
        sys.exit(f"{__doc__}\n{about}")
    os.environ.setdefault("CUDNN_COMPAT_DEPRECATIONS", "ignore")
    os.environ.setdefault("CHAINER_TEST_GPU_LIMIT", str(_gpus()))
    sys.modules["mock"] = unittest.mock
    facts = prepare(folder)

    import pytest

    from cudnn_compat.legacy.deprecations import record_calls

    library_calls = count_library_calls()
    results = Results()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as settings, record_calls() as recorder:
        config = Path(settings) / "pytest.ini"
        config.write_text(SETTINGS, encoding="utf-8")
        command = ["-c", str(config), f"--rootdir={folder}", "-m", options.mark, "-q"]
        command += ["--tb=short", "-p", "no:cacheprovider", *options.pytest]
        tests = folder / "tests" / "chainer_tests"
        status = pytest.main([*command, *(str(tests / name) for name in FILES)], [results])
    seconds = time.monotonic() - start
    record = {**facts, **_stack(), "mark": options.mark, "seconds": round(seconds, 1)}
    record["pytest_exit_status"] = int(status)
    record["result"] = {each: results.outcomes[each] for each in ("passed", "failed", "skipped")}
    record["real_old_stack"] = OLD_STACK
    record["failed"] = results.failed
    record["skipped_because"] = dict(results.skipped.most_common())
    record["old_calls"] = _by_name(recorder.calls)
    record["library_calls"] = dict(library_calls.most_common())
    record["verdict"] = verdict = _verdict(record)
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    for key in ("result", "real_old_stack", "cudnn_enabled", "library_calls", "old_calls"):
        print(f"{key}: {record[key]}")
    for reason, count in results.skipped.most_common():
        print(f"{count:>6} skipped: {reason}")
    print("; ".join(verdict) or "as good as the real old stack")
    return 1 if verdict else 0


def _gpus() -> int:
    """GPUs that CuPy sees; 0 where there is no CuPy, or it sees none."""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # a half-installed CUDA raises all kinds
        return 0


def _stack() -> dict[str, Any]:
    """What ran, and whether Chainer took cuDNN for usable."""
    import chainer

    sys.path.insert(0, str(ROOT))
    from cudnn_compat.environment import collect

    everything = collect()
    cuda = chainer.backends.cuda
    return {
        "cudnn_enabled": bool(cuda.cudnn_enabled),
        "cudnn_module": getattr(getattr(cuda, "cudnn", None), "__name__", None),
        "python": everything["python"]["version"],
        "packages": everything["packages"],
        "cupy": everything["cupy"]["version"],
        "cudnn": everything["cudnn"]["version"],
        "gpus": [device["name"] for device in everything["gpu"]["devices"]],
    }


def _by_name(calls: dict[tuple[str, str, int], int]) -> dict[str, int]:
    from cudnn_compat.legacy.table import find

    counts: Counter[str] = Counter()
    for (code, _, _), count in calls.items():
        row = find(code)
        counts[row.old.removeprefix("cudnn_compat.legacy.cupy.") if row else code] += count
    return dict(counts.most_common())


def _verdict(record: dict[str, Any]) -> list[str]:
    """What is worse than on the real old stack."""
    wrong = []
    new = [name for name in record["failed"] if OLD_FAILURE not in name]
    if new:
        wrong.append(f"{len(new)} tests failed that did not fail there, such as {new[0]}")
    if record["mark"] == MARK and record["result"]["passed"] < OLD_STACK["passed"]:
        wrong.append(f"{record['result']['passed']} passed, {OLD_STACK['passed']} there")
    if not record["cudnn_enabled"]:
        wrong.append("Chainer did not take cuDNN for usable")
    if not record["library_calls"].get("cudnnRNNForward"):
        wrong.append("cuDNN's RNNs were never called")
    if record["pytest_exit_status"] not in (0, 1):
        wrong.append(f"pytest ended with {record['pytest_exit_status']}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
