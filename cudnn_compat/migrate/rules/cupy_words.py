"""The numbers of old calls as the words of a spec: modes, directions, algorithms, data types."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import libcst as cst

from cudnn_compat.legacy.cupy.described import DTYPES
from cudnn_compat.legacy.cupy.translate import ALGORITHMS, CELLS, DIRECTIONS, INPUT_MODES, LAYOUTS
from cudnn_compat.migrate.rules.cupy_questions import Unclear
from cudnn_compat.migrate.rules.cupy_syntax import code, replaced
from cudnn_compat.migrate.rules.cupy_values import Value
from cudnn_compat.migrate.rules.cupy_work import Draft, Work

__all__ = ["Word", "dtype_word", "word"]

_TABLES: Mapping[str, Mapping[int, Any]] = {
    "mode": CELLS,
    "rnn_mode": CELLS,
    "direction": DIRECTIONS,
    "direction_mode": DIRECTIONS,
    "input_mode": INPUT_MODES,
    "inputMode": INPUT_MODES,
    "algo": ALGORITHMS,
    "layout": LAYOUTS,
    "data_type": DTYPES,
    "dataType": DTYPES,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Word:
    """What a number becomes.

    Attributes:
        text: source text: ``"lstm"`` in quotes, ``True``, or an expression that gives such words.
        possible: the values that it can have.
    """

    text: str
    possible: frozenset[Any]

    @property
    def known(self) -> Any:
        """The value where there is only one; None: it is not known."""
        return next(iter(self.possible)) if len(self.possible) == 1 else None


def word(work: Work, draft: Draft, node: cst.CSTNode | Value, name: str, at: cst.CSTNode) -> Word:
    """What the argument ``name`` becomes in the place of ``at``.

    Raises:
        Unclear: the source does not say which number it is.
    """
    value = node if isinstance(node, Value) else Value(node)
    table = _TABLES[name]
    found = work.values.follow(value)
    if found.node in work.refused:
        raise Unclear(work.refused[found.node])
    number = work.old.constant(found.node)
    if number is not None:
        if number not in table:
            raise Unclear(f"{name} is {number}, which means nothing")
        return Word(_quoted(table[number]), frozenset([table[number]]))
    chosen = _constants(work, found.node)
    if not chosen or any(n not in table for n in chosen.values()):
        raise Unclear(
            f"{name} is {code(value.node)}, and the source does not say which constant that is"
        )
    possible = frozenset(table[n] for n in chosen.values())
    words = {each: cst.parse_expression(_quoted(table[n])) for each, n in chosen.items()}
    if found.node is value.node:
        text = code(replaced(found.node, words))
        return Word(f"({text})", possible)
    place = work.place(value.node)
    definition = work.flow.only(place) if place is not None else None
    if place is None or definition is None or definition.value is not found.node:
        raise Unclear(f"{name} is {code(value.node)}, which is chosen elsewhere")
    # The variable holds words from now on, so nothing else may read it.
    draft.new |= {each: _quoted(table[n]) for each, n in chosen.items()}
    work.promise(place, f"{code(value.node)} is used elsewhere as a number")
    return Word(work.text(value, at), possible)


def _constants(work: Work, node: cst.CSTNode) -> dict[cst.CSTNode, int]:
    """The constants among which an expression chooses; empty where it does not just choose."""
    number = work.old.constant(node)
    if number is not None:
        return {node: number}
    branches: list[cst.CSTNode] = []
    if isinstance(node, cst.IfExp):
        branches = [node.body, node.orelse]
    elif isinstance(node, cst.Subscript) and isinstance(node.value, cst.Dict):
        if not all(isinstance(e, cst.DictElement) for e in node.value.elements):
            return {}
        branches = [element.value for element in node.value.elements]
    elif isinstance(node, cst.Subscript) and isinstance(node.value, (cst.Tuple, cst.List)):
        branches = [element.value for element in node.value.elements]
    found: dict[cst.CSTNode, int] = {}
    for branch in branches:
        inner = _constants(work, branch)
        if not inner:
            return {}
        found |= inner
    return found


def dtype_word(
    work: Work, draft: Draft, node: cst.BaseExpression, at: cst.CSTNode
) -> tuple[str, str]:
    """What a data type becomes: the texts of ``dtype=`` and ``math=``.

    float16 computed in float16 of old, everything else in full precision.
    """
    found = work.values.follow(Value(node))
    call = work.old.call(found.node)
    if call is None or call.name != "cudnn.get_data_type":
        known = word(work, draft, node, "data_type", at)
        if "float16" not in known.possible:
            return known.text, '"full"'
        if known.known is not None:
            return known.text, '"half"'
        return known.text, f'"half" if {known.text} == "float16" else "full"'
    given = Value(work.argument(call, "dtype"), found.given)
    dtype = work.text(given, at, "the dtype")
    draft.done.append(call)
    literal = work.values.follow(given).node
    if isinstance(literal, cst.SimpleString):
        import numpy as np

        name = np.dtype(str(literal.evaluated_value)).name
        return f'"{name}"', '"half"' if name == "float16" else '"full"'
    if isinstance(literal, cst.Attribute) and literal.attr.value in DTYPES.values():
        name = literal.attr.value
        return f'"{name}"', '"half"' if name == "float16" else '"full"'
    is_dtype = (isinstance(literal, cst.Attribute) and literal.attr.value == "dtype") or (
        isinstance(literal, cst.Call) and code(literal.func).endswith(".dtype")
    )
    compared = dtype if is_dtype else f"{work.numpy}.dtype({dtype})"
    return dtype, f'"half" if {compared} == "float16" else "full"'


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
