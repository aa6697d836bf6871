"""Old imports go where nothing needs them any more; new ones and definitions take their place."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import libcst as cst
from libcst.metadata import ImportAssignment, MetadataWrapper, Scope

from cudnn_compat.migrate.known import OLD_MODULES, canonical
from cudnn_compat.migrate.marks import is_mark
from cudnn_compat.migrate.names import Names
from cudnn_compat.migrate.pruning import is_gone, pruned, without_gone, without_space
from cudnn_compat.migrate.syntax import imported_module, walk

if TYPE_CHECKING:
    from cudnn_compat.migrate.definitions import Definition
    from cudnn_compat.migrate.file_context import FileContext

__all__ = ["Imported", "finish", "imports_of", "with_keys"]

Import: TypeAlias = cst.Import | cst.ImportFrom


@dataclasses.dataclass(frozen=True, slots=True)
class Imported:
    """One thing that a statement imports.

    Attributes:
        node: the statement.
        qualified: what is imported, as written; of ``import *`` the module.
        local: what it is called in the file; ``"*"``.
        used: whether anything in the file refers to it.
        old: whether it is an old name or module.
        instead: of ``import a.b.c``, where ``a`` itself is used: what to import in its place.
    """

    node: Import
    qualified: str
    local: str
    used: bool
    old: bool
    instead: str | None = None


Key: TypeAlias = tuple[str, str, int]


def with_keys(found: Iterable[Imported]) -> Iterator[tuple[Key, Imported]]:
    """Each import with what is the same before and after the file was rewritten.

    That is what it imports, as what, and the how many-th of such it is.
    """
    seen: Counter[tuple[str, str]] = Counter()
    for each in found:
        what = each.qualified, each.local
        yield (*what, seen[what]), each
        seen[what] += 1


def imports_of(names: Names, defined: Collection[str] = ()) -> Iterator[Imported]:
    """Everything that a file imports; of ``import *`` only that of old modules."""
    for node in walk(names.module):
        if not isinstance(node, (cst.Import, cst.ImportFrom)):
            continue
        scope = names.scopes.get(node)
        if scope is None:
            continue
        if isinstance(node.names, cst.ImportStar):
            module = imported_module(node)
            if module in OLD_MODULES:
                yield Imported(node, module, "*", _star_is_used(names, module, defined), True)
            continue
        prefix = f"{imported_module(node)}." if isinstance(node, cst.ImportFrom) else ""
        for alias in node.names:
            qualified = prefix + alias.evaluated_name
            local = alias.evaluated_alias or alias.evaluated_name
            instead = None
            used = _is_referred_to(scope, node, local)
            if "." in local and not used:
                first = local.partition(".")[0]
                elsewhere = any(_bound_by(each) is not node for each in scope[first])
                if not elsewhere and _is_referred_to(scope, node, first):
                    instead = first
            yield Imported(node, qualified, local, used, canonical(qualified) is not None, instead)


def finish(
    module: cst.Module,
    file: FileContext,
    definitions: Sequence[Definition],
    keep: Collection[Key],
) -> cst.Module:
    """Remove the imports that are unused now, add the new imports and the definitions.

    Args:
        module: freshly parsed.
        keep: keys of imports to keep whether used or not: those that were not used before.
    """
    module = _with_marks_at_first_statement(module)
    # What is defined here now is imported no more.
    defined = set(file.definitions.values())
    found = list(imports_of(Names(MetadataWrapper(module, unsafe_skip_copy=True)), defined))
    removed = [
        each
        for key, each in with_keys(found)
        if key not in keep and (not each.used or (each.old and each.local in defined))
    ]
    anchor = _anchor(module, [each.node for each in found if each.old])
    changed = pruned(module, removed)
    head, tail = without_gone(changed.body[:anchor]), list(changed.body[anchor:])
    own, others = _import_lines(file)
    if others and tail:
        # What stood at the old import stands at what comes in its place.
        first = tail[0]
        above, marks = _above(first)
        others[0] = others[0].with_changes(leading_lines=above)
        if is_gone(first):
            line = cst.ensure_type(tail.pop(0), cst.SimpleStatementLine)
            others[-1] = others[-1].with_changes(trailing_whitespace=line.trailing_whitespace)
        else:
            tail[0] = first.with_changes(leading_lines=marks)
    head, tail = _with_own(head, own, [*others, *without_gone(tail)])
    end = 0
    while end < len(tail) and _is_import(tail[end]):
        end += 1
    imports, rest = tail[:end], tail[end:]
    new = [_spaced(each, _space_above(each)) for each in definitions]
    for index in range(1, len(new)):
        if all(isinstance(each, cst.SimpleStatementLine) for each in new[index - 1 : index + 1]):
            new[index] = new[index].with_changes(leading_lines=[])
    if new and rest:
        rest[0] = _spaced(rest[0], max(_space_above(rest[0]), _space_above(new[-1])))
    body = [*head, *imports, *new, *rest]
    if new and body[0] is new[0]:
        body[0] = body[0].with_changes(leading_lines=without_space(body[0].leading_lines))
    return changed.with_changes(body=body)


def _above(statement: Any) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """The lines above a statement: those that may go elsewhere, and its marks."""
    lines = statement.leading_lines
    return [each for each in lines if not is_mark(each)], [each for each in lines if is_mark(each)]


def _with_marks_at_first_statement(module: cst.Module) -> cst.Module:
    """Comments at the top are the module's; a mark belongs to the statement below it."""
    marks = [line for line in module.header if is_mark(line)]
    if not marks:
        return module
    first, *rest = module.body
    lines = [*marks, *first.leading_lines]
    header = [line for line in module.header if not is_mark(line)]
    return module.with_changes(header=header, body=[first.with_changes(leading_lines=lines), *rest])


