"""The command line: commands, options, exit statuses, and the keys of its JSON reports."""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import click
from api_public import REPORTS
from api_python import values
from api_text import Snapshot
from click.testing import CliRunner

__all__ = ["command_line", "keys"]

NAME: Final = "cudnn-compat"

OLD_PROGRAM: Final = """\
from cudnn_compat import legacy
legacy.RNNDesc(legacy.CUDNN_GRU, 3, 4)
"""

Cases = dict[str, tuple[str, ...]]
"""What happened, and how to make it happen."""

EXITS: Final[dict[str, Cases]] = {
    "": {
        "--version": ("--version",),
        "an unknown command": ("no-such-command",),
    },
    "run": {
        "a program that ends well": ("run", "-q", "PROGRAM"),
        "a program that ends with 7": ("run", "-q", "SEVEN"),
        "a program that raises": ("run", "-q", "RAISES"),
        "a program that is not there": ("run", "no-such-file.py"),
        "a module that is not there": ("run", "-m", "no_such_module"),
        "a report that cannot be written": ("run", "--report", "no/such/folder", "PROGRAM"),
    },
    "explain": {
        "a code": ("explain", "CC012"),
        "an unknown code": ("explain", "CC999"),
    },
    "info": {"always": ("info",)},
    "matrix": {"no row selected": ("matrix", "--select", "no such row")},
    "migrate": {
        "a check that finds something": ("migrate", "--quiet", "--check", "PROGRAM"),
        "a check that finds nothing": ("migrate", "--quiet", "--check", "SEVEN"),
        "a file that is not Python": ("migrate", "--quiet", "BROKEN"),
        "no path": ("migrate",),
    },
    "bench": {"no workload selected": ("bench", "--engine", "numpy", "--only", "no such")},
}
"""Exit statuses that are asked for, by command."""

PROGRAMS: Final = {
    "PROGRAM": OLD_PROGRAM,
    "SEVEN": "raise SystemExit(7)\n",
    "RAISES": "raise ValueError\n",
    "BROKEN": "from cudnn_compat import (\n",
}


def command_line(skip: Collection[str] = ()) -> Snapshot:
    """Every command, asked of the command itself, without the entries ``skip``."""
    from cudnn_compat.cli.app import app

    found: Snapshot = {}
    _command(app, NAME, found)
    with _machine_with_nothing(), tempfile.TemporaryDirectory() as folder:
        places = {name: Path(folder, f"{name.lower()}.py") for name in PROGRAMS}
        for name, source in PROGRAMS.items():
            places[name].write_text(source, encoding="utf-8")
        for command, cases in EXITS.items():
            facts = found.get(f"command {NAME} {command}".rstrip())
            if facts is None:  # not every version has every command
                continue
            for case, arguments in cases.items():
                status, _ = _call(app, arguments, places)
                facts[f"exit status of {case}"] = str(status)
        for report, arguments in REPORTS.items():
            command, option = report.split()
            if f"report {NAME} {report}" in skip:
                continue
            if f"option {option}" in found.get(f"command {NAME} {command}", {}):
                _report(app, report, arguments, places, found)
    return found


def _report(
    app: Any, name: str, arguments: tuple[str, ...], places: dict[str, Path], found: Snapshot
) -> None:
    out = places["PROGRAM"].with_name("out.json")
    out.unlink(missing_ok=True)
    status, printed = _call(app, arguments, places | {"OUT": out})
    text = out.read_text(encoding="utf-8") if "OUT" in arguments else printed
    try:
        content = json.loads(text)
    except ValueError:
        raise RuntimeError(f"{' '.join(arguments)} gave status {status} and {text!r}") from None
    entry = f"report {NAME} {name}"
    facts = dict.fromkeys((f"key {key}" for key in keys(content)), "")
    environment = found.get(f"report {NAME} info --json")
    if environment and isinstance(content, dict) and "environment" in content:
        # Said once: a report that has all facts of a machine has those of `info`.
        facts = {
            fact: value
            for fact, value in facts.items()
            if fact.replace("environment.", "", 1) not in environment
        } | {"key environment": f"as {NAME} info --json"}
    found[entry] = facts | values(entry)


def keys(content: Any, path: str = "") -> Iterator[str]:
    """Every key, with its way from the top: ``rows[].id``."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield f"{path}.{key}" if path else key
            yield from keys(value, f"{path}.{key}" if path else key)
    elif isinstance(content, list):
        for value in content:
            yield from dict.fromkeys(keys(value, f"{path}[]"))


def _call(app: Any, arguments: tuple[str, ...], places: dict[str, Path]) -> tuple[int, str]:
    """Exit status and output of a call; what a program does to the interpreter is undone."""
    argv, path = list(sys.argv), list(sys.path)
    words = [str(places.get(word, word)) for word in arguments]
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            done = CliRunner().invoke(app, words, prog_name=NAME)
    finally:
        sys.argv, sys.path[:] = argv, path
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise RuntimeError(f"{NAME} {' '.join(words)} failed") from done.exception
    return done.exit_code, done.stdout


def _command(command: click.Command, name: str, found: Snapshot) -> None:
    facts = found[f"command {name}"] = {}
    for parameter in command.get_params(click.Context(command)):
        what = "flag" if getattr(parameter, "is_flag", False) else parameter.type.name
        if parameter.multiple or parameter.nargs == -1:
            what += ", any number"
        what += ", required" if parameter.required else ""
        option = isinstance(parameter, click.Option)
        names = [*parameter.opts, *parameter.secondary_opts] if option else [parameter.name or ""]
        for each in names:
            facts[f"{'option' if option else 'argument'} {each}"] = what
            if isinstance(parameter.type, click.Choice):
                facts |= {f"value {each} {choice}": "" for choice in parameter.type.choices}
        default = getattr(parameter, "default", None)
        # A plain flag is off; versions of click say so in different ways.
        plain = what == "flag" and not parameter.secondary_opts
        if isinstance(default, (bool, int, float, str)) and not plain:
            facts[f"default of {names[0]}"] = repr(default)
    if isinstance(command, click.Group):
        for each, below in sorted(command.commands.items()):
            _command(below, f"{name} {each}", found)


class _Driver:
    """A driver with one GPU, of which nothing but its number is known."""

    def __getattr__(self, name: str) -> Any:
        def function(*arguments: Any) -> int:
            for argument in arguments:
                number = getattr(argument, "_obj", None)
                if isinstance(number, ctypes.c_int):
                    number.value = 1
            return 0

        return function


@contextlib.contextmanager
def _machine_with_nothing() -> Iterator[None]:
    """The same machine everywhere: a GPU, no CuPy, no cuDNN. So that all keys are seen."""
    real = ctypes.CDLL

    def load(name: Any, *arguments: Any, **options: Any) -> Any:
        if name in ("libcuda.so.1", "nvcuda.dll"):
            return _Driver()
        raise OSError(f"{name} is not on this machine")

    ctypes.CDLL = load  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        ctypes.CDLL = real  # type: ignore[misc]
