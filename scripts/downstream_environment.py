"""Environments for the programs of `nox -s downstream`, as `make chainer` makes one for Chainer."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import matrix_environments
from downstream_program import Packages
from matrix_environments import PIP, NotHere, call
from places import ROOT

__all__ = ["CACHE", "ROOT", "NotHere", "make_environment", "this_python"]

CACHE = matrix_environments.CACHE.parent / "downstream"

BUILD = ("setuptools==81.0.0", "wheel")
"""Source archives of their time: they need pkg_resources, which later setuptools do not have."""

Versions = dict[str, str]


def make_environment(packages: Packages, cache: Path, *, gpu: bool) -> tuple[str, Versions]:
    """The Python of an environment, made where it is not there yet, and what is installed there.

    On a GPU, CuPy and cuDNN are those of the Python that runs this, behind what the environment
    has itself.

    Raises:
        NotHere: pip cannot install what is asked for.
    """
    folder = cache / f"{packages.name}-python-{sys.version_info.major}.{sys.version_info.minor}"
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    wanted = "\n".join([*BUILD, *packages.with_dependencies, *packages.alone, packages.numpy or ""])
    constraints = folder / "constraints.txt"
    pinned = constraints_for(packages)
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted + pinned:
        print(f"installing the environment {packages.name} ...", flush=True)
        call(sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder))
        constraints.write_text(pinned, encoding="utf-8")
        install = (sys.executable, *PIP, "--python", str(python), "install", "--no-compile")
        call(*install, *BUILD)
        if packages.alone:
            call(*install, "--no-deps", "--no-build-isolation", *packages.alone)
        options = ("--no-build-isolation", "--constraint", str(constraints))
        numpy = [packages.numpy] if packages.numpy else []
        call(*install, *options, *packages.with_dependencies, *numpy)
        stamp.write_text(wanted + pinned, encoding="utf-8")
    if gpu:
        _add_cupy(folder)
    return str(python), _versions(str(python), packages)


def constraints_for(packages: Packages) -> str:
    """constraints.txt, without what the environment has in another version."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    others = ("setuptools==", "numpy==") if packages.numpy else ("setuptools==",)
    return "".join(line for line in lines if not line.startswith(others))


def this_python(packages: Packages) -> tuple[str, Versions]:
    """This very Python.

    Raises:
        NotHere: it lacks something that the programs import.
    """
    lacking = [name for name in packages.modules if importlib.util.find_spec(name) is None]
    if lacking:
        raise NotHere(f"this Python has no {', '.join(lacking)}, and --here installs nothing")
    return sys.executable, _versions(sys.executable, packages)


def _add_cupy(folder: Path) -> None:
    spec = importlib.util.find_spec("cupy")
    if spec is None or spec.origin is None:
        raise NotHere("this Python has no CuPy, whose arrays are on a GPU")
    (site,) = folder.glob("lib/python*/site-packages")
    place = Path(spec.origin).parents[1]
    (site / "zz-cupy.pth").write_text(f"{place}\n", encoding="utf-8")


def _versions(python: str, packages: Packages) -> Versions:
    """Of Chainer, NumPy, and what is installed for the program alone."""
    names = ["numpy", "chainer", *(each.partition("==")[0] for each in packages.alone)]
    program = (
        "import importlib.metadata as m, sys\n"
        "have = {d.metadata['Name'].lower(): d.version for d in m.distributions()}\n"
        "print(*[f'{name} {have[name]}' for name in sys.argv[1:] if name in have], sep='\\n')"
    )
    said = subprocess.run(
        [python, "-c", program, *names], capture_output=True, text=True, check=True
    ).stdout
    versions = {"python": sys.version.split()[0]}
    for line in said.splitlines():
        name, version = line.split(" ")
        versions[name] = version
    return versions
