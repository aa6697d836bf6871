"""The low-level calls that compute: ``RNNForward…``, ``RNNBackward…``, with and without Ex.

They write to memory of the caller's, so what v2 returns is copied there. A training forward's
result takes the place of the reserve, which is how the backward calls find it.
"""

from __future__ import annotations

from typing import Final

import libcst as cst

from cudnn_compat.migrate.rules.cupy_data import data
from cudnn_compat.migrate.rules.cupy_layout import Part, Written, lines
from cudnn_compat.migrate.rules.cupy_memory import (
    array,
    same_array,
    set_call,
    shape_of,
    steps,
)
from cudnn_compat.migrate.rules.cupy_old import OldCall
from cudnn_compat.migrate.rules.cupy_questions import Unclear
from cudnn_compat.migrate.rules.cupy_rule import CupyRule
from cudnn_compat.migrate.rules.cupy_tree import Place
from cudnn_compat.migrate.rules.cupy_values import Value
from cudnn_compat.migrate.rules.cupy_words import word
from cudnn_compat.migrate.rules.cupy_work import Draft, Work

__all__ = ["NAMES", "move", "rule"]

_INFERENCE = ("libcudnn.RNNForwardInference", "libcudnn.RNNForwardInferenceEx")
_TRAINING = ("libcudnn.RNNForwardTraining", "libcudnn.RNNForwardTrainingEx")
_DATA = ("libcudnn.RNNBackwardData", "libcudnn.RNNBackwardDataEx")
_WEIGHTS = ("libcudnn.RNNBackwardWeights", "libcudnn.RNNBackwardWeightsEx")
NAMES: Final = (*_INFERENCE, *_TRAINING, *_DATA, *_WEIGHTS)


def move(work: Work, calls: list[OldCall]) -> None:
    """All calls of one network.

    Raises:
        Unclear: one of them cannot be proved.
    """
    training = [call for call in calls if call.name in _TRAINING]
    reserves = {_reserve(work, call): call for call in training}
    if len(reserves) < len(training):
        raise Unclear("two training forwards share a reserve")
    for call in calls:
        if call.name in (*_INFERENCE, *_TRAINING):
            work.commit(_forward(work, call))
            continue
        first = reserves.get(_reserve(work, call))
        if first is None:
            raise Unclear("the training forward of its reserve cannot be seen")
        _check_same(work, first, call)
        work.commit(_data(work, call) if call.name in _DATA else _weights(work, call))


def _reserve(work: Work, call: OldCall) -> Place:
    """The variable that holds the reserve: memory taken for nothing else."""
    found = array(work, work.argument(call, "reserveSpace"))
    place = None if found is None else work.place(found.node)
    definition = work.flow.only(place)
    if place is None or definition is None or definition.value is None:
        raise Unclear("where the memory of its reserve comes from cannot be seen")
    if not _asks_for_reserve(work, definition.value):
        raise Unclear("the memory of its reserve was not made with getRNNTrainingReserveSize")
    return place


def _asks_for_reserve(work: Work, node: cst.CSTNode) -> bool:
    for inner in work.flow.walk(node):
        call = work.old.call(inner)
        if call is None and isinstance(inner, cst.Name):
            call = work.old.call(work.values.follow(Value(inner)).node)
        if call is not None and call.name == "libcudnn.getRNNTrainingReserveSize":
            return True
    return False


def _check_same(work: Work, first: OldCall, call: OldCall) -> None:
    for name in ("x", "hx", "cx", "w", "y"):
        if name not in call.given:
            continue
        one, other = (array(work, work.argument(each, name)) for each in (first, call))
        if not same_array(work, one, other):
            raise Unclear(
                f"the {name} of a backward call is not certainly that of its forward; v2 goes back "
                "with what the forward was given"
            )


def _spec(work: Work, call: OldCall) -> str:
    from cudnn_compat.migrate.rules.cupy_networks import spec_text

    return spec_text(work, call)


def _cell(work: Work, call: OldCall) -> bool:
    """Whether the network is an LSTM."""
    made = work.old.made_by(Value(work.argument(call, "rnnDesc")))
    assert made is not None
    setter = set_call(
        work, made, "rnnDesc", "libcudnn.setRNNDescriptor_v5", "libcudnn.setRNNDescriptor_v6"
    )
    found = word(work, Draft(), work.argument(setter, "mode"), "mode", setter.node)
    if found.known is None:
        raise Unclear("the mode may be one of several, and only an LSTM has a cell state")
    return bool(found.known == "lstm")


def _state(work: Work, call: OldCall, name: str, spec: str) -> str:
    """A state that goes in; ``"None"`` for NULL."""
    found = array(work, work.argument(call, name))
    if found is None:
        return "None"
    text = work.primary(found, call.node)
    made = work.old.source(Value(work.argument(call, f"{name}Desc")))
    if made is not None and made[0].name == "libcudnn.createTensorDescriptor":
        setter = set_call(work, made[0], "tensorDesc", "libcudnn.setTensorNdDescriptor")
        shaped = shape_of(work, work.argument(setter, "dimA"))
        if shaped is not None and same_array(work, shaped, found):
            return text
    return f"{text}.reshape({spec}.num_pseudo_layers, -1, {spec}.hidden_size)"


