"""Names that an old ``import *`` gives and the file binds as well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import libcst as cst
from libcst.metadata import GlobalScope, ImportAssignment

from cudnn_compat.migrate.known import canonical, public_names
from cudnn_compat.migrate.syntax import imported_module

if TYPE_CHECKING:
    from cudnn_compat.migrate.names import Names

__all__ = ["torn_names"]


def torn_names(names: Names, modules: Iterable[str]) -> dict[str, str]:
    """Names of an old ``import *`` that the file binds as well, and the module of the star.

    Without those that the file certainly has of its own: bound once, by a statement of the
    module's body below the star, and read only below that.
    """
    torn = {}
    scopes = [scope for scope in names.all_scopes if isinstance(scope, GlobalScope)]
    for module in modules:
        stars = [
            names.order[node]
            for node in names.order
            if isinstance(node, cst.ImportFrom)
            and isinstance(node.names, cst.ImportStar)
            and imported_module(node) == module
        ]
        for name in public_names(module):
            bound = [one for scope in scopes for one in scope.assignments if one.name == name]
            if not bound or _are_the_same(bound, module, name):
                continue
            if not _is_own(names, name, bound, max(stars)):
                torn[name] = module
    return torn


def _are_the_same(bound: list[Any], module: str, name: str) -> bool:
    """Whether all that binds a name imports what the star gives too."""
    wanted = canonical(f"{module}.{name}")
    return all(
        isinstance(each, ImportAssignment)
        and {canonical(one.name) for one in each.get_qualified_names_for(name)} == {wanted}
        for each in bound
    )


def _is_own(names: Names, name: str, bound: list[Any], star: int) -> bool:
    if len(bound) != 1:
        return False
    statement = bound[0].node
    while (above := names.parents.get(statement)) is not None and above is not names.module:
        if isinstance(above, cst.BaseCompoundStatement | cst.BaseSuite):
            return False
        statement = above
    if above is None or isinstance(statement, cst.For | cst.While | cst.If | cst.Try | cst.With):
        return False
    place = names.order[statement]
    return place > star and all(
        names.order[node] > place
        for node in names.order
        if isinstance(node, cst.Name)
        and node.value == name
        and names.contexts.get(node) is not None
        and (scope := names.scopes.get(node)) is not None
        and all(isinstance(each.scope, GlobalScope) for each in scope[name])
    )
