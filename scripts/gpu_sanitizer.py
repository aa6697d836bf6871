"""Run the engine under NVIDIA's compute-sanitizer: part of `make gpu`.

    python scripts/gpu_sanitizer.py [--json FILE] [--logs FOLDER]

memcheck: one case for each cell, layout, direction of the pass and algorithm, every array in an
allocation of its own, so that one byte too far is seen. initcheck: the results of five cases are
read by a kernel of ours, which must find every element written; what the library itself reads
before it is written is counted, not judged. Each check has a planted error that it must find. A
machine whose runtime does not allow the tool is said so, with exit status 0; errors make it 1.

The programs that run under the tool are in ``gpu_sanitizer_cases.py``, one process an algorithm.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu_process import run_limited

ROOT = Path(__file__).resolve().parent.parent
CASES = Path(__file__).with_name("gpu_sanitizer_cases.py")

MEMCHECK = ("standard", "persist_static", "persist_dynamic", "persist_small_h", "fused", "graphs")
"""One process each: starting is what takes time under the tool."""

PLACES = (
    "/usr/local/cuda/bin/compute-sanitizer",
    "/usr/local/cuda/compute-sanitizer/compute-sanitizer",
    "/opt/cuda/bin/compute-sanitizer",
)
OPTIONS = {
    # Those that the tool's --help does not know are left out.
    "memcheck": {
        "--target-processes": "all",
        "--error-exitcode": "86",
        "--print-limit": "200",
        "--padding": "256",
        # The library tries calls that fail and goes on; only bad accesses are asked for.
        "--report-api-errors": "no",
    },
    "initcheck": {
        "--target-processes": "all",
        "--error-exitcode": "86",
        "--print-limit": "20000",
        "--show-backtrace": "no",
        "--report-api-errors": "no",
    },
}
PROBLEM = re.compile(
    r"^=+ ((?:Invalid|Uninitialized|Misaligned|Out-of-bounds|Malloc|Program hit|Host API memory)"
    r".*)$"
)
REFUSED = re.compile(r"Device not supported|not supported on this|Failed to init", re.I)
"""What the tool says where the machine's runtime does not let it look at the GPU."""


def find_tool() -> str | None:
    """Where the tool is, or None."""
    return shutil.which("compute-sanitizer") or next(
        (place for place in PLACES if Path(place).exists()), None
    )


def said(*command: str) -> str:
    """What a command prints; nothing where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def problems_in(log: str) -> list[dict[str, str]]:
    """The errors in a log of the tool: what kind, and in which kernel (or call)."""
    found: list[dict[str, str]] = []
    lines = log.splitlines()
    for number, line in enumerate(lines):
        match = PROBLEM.match(line)
        if match:
            rest = (each.lstrip("= ") for each in lines[number + 1 : number + 4])
            where = next((each for each in rest if each.startswith("at ")), "")
            found.append({"kind": match[1].strip(), "where": where[:200]})
    return found


def summary_in(log: str) -> int | None:
    """The number of errors in the tool's closing line; None where there is no such line."""
    found = re.findall(r"ERROR SUMMARY: (\d+) error", log)
    return int(found[-1]) if found else None


def dropped_in(log: str) -> int:
    """Reports that the tool could not keep."""
    return sum(map(int, re.findall(r"(\d+) errors? (?:was|were) skipped", log)))


def run(tool: str, known: str, check: str, program: str, logs: Path, limit: float) -> Any:
    """One process under the tool: what the cases said, and what the tool said."""
    name = f"{check}-{program}"
    log, answers = logs / f"{name}.log", logs / f"{name}.jsonl"
    command = [tool, "--tool", check, "--log-file", str(log)]
    for option, value in OPTIONS[check].items():
        if option in known:
            command += [option, value]
    command += [sys.executable, str(CASES), program, str(answers)]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "CUDA_MODULE_LOADING": "LAZY"}
    output, start = logs / f"{name}.out", time.monotonic()
    status = run_limited(command, output=output, limit=limit, env=environment, cwd=ROOT)
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    printed = output.read_text(encoding="utf-8", errors="replace")
    lines = answers.read_text(encoding="utf-8").splitlines() if answers.exists() else []
    return {
        "check": check,
        "program": program,
        "status": status,
        "seconds": round(time.monotonic() - start, 1),
        "cases": [json.loads(line) for line in lines],
        "problems": problems_in(text),
        "errors": summary_in(text),
        "dropped": dropped_in(text),
        "said": (text[:1500] + printed[-1500:]).strip(),
    }


