"""Run the compatibility matrix in the environments of ``cudnn_compat/matrix/environments.py``.

    nox -s matrix                               # all of them, into docs/records/matrix/DATE
    nox -s matrix -- --out /tmp/m 'python-3.12-*'
    nox -s matrix -- --ci                       # the few that CI makes

Every environment becomes one JSON file. An interpreter is looked for on the path, in pyenv and by
uv; where there is none, the file says so. cuDNN, 700 MB a version, is unpacked once, one version at
a time, into a cache that is kept. The exit status is 1 when a row failed somewhere.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from places import ROOT, without_places

sys.path.insert(0, str(ROOT))

from cudnn_compat.matrix.environments import CI, requirements, select
from cudnn_compat.matrix.format import Combination, not_tested, to_text

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "cudnn-compat", "matrix")
CUDNN = "nvidia-cudnn-cu12"
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")

FORGOTTEN = {
    *("CUDNN_COMPAT_CUDNN", "CUDNN_COMPAT_DEPRECATIONS", "CUDNN_PATH", "CUDA_PATH", "CUDA_HOME"),
    *("CONDA_PREFIX", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS"),
}
"""Variables of the caller that would change what is found."""


class NotHere(Exception):
    """An environment cannot be made; says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make and run the environments that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("patterns", nargs="*", help="ids of environments, with * as in file names")
    parser.add_argument("--ci", action="store_true", help="only those that CI makes")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "records" / "matrix" / today)
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"default {CACHE}")
    given = parser.parse_args(arguments)
    try:
        chosen = select([*given.patterns, *(CI if given.ci else ())])
    except ValueError as error:
        parser.error(str(error))
    given.out.mkdir(parents=True, exist_ok=True)
    given.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        failed = run_all(chosen, given.out, given.cache, build_wheel(Path(folder)))
    print(f"{len(chosen)} environments in {given.out}, {failed} rows failed")
    return 1 if failed else 0


def run_all(chosen: Sequence[Combination], out: Path, cache: Path, wheel: Path) -> int:
    """A file for each environment; how many rows failed, in all."""
    failed = 0
    for combination in chosen:
        start = time.monotonic()
        try:
            document = run(combination, cache, wheel)
        except NotHere as error:
            document = not_tested(combination, str(error))
        (out / f"{combination.id}.json").write_text(to_text(document), encoding="utf-8")
        failed += document["summary"]["failed"]
        print(f"{combination.id}: {told(document)} ({time.monotonic() - start:.0f} s)", flush=True)
    return failed


def told(document: dict[str, Any]) -> str:
    """A document in a line."""
    if not document["combination"]["tested"]:
        return f"not tested here: {document['combination']['reason']}"
    counts = {key: n for key, n in document["summary"].items() if n and key != "rows"}
    return ", ".join(f"{n} {key}" for key, n in counts.items())


def build_wheel(folder: Path) -> Path:
    """The wheel of this tree, in an empty folder."""
    call(sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


def run(combination: Combination, cache: Path, wheel: Path) -> dict[str, Any]:
    """The document of one environment.

    Raises:
        NotHere: it cannot be made.
    """
    python = make_environment(combination, cache, wheel)
    variables = {name: value for name, value in os.environ.items() if name not in FORGOTTEN}
    if combination.cudnn is not None:
        libraries = str(unpack_cudnn(combination.cudnn, cache) / "nvidia" / "cudnn" / "lib")
        variables["CUDNN_COMPAT_CUDNN"] = libraries
        if combination.cudnn.startswith("8.") and combination.cupy is not None:
            variables["LD_LIBRARY_PATH"] = libraries  # where CuPy 13 looks for it
    file = cache / f"{combination.id}.json"
    file.unlink(missing_ok=True)
    command = [
        str(python),
        "-m",
        "cudnn_compat",
        "matrix",
        "--failed",
        "--brief",
        "--json",
        str(file),
    ]
    done = subprocess.run(
        command, env=variables, cwd=cache, capture_output=True, text=True, check=False
    )
    if not file.exists():
        raise NotHere(f"the matrix did not run: {last_line(done.stderr)}")
    text = without_places(file.read_text(encoding="utf-8"), {"cache": cache})
    document: dict[str, Any] = json.loads(text)
    document["combination"] |= dataclasses.asdict(combination)
    return document


def make_environment(combination: Combination, cache: Path, wheel: Path) -> Path:
    """The Python of an environment with this package; one for all versions of cuDNN.

    Raises:
        NotHere: there is no such interpreter, or pip cannot install what is asked for.
    """
    base = find_interpreter(str(combination.python))
    name = combination.id.partition("-cudnn-")[0]
    folder = cache / "environments" / name
    python = folder / "bin" / "python"
    if not python.exists():
        call(base, "-m", "venv", "--without-pip", str(folder))
    install = (sys.executable, *PIP, "--python", str(python), "install", "--no-compile")
    needed = [*requirements(combination), "ml_dtypes", f"{wheel}[cli]"]
    call(*install, "--upgrade", *needed)
    # The version does not change from build to build, so the wheel is put there in any case.
    call(*install, "--no-deps", "--force-reinstall", str(wheel))
    return python


@functools.cache
def find_interpreter(version: str) -> str:
    """A Python of a version: on the path, in pyenv, or known to uv.

    Raises:
        NotHere: there is none.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    places = [sys.executable, shutil.which(f"python{version}")]
    places += sorted(str(path) for path in pyenv.glob(f"{version}.*/bin/python"))
    if uv := shutil.which("uv"):
        found = subprocess.run(
            [uv, "python", "find", version], capture_output=True, text=True, check=False
        )
        places.append(found.stdout.strip())
    program = "import sys, venv, ctypes; print('{}.{}'.format(*sys.version_info))"
    for place in filter(None, places):
        asked = subprocess.run([place, "-c", program], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return place
    raise NotHere(f"no interpreter of Python {version} was found (path, pyenv, uv)")


@functools.cache
def unpack_cudnn(version: str, cache: Path) -> Path:
    """The folder of a cuDNN, as its wheel has it.

    Raises:
        NotHere: pip does not get it.
    """
    wanted = f"{CUDNN}==9.*" if version == "newest" else f"{CUDNN}=={version}.*"
    report = call(
        sys.executable, *PIP, "install", "--dry-run", "--ignore-installed", "--no-deps",
        "--report", "-", wanted,
    )  # fmt: skip
    exact = json.loads(report)["install"][0]["metadata"]["version"]
    folder = cache / f"cudnn-{exact}"
    if not folder.exists():
        print(f"unpacking cuDNN {exact} (700 MB) ...", flush=True)
        partial = folder.with_suffix(".part")
        shutil.rmtree(partial, ignore_errors=True)
        call(
            sys.executable, *PIP, "install", "--no-deps", "--no-compile", "--target", str(partial),
            f"{CUDNN}=={exact}",
        )  # fmt: skip
        partial.rename(folder)
    return folder


def call(*command: str) -> str:
    """What a command prints.

    Raises:
        NotHere: it fails; with the last line of its errors.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotHere(f"{' '.join(command[1:4])} …: {last_line(done.stderr)}")
    return done.stdout


def last_line(text: str) -> str:
    """Of errors, the one that says it."""
    return ([line for line in text.splitlines() if line.strip()] or ["no word"])[-1].strip()


if __name__ == "__main__":
    sys.exit(main())
