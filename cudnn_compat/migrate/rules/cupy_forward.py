"""``rnn_forward_inference`` and ``_training``, with and without ``_ex``: one ``rnn_forward``."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from cudnn_compat.migrate.rules.cupy_layout import Part, Written, lines
from cudnn_compat.migrate.rules.cupy_old import OldCall
from cudnn_compat.migrate.rules.cupy_questions import Unclear, active
from cudnn_compat.migrate.rules.cupy_rule import CupyRule
from cudnn_compat.migrate.rules.cupy_states import ratio_of
from cudnn_compat.migrate.rules.cupy_syntax import code
from cudnn_compat.migrate.rules.cupy_words import word
from cudnn_compat.migrate.rules.cupy_work import Draft, Work

__all__ = ["Arguments", "assignments", "cell_of", "forward", "rule", "when_given"]

INFERENCE = ("cudnn.rnn_forward_inference", "cudnn.rnn_forward_inference_ex")
TRAINING = ("cudnn.rnn_forward_training", "cudnn.rnn_forward_training_ex")


class Arguments:
    """The texts of a call's arguments in new code, and the lines that must come before it."""

    def __init__(self, work: Work, call: OldCall, order: str, repeated: str = "") -> None:
        """``order`` names the arguments as the new code has them, ``repeated`` those it repeats."""
        self.work, self.call = work, call
        self.before: list[str] = []
        self._texts: dict[str, str] = {}
        names = order.split()
        busy = [name for name in names if active(work.argument(call, name))]
        position = {name: work.flow.order[work.argument(call, name)] for name in names}
        written = sorted(busy, key=position.__getitem__)
        hoisted = set(busy) if written != busy else set()
        hoisted |= {n for n in repeated.split() if not _plain(work.argument(call, n))}
        # What is evaluated before something that moves to a line of its own moves too.
        if hoisted:
            last = max(position[name] for name in hoisted)
            hoisted |= {name for name in busy if position[name] < last}
        for name in sorted(names, key=position.__getitem__):
            text = work.text(work.argument(call, name), call.node, name)
            if name in hoisted:
                work.line(call.node)
                variable = work.fresh(name, call.node)
                self.before.append(f"{variable} = {text}")
                text = variable
            self._texts[name] = text

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def primary(self, name: str) -> str:
        """The text, in parentheses where an attribute needs them."""
        return self.work.grouped(self._texts[name])