def judge(memcheck: list[Any], control: Any, initcheck: Any) -> dict[str, Any]:
    """What the processes say together."""
    by_algo = {}
    for each in memcheck:
        results = [case["result"] for case in each["cases"]]
        by_algo[each["program"]] = {
            "ran": results.count("ran"),
            "refused_by_the_library": sum(r.startswith("refused") for r in results),
            "failed": [c for c in each["cases"] if c["result"].startswith("failed")][:5],
            "errors": each["errors"],
            "problems": each["problems"][:5],
            "finished": each["status"] is not None and "end" in results,
            "seconds": each["seconds"],
            "said": "" if "end" in results else each["said"],
        }
    ours = [p for p in initcheck["problems"] if "read_results" in p["where"]]
    planted = [p for p in initcheck["problems"] if "read_unwritten" in p["where"]]
    steps = [p for p in initcheck["problems"] if "cupy" in p["where"]]
    inside = len(initcheck["problems"]) - len(ours) - len(planted) - len(steps)
    results = [case["result"] for case in initcheck["cases"]]
    return {
        "memcheck": {
            "cases": sum(each["ran"] for each in by_algo.values()),
            "errors": sum(each["errors"] or 0 for each in by_algo.values()),
            "finished": all(each["finished"] for each in by_algo.values()),
            "planted_error_found": bool(control["problems"]),
            "by_algo": by_algo,
        },
        "initcheck": {
            "cases": results.count("ran"),
            "unwritten_elements_read": len(ours),
            "planted_error_found": bool(planted),
            "read_by_steps_of_ours": len(steps),
            "reads_inside_the_library": inside,
            "reports_dropped": initcheck["dropped"],
            "problems": (ours + steps)[:5],
            "finished": initcheck["status"] is not None and "end" in results,
            "seconds": initcheck["seconds"],
            "said": "" if "end" in results else initcheck["said"],
        },
    }


def is_clean(result: dict[str, Any]) -> bool:
    """Whether the tool worked, everything ran to its end and nothing was found."""
    memcheck, initcheck = result["memcheck"], result["initcheck"]
    return bool(
        memcheck["finished"]
        and memcheck["planted_error_found"]
        and not memcheck["errors"]
        and not any(each["failed"] for each in memcheck["by_algo"].values())
        and initcheck["finished"]
        and initcheck["planted_error_found"]
        and not initcheck["unwritten_elements_read"]
        and not initcheck["read_by_steps_of_ours"]
    )


def check_all(tool: str, logs: Path, limit: float) -> dict[str, Any]:
    """Run everything, at the same time, and judge it."""
    known, version = said(tool, "--help"), said(tool, "--version").strip().splitlines()
    jobs = [("memcheck", program) for program in (*MEMCHECK, "beyond")]
    jobs.append(("initcheck", "results"))
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        runs = list(pool.map(lambda job: run(tool, known, job[0], job[1], logs, limit), jobs))
    result: dict[str, Any] = {
        "tool": tool,
        "version": next((line for line in version if "ersion" in line), version[:1]),
    }
    control = runs[-2]
    if control["errors"] is None or REFUSED.search(control["said"]):
        words = " | ".join(control["said"].splitlines()[:6])
        return {**result, "allowed": False, "reason": f"the tool does not work here: {words[:600]}"}
    return {**result, "allowed": True, **judge(runs[: len(MEMCHECK)], control, runs[-1])}


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="where to write the result")
    parser.add_argument("--logs", type=Path, help="folder to keep the tool's logs in")
    parser.add_argument("--seconds", type=float, default=250, help="limit of each process")
    options = parser.parse_args()
    tool = find_tool()
    if tool is None:
        result: dict[str, Any] = {"allowed": False, "reason": "no compute-sanitizer is installed"}
    else:
        with tempfile.TemporaryDirectory() as folder:
            logs = options.logs or Path(folder)
            logs.mkdir(parents=True, exist_ok=True)
            result = check_all(tool, logs, options.seconds)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))
    return int(result["allowed"] and not is_clean(result))


if __name__ == "__main__":
    sys.exit(main())
