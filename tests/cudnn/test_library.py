"""The library as it is loaded: versions, functions, one for the process."""

from __future__ import annotations

import ctypes
import importlib.metadata
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from packaging.version import Version

from cudnn_compat.cudnn import find
from cudnn_compat.cudnn.library import OLDEST, Library, forget, load
from cudnn_compat.cudnn.prototypes import PROTOTYPES
from cudnn_compat.errors import LibraryNotFound, UnsupportedError


def test_the_version_is_what_the_library_says_of_itself(each_library: Library) -> None:
    said = ctypes.c_int()
    numbers = []
    for part in range(3):
        each_library.cudnnGetProperty(part, ctypes.byref(said))
        numbers.append(said.value)
    assert each_library.version.release == tuple(numbers)
    assert each_library.version >= OLDEST
    assert each_library.major == numbers[0]
    assert each_library.cuda_version >= Version("11.0")
    assert str(each_library.version) in repr(each_library)
    assert each_library.path in repr(each_library)


def test_the_version_is_that_of_the_wheel_it_came_from(library: Library) -> None:
    if not library.found_by.startswith("wheel "):
        pytest.skip(f"this cuDNN came by {library.found_by}, not directly from a wheel")
    wheel = importlib.metadata.version(library.found_by.removeprefix("wheel "))
    assert Version(wheel).release[:3] == library.version.release


def test_every_prototype_of_its_major_is_a_function(each_library: Library) -> None:
    lacking = [name for name in PROTOTYPES[each_library.major] if not each_library.has(name)]
    assert lacking == []


def test_a_function_is_ctypes_own_with_types(each_library: Library) -> None:
    function = each_library.cudnnRNNForward
    assert function is each_library.cudnnRNNForward
    assert len(function.argtypes) == 20
    assert function.argtypes[0] is ctypes.c_void_p
    with pytest.raises(TypeError, match="at least 20 arguments"):
        function(None)
    with pytest.raises(ctypes.ArgumentError):
        each_library.cudnnDropoutGetStatesSize(None, ctypes.byref(ctypes.c_int()))


@pytest.mark.parametrize("name", ["cudnnAdvVersionCheck", "cudnnAdvTrainVersionCheck"])
def test_a_function_of_the_other_major_is_refused_with_what_replaces_it(
    each_library: Library, name: str
) -> None:
    if each_library.has(name):
        getattr(each_library, name)()
        return
    with pytest.raises(UnsupportedError) as caught:
        getattr(each_library, name)
    words = str(caught.value)
    assert words.startswith(f"cuDNN {each_library.version} ({each_library.path}) has no {name}: ")
    assert ("it ended with cuDNN 8.9" if each_library.major > 8 else "from cuDNN 9.0 on") in words
    assert "; this version has cudnnAdv" in words


def test_a_name_without_a_prototype_is_no_attribute(library: Library) -> None:
    assert not hasattr(library, "cudnnRNNForwardTraining")
    assert not library.has("cudnnRNNForwardTraining")
    assert not library.has("version")


def test_all_threads_get_the_one_library(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudnn_compat.cudnn.library._library", None)
    monkeypatch.setenv(find.VARIABLE, library.path)
    start = threading.Barrier(8)

    def at_once(_: int) -> Library:
        start.wait()
        return load()

    with ThreadPoolExecutor(8) as pool:
        got = set(pool.map(at_once, range(8)))
    assert len(got) == 1
    assert load() in got


@pytest.mark.usefixtures("nowhere")
def test_a_failure_is_not_remembered(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LibraryNotFound):
        load()
    monkeypatch.setenv(find.VARIABLE, library.path)
    assert load().path == library.path
    assert load().found_by == find.VARIABLE
    assert load().sought[-1]["result"] == f"loaded, version {library.version}"
    monkeypatch.delenv(find.VARIABLE)
    forget()
    with pytest.raises(LibraryNotFound):
        load()


def test_an_address_tells_the_file_that_was_loaded_to_it(library: Library) -> None:
    address = ctypes.cast(library.cudnnCreate, ctypes.c_void_p).value
    assert address is not None
    assert find.mapped_file(address) == library.path
    assert find.mapped_file(0) is None