def _forward(work: Work, call: OldCall) -> Draft:
    draft = Draft()
    draft.done.append(call)
    at, spec = call.node, _spec(work, call)
    line = work.line(at)
    if not isinstance(line.body[0], cst.Expr):
        raise Unclear("its result is used, which was always None")
    arrays = {name: array(work, work.argument(call, name)) for name in ("w", "x", "y")}
    if None in arrays.values():
        raise Unclear("w, x or y is NULL")
    w, x = (work.primary(arrays[name], at) for name in ("w", "x"))  # type: ignore[arg-type]
    x, how = _input(work, draft, call, x, spec)
    has_cell = _cell(work, call)
    parts: list[Part] = [spec, f"{w}.reshape(-1)", x, _state(work, call, "hx", spec)]
    if has_cell:
        parts.append(_state(work, call, "cx", spec))
    while parts[-1] == "None":
        parts.pop()
    parts += how
    out = work.fresh("out", at) if call.name in _INFERENCE else ""
    if not out:
        parts.append("training=True")
        reserve = array(work, work.argument(call, "reserveSpace"))
        assert reserve is not None
        out = work.text(reserve, at)
        definition = work.flow.only(_reserve(work, call))
        assert definition is not None
        draft.new[work.line(definition.node)] = []
    written = lines(f"{out} = ", Written(f"{work.v2}.rnn_forward", parts), work.depth(at))
    results = ["y", "hy", *(["cy"] if has_cell else [])]
    draft.new[line] = [*written, *_copies(work, call, out, results)]
    return draft


def _copies(work: Work, call: OldCall, out: str, names: list[str]) -> list[str]:
    """Lines that put results into the caller's memory."""
    found = []
    for name in names:
        target = array(work, work.argument(call, name))
        if target is not None:
            text = work.primary(target, call.node)
            found.append(f"{text}[...] = {out}.{name}.reshape({text}.shape)")
    return found


def _input(work: Work, draft: Draft, call: OldCall, x: str, spec: str) -> tuple[str, list[Part]]:
    """x in its shape, and the arguments that say what its rows are."""
    at = call.node
    if not call.name.endswith("Ex"):
        sizes = steps(work, work.argument(call, "xDesc")).text(work, at)
        return f"{x}.reshape(-1, {spec}.input_size)", ['layout="packed"', f"batch_sizes={sizes}"]
    described = data(work, work.argument(call, "xDesc"))
    layout = word(work, draft, described.layout, "layout", at)
    lengths = f"lengths={work.text(described.lengths, at, 'the lengths')}"
    if layout.known == "packed":
        return f"{x}.reshape(-1, {spec}.input_size)", ['layout="packed"', lengths]
    steps_, batch = work.text(described.steps, at), work.text(described.batch, at)
    if layout.known == "time_major":
        return f"{x}.reshape({steps_}, {batch}, {spec}.input_size)", [lengths]
    if layout.known == "batch_major":
        shape = f"{batch}, {steps_}, {spec}.input_size"
        return f"{x}.reshape({shape})", ['layout="batch_major"', lengths]
    raise Unclear("the layout may be one of several")


def _data(work: Work, call: OldCall) -> Draft:
    draft = Draft()
    draft.done.append(call)
    at = call.node
    line = work.line(at)
    reserve = array(work, work.argument(call, "reserveSpace"))
    assert reserve is not None
    out = work.text(reserve, at)
    parts: list[Part] = [out]
    gradients = [("dy", "y"), ("dhy", "hy"), *([("dcy", "cy")] if _cell(work, call) else [])]
    for name, of in gradients:
        found = array(work, work.argument(call, name))
        if found is None:
            parts.append("None")
        else:
            parts.append(f"{work.primary(found, at)}.reshape({out}.{of}.shape)")
    while parts[-1] == "None":
        parts.pop()
    grad = work.fresh("grad", at)
    text = lines(f"{grad} = ", Written(f"{work.v2}.rnn_backward_data", parts), work.depth(at))
    results = ["dx", "dhx", *(["dcx"] if _cell(work, call) else [])]
    draft.new[line] = [*text, *_copies(work, call, grad, results)]
    return draft


def _weights(work: Work, call: OldCall) -> Draft:
    draft = Draft()
    draft.done.append(call)
    at = call.node
    reserve, dw = (array(work, work.argument(call, name)) for name in ("reserveSpace", "dw"))
    if reserve is None or dw is None:
        raise Unclear("an address of it is NULL")
    parts: list[Part] = [
        work.text(reserve, at),
        f"dw={work.primary(dw, at)}.reshape(-1)",
        "accumulate=True",
    ]
    new = Written(f"{work.v2}.rnn_backward_weights", parts)
    draft.new[work.line(at)] = lines("", new, work.depth(at))
    return draft


class Calls(CupyRule):
    """CC240 to CC247."""

    codes = tuple(f"CC{number}" for number in range(240, 248))


rule = Calls()
