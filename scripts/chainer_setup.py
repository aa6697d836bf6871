"""Chainer 7.8.1, importable: installed, or from the sources that ``CHAINER_SRC`` names.

To get the sources (the archive on PyPI has no tests)::

    git clone --depth 1 --branch v7.8.1 https://github.com/chainer/chainer ../chainer-src
    export CHAINER_SRC=../chainer-src

For a machine without a network, ``scripts/chainer_bundle.py`` makes one small file of them, and
``CHAINER_SRC`` may name that file. Nothing is written to the sources. Chainer is pure Python here
(ChainerX is not built); it needs NumPy, six, filelock, protobuf and typing_extensions.
"""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = [
    "BUILD_INFO",
    "LIBRARY_CALLS",
    "ROOT",
    "VERSION",
    "count_library_calls",
    "prepare",
    "sources",
]

ROOT = Path(__file__).resolve().parent.parent
VERSION = "7.8.1"

BUILD_INFO = {"chainerx/_build_info.py": "build_chainerx = False\n"}
"""What setup.py writes where ChainerX is not built; without it nothing imports."""

LIBRARY_CALLS = (
    "cudnnRNNForward",
    "cudnnRNNBackwardData_v8",
    "cudnnRNNBackwardWeights_v8",
    "cudnnGetRNNWeightParams",
    "cudnnDropoutForward",
    "cudnnDropoutBackward",
    "cudnnSoftmaxForward",
    "cudnnSoftmaxBackward",
    "cudnnActivationForward",
    "cudnnActivationBackward",
)
"""What of the C library a Chainer program can reach through the dialect."""


def sources() -> Path | None:
    """The folder of the sources that CHAINER_SRC names, unpacked where it is a file.

    Raises:
        SystemExit: they are not Chainer 7.8.1; says what to do.
    """
    named = os.environ.get("CHAINER_SRC")
    if not named:
        return None
    folder = Path(named).resolve()
    if folder.is_file():
        unpacked = _scratch()
        with tarfile.open(folder) as archive:
            # Python 3.11.4 and later have it, and refuse what would leave the folder.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(unpacked)
        folder = unpacked
    version = folder / "chainer" / "_version.py"
    if not version.is_file() or f"'{VERSION}'" not in version.read_text(encoding="utf-8"):
        sys.exit(f"CHAINER_SRC={named} does not hold the sources of Chainer {VERSION}.\n{__doc__}")
    return folder


def prepare(folder: Path | None) -> dict[str, Any]:
    """Make Chainer importable and let it find the dialect; what was done, for the record.

    Raises:
        SystemExit: there is no Chainer, neither installed nor in ``folder``.
    """
    sys.path.insert(0, str(ROOT))  # the package need not be installed
    from cudnn_compat.legacy.cupy.chainer import prepare_chainer
    from cudnn_compat.legacy.cupy.hook import install

    done = list(prepare_chainer())
    if importlib.util.find_spec("chainer") is None:
        if folder is None:
            sys.exit(f"there is no Chainer here, and CHAINER_SRC names none.\n{__doc__}")
        sys.path.insert(0, str(_importable(folder)))
        done.append("chainer is imported from CHAINER_SRC")
    install(at_first_use=True)
    return {"chainer": _version(), "prepared": done}


def _version() -> str:
    try:
        return importlib.metadata.version("chainer")
    except importlib.metadata.PackageNotFoundError:
        return VERSION


def _importable(folder: Path) -> Path:
    """A folder from which Chainer can be imported: its packages, and what its setup.py writes."""
    site = _scratch()
    for name in ("chainer", "chainerx"):
        shutil.copytree(folder / name, site / name)
    for name, text in BUILD_INFO.items():
        (site / name).write_text(text, encoding="utf-8")
    return site


def _scratch() -> Path:
    """A folder that goes when the process ends."""
    folder = tempfile.mkdtemp(prefix="chainer-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def count_library_calls() -> Counter[str]:
    """Count the calls of the C library from now on; the result grows while they are made.

    Where no cuDNN can be loaded it stays empty.
    """
    from cudnn_compat.cudnn.library import load
    from cudnn_compat.errors import CompatError

    counts: Counter[str] = Counter()
    try:
        library = load()
    except CompatError:
        return counts

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            counts[name] += 1
            return function(*arguments)

        return call

    for name in filter(library.has, LIBRARY_CALLS):
        setattr(library, name, counting(name, getattr(library, name)))
    return counts
