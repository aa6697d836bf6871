"""The cuDNN that is loaded: one for the process, at first use.

Every function of :mod:`~cudnn_compat.cudnn.prototypes` is an attribute of :class:`Library`: the
ctypes function itself, with its types, and with a check of the status that it returns.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from packaging.version import Version

from cudnn_compat.cudnn.find import VARIABLE, Candidate, find_cudnn, mapped_file, mapped_files
from cudnn_compat.cudnn.prototypes import PROTOTYPES
from cudnn_compat.cudnn.status import library_error
from cudnn_compat.cudnn.symbols import read_manifest
from cudnn_compat.errors import (
    LibraryError,
    LibraryMismatch,
    LibraryNotFound,
    LibraryVersionError,
    UnsupportedError,
)

__all__ = ["OLDEST", "Library", "check_version", "forget", "load", "version_of"]

OLDEST = Version("8.9")
"""The oldest cuDNN that is served; from there on every version of a major that is known here."""

PARTS = {8: ("ops_infer", "ops_train", "adv_infer", "adv_train"), 9: ("graph", "ops", "adv")}
"""Sub-libraries that the calls live in. Some versions end the process where one is missing."""

INSTEAD = {
    "cudnnAdvInferVersionCheck": "cudnnAdvVersionCheck",
    "cudnnAdvTrainVersionCheck": "cudnnAdvVersionCheck",
    "cudnnAdvVersionCheck": "cudnnAdvInferVersionCheck and cudnnAdvTrainVersionCheck",
    "cudnnRNNGetClip_v9": "cudnnRNNGetClip_v8",
    "cudnnRNNSetClip_v9": "cudnnRNNSetClip_v8",
}
"""What the other major has for a function that only one has."""

_INSTALL = (
    "install it with CuPy (pip install 'cudnn-compat[cuda13]' or 'cudnn-compat[cuda12]') or name "
    f"one by the environment variable {VARIABLE}"
)

Sought = list[dict[str, str]]


class Library:
    """One loaded cuDNN. Made by :func:`load`.

    Attributes:
        path: the file that was loaded, as the system knows it.
        found_by: what named it (an environment variable, a wheel, the system's loader, …).
        sought: the places tried, this one last: dicts with ``place``, ``found_by``, ``result``.
        version: version of the library.
        major: 8 or 9.
        cuda_version: version of the CUDA runtime that the library was built with.
    """

    def __init__(self, place: str, found_by: str) -> None:
        """Load a file, or a name that the system's loader knows.

        Raises:
            OSError: it cannot be loaded.
            LibraryVersionError: it is of a version that this release does not serve.
            LibraryMismatch: its sub-libraries do not belong to it.
        """
        self._dll = ctypes.CDLL(place)
        try:
            get_version = self._dll["cudnnGetVersion"]
        except AttributeError:
            raise OSError(f"{place}: has no cudnnGetVersion, so it is no cuDNN") from None
        address = ctypes.cast(get_version, ctypes.c_void_p).value or 0
        self.path = mapped_file(address) or place
        self.found_by = found_by
        self.sought: Sought = []
        _check_parts_are_there(self.path)
        get_version.restype = ctypes.c_size_t
        self.version = version_of(get_version())
        check_version(self.version, self.path)
        self.major = self.version.major
        for name, prototype in PROTOTYPES[self.major].items():
            try:
                function = self._dll[name]
            except AttributeError:
                continue  # __getattr__ says so when it is asked for
            function.argtypes = prototype.argtypes
            function.restype = prototype.restype
            if prototype.returns_status:
                function.errcheck = self._checker(name)
            setattr(self, name, function)
        built_with = self.cudnnGetCudartVersion()
        self.cuda_version = Version(f"{built_with // 1000}.{built_with % 1000 // 10}")
        self._check_parts_belong_together()

    def has(self, name: str) -> bool:
        """Whether this library has a function (by its C name) that this package knows."""
        return name in self.__dict__ and name in PROTOTYPES[self.major]

    def __getattr__(self, name: str) -> Any:
        manifest = read_manifest()
        known = manifest.history(name)
        majors = [major for major, functions in PROTOTYPES.items() if name in functions]
        if not majors:
            message = f"{type(self).__name__} has no attribute or prototype {name!r}"
            raise AttributeError(f"{message}: {known}" if name in manifest.names else message)
        if manifest.has(name, self.version):
            known += ", so this file is not the one that was released"
        message = f"cuDNN {self.version} ({self.path}) has no {name}: {known}"
        if self.major not in majors and (instead := INSTEAD.get(name)):
            message += f"; this version has {instead}"
        raise UnsupportedError(message)

    def __repr__(self) -> str:
        return f"<cuDNN {self.version} for CUDA {self.cuda_version}, {self.path}>"

    def _checker(self, name: str) -> Callable[[Any, Any, Any], Any]:
        def check(status: int, function: object, arguments: object) -> int:
            if status:
                raise self._error(name, status)
            return status

        return check

    def _error(self, name: str, status: int) -> LibraryError:
        """Asked right after the call and in its thread: the library keeps its words by thread."""
        reason = ""
        if self.has("cudnnGetLastErrorString"):
            buffer = ctypes.create_string_buffer(2048)
            self.cudnnGetLastErrorString(buffer, len(buffer))
            reason = buffer.value.decode(errors="replace").strip()
        text = (self.cudnnGetErrorString(status) or b"").decode(errors="replace")
        return library_error(name, self.major, status, text=text, reason=reason)

    def _check_parts_belong_together(self) -> None:
        """The sub-libraries are of one version, and from the folder of the library itself.

        The library opens them by their names, and gets those that the process has already, from
        wherever they came.
        """
        unfit = ""
        checks = ["cudnnAdvInferVersionCheck", "cudnnAdvTrainVersionCheck", "cudnnAdvVersionCheck"]
        for name in filter(self.has, checks):
            try:
                getattr(self, name)()
            except LibraryMismatch as error:
                unfit = f" ({error})"
        folder = Path(self.path).parent
        loaded = [Path(path) for path in mapped_files()]
        strays = []
        for part in PARTS[self.major]:
            paths = [path for path in loaded if _is_part(path.name, part, self.major)]
            if folder not in (path.parent for path in paths):
                strays += paths
        if unfit or strays:
            parts = ", ".join(map(str, strays or loaded))
            raise LibraryMismatch(
                f"{self.path} calls into parts that do not belong to it: {parts}; together they "
                f"call themselves version {self.version}{unfit}. Another copy of cuDNN "
                f"{self.major} was loaded before: let {VARIABLE} name that copy, or uninstall one",
                0,
                call="load",
            )


def load(path: str | os.PathLike[str] | None = None) -> Library:
    """The library of this process, found and loaded at the first call.

    A failure is not remembered: what is installed later is found by the next call.

    Args:
        path: load exactly this file, and do not remember it; for tests.

    Raises:
        LibraryNotFound: there is none that loads; lists every place and what happened there.
        LibraryVersionError: there is one, but of no version that this release serves.
        LibraryMismatch: the sub-libraries do not belong together; has the paths.
    """
    if path is not None:
        return _load_from([Candidate(os.fspath(path), "its caller", only=True)])
    global _library
    library = _library
    if library is None:
        with _lock:
            if _library is None:
                _library = _load_from(find_cudnn())
            library = _library
    return library


_lock = threading.Lock()
_library: Library | None = None


def forget() -> None:
    """Let the next :func:`load` search anew; for tests. The C library stays in the process."""
    global _library
    with _lock:
        _library = None


def _load_from(candidates: Iterable[Candidate]) -> Library:
    sought: Sought = []
    refused = only = False
    for candidate in candidates:
        result, only = candidate.problem, candidate.only
        if result is None:
            try:
                library = Library(candidate.place, candidate.found_by)
            except LibraryVersionError as error:
                result, refused = str(error), True
            except OSError as error:
                result = f"cannot be loaded: {error}"
            else:
                sought.append(_tried(candidate, f"loaded, version {library.version}"))
                library.sought = sought
                return library
        sought.append(_tried(candidate, result))
    raise _not_found(sought, refused, only)


def _tried(candidate: Candidate, result: str) -> dict[str, str]:
    return {"place": candidate.place, "found_by": candidate.found_by, "result": result}


def _not_found(sought: Sought, refused: bool, only: bool) -> LibraryNotFound:
    kind = LibraryVersionError if refused else LibraryNotFound
    if only:
        (it,) = sought
        advice = f"; correct {VARIABLE} or unset it" if it["found_by"] == VARIABLE else ""
        return kind(f"{it['place']} (named by {it['found_by']}): {it['result']}{advice}", sought)
    what = "no cuDNN of a version that this release serves" if refused else "no cuDNN that loads"
    lines = [f"  {each['found_by']}: {each['place']}: {each['result']}" for each in sought]
    return kind("\n".join([f"{what}: {_INSTALL}. Sought, in this order:", *lines]), sought)


def _check_parts_are_there(path: str) -> None:
    """Before the first call, because where a part is missing that call may end the process.

    Raises:
        OSError: a sub-library is neither beside the library nor known to the loader.
    """
    named = re.match(r"libcudnn\.so\.(\d+)", Path(path).name)
    if named is None or int(named[1]) not in PARTS:
        return
    for part in PARTS[int(named[1])]:
        name = f"libcudnn_{part}.so.{named[1]}"
        if not (Path(path).parent / name).exists():
            try:
                ctypes.CDLL(name)
            except OSError as error:
                raise OSError(f"{path} lacks its part {name}: {error}") from None


def _is_part(file: str, part: str, major: int) -> bool:
    return file.startswith(f"libcudnn_{part}.so.{major}")


def version_of(number: int) -> Version:
    """Version from ``cudnnGetVersion``: 8907 is 8.9.7, 91900 is 9.19.0.

    From 9 on the major number counts ten thousands instead of thousands.
    """
    unit = 10_000 if number >= 90_000 else 1_000
    return Version(f"{number // unit}.{number % unit // 100}.{number % 100}")


def check_version(version: Version, path: str = "cuDNN") -> None:
    """Refuse what this release does not serve.

    Raises:
        LibraryVersionError: older than 8.9, or a major that did not exist when it was made.
    """
    if version < OLDEST:
        why = f"older than {OLDEST}, the oldest that this release of cudnn_compat serves"
    elif version.major not in PROTOTYPES:
        why = (
            "not known to this release of cudnn_compat, which serves 8.9 and 9.x: "
            "look for a newer release"
        )
    else:
        return
    raise LibraryVersionError(f"{path} is version {version}: {why}")
