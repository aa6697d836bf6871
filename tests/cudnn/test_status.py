"""Status codes as exceptions, in words that help."""

from __future__ import annotations

import ctypes
import pickle

import pytest

from cudnn_compat import errors
from cudnn_compat.cudnn.constants import STATUS_8, STATUS_9
from cudnn_compat.cudnn.library import Library
from cudnn_compat.cudnn.status import exception_class, library_error, status_name
from cudnn_compat.environment import collect
from cudnn_compat.errors import LibraryError

CODES = [(8, code) for code in STATUS_8.values()] + [(9, code) for code in STATUS_9.values()]
FAILURES = [(major, code) for major, code in CODES if code]

SAME_THING = {
    "LibraryNotInitialized": [(8, 1), (9, 1001)],
    "LibraryOutOfMemory": [(8, 2), (9, 4003), (9, 4004)],
    "LibraryBadParameter": [(8, 3), (8, 5), (9, 2000), (9, 2001), (9, 2002), (9, 2012)],
    "LibraryInternalError": [(8, 4), (8, 7), (9, 4000), (9, 4001), (9, 4006)],
    "LibraryExecutionFailed": [(8, 8), (8, 12), (8, 13), (9, 5000), (9, 5004), (9, 1006)],
    "LibraryNotSupported": [(8, 9), (8, 6), (9, 3000), (9, 3002), (9, 3007), (9, 1004)],
    "LibraryMismatch": [(8, 10), (8, 11), (8, 14), (9, 1002), (9, 1005), (9, 3008), (9, 3009)],
}
"""Written down from NVIDIA's descriptions of the codes, not from the table under test."""


@pytest.mark.parametrize("name", SAME_THING)
def test_codes_of_both_majors_that_mean_the_same_are_one_class(name: str) -> None:
    assert {exception_class(*code).__name__ for code in SAME_THING[name]} == {name}
    assert name in errors.__all__


@pytest.mark.parametrize(("major", "code"), FAILURES)
def test_every_code_of_the_headers_has_a_class_of_its_own_kind(major: int, code: int) -> None:
    kind = exception_class(major, code)
    assert issubclass(kind, LibraryError)
    assert kind is not LibraryError


@pytest.mark.parametrize(
    ("code", "base"),
    [(2099, ValueError), (3999, NotImplementedError), (4777, LibraryError), (7000, LibraryError)],
)
def test_a_code_that_no_header_had_is_mapped_by_its_category(
    code: int, base: type[Exception]
) -> None:
    error = library_error("cudnnCreate", 9, code, text="CUDNN_UNKNOWN_STATUS")
    assert isinstance(error, base)
    assert error.status == code
    assert error.name == f"CUDNN_STATUS_{code}"
    assert str(error).startswith(f"cudnnCreate: CUDNN_STATUS_{code} ({code})")


def test_a_new_code_has_the_name_that_the_library_gives_it() -> None:
    error = library_error("cudnnCreate", 9, 3099, text="CUDNN_STATUS_NOT_SUPPORTED_MOON")
    assert error.name == "CUDNN_STATUS_NOT_SUPPORTED_MOON"


def test_an_alias_does_not_hide_a_codes_own_name() -> None:
    assert status_name(9, 4003) == "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"
    assert status_name(9, 2001) == "CUDNN_STATUS_INVALID_VALUE"


def test_exceptions_are_also_what_python_calls_them() -> None:
    assert issubclass(errors.LibraryOutOfMemory, MemoryError)
    assert issubclass(errors.LibraryBadParameter, ValueError)
    assert issubclass(errors.LibraryNotSupported, errors.UnsupportedError)


@pytest.mark.parametrize(("major", "code"), [(9, 1001), (9, 4003), (9, 2000), (8, 9), (9, 3009)])
def test_an_error_can_be_pickled(major: int, code: int) -> None:
    error = library_error("cudnnCreate", major, code, text="text", reason="reason")
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is type(error)
    assert str(copied) == str(error)
    assert (copied.status, copied.name, copied.call) == (code, error.name, "cudnnCreate")


def test_the_library_has_the_names_of_the_headers(each_library: Library) -> None:
    codes = STATUS_8 if each_library.major == 8 else STATUS_9
    for code in set(codes.values()) - {2001}:  # the library has no text for this leftover
        said = each_library.cudnnGetErrorString(code).decode()
        if said != "CUDNN_UNKNOWN_STATUS" or each_library.major == 8:  # older 9.x know fewer
            assert said == status_name(each_library.major, code)


def bad_descriptor(library: Library) -> LibraryError:
    """The error of a projection size of 0."""
    descriptor = ctypes.c_void_p()
    library.cudnnCreateRNNDescriptor(ctypes.byref(descriptor))
    try:
        with pytest.raises(LibraryError) as caught:
            library.cudnnSetRNNDescriptor_v8(
                descriptor, 0, 2, 2, 0, 0, 0, 0, 3, 4, 5, 0, 1, None, 0
            )
        return caught.value
    finally:
        library.cudnnDestroyRNNDescriptor(descriptor)


def test_a_refused_call_says_which_why_and_the_librarys_own_words(each_library: Library) -> None:
    error = bad_descriptor(each_library)
    assert isinstance(error, errors.LibraryBadParameter)
    assert error.name == "CUDNN_STATUS_BAD_PARAM"
    assert error.call == "cudnnSetRNNDescriptor_v8"
    assert error.status == {8: 3, 9: 2000}[each_library.major]
    assert str(error).startswith(f"cudnnSetRNNDescriptor_v8: {error.name} ({error.status})")
    if each_library.major >= 9:
        assert "projSize" in str(error)


def test_the_words_of_one_error_are_not_those_of_the_next(library: Library) -> None:
    if library.major == 8:
        pytest.skip("cuDNN 8 has no words for its last error")
    assert "projSize" in str(bad_descriptor(library))
    with pytest.raises(errors.LibraryBadParameter) as caught:
        library.cudnnGetRNNWeightSpaceSize(None, None, None)
    assert "projSize" not in str(caught.value)


def test_without_a_gpu_a_handle_is_refused_in_words(each_library: Library) -> None:
    gpu = collect()["gpu"]
    if gpu["available"]:
        pytest.skip("this machine has a GPU, so cudnnCreate does not fail")
    with pytest.raises(errors.LibraryNotInitialized) as caught:
        each_library.cudnnCreate(ctypes.byref(ctypes.c_void_p()))
    assert caught.value.name == "CUDNN_STATUS_NOT_INITIALIZED"
    assert "is there a GPU, and a driver that is new enough" in str(caught.value)


@pytest.mark.gpu
def test_with_a_gpu_a_handle_is_made_and_destroyed(library: Library) -> None:
    handle = ctypes.c_void_p()
    library.cudnnCreate(ctypes.byref(handle))
    assert handle.value
    library.cudnnDestroy(handle)
