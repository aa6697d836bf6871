"""The files of one program, moved together.

Objects pass between the files of a program, so two things are decided for all of them: what of a
copied class is needed (any file may call its methods), and whether a group of rules may move at all
(where one place of it is left in one file, all of them stay in all files).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import libcst as cst

from cudnn_compat.migrate.definitions import attributes_of, build
from cudnn_compat.migrate.finding import Finding
from cudnn_compat.migrate.hints import Hints, hints_of
from cudnn_compat.migrate.imports import finish, imports_of, with_keys
from cudnn_compat.migrate.marks import MARK, remove_marks
from cudnn_compat.migrate.outline import Outline, outline
from cudnn_compat.migrate.rewrite import Rewritten, rewrite

__all__ = ["Migrated", "migrate_program", "migrate_source"]

_CLASS = "RNNDesc"
"""The old class whose objects a class in the program takes the place of."""


@dataclasses.dataclass(frozen=True)
class Migrated:
    """What became of one file.

    Attributes:
        before, after: its bytes; equal where nothing changes.
        findings: every use of an old name, in the order of the file; the lines are ``before``'s.
        error: why it could not be read as Python; empty where it could. ``after`` is ``before``.
    """

    before: bytes
    after: bytes
    findings: tuple[Finding, ...] = ()
    error: str = ""

    @property
    def changed(self) -> bool:
        """Whether anything would be written."""
        return self.before != self.after


def migrate_source(source: str, path: str = "program.py") -> str:
    """A program of one file, moved as far as can be proved.

    Raises:
        ValueError: it is not Python; says where.
    """
    (done,) = migrate_program({path: source.encode()}).values()
    if done.error:
        raise ValueError(f"{path}: {done.error}")
    return done.after.decode()


def migrate_program(sources: Mapping[str, bytes]) -> dict[str, Migrated]:
    """Move the files of one program.

    Args:
        sources: contents by path. Encodings and newlines stay as they are.

    Returns:
        The outcome of each file, by path, in the same order.
    """
    results: dict[str, Migrated] = {}
    modules: dict[str, cst.Module] = {}
    for path, source in sources.items():
        results[path] = Migrated(source, source)
        if not _may_have_old_names(source):
            continue
        try:
            modules[path] = remove_marks(cst.parse_module(source))
        except (cst.ParserSyntaxError, SyntaxError, UnicodeError, RecursionError) as error:
            results[path] = Migrated(source, source, error=_in_words(error))
    outlines = [outline(source) for source in sources.values()]
    exported = {path: _imported_from(path, outlines) for path in modules}
    hints = {p: hints_of(outlines, i, _CLASS) for i, p in enumerate(sources) if p in modules}
    rewritten = _rewrite_together(modules, exported, hints)
    attributes = attributes_of(each.module for each in rewritten.values())
    attributes.update(*(each.attributes for each in outlines))
    for path, each in rewritten.items():
        source = sources[path]
        try:
            results[path] = _finish(source, each, attributes, exported[path])
        except UnicodeError as error:  # a file's encoding may lack what is written into it
            results[path] = Migrated(source, source, error=_in_words(error))
    return results


def _rewrite_together(
    modules: Mapping[str, cst.Module],
    exported: Mapping[str, frozenset[str]],
    hints: Mapping[str, Hints],
) -> dict[str, Rewritten]:
    """Rewrite each file, again and again until what one means for another is settled."""
    closed: dict[str, Finding] = {}
    defined: dict[str, set[tuple[str, str]]] = {path: set() for path in modules}
    while True:
        rewritten = {}
        for path, module in modules.items():
            elsewhere = {key for other in modules if other != path for key in defined[other]}
            rewritten[path] = rewrite(module, path, closed, exported[path], elsewhere, hints[path])
        blocked: dict[str, Finding] = {}
        for each in rewritten.values():
            for group, finding in each.blocked.items():
                blocked.setdefault(group, finding)
        now = {path: set(each.file.definitions) for path, each in rewritten.items()}
        if blocked.keys() <= closed.keys() and all(now[path] <= defined[path] for path in now):
            return rewritten
        closed = blocked | closed
        # Never less than before, so that it comes to an end: a place that was left stays so.
        defined = {path: defined[path] | now[path] for path in now}


def _finish(
    source: bytes, rewritten: Rewritten, attributes: set[str], exported: frozenset[str]
) -> Migrated:
    definitions = build(rewritten.file, attributes)
    names = rewritten.file.names
    unused = {
        key
        for key, each in with_keys(imports_of(names))
        if not each.used
        or each.local in names.listed_in_all | exported
        or names.is_in_class(each.node)
    }
    module = cst.parse_module(_bytes(rewritten.module))
    after = _bytes(finish(module, rewritten.file, definitions, unused))
    # Positions are those of the tree without marks: count the marked lines above.
    offsets = _lines_without_marks(source)
    findings = tuple(
        dataclasses.replace(each, line=offsets[each.line - 1]) for each in rewritten.findings
    )
    return Migrated(source, after, findings)


def _bytes(module: cst.Module) -> bytes:
    """The text in the file's own encoding, which may lack the three dots of reasons.

    Raises:
        UnicodeError: it lacks something else.
    """
    try:
        return module.bytes
    except UnicodeEncodeError:
        return module.code.replace("…", "...").encode(module.encoding)


def _lines_without_marks(source: bytes) -> list[int]:
    """The number of each line that is no mark."""
    mark = MARK.encode()
    return [
        number
        for number, line in enumerate(source.splitlines(), 1)
        if not line.lstrip().startswith(mark)
    ]


def _may_have_old_names(source: bytes) -> bool:
    return b"cudnn" in source


def _imported_from(path: str, outlines: Sequence[Outline]) -> frozenset[str]:
    """The names that files of the program import from this one, judged by its name."""
    pure = PurePath(path)
    name = pure.parent.name if pure.stem == "__init__" else pure.stem
    names = frozenset().union(*(each.imported.get(name, frozenset()) for each in outlines))
    folders = {each for each in pure.parent.parts if each not in ("", ".", "..", "/")}
    whole = any("**" in each.imported.get(one, ()) for each in outlines for one in folders)
    return names | {"*"} if whole else names


def _in_words(error: Exception) -> str:
    if isinstance(error, cst.ParserSyntaxError):
        return f"line {error.raw_line}: {error.message}".replace("\n", " ")
    return f"{type(error).__name__}: {error}"
