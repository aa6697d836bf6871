"""Questions about one file: what an argument is, where a call stands."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from cudnn_compat.migrate.file_context import FileContext
from cudnn_compat.migrate.rules.cupy_flow import Flow
from cudnn_compat.migrate.rules.cupy_old import OldCall, OldNames
from cudnn_compat.migrate.rules.cupy_syntax import code, is_atom
from cudnn_compat.migrate.rules.cupy_tree import Place
from cudnn_compat.migrate.rules.cupy_values import Value, Values

__all__ = ["MAKERS", "Questions", "Unclear", "active"]


class Unclear(Exception):
    """Something cannot be proved; its text says what, and what to do by hand."""


MAKERS = frozenset(
    [
        "array",
        "asarray",
        "ascontiguousarray",
        "astype",
        "concatenate",
        "copy",
        "empty",
        "empty_like",
        "full",
        "full_like",
        "ones",
        "ones_like",
        "ravel",
        "reshape",
        "stack",
        "uniform",
        "zeros",
        "zeros_like",
    ]
)
"""What certainly gives an array."""
_ACTIVE = m.OneOf(m.Call(), m.Await(), m.Yield(), m.NamedExpr())


class Questions:
    """One file, and what can be asked about it."""

    def __init__(self, file: FileContext) -> None:
        self.file = file
        self.flow = Flow(file.names.module)
        self.values = Values(self.flow)
        self.old = OldNames(file.names, self.flow, self.values)

    def named(self, *names: str) -> list[OldCall]:
        """The calls of some old functions."""
        return [call for call in self.old.calls if call.name in names]

    def argument(self, call: OldCall, name: str) -> cst.BaseExpression:
        """An argument.

        Raises:
            Unclear: it is missing, or hidden.
        """
        if call.fault:
            raise Unclear(call.fault)
        if name not in call.given:
            raise Unclear(f"the argument {name} is missing")
        return call.given[name]

    def text(self, node: cst.CSTNode | Value, at: cst.CSTNode, what: str = "") -> str:
        """The text of a value in the place of ``at``.

        Raises:
            Unclear: it cannot be said there.
        """
        value = node if isinstance(node, Value) else Value(node)
        found = self.values.text(value, at)
        if found is None:
            raise Unclear(f"{what or code(value.node)} cannot be seen here")
        return found

    def primary(self, node: cst.CSTNode | Value, at: cst.CSTNode, what: str = "") -> str:
        """The same, in parentheses where an attribute needs them."""
        return self.grouped(self.text(node, at, what))

    def grouped(self, text: str) -> str:
        """An expression in parentheses, where an attribute needs them."""
        return text if is_atom(text) else f"({text})"

    def followed(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """A node, and where its value comes from."""
        return [node, self.values.follow(Value(node)).node]

    def place(self, node: cst.CSTNode) -> Place | None:
        """The place that an expression is."""
        return self.flow.place(node) if isinstance(node, (cst.Name, cst.Attribute)) else None

    def copied(self, load: cst.CSTNode) -> bool:
        """Whether a read just gives a value another name."""
        return load in self.flow.given

    def holders(self, node: cst.CSTNode) -> list[Place]:
        """The places that the value of an expression is assigned to, and those that copy these."""
        found: list[Place] = []
        todo = [*self.flow.given.get(node, ())]
        while todo:
            place = todo.pop()
            if place not in found:
                found.append(place)
                todo += [
                    p for load in self.flow.loads[place] for p in self.flow.given.get(load, ())
                ]
        return found

    # Where a call stands.

    def line(self, node: cst.CSTNode) -> cst.SimpleStatementLine:
        """The statement that a call stands in, if it is the only one of its line.

        Raises:
            Unclear: it shares the line, or stands in the head of a compound statement.
        """
        statement = self.flow.statement_of(node)
        if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
            raise Unclear("it shares its line with other statements; give it a line of its own")
        return statement

    def targets(self, call: OldCall, count: int) -> list[cst.BaseExpression] | None:
        """The targets of ``a, b, c = call(…)``; None for any other statement."""
        small = self.line(call.node).body[0]
        if not isinstance(small, cst.Assign) or small.value is not call.node:
            return None
        target = small.targets[0].target
        if len(small.targets) != 1 or not isinstance(target, (cst.Tuple, cst.List)):
            return None
        items = [element.value for element in target.elements]
        stars = any(isinstance(element, cst.StarredElement) for element in target.elements)
        return items if len(items) == count and not stars else None

    def item(self, call: OldCall) -> tuple[cst.Subscript, int] | None:
        """``call(…)[1]``: the subscript and the number."""
        above = self.flow.parents[call.node]
        if isinstance(above, cst.Subscript) and above.value is call.node:
            inner = above.slice[0].slice if len(above.slice) == 1 else None
            if isinstance(inner, cst.Index) and isinstance(inner.value, cst.Integer):
                return above, int(inner.value.value)
        return None

    def comes_first(self, node: cst.CSTNode) -> bool:
        """Whether nothing of its statement is computed before a call, and the call always is."""
        line = self.line(node)
        inside = [n for n in self.flow.walk(line) if active_itself(n) and n is not node]
        above: list[cst.CSTNode] = []
        current = self.flow.parents[node]
        while current is not line:
            above.append(current)
            current = self.flow.parents[current]
        maybe = (cst.Lambda, cst.BaseComp, cst.IfExp, cst.BooleanOperation, cst.Comparison)
        if any(isinstance(each, maybe) for each in above):
            return False
        begin = self.flow.order[node]
        return all(self.flow.order[n] > begin or n in above for n in inside)

    def depth(self, node: cst.CSTNode) -> int:
        """Columns that a statement is indented by."""
        blocks, current = 0, self.flow.parents.get(node)
        while current is not None:
            blocks += isinstance(current, cst.IndentedBlock)
            current = self.flow.parents.get(current)
        return blocks * len(self.file.tree.default_indent)

    @property
    def v2(self) -> str:
        """The local name of v2."""
        return self.file.module("cudnn_compat.v2")

    @property
    def numpy(self) -> str:
        """The local name of NumPy."""
        return self.file.module("numpy")

    def never_none(self, node: cst.CSTNode) -> bool:
        """Whether an expression is certainly not None: it computes something."""
        found = self.values.follow(Value(node)).node
        place = self.place(found)
        definition = self.flow.only(place) if place is not None else None
        if definition is not None and definition.item is not None and not definition.loop:
            value = definition.value
            return isinstance(value, cst.GeneratorExp) and self.never_none(value.elt)
        if isinstance(found, cst.Call):
            return isinstance(found.func, cst.Attribute) and found.func.attr.value in MAKERS
        return isinstance(found, (cst.BinaryOperation, cst.UnaryOperation))


def active_itself(node: cst.CSTNode) -> bool:
    """Whether a node is a call or the like."""
    return m.matches(node, _ACTIVE)


def active(node: cst.CSTNode) -> bool:
    """Whether an expression does more than look something up."""
    return bool(m.findall(node, _ACTIVE))
