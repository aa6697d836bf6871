"""The parts of `make gpu`: what each runs, how long it may take, and what it leaves behind."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_bench
import gpu_dialect
from gpu_dialect import no_chainer, no_sources
from gpu_junit import read_output, read_report
from gpu_process import run_limited

__all__ = ["MEMORY_TESTS", "PARTS", "ROOT", "Part", "Setting", "run_part"]

ROOT = Path(__file__).resolve().parent.parent

ONLY_TESTS = ("--confcutdir=tests", "--override-ini=testpaths=tests")
"""Not the examples in the pages, which need sybil and no GPU."""

MISSED = gpu_dialect.MISSED | {"bench": gpu_bench.missed}
"""By the part's name, in words, what its result shows to be worse than it has to be."""

MEMORY_TESTS = "tests/gpu/test_memory.py"
"""These look at what is taken on the whole GPU, so nothing else may run beside them."""

OF_TEXTS = ("tests/semver", "tests/migrate", "tests/matrix_page")
"""These compute nothing, and need what a GPU machine need not have."""

EMULATED = ("tests/unit/test_fused_cuts.py", "tests/unit/test_fused_emulated.py")
"""The own kernels without a GPU, which takes minutes; with one, ``tests/gpu`` has them."""

PATIENCE = 240
"""Seconds after which one test is given up, where pytest-timeout is installed."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """What the parts of a run share.

    Attributes:
        logs: folder for what they print.
        workers: processes that share the GPU while the tests run; 0: pytest's own.
        pytest: pytest's arguments as the user gave them.
        end: when (``time.monotonic()``) the whole run must be over.
        no_gpu: why there is no GPU to run the scripts on; None where there is.
    """

    logs: Path
    workers: int = 8
    pytest: tuple[str, ...] = ()
    end: float = float("inf")
    no_gpu: str | None = None


@dataclasses.dataclass(frozen=True)
class Part:
    """One part.

    Attributes:
        limit: seconds that it may take.
        alone: whether it measures time or memory, so that nothing may run beside it.
        script: the script that writes its result with ``--json``; None: the part is tests.
        arguments: for the script, or for pytest.
        keeps_logs: whether the script has logs of its own.
        spare: seconds before the limit at which the script itself is to begin nothing more.
        needs: says why it cannot be run here, which is no failure; None where it can.
    """

    name: str
    about: str
    limit: float
    alone: bool = False
    script: str | None = None
    arguments: tuple[str, ...] = ()
    keeps_logs: bool = False
    spare: float | None = None
    needs: Callable[[], str | None] | None = None

    def command(self, setting: Setting, result: Path, limit: float) -> list[str]:
        """What is run, for so many seconds at most; its result goes to ``result``."""
        if self.script is not None:
            more = ["--logs", str(setting.logs / self.name)] if self.keeps_logs else []
            if self.spare is not None:
                more += ["--budget", str(round(max(limit - self.spare, 1)))]
            return [sys.executable, self.script, *self.arguments, "--json", str(result), *more]
        command = [sys.executable, "-m", "pytest", f"--junit-xml={result}", *ONLY_TESTS]
        if setting.pytest:
            return [*command, *setting.pytest]
        command += ["-v", "--tb=short", "--durations=15", "-p", "no:cacheprovider"]
        if importlib.util.find_spec("xdist") and setting.workers:
            # With one process too: a crash then is a failed test and not the end of the run.
            command += ["-n", "1" if self.alone else str(setting.workers), "--dist", "worksteal"]
        if importlib.util.find_spec("pytest_timeout"):
            command += [f"--timeout={PATIENCE}", "--timeout-method=thread"]
        return [*command, *self.arguments]


PARTS = (
    Part(
        "tests",
        "all tests but those of memory, of texts, and of an emulated GPU",
        360,
        arguments=(
            "tests",
            *(f"--ignore={path}" for path in (MEMORY_TESTS, *OF_TEXTS, *EMULATED)),
        ),
    ),
    Part("golden", "recorded results, bit for bit", 120, script="scripts/gpu_golden.py"),
    Part(
        "matrix",
        "every public name, on every engine",
        120,
        script="scripts/gpu_matrix.py",
        keeps_logs=True,
    ),
    Part(
        "sanitizer",
        "compute-sanitizer",
        270,
        script="scripts/gpu_sanitizer.py",
        keeps_logs=True,
    ),
    Part(
        "chainer",
        "Chainer's own tests",
        300,
        script="scripts/chainer_tests.py",
        needs=no_sources,
    ),
    Part(
        "dialect",
        "old calls against the old stack",
        90,
        alone=True,
        script="benchmarks/cupy_dialect.py",
    ),
    Part("memory", "the tests of memory", 120, alone=True, arguments=(MEMORY_TESTS,)),
    Part(
        "bench",
        "against PyTorch and the library's own calls",
        480,
        alone=True,
        script="scripts/gpu_bench.py",
        spare=40,
    ),
    Part(
        "chainer_train",
        "a model in Chainer, with and without cuDNN",
        260,
        alone=True,
        script="scripts/chainer_train.py",
        needs=no_chainer,
    ),
    Part("soak", "ten thousand training steps", 160, alone=True, script="scripts/gpu_soak.py"),
)


def run_part(part: Part, setting: Setting) -> dict[str, Any]:
    """Run a part; what became of it, which never is an exception."""
    found = _run(part, setting)
    if any(_NOT_THE_SAME in line for line in found.get("printed_last", ())):
        # pytest-xdist wants the same names in every process. Without it all tests run, one by one.
        again = _run(part, dataclasses.replace(setting, workers=0))
        again["note"] = f"run one by one: {_NOT_THE_SAME}. {again.get('note', '')}".rstrip()
        return again
    return found


_NOT_THE_SAME = "Different tests were collected"


def _run(part: Part, setting: Setting) -> dict[str, Any]:
    started = datetime.datetime.now(datetime.UTC)
    limit = min(part.limit, setting.end - time.monotonic())
    found: dict[str, Any] = {"about": part.about, "started": started.isoformat("T", "seconds")}
    lacking = part.needs() if part.needs else None
    if lacking:
        return {**found, "exit_status": 0, "seconds": 0, "note": lacking}
    if limit < 10:
        return {**found, "exit_status": None, "seconds": 0, "note": "no time was left for it"}
    if part.script is not None and setting.no_gpu:
        return {**found, "exit_status": 0, "seconds": 0, "note": f"needs a GPU: {setting.no_gpu}"}
    suffix = ".xml" if part.script is None else ".json"
    result, log = setting.logs / f"{part.name}{suffix}", setting.logs / f"{part.name}.log"
    result.unlink(missing_ok=True)
    command = part.command(setting, result, limit)
    start = time.monotonic()
    status = run_limited(command, output=log, limit=limit, env=_environment(), cwd=ROOT)
    found["command"] = " ".join(_shown(command))
    found["exit_status"], found["seconds"] = status, round(time.monotonic() - start)
    if status is None:
        short = ", as the time of the whole run was over" if limit < part.limit else ""
        found["note"] = f"ended after {limit:.0f} s{short}, before it was done"
    text = log.read_text(encoding="utf-8", errors="replace")
    ignored = text.count("Exception ignored in")
    if part.script is None and ignored:
        found["note"] = f"{ignored} exceptions were ignored: something is noisy when it is dropped"
        found["exit_status"] = status = status or 1
    lines = [line for line in text.splitlines() if line.strip() and line[:7] != "SKIPPED"]
    found["last_line"] = lines[-1] if lines else ""
    if status != 0:
        found["printed_last"] = lines[-31:-1]
    try:
        found["result"] = _result(part, result, text)
        found.update(_failure(part, status, found["result"]))
    except Exception as error:  # half a file
        found["note"] = f"its result cannot be read: {type(error).__name__}: {error}"
    return found


def _result(part: Part, result: Path, text: str) -> Any:
    if part.script is None:
        return read_report(result) if result.exists() else read_output(text)
    return json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}


def _failure(part: Part, status: int | None, result: Any) -> dict[str, Any]:
    """What to say of a script that failed: whether it missed its aim, or crashed."""
    if part.script is None or not status:
        return {}
    aims = MISSED.get(part.name)
    missed = aims(result) if aims and result and status == 1 else []
    if missed:
        return {"missed": missed, "note": f"its aim was missed: {'; '.join(missed)}"}
    if aims or not result:
        return {"note": f"it crashed, with exit status {status}"}
    return {}


def _shown(command: list[str]) -> list[str]:
    """The command as one would type it: without this machine's folders and our own options."""
    if command[1] == "-m":
        kept = [word for word in command[3:] if not word.startswith("--junit-xml")]
        return ["python -m pytest", *(word for word in kept if word not in ONLY_TESTS)]
    return ["python", *command[1 : command.index("--json")]]


def _environment() -> dict[str, str]:
    environment = os.environ.copy()
    # The package need not be installed.
    path = [str(ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    environment["PYTHONUNBUFFERED"] = "1"
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        environment.setdefault(name, "2")  # several processes share the cores
    return environment
