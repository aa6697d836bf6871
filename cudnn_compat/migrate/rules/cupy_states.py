"""``DropoutStates`` and its ratio: a ``DropoutState``, and the ``dropout`` of a spec."""

from __future__ import annotations

import libcst as cst

from cudnn_compat.migrate.rules.cupy_old import OldCall
from cudnn_compat.migrate.rules.cupy_questions import Unclear
from cudnn_compat.migrate.rules.cupy_rule import CupyRule
from cudnn_compat.migrate.rules.cupy_values import Value
from cudnn_compat.migrate.rules.cupy_work import Draft, Work

__all__ = ["move", "ratio_of", "rule"]

_CLASS = "cudnn.DropoutStates"
_HARMLESS = (("cudnn.create_rnn_descriptor", "dropout_desc"),)
"""Old calls, and their arguments, that do not change a ratio."""
_SET = f"{_CLASS}.set_dropout_ratio"


def ratio_of(work: Work, states: cst.BaseExpression, at: cst.CSTNode) -> tuple[str, str] | None:
    """The texts of the dropout ratio and of the generator; None where nothing is dropped.

    Raises:
        Unclear: the ratio cannot be seen in the source.
    """
    made = work.old.made_by(Value(states))
    if made is None or made.name != _CLASS:
        raise Unclear(
            "the dropout ratio is a part of the spec now, and where these states come from cannot "
            "be seen; if their ratio is 0, make them in this file"
        )
    if made.node in work.refused:
        raise Unclear(work.refused[made.node])
    _check_seen(work, made)
    sets = _uses(work, made, _SET)
    ratios = [work.argument(call, "dropout_ratio") for call in sets]
    if all(_zero(ratio) for ratio in ratios):
        return None
    if len(ratios) > 1:
        raise Unclear("the dropout ratio is set in more than one place")
    lines = [work.line(call.node) for call in (made, *sets)]
    if len({work.flow.parents[line] for line in lines}) > 1:
        raise Unclear("the dropout ratio is not set beside where the states are made")
    text = work.text(ratios[0], at, "the dropout ratio")
    generator = work.text(states, at, "the generator")
    work.wants_state.add(made.node)
    return text, generator


def _check_seen(work: Work, made: OldCall) -> None:
    """Nothing but old calls gets the states, so that nobody else sets the ratio."""
    for call in work.old.calls:
        for name, node in call.given.items():
            known = name == "states" or (call.name, name) in _HARMLESS
            if not known and work.old.made_by(Value(node)) is made:
                raise Unclear(f"{call.name.partition('.')[2]} may set the ratio of these states")
    if _uses(work, made, f"{_CLASS}.forward", f"{_CLASS}.backward"):
        raise Unclear("these states are used for dropout itself too, which sets their ratio")
    holders = work.holders(made.node)
    for place in holders:
        if work.flow.hidden(place):
            raise Unclear("these states are used through another object, which may set their ratio")
        for load in work.flow.loads[place]:
            if not (_in_old_call(work, load) or work.copied(load)):
                raise Unclear("these states are handed on, to where their ratio may be set")


def _in_old_call(work: Work, load: cst.CSTNode) -> bool:
    current: cst.CSTNode | None = load
    while current is not None and not isinstance(current, cst.BaseCompoundStatement):
        if work.old.call(current) is not None or _for_stars(work, current):
            return True
        current = work.flow.parents.get(current)
    return False


def _for_stars(work: Work, node: cst.CSTNode) -> bool:
    """Whether this is a dictionary that goes to old calls as ``**kind``."""
    return any(node in work.followed(star) for call in work.old.calls for star in call.stars)


def _uses(work: Work, made: OldCall, *names: str) -> list[OldCall]:
    found = []
    for call in work.named(*names):
        func = call.node.func
        if isinstance(func, cst.Attribute) and work.old.made_by(Value(func.value)) is made:
            found.append(call)
    return found


def _zero(node: cst.CSTNode) -> bool:
    return isinstance(node, (cst.Integer, cst.Float)) and float(node.value) == 0


def move(work: Work) -> None:
    """Make the states that nothing old needs any more a ``DropoutState``; drop what set ratios."""
    for made in work.named(_CLASS):
        draft = Draft()
        sets = _uses(work, made, _SET)
        try:
            if made.fault:
                raise Unclear(made.fault)
            for call in sets:
                line = work.line(call.node)
                if not isinstance(line.body[0], cst.Expr):
                    raise Unclear("its result is used, which was always None")
                draft.new[line] = []
            draft.done += [made, *sets]
            holders = work.holders(made.node)
            old_loads = [load for place in holders for load in work.alive(place)]
            inside = list(draft.new)
            rest = [
                load
                for load in old_loads
                if not any(work.flow.inside(load, line) for line in inside)
                and not work.copied(load)
            ]
            if rest or not holders:
                raise Unclear(
                    "something that was left still uses these states: move that first"
                    if holders
                    else "it is not kept in a variable, so what uses it cannot be seen"
                )
            seed = work.text(work.argument(made, "seed"), made.node)
            draft.new[made.node] = f"{work.v2}.DropoutState({seed})"
            work.commit(draft)
        except Unclear as unclear:
            work.leave([made, *sets], str(unclear))
            if made.node in work.wants_state:
                work.refuse(made.node, str(unclear))


class States(CupyRule):
    """CC112 and CC113."""

    codes = ("CC112", "CC113")
    reason = "the states are handed on, so what sets their ratio cannot be seen"


rule = States()