def _anchor(module: cst.Module, nodes: Sequence[Import]) -> int:
    """Where in the body the new imports go: at the first old import outside of functions."""
    for index, statement in enumerate(module.body):
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            continue
        if any(node in nodes for node in walk(statement)):
            return index
    index = 0
    for position, statement in enumerate(module.body):
        if _is_import(statement):
            index = position + 1
        elif position > 0 or not _is_docstring(statement):
            break
        else:
            index = 1
    return index


def first_place(names: Names) -> int:
    """Where in the body of a file definitions go: behind the imports at the first old one."""
    body = names.module.body
    end = _anchor(names.module, [each.node for each in imports_of(names) if each.old])
    while end < len(body) and _is_import(body[end]):
        end += 1
    return end


def _bound_by(assignment: object) -> cst.CSTNode | None:
    return getattr(assignment, "node", None)


def _is_referred_to(scope: Scope, node: cst.CSTNode, name: str) -> bool:
    return any(
        assignment.references
        for assignment in scope.assignments
        if isinstance(assignment, ImportAssignment)
        and assignment.node is node
        and assignment.name == name
    )


def _star_is_used(names: Names, module: str, defined: Collection[str]) -> bool:
    return any(
        names.star_of(node) == module
        for node in walk(names.module)
        if isinstance(node, cst.Name) and node.value not in defined
    )


def _import_lines(file: FileContext) -> tuple[list[Any], list[Any]]:
    """The new imports: of Python's own modules, and of others, this package last."""
    own: list[Any] = []
    others: list[Any] = []
    ordered = sorted(file.imports.items(), key=lambda item: ("cudnn_compat" in item[0], item))
    for qualified, local in ordered:
        is_own = qualified.partition(".")[0] in sys.stdlib_module_names
        (own if is_own else others).append(_import_line(qualified, local))
    return own, others


def _with_own(head: list[Any], own: list[Any], tail: list[Any]) -> tuple[list[Any], list[Any]]:
    """Puts imports of Python's own modules behind such imports, or above the other imports."""
    if not own:
        return head, tail
    start = len(head)
    while start and _is_import(head[start - 1]) and not _is_future(head[start - 1]):
        start -= 1
    place = start
    for index in range(start, len(head)):
        if _is_own(head[index]):
            place = index + 1
    after = [*head[place:], *tail]
    behind_own = place > start
    if after and not behind_own:
        above, marks = _above(after[0])
        own[0] = own[0].with_changes(leading_lines=above)
        after[0] = after[0].with_changes(leading_lines=marks)
    if after and _is_import(after[0]) and all(map(is_mark, after[0].leading_lines)):
        after[0] = _spaced(after[0], 1)
    return [*head[:place], *own], after


def _is_future(statement: Any) -> bool:
    small = statement.body[0]
    return isinstance(small, cst.ImportFrom) and imported_module(small) == "__future__"


def _is_own(statement: Any) -> bool:
    """Whether it imports modules of Python's own."""
    small = statement.body[-1]
    if isinstance(small, cst.ImportFrom):
        modules = [imported_module(small)]
    else:
        modules = [alias.evaluated_name for alias in small.names]
    return all(module.partition(".")[0] in sys.stdlib_module_names for module in modules)


def _import_line(qualified: str, local: str) -> cst.SimpleStatementLine:
    package, _, name = qualified.rpartition(".")
    alias = "" if local == name else f" as {local}"
    start = f"from {package} import" if package else "import"
    return cst.ensure_type(cst.parse_statement(f"{start} {name}{alias}"), cst.SimpleStatementLine)


def _is_import(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(small, (cst.Import, cst.ImportFrom)) for small in statement.body
    )


def _is_docstring(statement: cst.CSTNode) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )


def _space_above(statement: cst.CSTNode) -> int:
    """Empty lines that the style guide wants."""
    return 2 if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) else 1


def _spaced(statement: Any, wanted: int) -> Any:
    """The statement with at least so many empty lines above it and its comments."""
    lines = list(statement.leading_lines)
    empty = 0
    while empty < len(lines) and lines[empty].comment is None:
        empty += 1
    more = [cst.EmptyLine(indent=False) for _ in range(wanted - empty)]
    return statement.with_changes(leading_lines=[*more, *lines])
