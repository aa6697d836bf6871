"""Where a cuDNN may lie, in the order in which the places are tried.

1. ``CUDNN_COMPAT_CUDNN``, a file or a folder: if it is set, nothing else is tried.
2. A cuDNN that this process has loaded already (PyTorch brings one): two copies of one major share
   the names of their sub-libraries and would load each other's.
3. Then, for cuDNN 9 in every place before cuDNN 8 in any: ``cuda-pathfinder`` (which knows 9 only,
   and fails where cuBLASLt is missing), NVIDIA's wheels, the folders that ``CUDNN_PATH``,
   ``CUDA_PATH``, ``CUDA_HOME`` and ``CONDA_PREFIX`` name, and the system's loader.

Nothing is loaded here, except by ``cuda-pathfinder``, which loads what it finds.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["VARIABLE", "Candidate", "find_cudnn", "mapped_file", "mapped_files"]

VARIABLE = "CUDNN_COMPAT_CUDNN"
"""The environment variable by which the user names a library."""

WHEELS = ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12")
FOLDERS = ("CUDNN_PATH", "CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX")

if sys.platform == "win32":
    NAMES = {9: "cudnn64_9.dll", 8: "cudnn64_8.dll"}
    SUBFOLDERS = ("bin", "bin/x64", "Library/bin")
else:
    NAMES = {9: "libcudnn.so.9", 8: "libcudnn.so.8"}
    SUBFOLDERS = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")


@dataclass(frozen=True)
class Candidate:
    """A place in which cuDNN was sought.

    Attributes:
        place: the file to load, or what was looked into.
        found_by: what named the place.
        problem: why there is nothing to load; None if there is.
        only: the user named this one, so no other may take its place.
    """

    place: str
    found_by: str
    problem: str | None = None
    only: bool = False


def find_cudnn() -> Iterator[Candidate]:
    """Every place, lazily: one is looked into only after those before it did not serve."""
    if named := os.environ.get(VARIABLE):
        yield _named(Path(named))
        return
    loaded = [path for path in mapped_files() if re.match(r"libcudnn\.so\.\d", Path(path).name)]
    for path in sorted(loaded, key=_is_eight):
        yield Candidate(path, "already loaded in this process")
    yield _pathfinder()
    for name in NAMES.values():
        yield from _wheels(name)
        for variable in FOLDERS:
            if root := os.environ.get(variable):
                yield _in_folder(Path(root), variable, [name])
        yield Candidate(name, "the system's loader")


def _is_eight(path: str) -> bool:
    return ".so.8" in Path(path).name


def _named(path: Path) -> Candidate:
    if path.is_dir():
        found = _in_folder(path, VARIABLE, list(NAMES.values()))
        return Candidate(found.place, VARIABLE, found.problem, only=True)
    problem = None if path.exists() else "no such file or folder"
    return Candidate(str(path), VARIABLE, problem, only=True)


def _in_folder(root: Path, found_by: str, names: list[str]) -> Candidate:
    for name in names:
        for folder in (root, *(root / each for each in SUBFOLDERS)):
            if (folder / name).exists():
                return Candidate(str(folder / name), found_by)
    wanted = " and no ".join(names)
    return Candidate(str(root), found_by, f"no {wanted} there or in {', '.join(SUBFOLDERS)}")


def _wheels(name: str) -> Iterator[Candidate]:
    for wheel in WHEELS:
        try:
            files = importlib.metadata.files(wheel) or []
        except importlib.metadata.PackageNotFoundError:
            yield Candidate(wheel, "wheel", "not installed")
            continue
        paths = [str(file.locate()) for file in files if file.name == name]
        here = [path for path in paths if Path(path).exists()]
        if here:
            yield Candidate(here[0], f"wheel {wheel}")
        else:
            version = importlib.metadata.version(wheel)
            yield Candidate(wheel, "wheel", f"{version} is installed, without {name}")


def _pathfinder() -> Candidate:
    found_by = "cuda-pathfinder"
    try:
        # By name: it is not a dependency, and its package `cuda` is shared with others.
        pathfinder: Any = importlib.import_module("cuda.pathfinder")
    except ImportError:
        return Candidate("cuda.pathfinder", found_by, "not installed")
    try:
        return Candidate(str(pathfinder.load_nvidia_dynamic_lib("cudnn").abs_path), found_by)
    except Exception as error:  # whatever it meets is its reason
        first = (str(error).splitlines() or [""])[0]
        return Candidate("cuda.pathfinder", found_by, f"{type(error).__name__}: {first}")


def mapped_files() -> list[str]:
    """Paths of the files of cuDNN that this process has loaded (Linux; elsewhere empty)."""
    paths = (path for _, _, path in _mappings() if "cudnn" in Path(path).name)
    return list(dict.fromkeys(paths))


def mapped_file(address: int) -> str | None:
    """The file that was loaded to this address (Linux; elsewhere None)."""
    return next((path for start, end, path in _mappings() if start <= address < end), None)


def _mappings() -> Iterator[tuple[int, int, str]]:
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    for line in lines.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/"):
            start, end = fields[0].split("-")
            yield int(start, 16), int(end, 16), fields[5]