def _plain(node: cst.CSTNode) -> bool:
    """Whether an expression can be written twice: a name, or an attribute of one."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name)


def when_given(work: Work, call: OldCall, text: str, cx: str, absent: str) -> str:
    """``text``, or ``absent`` where cx may be None: of old there was then no cell state at all."""
    node = work.argument(call, "cx")
    if code(node) == "None":
        return absent
    if work.never_none(node):
        return text
    return f"{text} if {cx} is not None else {absent}"


def cell_of(work: Work, draft: Draft, call: OldCall) -> str:
    """The cell of a call, in quotes.

    Raises:
        Unclear: it is not one certain cell.
    """
    found = word(work, draft, work.argument(call, "rnn_mode"), "rnn_mode", call.node)
    if found.known is None:
        raise Unclear("rnn_mode may be one of several, and only an LSTM has a cell state")
    return found.text


def forward(work: Work, call: OldCall) -> Draft:
    """What a forward becomes.

    Raises:
        Unclear: it cannot be proved.
    """
    draft = Draft()
    draft.done.append(call)
    training = call.name in TRAINING
    cell = cell_of(work, draft, call)
    has_cell = cell == '"lstm"'
    direction = word(
        work, draft, work.argument(call, "direction_mode"), "direction_mode", call.node
    )
    used = "w xs hx cx lengths" if has_cell else "w xs hx lengths"
    given = Arguments(work, call, used, "hx xs")
    hx, xs = given["hx"], given["xs"]
    layers = f"{hx}.shape[0]"
    if direction.known is None:
        layers += f" // (2 if {direction.text} else 1)"
    elif direction.known:
        layers += " // 2"
    spec: list[Part] = [cell, f"{xs}.shape[-1]", f"{hx}.shape[2]", f"num_layers={layers}"]
    if direction.known is not False:
        spec.append(f"bidirectional={direction.text}")
    dropout = None
    if training:
        dropout = ratio_of(work, work.argument(call, "states"), call.node)
        if dropout is not None:
            spec.append(f"dropout={dropout[0]} if {layers} > 1 else 0.0")
    spec += [
        f"dtype={hx}.dtype",
        f'math="half" if {hx}.dtype == "float16" else "full"',
        'algo="standard"',
    ]
    parts: list[Part] = [
        Written(f"{work.v2}.RNNSpec", spec),
        f"{given.primary('w')}.reshape(-1)",
        xs,
        hx,
    ]
    if has_cell and given["cx"] != "None":
        parts.append(given["cx"])
    if call.name.endswith("_ex"):
        parts.append(f"lengths={given['lengths']}")
    else:
        parts += ['layout="packed"', f"batch_sizes={given['lengths']}"]
    if training:
        parts.append("training=True")
    if dropout is not None:
        parts.append(f"seed={dropout[1]}")
    new = Written(f"{work.v2}.rnn_forward", parts)
    _put(work, draft, call, new, given, training=training, has_cell=has_cell)
    return draft


def _put(
    work: Work,
    draft: Draft,
    call: OldCall,
    new: Written,
    given: Arguments,
    *,
    training: bool,
    has_cell: bool,
) -> None:
    """The statement that the call stands in, on the result of the new one."""
    depth = work.depth(call.node)
    targets = work.targets(call, 4 if training else 3)
    if training and targets is None:
        raise Unclear("give its four results names: reserve_space, hy, cy, ys = …")
    line = work.line(call.node)

    def cy(out: str) -> str:
        if not has_cell:
            if code(work.argument(call, "cx")) != "None":
                raise Unclear("this cell has no cell state, but its cy, which was zeros, is used")
            return f"{out}.hy[:0, 0, 0]"
        cx = given["cx"]
        return when_given(work, call, f"{out}.cy", cx, f"{out}.hy[:0, 0, 0]")

    if targets is not None:
        first = None
        if training:
            first, *targets = targets
        if training and first is not None and code(first) != "_":
            if not isinstance(first, (cst.Name, cst.Attribute)):
                raise Unclear("the reserve goes into a container; give it a name of its own")
            out = code(first)
        else:
            out = work.fresh("out", call.node)
        sources = [f"{out}.hy", f"{out}.cy", f"{out}.y"]
        absent = code(work.argument(call, "cx")) == "None"
        if code(targets[1]) != "_" and (absent or work.used(targets[1])):
            sources[1] = cy(out)
        draft.new[line] = [
            *given.before,
            *lines(f"{out} = ", new, depth),
            *assignments(targets, sources),
        ]
        return
    item = work.item(call)
    if item is not None and item[1] in (0, 2):
        if not work.comes_first(call.node):
            raise Unclear("it stands inside an expression; give its results names: hy, cy, ys = …")
        node, index = item
        out = work.fresh("out", call.node)
        draft.new[node] = f"{out}.{'hy' if index == 0 else 'y'}"
        draft.ahead[line] = [*given.before, *lines(f"{out} = ", new, depth)]
        return
    small = line.body[0]
    out = work.fresh("out", call.node)
    results = f"{out}.hy, {cy(out)}, {out}.y"
    head = [*given.before, *lines(f"{out} = ", new, depth)]
    if isinstance(small, cst.Return) and small.value is call.node:
        draft.new[line] = [*head, f"return {results}"]
    elif isinstance(small, cst.Assign) and small.value is call.node and len(small.targets) == 1:
        draft.new[line] = [*head, f"{code(small.targets[0].target)} = {results}"]
    else:
        raise Unclear("it stands inside an expression; give its results names: hy, cy, ys = …")


def assignments(targets: Sequence[cst.BaseExpression], sources: Sequence[str]) -> list[str]:
    """``a, b = …``, without targets called ``_``; a choice gets a line of its own."""
    pairs = [(code(t), source) for t, source in zip(targets, sources, strict=True)]
    pairs = [(target, source) for target, source in pairs if target != "_"]
    plain = [pair for pair in pairs if " if " not in pair[1]]
    chosen = [f"{target} = {source}" for target, source in pairs if " if " in source]
    if not plain:
        return chosen
    left, right = (", ".join(pair[side] for pair in plain) for side in (0, 1))
    return [*chosen, f"{left} = {right}"]


class Forward(CupyRule):
    """CC120, CC121, CC124 and CC125."""

    codes = ("CC120", "CC121", "CC124", "CC125")


rule = Forward()
