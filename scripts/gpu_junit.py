"""What a run of pytest says: its JUnit report, or its output where it did not live to write one."""

from __future__ import annotations

import collections
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

__all__ = ["merged", "read_output", "read_report"]

Counts = dict[str, Any]

_MOST_REASONS = 40
_LONGEST_REASON = 600


def read_report(report: Path) -> Counts:
    """Counts, reasons for skipping, failed tests and what tests noted, from pytest's JUnit XML.

    A test with an error in its set-up or tear-down counts as failed, once. ``noted`` is what tests
    gave to ``record_property``: how many examples they drew, say.
    """
    skipped: collections.Counter[str] = collections.Counter()
    failed: dict[str, str] = {}
    passed = set()
    noted: dict[str, str] = {}
    expected_failures = 0
    for case in ET.parse(report).iter("testcase"):
        name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        for each in case.iter("property"):
            noted[each.get("name") or name] = each.get("value") or ""
        skip, bad = case.find("skipped"), case.find("failure")
        bad = case.find("error") if bad is None else bad
        if bad is not None:
            failed.setdefault(name, (bad.get("message") or bad.text or "")[:_LONGEST_REASON])
        elif skip is None:
            passed.add(name)
        elif skip.get("type") == "pytest.xfail":
            expected_failures += 1
        else:
            skipped[skip.get("message") or "no reason given"] += 1
    counts = _counts(len(passed - failed.keys()), failed, skipped, expected_failures)
    return {**counts, "noted": noted} if noted else counts


def read_output(text: str) -> Counts:
    """The same, as far as ``pytest -v`` printed it: for a run that was ended or crashed."""
    states: dict[str, str] = {}
    for line in text.splitlines():
        parallel = re.match(r"\[gw\d+\] \[ *\d+%\] ([A-Z]+) (\S.*)$", line)
        serial = re.match(r"(\S+::.+?) ([A-Z]+)\b.*\[ *\d+%\]$", line)
        if parallel:
            states[parallel[2].strip()] = parallel[1]
        elif serial:
            states[serial[1]] = serial[2]
    by_state = collections.Counter(states.values())
    failed = {n: "(see the log)" for n, s in states.items() if s in ("FAILED", "ERROR")}
    skipped = collections.Counter({"(reasons are lost)": by_state["SKIPPED"]})
    return {
        **_counts(by_state["PASSED"], failed, +skipped, by_state["XFAIL"]),
        "incomplete": "pytest wrote no report; counted from what it printed",
    }


def _counts(
    passed: int, failed: dict[str, str], skipped: collections.Counter[str], xfailed: int
) -> Counts:
    return {
        "passed": passed,
        "failed": len(failed),
        "skipped": skipped.total(),
        "xfailed": xfailed,
        "skipped_because": dict(skipped.most_common()),
        "failures": sorted(failed),
        "failed_because": dict(sorted(failed.items())[:_MOST_REASONS]),
    }


def merged(runs: list[Counts]) -> Counts:
    """Several runs, of different tests, as one."""
    runs = [each for each in runs if each]
    if not runs:
        return {}
    skipped: collections.Counter[str] = collections.Counter()
    total: Counts = {name: sum(each[name] for each in runs) for name in _NUMBERS}
    for each in runs:
        skipped.update(each["skipped_because"])
    total["skipped_because"] = dict(skipped.most_common())
    total["failures"] = sorted(name for each in runs for name in each["failures"])
    total["failed_because"] = {n: w for each in runs for n, w in each["failed_because"].items()}
    noted = {name: value for each in runs for name, value in each.get("noted", {}).items()}
    incomplete = [each["incomplete"] for each in runs if "incomplete" in each]
    return {
        **total,
        **({"noted": noted} if noted else {}),
        **({"incomplete": incomplete[0]} if incomplete else {}),
    }


_NUMBERS = ("passed", "failed", "skipped", "xfailed")
