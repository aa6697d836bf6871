"""One matrix or bias of the weight space: named views."""

from __future__ import annotations

from typing import Final

import libcst as cst

from cudnn_compat.migrate.rules.cupy_memory import array
from cudnn_compat.migrate.rules.cupy_old import OldCall
from cudnn_compat.migrate.rules.cupy_questions import Unclear, active
from cudnn_compat.migrate.rules.cupy_rule import CupyRule
from cudnn_compat.migrate.rules.cupy_syntax import code, replaced
from cudnn_compat.migrate.rules.cupy_values import Value
from cudnn_compat.migrate.rules.cupy_work import Draft, Work

__all__ = ["NAMES", "rule", "view"]

_HIGH = ("cudnn.get_rnn_lin_layer_matrix_params", "cudnn.get_rnn_lin_layer_bias_params")
_LOW = ("libcudnn.getRNNLinLayerMatrixParams", "libcudnn.getRNNLinLayerBiasParams")
NAMES: Final = (*_HIGH, *_LOW)


def view(work: Work, call: OldCall) -> Draft:
    """What a call becomes.

    Raises:
        Unclear: it cannot be proved.
    """
    draft = Draft()
    draft.done.append(call)
    if call.name in _HIGH:
        _high(work, draft, call)
    else:
        _low(work, draft, call)
    return draft


def _high(work: Work, draft: Draft, call: OldCall) -> None:
    from cudnn_compat.migrate.rules.cupy_networks import spec_text

    kind = "matrix" if call.name == _HIGH[0] else "bias"
    node, at = work.argument(call, "w"), call.node
    w, before = work.text(node, at), []
    whole = _whole(work, call)
    if not isinstance(node, (cst.Name, cst.Attribute)):
        if whole is None and active(node):
            raise Unclear("its w is computed in the call; give it a name")
        if whole is not None:
            variable = work.fresh("w", at)
            before, w = [f"{variable} = {w}"], variable
    layer, number = (work.text(work.argument(call, n), at) for n in ("layer", "lin_layer_id"))
    w = work.grouped(w)
    views = f"{work.v2}.named_weights({spec_text(work, call)}, {w}.reshape(-1))"
    picked = f"[{layer}, {number}].{kind}.reshape(-1, *{w}.shape[1:])"
    if whole is None:
        draft.new[at] = views + picked
        return
    line = work.line(at)
    named = work.fresh("named", at)
    small = code(replaced(line.body[0], {at: cst.Name("__value__")}))
    draft.new[line] = [
        *before,
        f"{named} = {views}",
        small.replace("__value__", named + picked),
    ]


def _whole(work: Work, call: OldCall) -> cst.SimpleStatementLine | None:
    """The statement that a call is the whole value of, where it can become several lines."""
    try:
        line = work.line(call.node)
    except Unclear:
        return None
    small = line.body[0]
    whole = isinstance(small, (cst.Return, cst.Assign, cst.Expr)) and small.value is call.node
    busy = any(active(call.given[name]) for name in ("layer", "lin_layer_id"))
    return line if whole and not busy else None


def _low(work: Work, draft: Draft, call: OldCall) -> None:
    """The address of the matrix or bias, written where the old call wrote it."""
    from cudnn_compat.migrate.rules.cupy_networks import spec_text

    at = call.node
    line = work.line(at)
    if not isinstance(line.body[0], cst.Expr):
        raise Unclear("its result is used, which was always None")
    w, w_node = array(work, work.argument(call, "w")), work.argument(call, "w")
    suffix = "Mat" if "linLayerMat" in call.given else "Bias"
    target = array(work, work.argument(call, f"linLayer{suffix}"))
    if w is None or target is None:
        raise Unclear("an address of it is NULL")
    described = work.argument(call, f"linLayer{suffix}Desc")
    made = work.old.made_by(Value(described))
    readers = work.named("libcudnn.getFilterNdDescriptor")
    if any(
        work.old.made_by(Value(r.given["wDesc"])) is made for r in readers if "wDesc" in r.given
    ):
        raise Unclear("the dimensions that it finds are asked for; a view of v2 has its shape")
    layer, number = (work.text(work.argument(call, n), at) for n in ("layer", "linLayerID"))
    w_text = work.primary(w, at)
    named = work.fresh("named", at)
    before = f"{named} = {work.v2}.named_weights({spec_text(work, call)}, {w_text}.reshape(-1))"
    found = f"{named}[{layer}, {number}]"
    if call.choices:
        for choice in call.choices:
            draft.new[choice] = '"matrix"' if work.old.name(choice) == _LOW[0] else '"bias"'
        found = f"getattr({found}, {code(call.node.func)})"
    else:
        found += ".matrix" if call.name == _LOW[0] else ".bias"
    address = _address(w_node, found)
    where = work.primary(target, at)
    holder = work.values.follow(target).node
    if isinstance(holder, cst.Call) and "ctypes" in code(holder.func):
        draft.new[line] = [before, f"{where}.value = {address}"]
    elif isinstance(holder, cst.Call):
        draft.new[line] = [before, f"{where}[...] = {address}"]
    else:
        raise Unclear("where it writes the address cannot be seen")


def _address(node: cst.CSTNode, of: str) -> str:
    """The address of another array, as the program takes that of w."""
    if isinstance(node, cst.Call) and len(node.args) == 1:
        return f"{code(node.func)}({of})"
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Attribute):
        return f"{of}.{node.value.attr.value}.{node.attr.value}"
    raise Unclear("how the program takes addresses cannot be seen")


class Views(CupyRule):
    """CC110, CC111, CC230 and CC231."""

    codes = ("CC110", "CC111", "CC230", "CC231")


rule = Views()
