"""What an expression of a file means: which old name it is, and whether that is certain.

libcst knows scopes, imports and aliases; ``import *`` it does not follow, so that is done here.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import libcst as cst
from libcst.metadata import (
    Assignment,
    ClassScope,
    ExpressionContext,
    ExpressionContextProvider,
    GlobalScope,
    ImportAssignment,
    MetadataWrapper,
    ParentNodeProvider,
    Scope,
    ScopeProvider,
)

from cudnn_compat.legacy.names import LegacyName
from cudnn_compat.legacy.table import TABLE
from cudnn_compat.migrate.known import OLD_MODULES, ROWS, Use, canonical, public_names
from cudnn_compat.migrate.stars import torn_names
from cudnn_compat.migrate.syntax import dotted, imported_module, walk

__all__ = ["Names"]


class Names:
    """Answers for one file.

    Attributes:
        module: the tree that can be asked about.
        scopes, parents, contexts: libcst's metadata of it.
    """

    def __init__(self, wrapper: MetadataWrapper) -> None:
        self.module = wrapper.module
        self.scopes: Mapping[cst.CSTNode, Scope | None] = wrapper.resolve(ScopeProvider)
        self.parents: Mapping[cst.CSTNode, cst.CSTNode] = wrapper.resolve(ParentNodeProvider)
        self.contexts: Mapping[cst.CSTNode, ExpressionContext | None] = wrapper.resolve(
            ExpressionContextProvider
        )
        self._uses: dict[cst.CSTNode, Use | None] = {}
        self._star_nodes: list[cst.ImportFrom] = []
        self._stars, self._other_stars = self._find_stars()

    @functools.cached_property
    def all_scopes(self) -> tuple[Scope, ...]:
        """Every scope of the file, once."""
        return tuple({id(s): s for s in self.scopes.values() if s is not None}.values())

    @functools.cached_property
    def taken(self) -> frozenset[str]:
        """Every name that the file binds or reads."""
        bound = {a.name.partition(".")[0] for scope in self.all_scopes for a in scope.assignments}
        read = {
            node.value
            for node in self.contexts
            if isinstance(node, cst.Name)
            and self.contexts[node] is not None
            and not isinstance(self.parents[node], (cst.Import, cst.ImportFrom, cst.ImportAlias))
        }
        return frozenset(bound | read)

    @functools.cached_property
    def listed_in_all(self) -> frozenset[str]:
        """The names in the file's ``__all__``."""
        found = set()
        for statement in self.module.body:
            if not isinstance(statement, cst.SimpleStatementLine):
                continue
            for small in statement.body:
                if isinstance(small, cst.Assign):
                    target = small.targets[0].target
                    if isinstance(target, cst.Name) and target.value == "__all__":
                        found |= {
                            str(each.evaluated_value)
                            for each in walk(small.value)
                            if isinstance(each, cst.SimpleString)
                        }
        return frozenset(found)

    @functools.cached_property
    def global_scope(self) -> Scope | None:
        """The module's own."""
        return next((s for s in self.all_scopes if isinstance(s, GlobalScope)), None)

    def use(self, node: cst.BaseExpression) -> Use | None:
        """The old name that this Name or Attribute is; None: it is none."""
        if node not in self._uses:
            self._uses[node] = None  # what a question about it meets on the way, `a = a.f()`
            self._uses[node] = self._find(node) or self._find_method(node)
        return self._uses[node]

    def row(self, node: cst.BaseExpression) -> LegacyName | None:
        """The row of an expression that is certainly an old name."""
        use = self.use(node)
        return use.row if use is not None and not use.doubt else None

    def origin(self, node: cst.BaseExpression) -> str | None:
        """See :meth:`.rule.Site.origin`."""
        if isinstance(node, cst.Call):
            func = node.func.value if isinstance(node.func, cst.Subscript) else node.func
            row = self.row(func)
            return row.code if row is not None else None
        value = self.assigned_value(node)
        return None if value is None else self.origin(value)

    def assigned_value(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """What a variable certainly holds: the right side of its one assignment, or None."""
        target = self.only_target(node)
        if target is None:
            return None
        holder = self.parents.get(target)
        if isinstance(holder, cst.AnnAssign):
            return holder.value
        statement = self.parents.get(holder) if isinstance(holder, cst.AssignTarget) else None
        return statement.value if isinstance(statement, cst.Assign) else None

    def only_target(self, node: cst.BaseExpression) -> cst.Name | None:
        """Where a variable is bound, if that is in one place, by an assignment or the like."""
        if not isinstance(node, cst.Name) or (scope := self.scopes.get(node)) is None:
            return None
        found = list(scope[node.value])
        if len(found) != 1 or not isinstance(found[0], Assignment):
            return None
        target = found[0].node
        return target if isinstance(target, cst.Name) else None

    def only_old(self, name: str) -> bool:
        """Whether a name is, wherever the file has it, the old name of that name."""
        bound = [a for s in self.all_scopes for a in s.assignments if a.name == name]
        if not all(isinstance(each, ImportAssignment) for each in bound):
            return False
        read = [
            self.use(node)
            for node in walk(self.module)
            if isinstance(node, cst.Name)
            and node.value == name
            and self.contexts.get(node) is not None
            and not isinstance(self.parents[node], (cst.ImportAlias, cst.AsName))
        ]
        return bool(read) and all(
            use is not None and use.row is not None and use.row.name == name and not use.doubt
            for use in read
        )

    def is_in_class(self, node: cst.CSTNode) -> bool:
        """Whether what this statement binds are attributes of a class."""
        return isinstance(self.scopes.get(node), ClassScope)

    def is_read(self, node: cst.BaseExpression) -> bool:
        """Whether this Name or Attribute is evaluated here (not assigned, imported, a keyword)."""
        return self.contexts.get(node) is ExpressionContext.LOAD

    def _find(self, node: cst.BaseExpression) -> Use | None:
        full = dotted(node)
        scope = self.scopes.get(node)
        if not full or scope is None:
            return None
        first, *rest = full.split(".")
        assignments = list(scope[first])
        if not assignments:
            return self._from_star(first, rest)
        if all(isinstance(each.scope, GlobalScope) for each in assignments):
            module = self._torn.get(first)
            if module is not None:
                qualified = canonical(".".join([module, first, *rest]))
                assert qualified is not None
                doubt = f"{first} has more than one meaning in this file"
                return Use(qualified, ROWS.get(qualified), doubt)
        found = {each.name for each in scope.get_qualified_names_for(node)}
        is_above = not found
        if is_above:
            found = {
                each.name
                for assignment in assignments
                if isinstance(assignment, ImportAssignment)
                for each in assignment.get_qualified_names_for(full)
            }
        old = {known for each in found if (known := canonical(each)) is not None}
        if not old:
            return None
        qualified = min(old)
        doubt = ""
        imported = all(isinstance(each, ImportAssignment) for each in assignments)
        # `import a.b` and `import a.c` both assign a, and that is one thing.
        if len(found) > 1 or not imported:
            doubt = f"{first} has more than one meaning in this file"
        elif is_above:
            doubt = f"{first} is used above its import"
        elif any(
            self._comes_after(star, each) for star in self._star_nodes for each in assignments
        ):
            doubt = f"{first} may be replaced by the import * below its import"
        return Use(qualified, ROWS.get(qualified), doubt)

    def _find_method(self, node: cst.BaseExpression) -> Use | None:
        """A method that has a row, of an object that an old class certainly made."""
        if not isinstance(node, cst.Attribute) or (code := self.origin(node.value)) is None:
            return None
        made_by = next(row for row in TABLE if row.code == code)
        row = ROWS.get(f"{made_by.old}.{node.attr.value}")
        return None if row is None else Use(row.old, row)

    def star_of(self, node: cst.Name) -> str | None:
        """The module whose ``import *`` gives this name; None where something else does."""
        scope = self.scopes.get(node)
        if scope is None or self.contexts.get(node) is None:
            return None
        bound = list(scope[node.value])
        if bound:
            own = not all(isinstance(each.scope, GlobalScope) for each in bound)
            return None if own else self._torn.get(node.value)
        return next((each for each in self._stars if node.value in public_names(each)), None)

    @functools.cached_property
    def _torn(self) -> dict[str, str]:
        """See :func:`.stars.torn_names`."""
        return torn_names(self, self._stars)

    def _from_star(self, first: str, rest: list[str]) -> Use | None:
        for module in self._stars:
            if first in public_names(module):
                qualified = canonical(".".join([module, first, *rest]))
                assert qualified is not None
                doubt = ""
                if self._other_stars:
                    doubt = f"{first} may also come from another import *"
                return Use(qualified, ROWS.get(qualified), doubt)
        return None

    def _comes_after(self, star: cst.ImportFrom, assignment: object) -> bool:
        """Whether an import * may replace what an import of the module's top level has bound."""
        node = getattr(assignment, "node", None)
        if not isinstance(self.scopes.get(node), GlobalScope):  # type: ignore[arg-type]
            return False
        return self.order[star] > self.order[node]

    @functools.cached_property
    def order(self) -> dict[object, int]:
        """Where each node stands in the file."""
        return {node: index for index, node in enumerate(walk(self.module))}

    def _find_stars(self) -> tuple[list[str], list[str]]:
        """Modules of old names, and all others, that ``import *`` is done from."""
        ours: list[str] = []
        others: list[str] = []
        for node in walk(self.module):
            if isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar):
                module = imported_module(node)
                if module not in OLD_MODULES:
                    self._star_nodes.append(node)
                (ours if module in OLD_MODULES else others).append(module)
        return ours, others
