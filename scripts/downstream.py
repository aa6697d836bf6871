"""Run what other people wrote against the old APIs: the programs of ``downstream_table.py``.

    nox -s downstream                          # all of them, each in an environment of its own
    nox -s downstream -- --json FILE 'Chainer*'
    python scripts/downstream.py --here        # with this Python's packages: nothing is installed

Programs that no package has come from checkouts, whose folders are named by CHAINER_SRC,
CHAINERRL_SRC, CHAINER_CHEMISTRY_SRC, THINC_SRC and CUPY_SRC; what is not there is told with the way
to get it. Every program is run on NumPy arrays and, where there is a GPU that computes, on the GPU.
"not run here" is no success: it is counted by itself. The exit status is 1 where a program failed,
or where none was run.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from downstream_environment import CACHE, ROOT, NotHere, make_environment, this_python
from downstream_judge import missing_calls
from downstream_program import DEVICES, Program
from downstream_table import PROGRAMS
from gpu_process import run_limited
from gpu_record import new_record
from matrix_environments import FORGOTTEN
from places import without_places

STATUSES = ("passed", "failed", "not run here")
SCRIPTS = ROOT / "scripts"

SETTINGS = "[pytest]\nmarkers =\n    gpu: runs on a GPU\n    slow: takes time\n"
"""For tests of other people, in place of settings that make new warnings errors."""

TOLD_OF_A_FAILURE = 30
"""Lines of its output that the record keeps of a program that failed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write the JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("patterns", nargs="*", help="names of programs, with * as in file names")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--here", action="store_true", help="install nothing, take this Python")
    parser.add_argument("--device", choices=DEVICES, action="append", help="default: both")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"default {CACHE}")
    given = parser.parse_args(arguments)
    chosen = select(given.patterns)
    if not chosen:
        parser.error(f"no program fits; there are {', '.join(each.name for each in PROGRAMS)}")
    record = new_record("nox -s downstream")
    for unused in ("tests", "parts"):
        del record[unused]
    no_gpu = why_no_gpu(record["environment"])
    start = time.monotonic()
    record["programs"] = []
    for program in chosen:
        for device in given.device or DEVICES:
            if device in program.commands:
                row = run(program, device, no_gpu, None if given.here else given.cache)
                record["programs"].append(row)
                print(told(row), flush=True)
    record["seconds"] = round(time.monotonic() - start, 1)
    counts = Counter(row["status"] for row in record["programs"])
    record["summary"] = {status: counts[status] for status in STATUSES}
    record["exit_status"] = exit_status(record["summary"])
    if given.json is not None:
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        given.json.write_text(text, encoding="utf-8")
    print(", ".join(f"{count} {status}" for status, count in record["summary"].items()))
    return int(record["exit_status"])


def select(patterns: Sequence[str]) -> list[Program]:
    """The programs whose names fit one of the patterns; no pattern: all."""
    return [
        each
        for each in PROGRAMS
        if not patterns or any(fnmatch.fnmatchcase(each.name, pattern) for pattern in patterns)
    ]


def why_no_gpu(environment: Mapping[str, Any]) -> str | None:
    """Why nothing can be computed on a GPU here; None where it can."""
    engine = environment["engines"]["cudnn"]
    return None if engine["available"] else str(engine["reason"])


def exit_status(summary: Mapping[str, int]) -> int:
    """0 where something was run and nothing failed."""
    return 0 if summary["passed"] and not summary["failed"] else 1


def told(row: Mapping[str, Any]) -> str:
    """A row of the table that is printed."""
    why = row.get("reason") or "; ".join(row.get("wrong", ())[:2])
    found = {key: value for key, value in row.get("found", {}).items() if key != "old_calls"}
    found_text = ", ".join(f"{key} {value}" for key, value in found.items())
    lines = [f"{row['status']:<12}  {row['device']:<5}  {row['name']}"]
    return "\n                     ".join(
        lines + [text[:300] for text in (found_text, why) if text]
    )


