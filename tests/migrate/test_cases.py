"""Every case of the rewriter: what becomes of it, that it runs the same, that twice is once."""

from __future__ import annotations

import functools
import importlib
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("libcst", reason="needs libcst (extra migrate)")

from cudnn_compat.migrate import Migrated, migrate_program
from tests.migrate.case import CASES, Case, without_definitions

each_case = pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.path.parent.name}-{case.path.stem}"
)


def migrate(sources: dict[str, str]) -> dict[str, Migrated]:
    return _migrate(tuple(sources.items()))


@functools.cache
def _migrate(sources: tuple[tuple[str, str], ...]) -> dict[str, Migrated]:
    done = migrate_program({path: source.encode() for path, source in sources})
    assert [each.error for each in done.values()] == [""] * len(sources)
    return done


def lefts(done: dict[str, Migrated]) -> list[str]:
    several = len(done) > 1
    return [
        f"{path + ':' if several else ''}{f.line}:{f.column} {f.code} {f.name}".replace("  ", " ")
        for path, each in done.items()
        for f in each.findings
        if f.what == "left"
    ]


@each_case
def test_a_program_becomes_what_the_case_says(case: Case) -> None:
    done = migrate(case.before)
    seen = {}
    definitions = []
    for path, each in done.items():
        seen[path], found = without_definitions(each.after.decode())
        definitions += found
    assert seen == case.after
    assert definitions == case.definitions
    assert lefts(done) == case.left


@each_case
def test_a_second_run_changes_nothing_and_says_the_same_of_what_is_left(case: Case) -> None:
    once = migrate(case.before)
    twice = migrate({path: each.after.decode() for path, each in once.items()})
    for path, each in twice.items():
        assert each.after.decode() == once[path].after.decode()
        reasons = [[f.reason for f in r[path].findings if f.what == "left"] for r in (once, twice)]
        # The line of another place may have moved.
        assert len(reasons[0]) == len(reasons[1])
        assert all(f.what == "left" for f in each.findings)


@each_case
def test_the_result_compiles(case: Case) -> None:
    for path, each in migrate(case.before).items():
        compile(each.after, path, "exec", dont_inherit=True)


@each_case
def test_it_runs_and_gives_every_variable_the_same_value(case: Case) -> None:
    if "not run" in case.sections:
        pytest.skip(case.sections["not run"].strip())
    done = migrate(case.before)
    old = run(case, {path: each.before for path, each in done.items()}, legacy=True)
    moved = not lefts(done)
    new = run(case, {path: each.after for path, each in done.items()}, legacy=not moved)
    compared = 0
    for name in sorted(set(old) & set(new)):
        compared += same(name, old[name], new[name])
    assert compared, "the case has no variable to compare"


def run(case: Case, sources: dict[str, bytes], *, legacy: bool) -> dict[str, Any]:
    """The variables of the last file, after the prelude; without any warning where all moved."""
    prelude = importlib.import_module(f"tests.migrate.{case.path.parent.name}_prelude")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore" if legacy else "error")
        if not legacy:
            for name in [n for n in sys.modules if n.startswith("cudnn_compat.legacy")]:
                patch.delitem(sys.modules, name)
            patch.setitem(sys.modules, "cudnn_compat.legacy", None)
        namespace: dict[str, Any] = {}
        for path, source in sources.items():
            module = types.ModuleType(path.removesuffix(".py"))
            patch.setitem(sys.modules, module.__name__, module)
            namespace = vars(module)
            namespace.update(prelude.variables())
            exec(compile(source, path, "exec", dont_inherit=True), namespace)
    return namespace


def same(name: str, old: Any, new: Any) -> int:
    """Fails where two values differ; how many arrays and numbers were compared."""
    if isinstance(old, np.ndarray):
        assert isinstance(new, np.ndarray), name
        assert (old.dtype, old.shape) == (new.dtype, new.shape), name
        assert old.tobytes() == new.tobytes(), name
        return 1
    if isinstance(old, (tuple, list)) and type(new).__name__ != "module":
        assert len(old) == len(new), name
        return sum(same(f"{name}[{i}]", *pair) for i, pair in enumerate(zip(old, new, strict=True)))
    if isinstance(old, (bool, int, float, str)) and not name.startswith("__"):
        assert old == new or (old != old and new != new), name
        return 1
    return 0
