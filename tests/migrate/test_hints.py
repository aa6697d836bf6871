"""What the files of a program say together about the objects of a class, judged by names."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst", reason="needs libcst (extra migrate)")

from cudnn_compat.migrate.hints import Hints, hints_of
from cudnn_compat.migrate.outline import outline


def hints(*files: str, index: int = 0) -> Hints:
    return hints_of([outline(each.encode()) for each in files], index, "RNNDesc")


@pytest.mark.parametrize(
    "source",
    [
        "class A(RNNDesc):\n    def step(self): ...",
        "class A(legacy.RNNDesc['float64']):\n    step = 0",
        "from legacy import RNNDesc as R\nclass A(R):\n    if a:\n        step: int = 0",
        "Base = legacy.RNNDesc\nclass A(Base):\n    from os import abc as step",
        "def base():\n    return RNNDesc\nclass A(base()):\n    class step: ...",
        "class A(RNNDesc): ...\nclass B(A):\n    async def step(self): ...",
        "class A(RNNDesc, M): ...\nclass N:\n    step = 0\nclass M(N): ...",
        "class A(N, RNNDesc): ...\nclass N:\n    for step in 'abc': ...",
    ],
)
def test_members_of_subclasses_and_of_their_other_bases(source: str) -> None:
    assert "step" in hints(source).members
    middle = source.index("class A")
    assert "step" in hints(source[:middle] or "0", source[middle:]).members


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def step(self): ...",
        "class A(RNNDesc):\n    step: int\n    def f(self):\n        step = 0",
        "class A(list[RNNDesc]):\n    step = 0",
        "d = RNNDesc(2, 3, 4)\nclass A(Module):\n    step = d",
    ],
)
def test_members_of_others(source: str) -> None:
    assert "step" not in hints(source).members


@pytest.mark.parametrize(
    "source",
    [
        "d.step = 0",
        "d.step += 1",
        "del d.step",
        "for d.step in x: ...",
        "setattr(d, 'step', 0)",
        "class A(RNNDesc):\n    def f(self):\n        self.step = 0",
        "class A:\n    def f(self, d):\n        d.step = 0",
        "class A:\n    @staticmethod\n    def f(d):\n        d.step = 0",
        "class A:\n    def f(self):\n        self = d\n        self.step = 0",
    ],
)
def test_attributes_that_may_be_of_its_objects(source: str) -> None:
    assert "step" in hints("0", source).assigned


@pytest.mark.parametrize(
    "source", ["d.step", "step = 0", "class A(B):\n    def f(self):\n        self.step = 0"]
)
def test_attributes_of_others(source: str) -> None:
    assert "step" not in hints("0", source).assigned


def test_bases_that_are_not_seen() -> None:
    assert hints("class A(RNNDesc, a.Mixin): ...").unseen == {"Mixin"}
    assert not hints("class A(RNNDesc, ABC, Generic[T], object, B): ...", "class B: ...").unseen


@pytest.mark.parametrize(
    ("source", "compares"),
    [
        ("type(a) is type(b)", True),
        ("a.__class__ == b.__class__", True),
        ("isinstance(a, type(b))", True),
        ("type(a) is float or isinstance(a, B)", False),
    ],
)
def test_whether_types_are_compared(source: str, compares: bool) -> None:
    assert hints("0", source).compares_types == compares


def test_keywords_of_other_files() -> None:
    files = ("f(desc=1)", "g(x=1, **{'h': 2})")
    assert hints(*files).keywords == {"x", "h"}
    assert hints(*files, index=1).keywords == {"desc"}


@pytest.mark.parametrize(
    ("source", "module", "names"),
    [
        ("from a.nets import f as g", "nets", {"f"}),
        ("import nets as n\nn.f(0)", "nets", {"f"}),
        ("import a.nets\na.nets.f.g", "nets", {"f"}),
        ("import a\na.nets.f", "nets", {"f"}),
        ("from a import nets\nx = nets", "nets", {"*", "**"}),
        ("import a.nets as n\nclass A:\n    n = n", "nets", {"*", "**"}),
        ("import a.nets\nx = a.nets", "nets", {"*", "**"}),
        ("import a.nets\nx = a", "a", {"*", "**"}),
        ("from nets import *", "nets", {"*"}),
        ("self.nets.f", "nets", set()),
        ("from a import nets\nnets(0), nets[0]", "nets", set()),
    ],
)
def test_what_is_taken_from_a_module(source: str, module: str, names: set[str]) -> None:
    assert outline(source.encode()).imported.get(module, set()) == names


@pytest.mark.parametrize(
    ("source", "may_be_one"),
    [
        ("class T: ...\nt = T(d)\nt.step = 5", False),
        ("class T: ...\ndef f():\n    t = T(d)\n    t.step += 5", False),
        ("class T(RNNDesc): ...\nt = T(d)\nt.step = 5", True),
        ("class T: ...\nt = T(d)\nt = d\nt.step = 5", True),
        ("class T: ...\nt = T(d)\ndef f(t):\n    t.step = 5", True),
        ("class T: ...\nT = RNNDesc\nt = T(d)\nt.step = 5", True),
        ("class T: ...\nt = T.made(d)\nt.step = 5", True),
        ("from m import T\nt = T(d)\nt.step = 5", True),
    ],
)
def test_what_certainly_is_of_another_class_does_not_count(source: str, may_be_one: bool) -> None:
    assert ("step" in hints(source).assigned) is may_be_one
