"""The part `bench` of `make gpu`: what `cudnn-compat bench` measures, without what prints it.

    python scripts/gpu_bench.py [--parts grid,raw,…] [--only SUBSTRING] [--quick] [--rounds 5]
                                [--budget SECONDS] [--json FILE]

It needs CuPy and, to compare with, PyTorch, but neither click nor rich, which a GPU machine may
lack. The exit status is 1 where something could not be measured or an aim was missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the package need not be installed

from cudnn_compat.bench import record as records
from cudnn_compat.bench import table as shown
from cudnn_compat.bench.grid import named
from cudnn_compat.bench.run import PARTS, Settings, measure, pace_for

__all__ = ["missed", "page"]

Result = dict[str, Any]


def missed(result: Result) -> list[str]:
    """In words, which aims were missed, and what could not be measured."""
    aims = [
        f"{aim['aim']}: {aim['found']}, not {aim['wanted']}"
        for aim in result["aims"]
        if not aim["met"]
    ]
    return [*aims, *records.errors(result)]


def page(result: Result) -> Iterator[str]:
    """What the page of `make gpu` shows: all tables, and what was left out."""
    if "schema" not in result:
        return
    yield shown.heading(result)
    yield ""
    for table in shown.tables(result):
        yield f"### {table.title}"
        yield ""
        yield from shown.markdown(table)
        yield ""
    yield from (f"- {note}" for note in shown.notes(result))


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="of %(default)s")
    parser.add_argument("--only", default="", help="workloads that have this in their names")
    parser.add_argument("--quick", action="store_true", help="short rounds")
    parser.add_argument("--rounds", type=int, default=5, help="turns of every side")
    parser.add_argument("--budget", type=float, help="seconds after which nothing more is begun")
    parser.add_argument("--json", type=Path, help="where to write the record")
    options = parser.parse_args(arguments)
    parts = tuple(options.parts.split(","))
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"there is no part {', '.join(unknown)}; wanted some of {', '.join(PARTS)}")
    workloads = named(options.only)
    if not workloads:
        parser.error(f"no workload has {options.only!r} in its name")
    from cudnn_compat.environment import collect

    settings = Settings(
        "cudnn",
        pace_for("cudnn", quick=options.quick, rounds=options.rounds),
        parts,
        workloads,
        budget=options.budget,
        only=options.only,
    )

    def save(record: Result) -> None:
        if options.json:
            records.write(record, options.json)

    def tell(name: str, number: int, total: int) -> None:
        print(f"{number + 1} of {total}: {name}", flush=True)

    record = measure(settings, collect(), begun=tell, done=save)
    print("\n".join(page(record)))
    wrong = missed(record)
    print("\n".join(wrong) or "every aim that was looked at was met")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
