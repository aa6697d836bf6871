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
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

PACKAGES = (
    "numpy",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "torch",
    "onnx",
    "ml-dtypes",
    "hypothesis",
    "pytest",
)
"""Distributions whose versions may matter to a result."""

SOURCES = ("cudnn_compat", "tests", "scripts", "benchmarks", "examples")


def gpus() -> list[dict[str, str]]:
    """Name, driver and memory of each GPU, as nvidia-smi tells them; empty where there is none."""
    fields = ("name", "driver_version", "memory.total")
    try:
        out = subprocess.run(
            ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    rows = (line.split(", ") for line in out.splitlines() if line.strip())
    return [dict(zip(("name", "driver", "memory"), row, strict=True)) for row in rows]


def versions() -> dict[str, str]:
    """The installed version of each of :data:`PACKAGES`; what is not installed is left out."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """The commit that is checked out, with "+" if files differ from it; None outside a clone."""
    git = ["git", "-C", str(ROOT)]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}+" if changed else head


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
        command = [sys.executable, "-m", "pytest", f"--junit-xml={report}", *arguments]
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        return status, read_report(report) if report.exists() else {}


def as_markdown(record: dict[str, Any]) -> str:
    """The record as a page."""
    tests = record["tests"]
    cards = [f"{gpu['name']} ({gpu['memory']}), driver {gpu['driver']}" for gpu in record["gpus"]]
    lines = [
        f"# Test run of {record['date']}",
        "",
        f"- GPU: {'; '.join(cards) or 'none'}",
        f"- system: {record['system']}, {record['cores']} cores, Python {record['python']}",
        f"- commit: {record['commit'] or 'not a clone'}",
        f"- digest of the Python sources: `{record['sources_sha256']}`",
        f"- command: `{record['command']}`, exit status {record['exit_status']}, "
        f"{record['seconds']} s",
        "",
        "| package | version |",
        "| --- | --- |",
        *(f"| {name} | {version} |" for name, version in record["versions"].items()),
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

    found = gpus()
    start = datetime.datetime.now(datetime.UTC)
    status, tests = run_tests(options.pytest)
    seconds = (datetime.datetime.now(datetime.UTC) - start).total_seconds()
    record = {
        "date": start.date().isoformat(),
        "gpus": found,
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions(),
        "commit": commit(),
        "sources_sha256": sources_sha256(),
        "command": " ".join(["python -m pytest", *options.pytest]),
        "exit_status": status,
        "seconds": round(seconds),
        "tests": tests,
    }

    card = re.sub(r"[^a-z0-9]+", "-", found[0]["name"].lower()) if found else "no-gpu"
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / f"{record['date']}-{card}.json"
    target.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    target.with_suffix(".md").write_text(as_markdown(record), encoding="utf-8")
    print(f"record: {target} and {target.with_suffix('.md').name}")
    return status


if __name__ == "__main__":
    sys.exit(main())
