"""One file: finds the uses of old names, asks the rules, and puts their answers in place."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import libcst as cst
from libcst.metadata import ExpressionContext, MetadataWrapper, PositionProvider

from cudnn_compat.migrate.file_context import FileContext
from cudnn_compat.migrate.finding import Finding
from cudnn_compat.migrate.hints import Hints
from cudnn_compat.migrate.imports import imports_of
from cudnn_compat.migrate.known import ROWS, Use, canonical
from cudnn_compat.migrate.marks import add_mark
from cudnn_compat.migrate.names import Names
from cudnn_compat.migrate.rule import Answer, CallSite, Left, Rule, Site, Statements
from cudnn_compat.migrate.rules import RULES
from cudnn_compat.migrate.syntax import walk
from cudnn_compat.migrate.verdicts import EXPORTED, IN_CLASS, Verdicts

__all__ = ["Rewriter", "Rewritten", "rewrite"]

_NO_RULE = "there is nothing in v2 that the tool could put in its place; see the guide"


@dataclasses.dataclass
class Rewritten:
    """A file whose uses are rewritten, and which still lacks imports and definitions.

    Attributes:
        blocked: the first place that was left, of each group of rules that has one.
    """

    module: cst.Module
    file: FileContext
    findings: list[Finding]
    blocked: dict[str, Finding]


def rewrite(
    module: cst.Module,
    path: str,
    closed: Mapping[str, Finding],
    exported: Collection[str] = (),
    defined_elsewhere: Collection[tuple[str, str]] = (),
    hints: Hints | None = None,
) -> Rewritten:
    """Rewrite the uses of old names in one file.

    Args:
        closed: groups of rules that move nothing in this program, and the place that is why.
        exported: names that other files import from this one.
        defined_elsewhere: definitions that other files get, by (part, name).
        hints: what all files say about the objects of the old class.
    """
    wrapper = MetadataWrapper(module)
    names = Names(wrapper)
    file = FileContext(path, names, defined_elsewhere, hints or Hints())
    verdicts = Verdicts(file, wrapper.resolve(PositionProvider))
    rewriter = Rewriter(file, verdicts, closed)
    rewriter.prepare()
    rewriter.look_at_imports({*exported, *names.listed_in_all})
    changed = wrapper.module.visit(rewriter)
    return Rewritten(changed, file, sorted(verdicts.findings), verdicts.blocked)


class Rewriter(cst.CSTTransformer):
    """See :func:`rewrite`."""

    def __init__(
        self,
        file: FileContext,
        verdicts: Verdicts,
        closed: Mapping[str, Finding],
    ) -> None:
        super().__init__()
        self.file = file
        self.names = file.names
        self.closed = closed
        self.verdicts = verdicts
        self._called: set[cst.CSTNode] = set()
        """Names and attributes that are called: not values."""
        self._whole: set[cst.CSTNode] = set()
        """Calls that are a whole statement or the whole right side of one."""
        self._replaced: dict[cst.CSTNode, cst.BaseExpression | Sequence[cst.BaseStatement]] = {}
        self._staying: set[cst.CSTNode] = set()
        """Nodes in what a rule would have replaced, had its group not been closed."""

    def prepare(self) -> None:
        """Let each rule look at the whole file."""
        for rule in dict.fromkeys(RULES.values()):
            before = self.file.wanted()
            with self.file.plan(rule.group):
                rule.prepare(self.file)
            if rule.group in self.closed:
                self.file.want(before)
        for node, code, reason in self.file.left_by_plan:
            row = next(row for row in ROWS.values() if row.code == code)
            self.verdicts.left(Use(row.old, row), node, reason)
        for replaced, replacement in self.file.replaced.items():
            inside = [n for n in walk(replaced) if isinstance(n, cst.BaseExpression)]
            if replacement.group is not None and replacement.group in self.closed:
                self._staying.update(inside)
                continue
            self._replaced[replaced] = replacement.new
            for expression in inside:
                found = self.names.use(expression) if self.names.is_read(expression) else None
                if found is not None and found.row is not None:
                    self.verdicts.moved(found, expression)

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Does not look into what is replaced as a whole."""
        return node not in self._replaced and super().on_visit(node)

    def look_at_imports(self, exported: Collection[str]) -> None:
        """Leave what is imported for others, and report what is imported for nothing."""
        for each in imports_of(self.names):
            qualified = canonical(each.qualified)
            if qualified is None:
                continue
            use = Use(qualified, ROWS.get(qualified))
            if each.local in exported or "*" in exported:
                self.verdicts.left(use, each.node, EXPORTED)
            elif self.names.is_in_class(each.node):
                self.verdicts.left(use, each.node, IN_CLASS)
            elif not each.used:
                self.verdicts.unused(use, each.node)

    # What is looked at.

    def visit_Import(self, node: cst.Import) -> bool:
        """An import is no use."""
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        """An import is no use."""
        return False

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        """Notes the call that is all of it."""
        if len(node.body) == 1 and isinstance(node.body[0], (cst.Assign, cst.Expr)):
            self._whole.add(node.body[0].value)

    def visit_Call(self, node: cst.Call) -> None:
        """Notes what is called."""
        func, _ = _function(node)
        if self.names.use(func) is not None:
            self._called.add(func)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Asks for an expression."""
        use = self._use_called(original_node)
        if use is None or original_node in self._whole:
            return updated_node
        site = self._call_site(use, original_node, updated_node)
        answer = self._ask(use, site, lambda rule: rule.call(site))
        return updated_node if answer is None else cast("cst.BaseExpression", answer)

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        """Asks for statements, else for an expression."""
        before, now = original_node.body[0], updated_node.body[0]
        if len(original_node.body) != 1 or not isinstance(before, (cst.Assign, cst.Expr)):
            return updated_node
        assert isinstance(now, (cst.Assign, cst.Expr))
        if not isinstance(before.value, cst.Call) or not isinstance(now.value, cst.Call):
            return updated_node
        use = self._use_called(before.value)
        if use is None:
            return updated_node
        site = self._call_site(use, before.value, now.value)
        targets = now.targets if isinstance(now, cst.Assign) else ()
        site.targets = tuple(target.target for target in targets)

        def ask(rule: Rule) -> Answer | Statements:
            statements = rule.statement(site)
            return rule.call(site) if statements is None else statements

        answer = self._ask(use, site, ask)
        if answer is None:
            return updated_node
        if isinstance(answer, cst.BaseExpression):
            return updated_node.with_changes(body=[now.with_changes(value=answer)])
        statements = list(answer)
        statements[0] = statements[0].with_changes(leading_lines=updated_node.leading_lines)
        if isinstance(statements[0], cst.SimpleStatementLine):
            statements[0] = statements[0].with_changes(
                trailing_whitespace=updated_node.trailing_whitespace
            )
        return cst.FlattenSentinel(statements)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """Asks for a value."""
        return self._leave_value(original_node, updated_node)

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        """Asks for a value."""
        return self._leave_value(original_node, updated_node)

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Puts the marks of a statement above it, after everything in it was asked."""
        if original_node in self._replaced:
            left = _in_place(original_node, self._replaced[original_node])
        else:
            left = super().on_leave(original_node, updated_node)
        for text in self.verdicts.marks.pop(original_node, ()):
            left = add_mark(left, text)
        return left

    # What is asked.

    def _leave_value(
        self, original: cst.Name | cst.Attribute, updated: cst.Name | cst.Attribute
    ) -> cst.BaseExpression:
        context = self.names.contexts.get(original)
        if original in self._called or context is None:
            return updated
        use = self.names.use(original)
        if use is None:
            return updated
        if context is not ExpressionContext.LOAD:
            deleted = context is ExpressionContext.DEL
            if use.row is not None and (deleted or isinstance(original, cst.Attribute)):
                self.verdicts.left(use, original, "it is replaced or deleted at run time")
            return updated
        parent = self.names.parents.get(original)
        if isinstance(parent, cst.Attribute):
            outer = self.names.use(parent)
            if outer is not None and (use.is_module or use.row is None):
                return updated  # a part of a longer name, which is looked at by itself
        if use.is_module:
            self.verdicts.left_module(use, original)
            return updated
        if use.row is None and self._is_below_a_name(original):
            return updated  # an attribute of an old name, which is looked at by itself
        site = Site(use.row, use.name, original, self.file)
        answer = self._ask(use, site, lambda rule: rule.value(site))
        return updated if answer is None else cast("cst.BaseExpression", answer)

    def _is_below_a_name(self, node: cst.BaseExpression) -> bool:
        while isinstance(node, cst.Attribute):
            node = node.value
            inner = self.names.use(node)
            if inner is not None and inner.row is not None:
                return True
        return False

    def _use_called(self, call: cst.Call) -> Use | None:
        """The old name that is called; None also where the call is of an old name's attribute."""
        func, _ = _function(call)
        use = self.names.use(func)
        if use is None or (use.row is None and self._is_below_a_name(func)):
            return None
        return use

    def _call_site(self, use: Use, original: cst.Call, updated: cst.Call) -> CallSite:
        _, subscript = _function(updated)
        return CallSite(use.row, use.name, original, self.file, updated, subscript)

    def _ask(self, use: Use, site: Site, ask: Any) -> cst.BaseExpression | Statements | None:
        """What a rule answers; None where the place is left."""
        rule = RULES.get(use.qualified)
        group = None if rule is None else rule.group
        if use.doubt:
            self.verdicts.left(use, site.original, use.doubt)
            return None
        if rule is None:
            self.verdicts.left(use, site.original, _NO_RULE)
            return None
        if group is not None and site.original in self._staying:
            self.verdicts.stays(use, site.original, self.closed[group])
            return None
        before = self.file.wanted()
        answer: Answer | Statements = ask(rule)
        if isinstance(answer, Left):
            self.file.want(before)
            self.verdicts.left(use, site.original, answer.reason)
            return None
        if group is not None and group in self.closed:
            self.file.want(before)
            self.verdicts.stays(use, site.original, self.closed[group])
            return None
        self.verdicts.moved(use, site.original)
        return answer


def _function(call: cst.Call) -> tuple[cst.BaseExpression, cst.BaseExpression | None]:
    """What is called, and the brackets behind its name (``RNNDesc["float64"](…)``)."""
    func = call.func
    if isinstance(func, cst.Subscript) and len(func.slice) == 1:
        inside = func.slice[0].slice
        if isinstance(inside, cst.Index) and inside.star is None:
            return func.value, inside.value
    return func, None


def _in_place(original: cst.CSTNode, new: cst.BaseExpression | Sequence[cst.BaseStatement]) -> Any:
    """New statements with the comments of the old one; or the new expression."""
    if isinstance(new, cst.BaseExpression):
        return new
    if not new:
        return cst.RemoveFromParent()
    lines = getattr(original, "leading_lines", ())
    first, *rest = new
    return cst.FlattenSentinel([first.with_changes(leading_lines=lines), *rest])
