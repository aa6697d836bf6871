"""Snapshots of the public API: of this tree, of unpacked wheels, of copies.

    python scripts/api_snapshot.py [ROOT ...]

imports the package from each ROOT in turn (the folder above ``cudnn_compat``; this tree if none is
named) and prints what it offers, one snapshot after another. What is public stands in
``api_public.py``, the form of the text in ``api_text.py``, what a difference means in
``api_rules.py``. A snapshot is the same on every machine and every Python.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

from api_text import Snapshot, parse, render

__all__ = ["snapshots", "take"]

ROOT: Final = Path(__file__).parents[1]
ABSENT: Final = ("cupy", "cupyx", "cupy_backends", "cuda.pathfinder", "torch")
"""What a machine may have and another not."""


def snapshots(roots: Iterable[Path], *, skip: Collection[str] = ()) -> list[Snapshot]:
    """A snapshot for each root, taken in one process of their own, without the entries ``skip``."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CUDNN_COMPAT"))}
    command = [sys.executable, __file__, "--json", *(f"--skip={each}" for each in skip)]
    command += map(str, roots)
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"no snapshot could be taken:\n{done.stderr}")
    return [parse(text) for text in json.loads(done.stdout)]


def take(root: Path, *, skip: Collection[str] = ()) -> Snapshot:
    """The snapshot of the package under ``root``, which is imported anew."""
    for name in [each for each in sys.modules if each.split(".")[0] == "cudnn_compat"]:
        del sys.modules[name]
    sys.path.insert(0, str(root))
    try:
        importlib.invalidate_caches()
        package = importlib.import_module("cudnn_compat")
        assert package.__file__ == str(root / "cudnn_compat" / "__init__.py"), package.__file__
        from api_command import command_line
        from api_python import python_names

        return python_names() | _warnings() | _environment(root) | command_line(skip)
    finally:
        sys.path.remove(str(root))


def _warnings() -> Snapshot:
    """The table of old names, as far as a program can depend on it."""
    deprecations: Any = importlib.import_module("cudnn_compat.legacy.deprecations")
    table: Any = importlib.import_module("cudnn_compat.legacy.table")
    return {
        f"warning {row.code}": {
            "old": row.old,
            "new": row.new,
            "since": row.since,
            "removal": row.removal,
            "category": deprecations.CATEGORIES[row.removal].__name__,
        }
        for row in table.TABLE
    }


def _environment(root: Path) -> Snapshot:
    """Environment variables of our own, by their prefix, wherever the code names one."""
    names: set[str] = set()
    for file in sorted((root / "cudnn_compat").rglob("*.py")):
        source = file.read_bytes()
        for node in ast.walk(ast.parse(source)) if b"CUDNN_COMPAT_" in source else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names |= set(re.findall(r"^CUDNN_COMPAT_[A-Z0-9_]+$", node.value))
    find: Any = importlib.import_module("cudnn_compat.cudnn.find")
    return {f"environment {name}": {} for name in {*names, *find.FOLDERS}}


def main(arguments: list[str]) -> None:
    """Print snapshots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("roots", nargs="*", type=Path, default=[ROOT], metavar="ROOT")
    parser.add_argument("--skip", action="append", default=[], help="an entry to leave out")
    parser.add_argument("--json", action="store_true", help="print one list of texts")
    options = parser.parse_args(arguments)
    importlib.import_module("numpy")
    for name in ABSENT:
        sys.modules[name] = None  # type: ignore[assignment]
    texts = [render(take(root.resolve(), skip=options.skip)) for root in options.roots]
    sys.stdout.write(json.dumps(texts) if options.json else "\n".join(texts))


if __name__ == "__main__":
    main(sys.argv[1:])
