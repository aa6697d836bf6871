"""What uses of ``RNNDesc`` and its functions mean elsewhere, where no call of them is seen.

Each question is answered with the reason why a place has to stay; empty where it need not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

import libcst as cst
import libcst.matchers as m

from cudnn_compat.legacy import RNNDesc
from cudnn_compat.migrate.definitions import members_of
from cudnn_compat.migrate.names import Names
from cudnn_compat.migrate.rule import Site
from cudnn_compat.migrate.rules.rnndesc_keywords import passed_by_name
from cudnn_compat.migrate.rules.rnndesc_methods import PART
from cudnn_compat.migrate.syntax import walk

__all__ = ["class_itself", "everywhere", "made_elsewhere"]

_COPYING = frozenset(
    ("__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__copy__", "__class_getitem__")
)
"""What Python calls, and the old class did in a way of its own."""

_QUIET = frozenset(("staticmethod", "classmethod", "property", "abstractmethod", "override"))
"""Decorators that do not look at annotations."""


def everywhere(site: Site) -> str:
    """Whether something in the program keeps the class from being one that is copied in.

    A subclass, or an attribute that is assigned, would hide what Network has; or types are compared
    that would be two. It is said once a file: where the class is first used.
    """
    names, hints = site.file.names, site.file.hints
    used = site.original.func if isinstance(site.original, cst.Call) else site.original
    if next(_uses(names)) is not (used.value if isinstance(used, cst.Subscript) else used):
        return ""
    parent = names.parents[site.original]
    if isinstance(parent, cst.Attribute) and parent.attr.value in _new():
        return f"it is given a {parent.attr.value} of its own: rename that first"
    hidden = _members() & hints.members
    if hidden:
        return f"its subclass has a {min(hidden)} of its own: rename that first"
    if hints.unseen:
        return f"its subclass has another base, {min(hints.unseen)}, whose methods are not seen"
    hidden = _new() & hints.assigned
    if hidden:
        return f"{min(hidden)} is assigned to what may be one, and is a method now: rename it first"
    if hints.compares_types and (PART, "Network") in site.file.defined_elsewhere:
        return "types are compared, and other files make networks of a class of their own"
    return ""


def _uses(names: Names) -> Iterator[cst.CSTNode]:
    """Where a file uses the class, in order."""
    for node in walk(names.module):
        if isinstance(node, (cst.Name, cst.Attribute)) and names.is_read(node):
            row = names.row(node)
            if row is not None and row.code == "CC010":
                yield node


@functools.cache
def _members() -> frozenset[str]:
    """What a subclass must not define."""
    return _COPYING | {name for name in members_of(PART, "Network") if not name.startswith("__")}


@functools.cache
def _new() -> frozenset[str]:
    """What Network has and RNNDesc had not: no program assigned the others."""
    return frozenset(_members() - vars(RNNDesc).keys() - _COPYING)


def made_elsewhere(site: Site) -> str:
    """Whether it matters that other files have a class of their own: who asks for the class."""
    if (PART, "Network") not in site.file.defined_elsewhere or _is_plain(site):
        return ""
    return "other files make networks of a class of their own: ask for .spec instead"


def _is_plain(site: Site) -> bool:
    """Whether a use of the class is a base class, ``.from_v2`` or an annotation for people only."""
    parents = site.file.names.parents
    node: cst.CSTNode = site.original
    parent = _around(site)
    if isinstance(parent, cst.Attribute) and parent.attr.value == "from_v2":
        return True
    if isinstance(parent, cst.Arg) and isinstance(parents[parent], cst.ClassDef):
        return parent.keyword is None
    while not isinstance(node, (cst.Annotation, cst.BaseStatement, cst.BaseSmallStatement)):
        node = parents[node]
    return isinstance(node, cst.Annotation) and _is_for_people(parents, node)


def _around(site: Site) -> cst.CSTNode:
    """What the class stands in, with its brackets if it has some."""
    parents = site.file.names.parents
    parent = parents[site.original]
    return parents[parent] if isinstance(parent, cst.Subscript) else parent


def _is_for_people(parents: Mapping[cst.CSTNode, cst.CSTNode], node: cst.CSTNode) -> bool:
    """Whether nothing is seen that reads this annotation, as ``singledispatch`` does."""
    while not isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Module)):
        node = parents[node]
    if isinstance(node, cst.Module):
        return True
    quiet = _QUIET if isinstance(node, cst.FunctionDef) else {"dataclass"}
    if isinstance(node, cst.ClassDef) and node.bases:
        return False
    return all(quiet.intersection(_names(each.decorator)) for each in node.decorators)


def _names(node: cst.CSTNode) -> set[str]:
    return {each.value for each in walk(node) if isinstance(each, cst.Name)}


def class_itself(site: Site) -> str:
    """Whether a use of the class that is no call of it may lead to calls that are not seen."""
    names = site.file.names
    parent = _around(site)
    if isinstance(parent, cst.Attribute) and parent.attr.value == "from_v2":
        return _several_layers(site, parent)
    for node in walk(names.module):
        if isinstance(node, cst.Attribute) and node.attr.value == "from_v2":
            cls = node.value.value if isinstance(node.value, cst.Subscript) else node.value
            row = names.row(cls)
            if row is None or row.code != "CC010":
                return "from_v2 may be called on it, with several layers: call it on RNNDesc itself"
        if m.matches(node, m.Call(m.Name("type"), [m.Arg(), m.AtLeastN(m.Arg(), n=1)])):
            return "a class is made by type(), whose methods are not seen"
    return passed_by_name(site.file, "layers")


def _several_layers(site: Site, attribute: cst.Attribute) -> str:
    """Whether ``RNNDesc.from_v2`` may be given a spec of several layers."""
    names = site.file.names
    call = names.parents[attribute]
    several = "its spec may have several layers, which are v2's: make it here, with RNNSpec(…)"
    if not isinstance(call, cst.Call) or call.func is not attribute or not call.args:
        return several
    given = {arg.keyword.value if arg.keyword else "spec": arg for arg in call.args[::-1]}
    spec = given.get("spec")
    return "" if spec and not spec.star and _has_one_layer(names, spec.value) else several


def _has_one_layer(names: Names, spec: cst.BaseExpression) -> bool:
    """Whether an expression is certainly a spec of one layer."""
    value = names.assigned_value(spec) or spec
    if isinstance(value, cst.Attribute) and value.attr.value == "spec":
        return names.origin(value.value) == "CC010"
    if not isinstance(value, cst.Call):
        return _is_of_a_network(names, spec)
    scope = names.scopes.get(value.func)
    made = {each.name for each in scope.get_qualified_names_for(value.func)} if scope else set()
    if made - {"cudnn_compat.v2.RNNSpec", "cudnn_compat.RNNSpec"} or not made:
        return False
    positional = [arg for arg in value.args if arg.keyword is None]
    layers = [arg.value for arg in value.args if arg.keyword and arg.keyword.value == "num_layers"]
    if len(positional) > 3 or any(arg.star for arg in value.args):
        return False
    return all(m.matches(each, m.Integer("1")) for each in layers)


def _is_of_a_network(names: Names, spec: cst.BaseExpression) -> bool:
    """Whether it is the first of ``spec, w = desc.to_v2()``, and of nothing else."""
    target = names.only_target(spec)
    element = None if target is None else names.parents.get(target)
    holder = None if element is None else names.parents.get(element)
    if not isinstance(holder, (cst.Tuple, cst.List)) or holder.elements[0] is not element:
        return False
    statement = names.parents.get(names.parents[holder])
    return (
        isinstance(statement, cst.Assign)
        and m.matches(statement.value, m.Call(m.Attribute(attr=m.Name("to_v2")), []))
        and names.origin(statement.value.func.value) == "CC010"  # type: ignore[attr-defined]
    )
