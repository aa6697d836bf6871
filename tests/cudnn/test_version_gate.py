"""Which versions are accepted, and installations that do not belong together."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from cudnn_compat.cudnn.find import VARIABLE
from cudnn_compat.cudnn.library import Library, check_version, version_of
from cudnn_compat.errors import LibraryNotFound, LibraryVersionError, UnsupportedError

Fake = Callable[..., Path]
Python = Callable[..., str]

LOAD = """
from cudnn_compat.cudnn.library import load
from cudnn_compat.errors import CompatError
try:
    library = load()
    print("loaded", library.version, library.major, library.cuda_version)
except CompatError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("number", "version"),
    [
        (7605, "7.6.5"),
        (8907, "8.9.7"),
        (8900, "8.9.0"),
        (90000, "9.0.0"),
        (91002, "9.10.2"),
        (91900, "9.19.0"),
        (100000, "10.0.0"),
    ],
)
def test_the_librarys_number_becomes_a_version(number: int, version: str) -> None:
    assert version_of(number) == Version(version)


@pytest.mark.parametrize("version", ["8.9.0", "8.9.7", "9.0.0", "9.19.0", "9.99.9"])
def test_8_9_and_every_9_are_accepted(version: str) -> None:
    check_version(Version(version))


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("7.6.5", "older than 8.9"),
        ("8.8.1", "older than 8.9"),
        ("10.0.0", "not known to this release"),
        ("11.2.0", "not known to this release"),
    ],
)
def test_other_versions_are_refused_in_words(version: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"/x is version {version}: {why}") as caught:
        check_version(Version(version), "/x")
    assert isinstance(caught.value, LibraryNotFound)


def test_a_refusal_can_be_pickled_with_its_places() -> None:
    sought = [{"place": "/x", "found_by": "CUDNN_PATH", "result": "older"}]
    copied = pickle.loads(pickle.dumps(LibraryVersionError("no", sought)))
    assert (type(copied), str(copied), copied.sought) == (LibraryVersionError, "no", sought)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (8700, "LibraryVersionError {path} (named by CUDNN_COMPAT_CUDNN): {path} is version 8.7.0"),
        (100000, "LibraryVersionError {path} (named by CUDNN_COMPAT_CUDNN): {path} is version 10."),
        (90000, "loaded 9.0.0 9 12.9"),
        (8900, "loaded 8.9.0 8 12.9"),
    ],
)
def test_the_version_decides_whether_a_library_is_used(
    fake: Fake, python: Python, number: int, said: str
) -> None:
    path = fake("one", number)
    assert python(LOAD, **{VARIABLE: str(path)}).startswith(said.format(path=path))


def test_the_search_goes_on_after_a_version_that_is_refused(fake: Fake, python: Python) -> None:
    old, new = fake("old", 8600), fake("new/lib", 91000)
    said = python(
        "import ctypes",
        f"ctypes.CDLL({str(old)!r})",
        "from cudnn_compat.cudnn import find, library",
        "find.WHEELS = ()",
        "find._pathfinder = lambda: find.Candidate('', 'cuda-pathfinder', 'not asked')",
        "print(library.load().path, *library.load().sought, sep='\\n')",
        CUDNN_PATH=str(new.parent.parent),
    )
    path, first, *_, last = said.splitlines()
    assert path == str(new)
    assert "is version 8.6.0: older than 8.9" in first
    assert "loaded, version 9.10.0" in last


def test_a_library_without_its_parts_is_refused_before_it_ends_the_process(
    each_library: Library, python: Python, tmp_path: Path
) -> None:
    # The real one, without what lies beside it, aborts the process in its first call.
    alone = tmp_path / f"libcudnn.so.{each_library.major}"
    shutil.copy(each_library.path, alone)
    said = python(LOAD, **{VARIABLE: str(alone)})
    # Where the system's loader knows such parts, they are those of another copy.
    assert f"{alone} lacks its part libcudnn_" in said or f"{alone} calls into parts" in said


def test_a_file_that_is_no_cudnn_is_told(python: Python) -> None:
    import _ctypes

    said = python(LOAD, **{VARIABLE: _ctypes.__file__})
    assert "has no cudnnGetVersion, so it is no cuDNN" in said


def test_parts_from_another_folder_are_an_error_with_both_paths(fake: Fake, python: Python) -> None:
    ours, other = fake("ours", 91900), fake("other", 91000)
    stray = other.with_name("libcudnn_adv.so.9")
    said = python("import ctypes", f"ctypes.CDLL({str(stray)!r})", LOAD, **{VARIABLE: str(ours)})
    assert said.startswith(f"LibraryMismatch {ours} calls into parts that do not belong to it: ")
    assert str(stray) in said


def test_parts_of_another_version_are_an_error_in_the_librarys_words(
    fake: Fake, python: Python
) -> None:
    path = fake("one", 91900, check=1002)
    said = python(LOAD, **{VARIABLE: str(path)})
    assert said.startswith(f"LibraryMismatch {path} calls into parts that do not belong to it")
    assert "cudnnAdvVersionCheck: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH (1002)" in said


def test_a_function_that_this_library_lacks_is_named_with_path_and_version(
    fake: Fake, python: Python
) -> None:
    path = fake("one", 90000)
    said = python(
        LOAD,
        "print(library.has('cudnnCreate'), library.has('cudnnRNNForward'))",
        "try: library.cudnnRNNForward",
        "except CompatError as error: print(error)",
        **{VARIABLE: str(path)},
    )
    assert f"True False\ncuDNN 9.0.0 ({path}) has no cudnnRNNForward: every released cuDNN" in said
    assert said.strip().endswith("has it, so this file is not the one that was released")
