"""Where cuDNN is sought, in which order, and what is said where there is none."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from cudnn_compat.cudnn import find
from cudnn_compat.cudnn.find import find_cudnn
from cudnn_compat.cudnn.library import load
from cudnn_compat.errors import LibraryNotFound, LibraryVersionError

pytestmark = pytest.mark.usefixtures("nowhere")


def put(folder: Path, *names: str) -> Path:
    """Files of text that have the names of libraries."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("this is no library")
    return folder


def places() -> list[tuple[str, str]]:
    return [(each.found_by, each.place) for each in find_cudnn() if each.problem is None]


def test_without_any_library_only_the_systems_loader_is_left() -> None:
    assert places() == [
        ("the system's loader", "libcudnn_test.so.9"),
        ("the system's loader", "libcudnn_test.so.8"),
    ]


def test_9_in_any_place_comes_before_8_in_any_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = put(tmp_path / "a" / "lib64", "libcudnn_test.so.8")
    second = put(tmp_path / "b" / "lib", "libcudnn_test.so.8", "libcudnn_test.so.9")
    monkeypatch.setenv("CUDNN_PATH", str(tmp_path / "a"))
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "b"))
    assert places() == [
        ("CONDA_PREFIX", str(second / "libcudnn_test.so.9")),
        ("the system's loader", "libcudnn_test.so.9"),
        ("CUDNN_PATH", str(first / "libcudnn_test.so.8")),
        ("CONDA_PREFIX", str(second / "libcudnn_test.so.8")),
        ("the system's loader", "libcudnn_test.so.8"),
    ]


def test_folders_come_in_the_order_of_their_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in reversed(find.FOLDERS):
        monkeypatch.setenv(variable, str(put(tmp_path / variable, "libcudnn_test.so.9")))
    assert [by for by, _ in places()][:-2] == list(find.FOLDERS)


def test_what_the_process_has_loaded_comes_before_all_that_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CUDNN_PATH", str(put(tmp_path, "libcudnn_test.so.9")))
    loaded = ["/torch/libcudnn_ops.so.9", "/b/libcudnn.so.8", "/torch/libcudnn.so.9.1.0"]
    monkeypatch.setattr(find, "mapped_files", lambda: loaded)
    assert [place for _, place in places()][:3] == [
        "/torch/libcudnn.so.9.1.0",
        "/b/libcudnn.so.8",
        str(tmp_path / "libcudnn_test.so.9"),
    ]


def test_cuda_pathfinder_is_asked_before_wheels_and_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CUDNN_PATH", str(put(tmp_path, "libcudnn_test.so.9")))
    found = types.SimpleNamespace(abs_path="/wheel/libcudnn.so.9")
    pathfinder = types.SimpleNamespace(load_nvidia_dynamic_lib={"cudnn": found}.__getitem__)
    monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", pathfinder)
    assert places()[0] == ("cuda-pathfinder", "/wheel/libcudnn.so.9")


def test_a_cuda_pathfinder_that_fails_is_a_reason_and_the_search_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", types.SimpleNamespace())
    candidates = list(find_cudnn())
    assert candidates[0].problem is not None
    assert candidates[0].problem.startswith("AttributeError: ")
    assert len(candidates) > 1


def test_the_libraries_of_a_wheel_are_found_by_its_list_of_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(tmp_path / "nvidia" / "cudnn" / "lib", "libcudnn_test.so.9")
    metadata = put(tmp_path / "a_wheel_of_cudnn-9.1.dist-info")
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: a-wheel-of-cudnn\nVersion: 9.1"
    )
    (metadata / "RECORD").write_text("nvidia/cudnn/lib/libcudnn_test.so.9,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(find, "WHEELS", ("a-wheel-of-cudnn",))
    wheels = [each for each in find_cudnn() if "wheel" in each.found_by]
    assert wheels[0].place == str(tmp_path / "nvidia/cudnn/lib/libcudnn_test.so.9")
    assert wheels[0].found_by == "wheel a-wheel-of-cudnn"
    assert wheels[1].problem == "9.1 is installed, without libcudnn_test.so.8"


def test_a_named_folder_is_the_only_place_that_is_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CUDNN_PATH", str(put(tmp_path / "other", "libcudnn_test.so.9")))
    named = put(tmp_path / "named" / "lib", "libcudnn_test.so.8", "libcudnn_test.so.9")
    monkeypatch.setenv(find.VARIABLE, str(tmp_path / "named"))
    assert places() == [(find.VARIABLE, str(named / "libcudnn_test.so.9"))]


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("nothing.so", "no such file or folder"),
        ("text.so", "cannot be loaded: "),
        ("empty", "no libcudnn_test.so.9 and no libcudnn_test.so.8 there or in lib64, lib"),
    ],
)
def test_a_named_library_that_does_not_load_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, result: str
) -> None:
    put(tmp_path / "empty")
    put(tmp_path, "text.so")
    monkeypatch.setenv(find.VARIABLE, str(tmp_path / name))
    with pytest.raises(LibraryNotFound) as caught:
        load()
    words = str(caught.value)
    assert words.startswith(f"{tmp_path / name} (named by CUDNN_COMPAT_CUDNN): {result}")
    assert words.endswith("correct CUDNN_COMPAT_CUDNN or unset it")
    assert len(caught.value.sought) == 1


def test_the_error_lists_each_place_and_what_happened_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(tmp_path / "text", "libcudnn_test.so.9")
    put(tmp_path / "empty")
    monkeypatch.setenv("CUDNN_PATH", str(tmp_path / "text"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "empty"))
    with pytest.raises(LibraryNotFound) as caught:
        load()
    assert not isinstance(caught.value, LibraryVersionError)
    words = str(caught.value)
    assert "pip install 'cudnn-compat[cuda13]'" in words.splitlines()[0]
    assert "  cuda-pathfinder: cuda.pathfinder: not installed\n" in words
    assert "  wheel: no-such-wheel-13: not installed\n" in words
    text = f"  CUDNN_PATH: {tmp_path}/text/libcudnn_test.so.9: cannot be loaded: "
    assert text in words
    assert f"  CUDA_HOME: {tmp_path}/empty: no libcudnn_test.so.9 there or in lib64" in words
    assert "the system's loader: libcudnn_test.so.8: cannot be loaded: " in words
    assert [each["found_by"] for each in caught.value.sought] == [
        "cuda-pathfinder",
        *["wheel", "wheel", "CUDNN_PATH", "CUDA_HOME", "the system's loader"] * 2,
    ]
    assert all(set(each) == {"place", "found_by", "result"} for each in caught.value.sought)


def test_a_library_that_was_loaded_before_is_the_one_that_is_used(
    fake: Callable[..., Path], python: Callable[..., str]
) -> None:
    path = fake("torch", 90100)
    said = python(
        "import ctypes",
        f"ctypes.CDLL({str(path)!r})",
        "from cudnn_compat.cudnn.library import load",
        "print(load().path, load().version, load().found_by, sep='\\n')",
    )
    assert said.splitlines() == [str(path), "9.1.0", "already loaded in this process"]
