"""What was learnt about speed, kept in a file: the best way to compute a shape on a GPU.

The file is JSON, ``{"schema": 1, "best": {"<GPU>, cuDNN <version>": {"<shape>": {"algo": …,
"graph": …, "us": {…}}}}}``, and may be carried to other machines: entries are looked up by GPU and
library. ``CUDNN_COMPAT_TUNING`` names another file, or says ``off``: then nothing is measured,
read or written, and rules decide.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

__all__ = [
    "VARIABLE",
    "Tuning",
    "clear_tuning",
    "merge_tuning",
    "read_tuning",
    "tuning_file",
    "tuning_is_on",
    "way_name",
]

VARIABLE: Final = "CUDNN_COMPAT_TUNING"
"""The environment variable that names the file, or switches measuring off."""

SCHEMA: Final = 1
_MOST: Final = 1024
"""Shapes of one GPU and library; those learnt last are kept."""
_OFF: Final = ("off", "0", "no", "false")

Entry = dict[str, Any]
Best = dict[str, dict[str, Entry]]


def tuning_is_on() -> bool:
    """Whether ways are measured and what was learnt is kept."""
    return os.environ.get(VARIABLE, "").lower() not in _OFF


def tuning_file() -> Path | None:
    """Where it is kept; None where ``CUDNN_COMPAT_TUNING`` says ``off``."""
    if not tuning_is_on():
        return None
    if named := os.environ.get(VARIABLE):
        return Path(named)
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return Path(cache) / "cudnn_compat" / "tuning.json"


def read_tuning(path: Path | None = None) -> Best:
    """What a file says, ``{"<GPU>, cuDNN <version>": {"<shape>": entry}}``.

    Nothing where there is none, or where it is damaged or of another schema: it holds nothing that
    could not be measured again.
    """
    path = path or tuning_file()
    if path is None:
        return {}
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(told, dict) or told.get("schema") != SCHEMA:
        return {}
    best = told.get("best")
    if not isinstance(best, dict):
        return {}
    return {
        where: {shape: entry for shape, entry in shapes.items() if _is_entry(entry)}
        for where, shapes in best.items()
        if isinstance(shapes, dict)
    }


def way_name(algo: str, graph: bool) -> str:
    """An algorithm, called plainly or replayed as a graph: ``"standard"``, ``"standard+graph"``."""
    return f"{algo}+graph" if graph else algo


def clear_tuning() -> None:
    """Delete the file. Plans that were made keep what they learnt: see ``clear_plans``."""
    path = tuning_file()
    if path is not None:
        path.unlink(missing_ok=True)


def merge_tuning(other: Path) -> int:
    """Add what another file knows to this machine's; the number of its entries.

    Raises:
        OSError: the file cannot be written.
    """
    path, told = tuning_file(), read_tuning(other)
    if path is not None and told:
        _write(path, told)
    return sum(map(len, told.values()))


class Tuning:
    """The file, read once and added to. Safe to use from many threads and processes.

    Where it cannot be written, what is learnt serves this process alone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._best: Best | None = None

    def find(self, where: str, shape: str) -> Entry | None:
        """What is known of a shape."""
        with self._lock:
            if self._best is None:
                self._best = read_tuning()
            return self._best.get(where, {}).get(shape)

    def learn(self, where: str, shape: str, entry: Entry) -> None:
        """Keep one entry: ``algo``, ``graph`` and ``us``, the times of all ways by name."""
        with self._lock:
            if self._best is None:
                self._best = {}
            self._best.setdefault(where, {})[shape] = entry
            path = tuning_file()
            if path is not None:
                with contextlib.suppress(OSError):
                    _write(path, {where: {shape: entry}})

    def forget(self) -> None:
        """Read the file anew at the next question."""
        with self._lock:
            self._best = None


def _write(path: Path, learnt: Best) -> None:
    """Add entries to what other processes have written meanwhile.

    Raises:
        OSError: the file cannot be written, or is one that must not be replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path):
        best = {}
        if path.exists():
            if not os.access(path, os.R_OK) or _is_newer(path):
                raise OSError(f"{path} belongs to others")
            best = read_tuning(path)
        for where, news in learnt.items():
            known = best.get(where, {})
            # What was learnt last stands last, and stays.
            kept = {shape: entry for shape, entry in known.items() if shape not in news} | news
            best[where] = dict(list(kept.items())[-_MOST:])
        text = json.dumps({"schema": SCHEMA, "best": best}, ensure_ascii=False)
        scratch = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            scratch.write_text(text, encoding="utf-8")
            os.replace(scratch, path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Inside, no other process adds to the file (where the system has such locks)."""
    if fcntl is None:
        yield
        return
    with open(path.with_name(f"{path.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_newer(path: Path) -> bool:
    """Whether a later release, which knows more, has written the file."""
    try:
        schema = json.loads(path.read_text(encoding="utf-8")).get("schema")
    except (ValueError, AttributeError):  # damaged: it holds nothing that is worth keeping
        return False
    return isinstance(schema, int) and schema > SCHEMA


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("algo"), str)
        and isinstance(entry.get("graph"), bool)
        and isinstance(entry.get("us", {}), dict)
    )
