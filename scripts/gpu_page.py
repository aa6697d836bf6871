"""The record of `make gpu` as a page of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gpu_bench
import gpu_page_dialect

__all__ = ["as_markdown"]

Record = dict[str, Any]

_SHOWN_FAILURES = 50


def as_markdown(record: Record) -> str:
    """The whole page."""
    lines = [*_head(record), *_parts(record), *_tests(record["tests"])]
    for name, show in _SHOWS.items():
        part = record["parts"].get(name)
        if part:
            lines += [f"## {_TITLES[name]}", ""]
            lines += _part_line(part)
            if part.get("result"):
                lines += [*show(part["result"]), ""]
    return "\n".join(lines)


def _head(record: Record) -> Iterator[str]:
    facts = record["environment"]
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
    yield f"# Test run of {record['date']}"
    yield ""
    yield f"- GPU: {cards or gpu['reason']}; driver {gpu['driver']}, CUDA {gpu['cuda']}"
    yield f"- system: {facts['platform']['system']}, {facts['platform']['cpus']} cores"
    yield f"- engines: {', '.join(engines)}"
    yield f"- commit: {record['commit'] or 'not a clone'}"
    yield f"- digest of the Python sources: `{record['sources_sha256']}`"
    yield (
        f"- command: `{record['command']}`, exit status {record['exit_status']}, "
        f"{record['seconds']} s"
    )
    yield ""
    yield "| package | version |"
    yield "| --- | --- |"
    yield from (f"| {name} | {version or 'not there'} |" for name, version in versions.items())
    yield ""


def _parts(record: Record) -> Iterator[str]:
    if len(record["parts"]) < 2:
        return
    yield "| part | what | exit status | seconds | |"
    yield "| --- | --- | --- | --- | --- |"
    for name, part in record["parts"].items():
        note = part.get("note", "")
        if part.get("sources_sha256", record["sources_sha256"]) != record["sources_sha256"]:
            note = f"{note} run of {part['started']}, other sources".strip()
        note = note.replace("|", r"\|")
        status = "not run" if _not_run(part) else part["exit_status"]
        yield f"| {name} | {part['about']} | {status} | {part['seconds']} | {note} |"
    yield ""
    no_time = [n for n, p in record["parts"].items() if p["exit_status"] is None and _not_run(p)]
    if no_time:
        names = ",".join(no_time)
        yield f"No time was left for {' and '.join(no_time)}; a run of `--parts {names}` and"
        yield "`--merge` with this record adds what is missing."
        yield ""


def _tests(tests: Record) -> Iterator[str]:
    yield "## Tests"
    yield ""
    if not tests:
        yield "pytest wrote no report: it crashed, or was not run."
        yield ""
        return
    yield "| passed | failed | skipped | expected failures |"
    yield "| --- | --- | --- | --- |"
    yield f"| {tests['passed']} | {tests['failed']} | {tests['skipped']} | {tests['xfailed']} |"
    yield ""
    if "incomplete" in tests:
        yield f"Incomplete: {tests['incomplete']}."
        yield ""
    if "noted" in tests:
        yield from (f"- {name}: {value}" for name, value in tests["noted"].items())
        yield ""
    if tests["skipped_because"]:
        yield "Skipped because:"
        yield ""
        yield from (f"- {count} × {why}" for why, count in tests["skipped_because"].items())
        yield ""
    if tests["failures"]:
        yield "Failed:"
        yield ""
        yield from (f"- `{name}`" for name in tests["failures"][:_SHOWN_FAILURES])
        if len(tests["failures"]) > _SHOWN_FAILURES:
            yield f"- and {len(tests['failures']) - _SHOWN_FAILURES} more, which the JSON names"
        yield ""


def _part_line(part: Record) -> Iterator[str]:
    note = f" {part['note']}" if part.get("note") else ""
    if _not_run(part):
        yield f"Not run.{note}"
    else:
        yield f"`{part['command']}`: exit status {part['exit_status']}, {part['seconds']} s.{note}"
    yield ""


def _not_run(part: Record) -> bool:
    return "command" not in part


def _golden(result: Record) -> Iterator[str]:
    if "counts" not in result:
        return
    yield (
        "| recorded by | dtype | math | cases | bit for bit | within tolerance | off | largest "
        "| forward bit for bit |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in result["counts"]:
        yield (
            f"| {row['file']} | {row['dtype']} | {row['math']} | {row['cases']} | {row['exact']} "
            f"| {row['close']} | {row['off']} | {row['largest_difference']:.1e} "
            f"| {row['forward_exact']} |"
        )
    yield ""
    exact = "bit for bit equal" if result["dropout_case_exact"] else "not bit for bit equal"
    yield f"The recorded dropout case, with its seed: {exact}."


def _sanitizer(result: Record) -> Iterator[str]:
    if not result["allowed"]:
        yield f"Not run: {result['reason']}."
        return
    memcheck, initcheck = result["memcheck"], result["initcheck"]
    yield f"{result['version']}"
    yield ""
    yield "| memcheck | cases | refused by the library | failed | errors | ran to its end |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for algo, row in memcheck["by_algo"].items():
        yield (
            f"| {algo} | {row['ran']} | {row['refused_by_the_library']} | {len(row['failed'])} "
            f"| {row['errors']} | {_yes(row['finished'])} |"
        )
    yield ""
    yield f"- the planted access beyond an array was found: {_yes(memcheck['planted_error_found'])}"
    yield (
        f"- initcheck on the results of {initcheck['cases']} cases: "
        f"{initcheck['unwritten_elements_read']} reads of what nobody wrote "
        f"(ran to its end: {_yes(initcheck['finished'])}; the planted one was found: "
        f"{_yes(initcheck['planted_error_found'])}; by kernels that bring results to the caller: "
        f"{initcheck['read_by_steps_of_ours']}; inside the library: "
        f"{initcheck['reads_inside_the_library']}; reports that the tool dropped: "
        f"{initcheck['reports_dropped']})"
    )


def _soak(result: Record) -> Iterator[str]:
    if "curves" not in result:
        return
    yield f"{result['steps']} of {result['wanted']} training steps in {result['seconds']} s, MiB:"
    yield ""
    yield "| | after the first quarter | at the end | growth allowed | flat |"
    yield "| --- | --- | --- | --- | --- |"
    for name, row in result["curves"].items():
        start, end, limit = (row[key] / 2**20 for key in ("start", "end", "limit"))
        yield f"| {name} | {start:.2f} | {end:.2f} | {limit:.0f} | {_yes(row['flat'])} |"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


_SHOWS: dict[str, Callable[[Record], Iterator[str]]] = {
    "golden": _golden,
    "sanitizer": _sanitizer,
    "chainer": gpu_page_dialect.chainer,
    "chainer_train": gpu_page_dialect.chainer_train,
    "dialect": gpu_page_dialect.dialect,
    "soak": _soak,
    "bench": gpu_bench.page,
}
_TITLES = {
    "golden": "Recorded results",
    "sanitizer": "compute-sanitizer",
    "chainer": "Chainer's own tests",
    "chainer_train": "A model in Chainer, with the dialect and without cuDNN",
    "dialect": "The old calls, against the old stack",
    "soak": "Memory",
    "bench": "Speed",
}
