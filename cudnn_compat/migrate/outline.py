"""What the other files of a program tell about one, read quickly."""

from __future__ import annotations

import ast
import dataclasses
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping

__all__ = ["ClassOutline", "Outline", "outline"]


@dataclasses.dataclass(frozen=True)
class ClassOutline:
    """A class that a file defines.

    Attributes:
        bases: the names in each of its bases, the last part first (``a.Generic[T]``: Generic, a).
        members: what its body binds.
        assigned: attributes that its methods assign to their first parameter.
    """

    name: str
    bases: tuple[tuple[str, ...], ...]
    members: frozenset[str]
    assigned: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Outline:
    """What one file takes from others, and does to objects that it may have from them.

    Attributes:
        imported: names that it imports, or reads from a module, by the last part of the module that
            they come from; ``*`` is all, and ``**`` also of its modules: it goes on as a value.
        attributes: every attribute that it names.
        assigned: attributes that it assigns or deletes, but for those in ``classes``.
        classes: the classes that it defines, wherever.
        means: names that it binds, with all names in what they are bound to.
        keywords: names that it passes arguments by, and keys of its dictionaries.
        compares_types: whether it asks if two objects are of one class (``type(a) is type(b)``).
    """

    imported: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    attributes: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    classes: tuple[ClassOutline, ...] = ()
    means: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    keywords: frozenset[str] = frozenset()
    compares_types: bool = False


def outline(source: bytes) -> Outline:
    """The outline of a file; an empty one where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the file's own oddities
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return Outline()
    nodes = list(ast.walk(tree))
    own: set[ast.AST] = set()  # attributes of a class's own objects
    classes = tuple(_class(node, own) for node in nodes if isinstance(node, ast.ClassDef))
    classes = tuple(_with_objects(each, nodes, own) for each in classes)
    return Outline(
        _imported(nodes),
        frozenset(_attributes(nodes)),
        frozenset(name for node in nodes if node not in own for name in _assigned(node)),
        classes,
        _meanings(nodes),
        frozenset(_keywords(nodes)),
        any(map(_compares_types, nodes)),
    )


def _imported(nodes: list[ast.AST]) -> dict[str, frozenset[str]]:
    """See :class:`Outline`."""
    found: dict[str, set[str]] = {}
    modules: dict[str, str] = {}  # what an attribute may be taken from, and its last part
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            last = (node.module or "").rpartition(".")[2]
            found.setdefault(last, set()).update(alias.name for alias in node.names)
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                # Without `as`, `import a.b` binds a.
                first, last = alias.name.partition(".")[0], alias.name.rpartition(".")[2]
                modules |= {alias.asname: last} if alias.asname else {first: first}
    # What is called or indexed is no module.
    inner: set[ast.AST] = {n.value for n in nodes if isinstance(n, ast.Attribute | ast.Subscript)}
    inner |= {node.func for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        chain = _chain(node)
        if not chain or chain[0] not in modules:
            continue
        if len(chain) > 1:
            before = chain[-2] if len(chain) > 2 else modules[chain[0]]
            found.setdefault(before, set()).add(chain[-1])
        if node not in inner:
            last = chain[-1] if len(chain) > 1 else modules[chain[0]]
            found.setdefault(last, set()).update(("*", "**"))
    return {module: frozenset(names) for module, names in found.items()}


def _chain(node: ast.AST) -> list[str]:
    """The parts of ``a.b.c`` where it is read; empty for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        before = _chain(node.value)
        return [*before, node.attr] if before else []
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else []


def _attributes(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.MatchClass):
            yield from node.kwd_attrs


