"""Run the test suite on a GPU machine and write down what ran: `make gpu`.

Uses the Python it is started with and installs nothing: on a GPU machine CUDA, CuPy and PyTorch
are usually there and belong together. Beside pytest's own output it writes a record,
`DATE-GPU.json` and the same as `DATE-GPU.md`: the machine, the versions, how many tests passed,
failed and were skipped, and why. Records are committed under docs/records/.

    python scripts/gpu_record.py [--out FOLDER] [-- PYTEST ARGUMENTS]
"""

from __future__ import annotations

import argparse
import collections
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

SOURCES = ("cudnn_compat", "tests", "scripts", "benchmarks", "examples")


ONLY_TESTS = ("--confcutdir=tests", "--override-ini=testpaths=tests")
"""Not the examples in the pages, which need sybil and no GPU."""


def environment() -> dict[str, Any]:
    """What `cudnn-compat info` knows: GPU, driver, CuPy, cuDNN, engines, versions.

    Without the places where things lie on this machine, which mean nothing elsewhere.
    """
    sys.path.insert(0, str(ROOT))  # the package need not be installed
    from cudnn_compat.environment import collect

    facts = collect()
    if facts["gpu"]["driver"] is None:  # in some containers only this tool knows
        facts["gpu"]["driver"] = _ask(
            "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"
        )
    del facts["platform"]["release"]
    del facts["cudnn_compat"]["path"], facts["python"]["executable"]
    del facts["cudnn"]["path"], facts["cudnn"]["sought"]
    return facts


def _ask(*command: str) -> str | None:
    """The first line that a command prints; None where there is no such command, or it fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.partition("\n")[0].strip()


def commit() -> str | None:
    """The commit that is checked out, with "+" if files differ from it; None outside a clone."""
    head = _ask("git", "rev-parse", "HEAD")
    return f"{head}+" if head and _ask("git", "status", "--porcelain") else head


def sources_sha256() -> str:
    """One digest of all Python files, which tells whether a record belongs to a tree."""
    digest = hashlib.sha256()
    files = (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
    for path in sorted(files, key=lambda path: path.relative_to(ROOT).as_posix()):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def read_report(report: Path) -> dict[str, Any]:
    """Counts, reasons for skipping and names of failed tests from pytest's JUnit XML.

    A test with an error in its set-up or tear-down counts as failed, once.
    """
    skipped: collections.Counter[str] = collections.Counter()
    failed: list[str] = []
    passed = set()
    expected_failures = 0
    for case in ET.parse(report).iter("testcase"):
        name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif skip is None:
            passed.add(name)
        elif skip.get("type") == "pytest.xfail":
            expected_failures += 1
        else:
            skipped[skip.get("message") or "no reason given"] += 1
    failed = sorted(set(failed))
    return {
        "passed": len(passed - set(failed)),
        "failed": len(failed),
        "skipped": skipped.total(),
        "xfailed": expected_failures,
        "skipped_because": dict(skipped.most_common()),
        "failures": failed,
    }


def run_tests(arguments: list[str]) -> tuple[int, dict[str, Any]]:
    """pytest's exit status, and :func:`read_report` of the run (empty if pytest crashed)."""
    environment = os.environ.copy()
    # The package need not be installed.
    path = [str(ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junit-xml={report}", *ONLY_TESTS, *arguments]
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        return status, read_report(report) if report.exists() else {}


def as_markdown(record: dict[str, Any]) -> str:
    """The record as a page."""
    facts, tests = record["environment"], record["tests"]
    gpu, cudnn = facts["gpu"], facts["cudnn"]
    cards = ", ".join(device["name"] for device in gpu["devices"])
    versions = {
        "Python": facts["python"]["version"],
        "NumPy": facts["numpy"]["version"],
        "CuPy": facts["cupy"]["version"],
        "cuDNN": cudnn["version"],
        **{name: facts["packages"][name] for name in ("torch", "onnx", "ml_dtypes")},
    }
    engines = [name for name, engine in facts["engines"].items() if engine["available"]]
    lines = [
        f"# Test run of {record['date']}",
        "",
        f"- GPU: {cards or gpu['reason']}; driver {gpu['driver']}, CUDA {gpu['cuda']}",
        f"- system: {facts['platform']['system']}, {facts['platform']['cpus']} cores",
        f"- engines: {', '.join(engines)}",
        f"- commit: {record['commit'] or 'not a clone'}",
        f"- digest of the Python sources: `{record['sources_sha256']}`",
        f"- command: `{record['command']}`, exit status {record['exit_status']}, "
        f"{record['seconds']} s",
        "",
        "| package | version |",
        "| --- | --- |",
        *(f"| {name} | {version or 'not there'} |" for name, version in versions.items()),
        "",
    ]
    if not tests:
        return "\n".join([*lines, "pytest wrote no report: it crashed.", ""])
    lines += [
        "| passed | failed | skipped | expected failures |",
        "| --- | --- | --- | --- |",
        f"| {tests['passed']} | {tests['failed']} | {tests['skipped']} | {tests['xfailed']} |",
        "",
    ]
    if tests["skipped_because"]:
        lines += ["Skipped because:", ""]
        lines += [f"- {count} × {why}" for why, count in tests["skipped_because"].items()]
        lines.append("")
    if tests["failures"]:
        lines += ["Failed:", "", *(f"- `{name}`" for name in tests["failures"]), ""]
    return "\n".join(lines)


def main() -> int:
    """Run, write the record, and exit as pytest did."""
    parser = argparse.ArgumentParser(description="Run all tests here and write a dated record.")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "records")
    parser.add_argument("pytest", nargs="*", metavar="PYTEST_ARGUMENT")
    options = parser.parse_args()

    start = datetime.datetime.now(datetime.UTC)
    status, tests = run_tests(options.pytest)
    seconds = (datetime.datetime.now(datetime.UTC) - start).total_seconds()
    facts = environment()
    record = {
        "date": start.date().isoformat(),
        "commit": commit(),
        "sources_sha256": sources_sha256(),
        "command": " ".join(["python -m pytest", *options.pytest]),
        "exit_status": status,
        "seconds": round(seconds),
        "tests": tests,
        "environment": facts,
    }

    devices = facts["gpu"]["devices"]
    card = re.sub(r"[^a-z0-9]+", "-", devices[0]["name"].lower()) if devices else "no-gpu"
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / f"{record['date']}-{card}.json"
    target.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    target.with_suffix(".md").write_text(as_markdown(record), encoding="utf-8")
    print(f"record: {target} and {target.with_suffix('.md').name}")
    return status


if __name__ == "__main__":
    sys.exit(main())