def run(program: Program, device: str, no_gpu: str | None, cache: Path | None) -> dict[str, Any]:
    """One program on one device: its row of the record.

    Args:
        no_gpu: why there is no GPU.
        cache: where environments are made; None: this Python is taken.
    """
    row: dict[str, Any] = {"name": program.name, "device": device, "calls": program.calls}
    if program.note:
        row["note"] = program.note
    start = time.monotonic()
    try:
        if device == "gpu" and no_gpu is not None:
            raise NotHere(no_gpu)
        checkout = find_checkout(program)
        if cache is None:
            python, versions = this_python(program.packages)
        else:
            python, versions = make_environment(program.packages, cache, gpu=device == "gpu")
    except NotHere as error:
        return row | {"status": "not run here", "reason": without_places(str(error))}
    row["versions"] = versions
    with tempfile.TemporaryDirectory(prefix="downstream-") as work:
        places = {"checkout": str(checkout), "scripts": str(SCRIPTS), "work": work}
        found, wrong = run_in(Path(work), program, device, python, places, cache is None)
    if wrong:
        row["wrong"] = [without_places(each, places) for each in wrong]
    row["found"] = found
    row["status"] = "failed" if wrong else "passed"
    row["seconds"] = round(time.monotonic() - start, 1)
    return row


def find_checkout(program: Program) -> Path | None:
    """The folder that the program's variable names; None where it needs none.

    Raises:
        NotHere: the variable is not set, or the folder does not hold the sources.
    """
    if program.checkout is None:
        return None
    variable, needed, how = program.checkout.variable, program.checkout.needed, program.checkout.how
    named = os.environ.get(variable)
    if not named:
        raise NotHere(f"{variable} names no checkout; to get one: {how}")
    folder = Path(named).resolve()
    if not (folder / needed).is_file():
        raise NotHere(f"there is no {needed} in the folder that {variable} names; {how}")
    return folder


def run_in(
    work: Path,
    program: Program,
    device: str,
    python: str,
    places: Mapping[str, str],
    keep_path: bool,
) -> tuple[dict[str, Any], list[str]]:
    """Run it in an empty folder, and judge what it leaves there."""
    (work / "pytest.ini").write_text(SETTINGS, encoding="utf-8")
    program.data(work)
    given = [each.format_map(places) for each in program.commands[device]]
    report, output = work / "old_calls.json", work / "output.txt"
    if given[0] == "python":
        command = [python, *given[1:]]
    else:
        options = ["run", "--prepare-chainer", "--report", str(report)]
        command = [python, "-m", "cudnn_compat", *options, *given]
    variables = environment_variables(work, keep_path)
    status = run_limited(command, output=output, limit=program.limit, env=variables, cwd=work)
    text = output.read_text(encoding="utf-8", errors="replace")
    if status is None:
        return {}, [f"not done after {program.limit:g} s", *last_lines(text)]
    found, wrong = program.judges[device](work, text)
    if given[0] != "python":
        if status:
            wrong.append(f"exit status {status}")
        called, missing = missing_calls(report, program.old_calls.get(device, ()))
        found, wrong = found | called, wrong + missing
    return found, wrong + (last_lines(text) if wrong else [])


def environment_variables(work: Path, keep_path: bool) -> dict[str, str]:
    """The caller's, without those that change what is found; nothing is written to a checkout."""
    variables = {name: value for name, value in os.environ.items() if name not in FORGOTTEN}
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "") if keep_path else ""]
    return variables | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CHAINER_DATASET_ROOT": str(work / "data"),
        "CUDNN_COMPAT_DEPRECATIONS": "ignore",
        "MPLBACKEND": "Agg",
    }


def last_lines(text: str) -> list[str]:
    """What a program said last."""
    return [line[:300] for line in text.splitlines() if line.strip()][-TOLD_OF_A_FAILURE:]


if __name__ == "__main__":
    sys.exit(main())
