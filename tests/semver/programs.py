"""Runs a frozen program on a package: this tree, an old wheel, a broken copy."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

DOWNSTREAM = Path(__file__).parents[1] / "downstream"

WARNING = re.compile(r"^(?P<file>.+?):(?P<line>\d+): (?P<category>\w+): \[(?P<code>CC\d+)\] ")
ANY_WARNING = re.compile(r"^.+?:\d+: \w*Warning: ")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")


@dataclasses.dataclass(frozen=True)
class Program:
    """A frozen program and how it is called."""

    folder: str
    arguments: tuple[str, ...]
    tolerance: float
    """Largest absolute difference of its numbers between two versions of the package."""

    @property
    def stands_in(self) -> bool:
        """Whether it needs CuPy, or what stands in for it on a machine without a GPU."""
        return self.folder == "cupy_style"


PROGRAMS = {
    "flux_style float32": Program("flux_style", ("float32", "1"), 2e-5),
    "flux_style float64": Program("flux_style", ("float64", "1"), 1e-12),
    "cupy_style float32": Program("cupy_style", ("out.npz", "f"), 2e-5),
    "cupy_style float64": Program("cupy_style", ("out.npz", "d"), 1e-12),
}
"""chainer_tagger is not among them: without a GPU, Chainer computes by itself."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run did.

    Attributes:
        numbers: everything printed, by its words, and every array saved, by its name.
        warned: (code, category, file, line) of each warning that was shown.
        called: (code, file, line) of each line that made an old call, warned or not.
    """

    numbers: dict[str, np.ndarray]
    warned: list[tuple[str, str, str, int]]
    called: set[tuple[str, str, int]]


def run(program: Program, package: Path, folder: Path, source: Path | None = None) -> Outcome:
    """Run a program on the package under ``package``, in the empty ``folder``.

    Every warning is an error, but for deprecations, which are shown: once for each line.

    Args:
        source: where the program lies, if it is not the frozen one.
    """
    paths = [package, *([DOWNSTREAM / "stand_in"] if program.stands_in else [])]
    file = (source or DOWNSTREAM / program.folder) / "train.py"
    strict = ["-W", "error", "-W", "default::DeprecationWarning"]
    command = ["-m", "cudnn_compat", "run", "-q", "--report", "calls.json", str(file)]
    done = subprocess.run(
        [sys.executable, *strict, *command, *program.arguments],
        env=environment(paths),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "calls.json").read_text(encoding="utf-8"))
    return Outcome(
        numbers(done.stdout, folder),
        _warnings(done.stderr),
        {
            (each["code"], site["file"], site["line"])
            for each in report["calls"]
            for site in each["sites"]
        },
    )


def run_all(package: Path, folder: Path) -> dict[str, Outcome]:
    """Every program on one package, several at a time."""
    folders = {name: folder / name for name in PROGRAMS}
    for each in folders.values():
        each.mkdir()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = {n: pool.submit(run, PROGRAMS[n], package, folders[n]) for n in PROGRAMS}
        return {name: future.result() for name, future in futures.items()}


def environment(paths: list[Path]) -> dict[str, str]:
    """For programs that must find the package under the first path and nothing of the user's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CUDNN_COMPAT"))}
    return kept | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        # Products this small gain nothing from threads, and lose much on a busy machine.
        "OPENBLAS_NUM_THREADS": "1",
    }


def numbers(printed: str, folder: Path) -> dict[str, np.ndarray]:
    """Every number of what a program printed and saved."""
    found = {}
    for line in printed.splitlines():
        words = NUMBER.sub("#", line)
        values = np.array([float(each) for each in NUMBER.findall(line)])
        key = next(key for n in range(10_000) if (key := f"{words} ({n})") not in found)
        found[key] = values
    for file in sorted(folder.glob("*.npz")):
        with np.load(file) as saved:
            found |= {f"{file.name} {name}": saved[name] for name in saved}
    return found


def _warnings(shown: str) -> list[tuple[str, str, str, int]]:
    found = []
    for line in shown.splitlines():
        if ANY_WARNING.match(line):
            warning = WARNING.match(line)
            assert warning, f"this is no warning of an old name: {line}"
            at = warning["file"], int(warning["line"])
            found.append((warning["code"], warning["category"], *at))
    return found


def differences(one: Outcome, other: Outcome, tolerance: float) -> list[str]:
    """Where the numbers of two runs are not the same."""
    if one.numbers.keys() != other.numbers.keys():
        return sorted(one.numbers.keys() ^ other.numbers.keys())
    found = []
    for name, value in one.numbers.items():
        with_it = other.numbers[name]
        if value.shape != with_it.shape or value.dtype != with_it.dtype:
            found.append(f"{name}: {value.dtype}{value.shape}, {with_it.dtype}{with_it.shape}")
        elif not np.allclose(value, with_it, rtol=0, atol=tolerance):
            found.append(f"{name} differs by {np.abs(value - with_it).max():.2g}")
    return found
