"""What a program of `nox -s downstream` has to leave behind: what was found, and what is wrong."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gpu_junit import read_report

__all__ = ["Judge", "chainer_tests", "log", "missing_calls", "printed", "tests"]

Verdict = tuple[dict[str, Any], list[str]]
"""What was found, for the record; and in words, what is not as it has to be."""

Judge = Callable[[Path, str], Verdict]
"""Looks at the folder that a program ran in and at what it printed."""


def tests(work: Path, output: str, *, at_least: int) -> Verdict:
    """Pytest's report ``junit.xml``: so many passed, none failed."""
    try:
        report = read_report(work / "junit.xml")
    except (OSError, SyntaxError) as error:  # ParseError is a SyntaxError
        return {}, [f"pytest left no report: {error}"]
    found = {key: report[key] for key in ("passed", "failed", "skipped")}
    wrong = [f"{name}: {why}" for name, why in report["failed_because"].items()]
    return found, wrong + _too_few(report["passed"], at_least)


def chainer_tests(work: Path, output: str, *, at_least: int, on_cudnn: bool) -> Verdict:
    """The record ``tests.json`` of ``chainer_tests.py``, with or without its verdict on cuDNN."""
    try:
        record = json.loads((work / "tests.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return {}, [f"chainer_tests.py left no record: {error}"]
    found = dict(record["result"])
    if on_cudnn:
        return found | {"old_calls": record["old_calls"]}, list(record["verdict"])
    wrong = [f"{name}: {why}" for name, why in record["failed"].items()]
    return found, wrong + _too_few(found["passed"], at_least)


def _too_few(passed: int, at_least: int) -> list[str]:
    return [] if passed >= at_least else [f"{passed} tests passed, at least {at_least} have to"]


def log(
    work: Path,
    output: str,
    *,
    file: str,
    key: str,
    at_most: float = math.inf,
    at_least: float = -math.inf,
) -> Verdict:
    """A number in the file that Chainer's LogReport writes: the last one counts."""
    try:
        entries = json.loads((work / file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return {}, [f"there is no {file}: {error}"]
    values = [float(entry[key]) for entry in entries if key in entry]
    if not values:
        return {}, [f"{file} has no {key}"]
    found = {f"{key}, first": values[0], f"{key}, last": values[-1]}
    return found, _out_of_bounds(key, values[-1], at_most, at_least)


def printed(
    work: Path,
    output: str,
    *,
    pattern: str,
    at_most: float = math.inf,
    at_least: float = -math.inf,
) -> Verdict:
    """A line that was printed; where the pattern has a group, the number in it is judged."""
    found = re.findall(pattern, output, re.MULTILINE)
    if not found:
        return {}, [f"nothing like {pattern!r} was printed"]
    if not re.compile(pattern).groups:
        return {"printed": found[-1]}, []
    name = re.sub(r"[\^$]|\.\*\?|: .*", "", pattern)
    value = float(found[-1])
    return {name: value}, _out_of_bounds(name, value, at_most, at_least)


def _out_of_bounds(name: str, value: float, at_most: float, at_least: float) -> list[str]:
    # So written that NaN is out of bounds.
    if at_least <= value <= at_most:
        return []
    wanted = f"at most {at_most:g}" if at_most < math.inf else f"at least {at_least:g}"
    return [f"{name} is {value:g}, wanted: {wanted}"]


def missing_calls(report: Path, wanted: Iterable[str]) -> Verdict:
    """The report of `cudnn-compat run`: how often each old name was called."""
    try:
        calls = json.loads(report.read_text(encoding="utf-8"))["calls"]
    except (OSError, ValueError) as error:
        return {}, [f"cudnn-compat run left no report: {error}"]
    counts = {call["old"].rpartition(".")[2]: call["count"] for call in calls}
    wrong = [f"{name} was never called" for name in wanted if not counts.get(name)]
    return {"old_calls": counts}, wrong
