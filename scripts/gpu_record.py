"""Run all checks on a GPU machine and write down what ran: `make gpu`.

Uses the Python it is started with and installs nothing: on a GPU machine CUDA, CuPy and PyTorch
are usually there and belong together. It writes a record, `DATE-GPU.json` and the same as
`DATE-GPU.md`: the machine, the versions, what each part found. Records are committed under
docs/records/.

    python scripts/gpu_record.py [--out FOLDER] [--parts tests,golden,…] [--merge RECORD.json]
                                 [--logs FOLDER] [-- PYTEST ARGUMENTS]

The parts are in ``gpu_parts.py``. Those that measure nothing run at the same time, the others one
by one after them. The record is written anew after each part, so that a run that is cut off leaves
what it had. With arguments for pytest, one run of pytest with exactly these is all there is.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu_junit import merged
from gpu_page import as_markdown
from gpu_parts import PARTS, ROOT, Part, Setting, run_part
from places import without_places

SOURCES = ("cudnn_compat", "tests", "scripts", "benchmarks", "examples")
RECORDS = ROOT / "docs" / "records"

Record = dict[str, Any]


def environment() -> Record:
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


def new_record(command: str) -> Record:
    """A record of no parts yet."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
        "sources_sha256": sources_sha256(),
        "command": command,
        "exit_status": None,
        "seconds": 0,
        "tests": {},
        "parts": {},
        "environment": environment(),
    }


def summed_up(record: Record) -> Record:
    """The record with its totals made anew from the parts.

    The exit status is the first one that is not 0; 1 stands for parts that did not end.
    """
    parts = record["parts"]
    statuses = [1 if p["exit_status"] is None else int(p["exit_status"]) for p in parts.values()]
    runs = [parts[p.name].get("result", {}) for p in PARTS if p.script is None and p.name in parts]
    return {
        **record,
        "exit_status": next((status for status in statuses if status), 0),
        "tests": merged(runs),
    }


def free_name(folder: Path, record: Record) -> Path:
    """A file for the record that no other record has."""
    devices = record["environment"]["gpu"]["devices"]
    card = re.sub(r"[^a-z0-9]+", "-", devices[0]["name"].lower()) if devices else "no-gpu"
    stem = name = f"{record['date']}-{card}"
    number = 1
    while any((place / f"{name}.json").exists() for place in {folder, RECORDS}):
        number += 1
        name = f"{stem}-{number}"
    return folder / f"{name}.json"


def write(record: Record, target: Path) -> None:
    """Both forms of the record."""
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    for path, content in ((target, text), (target.with_suffix(".md"), as_markdown(record))):
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(without_places(content), encoding="utf-8")
        fresh.replace(path)


def run_all(
    parts: list[Part], setting: Setting, done: Callable[[Part, dict[str, Any]], None]
) -> None:
    """Run the parts: first those that may share the machine, all at once; ``done`` after each."""
    together = [part for part in parts if not part.alone]
    if together:
        with concurrent.futures.ThreadPoolExecutor(len(together)) as pool:
            running = {pool.submit(run_part, part, setting): part for part in together}
            for future in concurrent.futures.as_completed(running):
                done(running[future], future.result())
    for part in parts:
        if part.alone:
            done(part, run_part(part, setting))


def tell(part: Part, found: dict[str, Any]) -> None:
    """What became of a part, for those who watch."""
    became = f"exit status {found['exit_status']}, {found['seconds']} s"
    print(f"{part.name}: {became if 'command' in found else 'not run'}")
    for name in ("note", "last_line"):
        if found.get(name):
            print(f"  {found[name]}")
    failed = found.get("result", {}).get("failed_because", {})
    for name, why in list(failed.items())[:25]:
        print(f"  | {name}: {' '.join(why.split())[:160]}")
    for line in () if failed else found.get("printed_last", ()):
        print(f"  | {line[:200]}")
    sys.stdout.flush()  # the next part may take minutes


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(description="Run all checks here and write a dated record.")
    parser.add_argument("--out", type=Path, default=RECORDS)
    parser.add_argument("--parts", help=f"some of {','.join(names)}; all is the default")
    parser.add_argument("--without", default="", help="parts to leave out")
    parser.add_argument("--merge", type=Path, help="a record whose other parts are taken over")
    parser.add_argument("--logs", type=Path, help="folder to keep what the parts print")
    parser.add_argument("--commit", help="the commit, where git does not know it (a copied tree)")
    parser.add_argument("--workers", type=int, default=8, help="processes that run tests")
    parser.add_argument("--budget", type=float, default=535, help="seconds for all parts together")
    parser.add_argument("pytest", nargs="*", metavar="PYTEST_ARGUMENT")
    options = parser.parse_args(arguments)
    if options.pytest:
        wanted = ["tests"]
    else:
        wanted = options.parts.split(",") if options.parts else names
        left_out = options.without.split(",") if options.without else []
        for name in (*wanted, *left_out):
            if name not in names:
                parser.error(f"there is no part {name!r}; there are {', '.join(names)}")
        wanted = [name for name in wanted if name not in left_out]
    options.parts = [part for part in PARTS if part.name in wanted]
    return options


def main() -> int:
    """Run, write the record after each part, and exit with 1 where something is wrong."""
    options = parse()
    start = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    typed = ["python scripts/gpu_record.py", *options.pytest]
    if not options.pytest:
        typed += ["--parts", ",".join(part.name for part in options.parts)]
    record = new_record(" ".join(typed))
    if options.commit:
        record["commit"] = options.commit
    digest = record["sources_sha256"]
    target = free_name(options.out, record)
    if options.merge:
        record["parts"] = json.loads(options.merge.read_text(encoding="utf-8")).get("parts", {})

    with tempfile.TemporaryDirectory() as folder:
        logs = options.logs or Path(folder)
        logs.mkdir(parents=True, exist_ok=True)
        setting = Setting(
            logs.resolve(),
            options.workers,
            tuple(options.pytest),
            start + options.budget,
            record["environment"]["cupy"]["reason"],
        )

        def done(part: Part, found: dict[str, Any]) -> None:
            tell(part, found)
            parts = {**record["parts"], part.name: {**found, "sources_sha256": digest}}
            order = [each.name for each in PARTS]
            record["parts"] = dict(sorted(parts.items(), key=lambda item: order.index(item[0])))
            record["seconds"] = round(time.monotonic() - start)
            record.update(summed_up(record))
            write(record, target)

        run_all(options.parts, setting, done)
    print(f"record: {target} and {target.with_suffix('.md').name}")
    status = record["exit_status"]
    return status if status in range(256) else 1  # -11, say, where a signal ended a part


if __name__ == "__main__":
    sys.exit(main())
