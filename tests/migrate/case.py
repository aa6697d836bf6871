"""Cases for the rewriter: a file each, beside the tests, in folders named after the dialect.

A case file has a title and sections::

    Keywords may come in any order

    === before
    y, h = forward(h=h, desc=desc, x=x)
    === after
    y, h = desc.step(h=h, x=x)
    === definitions
    Network: step
    === left
    3:1 CC023 hDesc

``before`` alone is a program that must not change. ``definitions`` are the classes (with their
public methods) and functions that the tool put in, which ``after`` does not show. ``left`` are the
places that are reported, as line:column code name. Sections called ``before NAME`` and ``after
NAME`` are files of one program.

Both programs are also run, after the prelude of their folder, and must give every variable the same
value, bit for bit; ``=== not run`` with a reason leaves that out.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

HERE = Path(__file__).parent

DIALECTS = {"rnndesc": "rnndesc", **{p.name: "cupy" for p in HERE.glob("cupy*") if p.is_dir()}}
"""The parts of each folder of cases."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One case file, read."""

    path: Path
    sections: dict[str, str]

    @property
    def title(self) -> str:
        return self.sections[""].strip()

    @property
    def before(self) -> dict[str, str]:
        """Source by file name."""
        return self._sources("before")

    @property
    def after(self) -> dict[str, str]:
        """The same for what is wanted."""
        return self.before | self._sources("after")

    @property
    def left(self) -> list[str]:
        return self.sections.get("left", "").split("\n")[:-1]

    @property
    def definitions(self) -> list[str]:
        return self.sections.get("definitions", "").split("\n")[:-1]

    def _sources(self, kind: str) -> dict[str, str]:
        names = [name for name in self.sections if name.split(" ")[0] == kind]
        return {
            name.removeprefix(kind).strip() or "program.py": self.sections[name] for name in names
        }


def read(path: Path) -> Case:
    """A case file."""
    parts = re.split(r"^=== *(.+)\n", "\n" + path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return Case(path, {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True)))


CASES = [read(path) for folder in DIALECTS for path in sorted((HERE / folder).glob("*.case"))]


def without_definitions(source: str) -> tuple[str, list[str]]:
    """A moved program without the classes and functions that were put in, and what those are."""
    found, lines = [], source.splitlines(keepends=True)
    copied = defined_in_parts()
    drop: set[int] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node) in copied:
            drop |= set(range(node.lineno - 1, node.end_lineno or 0))
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) in copied:
            public = ""
            if isinstance(node, ast.ClassDef):
                methods = [m.name for m in node.body if isinstance(m, ast.FunctionDef)]
                public = ", ".join(m for m in methods if not m.startswith("_"))
                public = public and f": {public}"
            found.append(node.name + public)
            drop |= set(range(node.lineno - 1, node.end_lineno or 0))
    kept = "".join(line for index, line in enumerate(lines) if index not in drop)
    return re.sub(r"\n{4,}", "\n\n\n", kept), found


def defined_in_parts() -> set[str | None]:
    """The docstrings of all that can be copied, and the values among it."""
    import cudnn_compat.migrate.parts as parts

    found = set()
    for path in Path(parts.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found.add(ast.get_docstring(node))
            elif isinstance(node, ast.Assign):
                found.add(ast.unparse(node))
    return found
