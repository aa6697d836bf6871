"""A GPU machine whose cuDNN is hidden: CuPy's arrays are refused in words, NumPy's are served."""

from __future__ import annotations

import os

import pytest

from tests.gpu.work import run_python

pytestmark = pytest.mark.gpu

HIDDEN = """
import cudnn_compat.cudnn.library as library
from cudnn_compat.cudnn.find import Candidate
library.find_cudnn = lambda: iter([Candidate("libcudnn.so.9", "loader", "hidden by this test")])
import cupy
from cudnn_compat import v2
spec = v2.RNNSpec("lstm", 3, 4)
w, x = v2.init_weights(spec, seed=0, xp=cupy), cupy.zeros((2, 1, 3), "float32")
"""
REFUSED = """
try:
    v2.rnn_forward(spec, w, x)
except v2.LibraryNotFound as error:
    print(error)
"""


def said_by(program: str) -> str:
    done = run_python(program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_call_on_a_gpu_array_says_where_cudnn_was_sought_and_what_to_install() -> None:
    said = said_by(HIDDEN + REFUSED)
    assert "pip install 'cudnn-compat[cuda13]'" in said
    assert "loader: libcudnn.so.9: hidden by this test" in said


def test_info_says_that_cupy_computes_and_cudnn_is_missing() -> None:
    said = said_by(
        HIDDEN + "from cudnn_compat.environment import collect\nfacts = collect()\n"
        "print(*(facts[name]['available'] for name in ('gpu', 'cupy', 'cudnn')))\n"
        "print(facts['engines']['cudnn']['reason'])"
    )
    assert said.startswith("True True False\n")
    assert "no cuDNN" in said


def test_numpy_arrays_are_served_and_a_cudnn_that_comes_later_is_found() -> None:
    said = said_by(
        "import cudnn_compat.cudnn.library as library\nfind = library.find_cudnn\n"
        + HIDDEN
        + REFUSED
        + "print(v2.rnn_forward(spec, w.get(), x.get()).engine)\n"
        "library.find_cudnn = find\n"
        "print(v2.rnn_forward(spec, w, x).engine)"
    )
    assert said.splitlines()[-2:] == ["numpy", "cudnn"]


def test_a_library_that_the_user_names_and_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(os.environ, "CUDNN_COMPAT_CUDNN", "/no/such/libcudnn.so.9")
    program = HIDDEN.replace("library.find_cudnn = ", "_ = ") + REFUSED
    assert "/no/such/libcudnn.so.9" in said_by(program)
