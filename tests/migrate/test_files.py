"""What stays as it was in a file: bytes, encodings, newlines; and what is said of one that is not
Python."""

from __future__ import annotations

import textwrap

import pytest

pytest.importorskip("libcst", reason="needs libcst (extra migrate)")

from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_compat.migrate import Finding, migrate_program, migrate_source
from tests.migrate.case import CASES

PROGRAM = """\
from cudnn_compat.legacy import CUDNN_GRU, RNNDesc, forward

desc = RNNDesc(CUDNN_GRU, 3, 4)  # größer
y, h = forward(desc, x, h)
"""


def migrated(source: bytes) -> bytes:
    (done,) = migrate_program({"program.py": source}).values()
    assert not done.error
    return done.after


def test_windows_newlines_stay() -> None:
    after = migrated(PROGRAM.replace("\n", "\r\n").encode())
    assert after == migrated(PROGRAM.encode()).replace(b"\n", b"\r\n")
    assert b".step(x, h)\r\n" in after


def test_the_encoding_that_a_file_declares_stays() -> None:
    declared = "# -*- coding: latin-1 -*-\n" + PROGRAM
    after = migrated(declared.encode("latin-1"))
    assert "größer".encode("latin-1") in after
    assert after.startswith(b"# -*- coding: latin-1 -*-\n")
    compile(after, "program.py", "exec")


def test_a_byte_order_mark_stays() -> None:
    after = migrated(b"\xef\xbb\xbf" + PROGRAM.encode())
    assert after.startswith(b"\xef\xbb\xbf")
    assert after.count(b"\xef\xbb\xbf") == 1
    assert b".step(x, h)" in after


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_the_end_of_a_file_stays(end: str) -> None:
    after = migrated(PROGRAM.rstrip("\n").encode() + end.encode())
    assert after.endswith(b".step(x, h)" + end.encode())


def test_tabs_stay() -> None:
    tabbed = PROGRAM + "if y is None:\n\ty = forward(desc, x, h)[0]\n"
    assert b"\n\ty = desc.step(x, h)[0]\n" in migrated(tabbed.encode())


@pytest.mark.parametrize(
    "source", [b"", b"\n", b"# cudnn\n", b'"""cudnn"""\n', b"import numpy  # no cudnn_compat\n"]
)
def test_a_file_without_old_names_is_the_same_bytes(source: bytes) -> None:
    assert migrated(source) == source


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"def cudnn(:\n", "line 1"),
        (b"cudnn = '\xff'\n", "encoding"),
        (b"# -*- coding: nonsense -*-\ncudnn = 1\n", "nonsense"),
    ],
)
def test_a_file_that_is_not_python_stays_and_is_said_to_be(source: bytes, said: str) -> None:
    results = migrate_program({"bad.py": source, "good.py": PROGRAM.encode()})
    assert said in results["bad.py"].error
    assert results["bad.py"].after == source
    assert results["good.py"].changed
    with pytest.raises(ValueError, match=r"bad\.py: "):
        migrate_source("def cudnn(:\n", "bad.py")


def test_a_place_that_is_left_is_reported_with_file_line_column_and_reason() -> None:
    source = "from cudnn_compat.legacy import hDesc\n\nif True:\n    d, h = hDesc(None)\n"
    (done,) = migrate_program({"program.py": source.encode()}).values()
    (found,) = done.findings
    assert found == Finding("program.py", 4, 12, "left", "CC023", "hDesc", found.reason)
    assert str(found) == f"program.py:4:12: left CC023 hDesc: {found.reason}"
    assert done.after.decode().splitlines()[3:] == [
        f"    # cudnn-compat: left, CC023 hDesc: {found.reason}",
        "    d, h = hDesc(None)",
    ]


def test_lines_are_those_of_the_file_with_its_marks() -> None:
    source = "from cudnn_compat.legacy import hDesc\nhDesc(None)\nhDesc(0)\n"
    once = migrate_program({"program.py": source.encode()})["program.py"]
    twice = migrate_program({"program.py": once.after})["program.py"]
    assert [f.line for f in once.findings] == [2, 3]
    assert [f.line for f in twice.findings] == [3, 5]
    lines = once.after.decode().splitlines()
    assert [lines[f.line - 1] for f in twice.findings] == ["hDesc(None)", "hDesc(0)"]


def test_a_mark_goes_when_the_place_can_move() -> None:
    source = "from cudnn_compat.legacy import RNNDesc\nd = RNNDesc(2, 3, 4, layers=2)\n"
    left = migrate_source(source)
    assert "# cudnn-compat: left, CC010 RNNDesc: several layers" in left
    moved = migrate_source(left.replace("layers=2", "layers=1"))
    assert "# cudnn-compat" not in moved
    assert moved.endswith('\nd = Network("lstm", 3, 4)\n')


SNIPPETS = [
    source
    for case in CASES
    if case.path.parent.name == "rnndesc" and len(case.before) == 1
    for source in case.before.values()
    if "__future__" not in source
]


@settings(max_examples=8)
@given(
    picked=st.lists(st.sampled_from(SNIPPETS), min_size=1, max_size=3),
    in_function=st.booleans(),
)
def test_programs_put_together_compile_and_a_second_run_changes_nothing(
    picked: list[str], in_function: bool
) -> None:
    """Names then have several meanings, imports are repeated, and stars stand beside names."""
    source = "\n\n".join(picked)
    if in_function and "import *" not in source:
        source = "def program(x, h, c):\n" + textwrap.indent(source, "    ")
    once = migrate_source(source)
    compile(once, "program.py", "exec", dont_inherit=True)
    assert migrate_source(once) == once
