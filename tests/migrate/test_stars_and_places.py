"""Programs in which names have several meanings, or stand below their use: they run as before.

Each is run, moved, run again, and moved once more.
"""

from __future__ import annotations

import contextlib
import io
import warnings

import pytest

pytest.importorskip("libcst", reason="needs libcst (extra migrate)")

from cudnn_compat.migrate import migrate_program, migrate_source

STAR = "from cudnn_compat.legacy import *\n"

PROGRAMS = {
    "the star's constant is bound again below": STAR
    + """
d = RNNDesc(CUDNN_GRU, 2, 2)
print(d.params.size)
CUDNN_GRU = 7
print(CUDNN_GRU)
""",
    "a function of the name stands below its use": STAR
    + """
import numpy as np
d = RNNDesc(CUDNN_GRU, 2, 2)
d.params[...] = 0.5
one = np.ones(2, "float32")
print(len(forward(d, one, one)))
def forward(*given):
    return given
print(len(forward(1, 2, 3)))
""",
    "a function of the name is defined on a condition": STAR
    + """
import numpy as np
d = RNNDesc(1, 2, 2)
if d is None:
    def forward(*given):
        return given
d.params[...] = 0.5
one = np.ones(2, "float32")
print(forward(d, one, one)[0])
""",
    "a loop binds a name of the star": STAR
    + """
d = RNNDesc(CUDNN_GRU, 2, 2)
print(ngates(d))
for ngates in (1, 2):
    pass
print(ngates)
""",
    "a function binds a name of the star for all": STAR
    + """
def change():
    global CUDNN_GRU
    CUDNN_GRU = 1
d = RNNDesc(CUDNN_GRU, 2, 2)
print(d.params.size)
change()
print(RNNDesc(CUDNN_GRU, 2, 2).params.size)
""",
    "a mode is no literal where it is used": STAR
    + """
def outer(mode):
    return RNNDesc(mode, 3, 4).params.size
print(outer(CUDNN_GRU))
""",
    "NumPy is imported below": STAR
    + """
d = RNNDesc(CUDNN_GRU, 2, 2)
print(d.params.sum())
import numpy as np
print(np.ones(2))
""",
    "functools has another name below": STAR
    + """
d = RNNDesc(CUDNN_LSTM, 2, 2)
print(d.weights[0].shape)
import functools as ft
print(ft.reduce(max, [1, 2]))
""",
}

each_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def printed(program: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(program, "program.py", "exec"), {"__name__": "__main__"})
    return out.getvalue()


@each_program
def test_it_prints_what_it_printed(program: str) -> None:
    before = printed(program)
    assert before
    assert printed(migrate_source(program)) == before


@each_program
def test_a_second_run_changes_nothing(program: str) -> None:
    once = migrate_source(program)
    assert migrate_source(once) == once


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252", "utf-8"])
def test_marks_are_written_in_the_files_own_encoding(encoding: str) -> None:
    source = f"# -*- coding: {encoding} -*-\n{STAR}d = RNNDesc(2, 3, 4, layers=2)\n"
    other = f"{STAR}d = RNNDesc(2, 3, 4)\n"
    given = {"a.py": source.encode(encoding), "b.py": other.encode()}
    done = migrate_program(given)
    assert not done["a.py"].error
    assert "# cudnn-compat: left, CC010" in done["a.py"].after.decode(encoding)