def _assigned(node: ast.AST) -> Iterator[str]:
    """The attribute that a node assigns or deletes, if it does."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield node.attr
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.args[1] if len(node.args) > 1 else None
        if node.func.id in ("setattr", "delattr") and isinstance(name, ast.Constant):
            yield str(name.value)


def _class(node: ast.ClassDef, own: set[ast.AST]) -> ClassOutline:
    """A class; adds to ``own`` the attributes of its objects that its methods assign."""
    assigned = set()
    for method in node.body:
        first = _first_parameter(method)
        for each in ast.walk(method) if first else ():
            if (
                isinstance(each, ast.Attribute)
                and not isinstance(each.ctx, ast.Load)
                and isinstance(each.value, ast.Name)
                and each.value.id == first
            ):
                assigned.add(each.attr)
                own.add(each)
    bases = tuple(names for base in node.bases if (names := tuple(_names(_whole(base)))))
    members = frozenset(name for each in node.body for name in _bound(each))
    return ClassOutline(node.name, bases, members, frozenset(assigned))


def _with_objects(found: ClassOutline, nodes: list[ast.AST], own: set[ast.AST]) -> ClassOutline:
    """The class, with what is assigned to variables that certainly hold an object of it.

    Such a variable is bound once in the file, to a call of the class, as is the name of the class.
    """
    bound = Counter(name for node in nodes for name in _binds(node))
    objects = {
        node.targets[0].id
        for node in nodes
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == found.name
        and bound[node.targets[0].id] == bound[found.name] == 1
    }
    assigned = set()
    for node in nodes:
        if (
            isinstance(node, ast.Attribute)
            and not isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Name)
            and node.value.id in objects
        ):
            assigned.add(node.attr)
            own.add(node)
    return dataclasses.replace(found, assigned=found.assigned | assigned)


def _binds(node: ast.AST) -> Iterator[str]:
    """The names that this node, without what is in it, binds in some scope."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, ast.MatchMapping):
        yield node.rest or ""
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    else:
        name = getattr(node, "name", None)  # of functions, classes, handlers, patterns
        if isinstance(name, str):
            yield name


def _first_parameter(method: ast.stmt) -> str:
    """What a method calls its object; empty where that is not certain."""
    if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    parameters = [*method.args.posonlyargs, *method.args.args]
    if not parameters or any("staticmethod" in _names(each) for each in method.decorator_list):
        return ""
    first = parameters[0].arg
    names = (each for each in ast.walk(method) if isinstance(each, ast.Name) and each.id == first)
    return first if all(isinstance(each.ctx, ast.Load) for each in names) else ""


def _bound(statement: ast.AST) -> Iterator[str]:
    """The names that a statement binds in its own scope."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    if isinstance(statement, ast.Lambda):
        return
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return
    if isinstance(statement, ast.Name) and not isinstance(statement.ctx, ast.Load):
        yield statement.id
    elif isinstance(statement, ast.alias):
        yield (statement.asname or statement.name).partition(".")[0]
    for each in ast.iter_child_nodes(statement):
        yield from _bound(each)


def _meanings(nodes: list[ast.AST]) -> dict[str, frozenset[str]]:
    """What names are bound to: ``Base = RNNDesc``, ``import RNNDesc as Base``, ``def base()``."""
    means: dict[str, frozenset[str]] = {}
    for node in nodes:
        bound: list[str] = []
        value: list[str] = []
        if isinstance(node, ast.alias) and node.asname:
            bound, value = [node.asname], [node.name.rpartition(".")[2]]
        elif isinstance(node, ast.FunctionDef):
            bound, value = [node.name], list(_names(node))
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = [name for target in targets for name in _bound(target)]
            value = list(_names(node.value))
        for name in bound:
            means[name] = means.get(name, frozenset()) | frozenset(value)
    return means


def _whole(base: ast.expr) -> ast.expr:
    """A base without its type parameters."""
    return _whole(base.value) if isinstance(base, ast.Subscript) else base


def _names(node: ast.AST) -> Iterator[str]:
    """The names and attributes in it; of ``a.b`` b first."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Name):
            yield each.id


def _keywords(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.Dict):
            for key in node.keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value


def _compares_types(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return sum(map(_is_type_of, [node.left, *node.comparators])) > 1
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
        return node.func.id in ("isinstance", "issubclass") and _is_type_of(node.args[1])
    return False


def _is_type_of(node: ast.expr) -> bool:
    """Whether it is ``type(a)`` or ``a.__class__``."""
    if isinstance(node, ast.Attribute):
        return node.attr == "__class__"
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"
