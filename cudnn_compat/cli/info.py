"""``cudnn-compat info``: what is installed, what can be used, and why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from cudnn_compat.cli.console import make_console
from cudnn_compat.environment import collect

__all__ = ["info"]

Line = tuple[str, bool | None, str]
"""What it is about; whether it can be used (None: not a question); what is known of it."""


@click.command(short_help="What is installed, what can be used, and why not.")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def info(as_json: bool) -> None:
    """Say what is installed, what can be used, and why not.

    A GPU, a CuPy that can use it and cuDNN are separate facts, each with its own reason.
    """
    facts = collect()
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    grid = Table(show_header=False, box=None, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, usable, text in _lines(facts):
        mark = {None: "", True: "yes", False: "no"}[usable]
        grid.add_row(name, Text(mark, {None: "", True: "green", False: "red"}[usable]), Text(text))
    make_console().print(grid)


def _lines(facts: dict[str, Any]) -> Iterator[Line]:
    python, machine = facts["python"], facts["platform"]
    yield (
        "cudnn_compat",
        None,
        f"{facts['cudnn_compat']['version']} in {facts['cudnn_compat']['path']}",
    )
    yield "Python", None, f"{python['implementation']} {python['version']} ({python['executable']})"
    yield (
        "platform",
        None,
        f"{machine['system']} {machine['release']} {machine['machine']}, {machine['cpus']} CPUs",
    )
    for name, version in facts["packages"].items():
        if name != "numpy":
            yield name, version is not None, version or "not installed"
    numpy = facts["numpy"]
    yield _line("NumPy", numpy, f"{numpy['version']}, BLAS {numpy['blas'] or 'unknown'}")
    yield _line("GPU available", facts["gpu"], _gpu(facts["gpu"]))
    if not facts["gpu"]["available"] and facts["gpu"]["driver"]:
        yield "", None, f"driver {facts['gpu']['driver']}"
    cupy, cudnn = facts["cupy"], facts["cudnn"]
    yield _line("CuPy usable", cupy, f"{cupy['version']}, computes")
    if not cupy["available"] and cupy["version"]:
        yield "", None, f"installed: {cupy['version']}"
    yield _line("cuDNN available", cudnn, _cudnn(cudnn))
    if not cudnn["available"]:
        for place in cudnn["sought"]:
            yield "", None, f"sought {place['place']} ({place['found_by']}): {place['result']}"
    for known, names in groupby(sorted(cudnn["lacks"], key=cudnn["lacks"].get), cudnn["lacks"].get):
        yield "", None, f"without {', '.join(names)}: {known}"
    for name, engine in facts["engines"].items():
        dtypes = engine.get("dtypes", {})
        served = [dtype for dtype, fact in dtypes.items() if fact["available"]]
        yield _line(f"engine {name}", engine, f"usable: {', '.join(served)}")
        for dtype, fact in dtypes.items():
            if not fact["available"]:
                yield "", None, f"without {dtype}: {fact['reason']}"


def _line(name: str, fact: dict[str, Any], text: str) -> Line:
    return (name, True, text) if fact["available"] else (name, False, fact["reason"])


def _gpu(gpu: dict[str, Any]) -> str:
    devices = "; ".join(
        f"{device['name']} (compute capability {device['compute_capability']}, "
        f"{device['memory_bytes'] / 2**30:.0f} GiB)"
        for device in gpu["devices"]
    )
    return f"{devices}; driver {gpu['driver'] or 'unknown'}, CUDA {gpu['cuda']}"


def _cudnn(cudnn: dict[str, Any]) -> str:
    return f"{cudnn['version']} for CUDA {cudnn['cuda']}, {cudnn['path']} ({cudnn['found_by']})"
