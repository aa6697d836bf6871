"""RNN descriptors: a descriptor and what is done with it become a spec, all of it or nothing."""

from __future__ import annotations

import dataclasses
import functools

import libcst as cst

from cudnn_compat.migrate.rules import cupy_calls, cupy_views
from cudnn_compat.migrate.rules.cupy_data import data
from cudnn_compat.migrate.rules.cupy_layout import Part, Written, lines
from cudnn_compat.migrate.rules.cupy_memory import dimensions, set_call, steps
from cudnn_compat.migrate.rules.cupy_old import OldCall
from cudnn_compat.migrate.rules.cupy_questions import Unclear
from cudnn_compat.migrate.rules.cupy_rule import CupyRule
from cudnn_compat.migrate.rules.cupy_states import ratio_of
from cudnn_compat.migrate.rules.cupy_syntax import code
from cudnn_compat.migrate.rules.cupy_values import Value
from cudnn_compat.migrate.rules.cupy_words import dtype_word, word
from cudnn_compat.migrate.rules.cupy_work import Draft, Work

__all__ = ["move", "rule"]

_CREATE = ("cudnn.create_rnn_descriptor", "libcudnn.createRNNDescriptor")
_SET = ("libcudnn.setRNNDescriptor_v5", "libcudnn.setRNNDescriptor_v6")
_IGNORED = (
    *_SET,
    "libcudnn.setRNNPaddingMode",
    "libcudnn.destroyRNNDescriptor",
    "libcudnn.getRNNWorkspaceSize",
    "libcudnn.getRNNTrainingReserveSize",
    "libcudnn.createPersistentRNNPlan",
    "libcudnn.setPersistentRNNPlan",
)
"""What needs nothing in its place."""


@dataclasses.dataclass(slots=True)
class Network:
    """An RNN descriptor: where it is made, where it is set, what is done with it."""

    made: OldCall
    setter: OldCall
    uses: list[OldCall]


def move(work: Work) -> None:
    """All RNN descriptors of a file."""
    claimed: set[cst.CSTNode] = set()
    for made in work.named(*_CREATE):
        uses = [call for call in work.old.calls if _uses(work, call, made)]
        claimed |= {call.node for call in uses}
        work.attempt([made, *uses], functools.partial(_move, work, made, uses))
    work.leave(
        [c for c in work.old.calls if _descriptor(c) is not None and c.node not in claimed],
        "where its RNN descriptor comes from cannot be seen in this file",
    )


def _descriptor(call: OldCall) -> cst.BaseExpression | None:
    return call.given.get("rnnDesc", call.given.get("rnn_desc"))


def _uses(work: Work, call: OldCall, made: OldCall) -> bool:
    descriptor = _descriptor(call)
    return descriptor is not None and work.old.made_by(Value(descriptor)) is made


def _move(work: Work, made: OldCall, uses: list[OldCall]) -> None:
    setter = made
    if made.name == _CREATE[1]:
        if work.named("libcudnn.setStream"):
            raise Unclear(
                "setStream says where it runs; v2 runs on CuPy's current stream: use `with stream:`"
            )
        setter = set_call(work, made, "rnnDesc", *_SET)
    network = Network(made, setter, uses)
    trained = [call for call in uses if "Training" in call.name and "Reserve" not in call.name]
    draft = Draft()
    spec = _spec(work, draft, network, trained=bool(trained))
    if setter is made:
        line = work.line(made.node)
        small = line.body[0]
        if not isinstance(small, cst.Assign) or small.value is not made.node:
            raise Unclear("the descriptor is not kept in a variable")
        target = code(small.targets[0].target)
        draft.new[line] = lines(f"{target} = ", spec, work.depth(made.node))
    else:
        line = work.line(setter.node)
        if not isinstance(line.body[0], cst.Expr):
            raise Unclear("the descriptor is not set in a line of its own")
        target = code(work.argument(setter, "rnnDesc"))
        draft.new[line] = lines(f"{target} = ", spec, work.depth(setter.node))
        created = work.line(made.node)
        small = created.body[0]
        if not isinstance(small, cst.Assign) or small.value is not made.node:
            raise Unclear("the descriptor is not made in a line of its own")
        draft.new[created] = []
    draft.done += [made, setter]
    for call in uses:
        above = work.flow.parents[call.node]
        if call.name in _IGNORED and call is not setter and isinstance(above, cst.Expr):
            draft.new[work.line(call.node)] = []
    work.commit(draft)
    for call in uses:
        if call.name in _IGNORED:
            continue
        if call.name in cupy_views.NAMES:
            work.commit(cupy_views.view(work, call))
        elif call.name == "libcudnn.getRNNParamsSize":
            work.commit(_size(work, call))
        elif call.name not in cupy_calls.NAMES:
            raise Unclear(f"{call.name.partition('.')[2]} asks for what a spec is not asked for")
    cupy_calls.move(work, [call for call in uses if call.name in cupy_calls.NAMES])
    work.networks.append((made, uses))


def spec_text(work: Work, call: OldCall) -> str:
    """The expression for the spec that a call's descriptor became."""
    node = _descriptor(call)
    assert node is not None
    if isinstance(node, cst.Attribute) and node.attr.value == "value":
        node = node.value
    return work.primary(node, call.node)


def _size(work: Work, call: OldCall) -> Draft:
    draft = Draft()
    spec = spec_text(work, call)
    draft.new[call.node] = (
        f"{work.v2}.weight_size({spec}) * {work.numpy}.dtype({spec}.dtype).itemsize"
    )
    if isinstance(work.flow.parents[call.node], cst.BinaryOperation):
        draft.new[call.node] = f"({draft.new[call.node]})"
    draft.done.append(call)
    return draft


def _spec(work: Work, draft: Draft, network: Network, *, trained: bool) -> Written:
    """The spec, in the place where the descriptor is set."""
    setter = network.setter
    at = setter.node
    names = ("hidden_size", "num_layers", "input_mode", "data_type", "dropout_desc")
    if setter is not network.made:
        names = ("hiddenSize", "numLayers", "inputMode", "dataType", "dropoutDesc")
    hidden, layers = (work.text(work.argument(setter, name), at) for name in names[:2])
    cell = word(work, draft, work.argument(setter, "mode"), "mode", at)
    direction = word(work, draft, work.argument(setter, "direction"), "direction", at)
    inputs = word(work, draft, work.argument(setter, names[2]), names[2], at)
    dtype, math = dtype_word(work, draft, work.argument(setter, names[3]), at)
    parts: list[Part] = [cell.text, _input_size(work, network, at), hidden]
    if layers != "1":
        parts.append(f"num_layers={layers}")
    if direction.known is not False:
        parts.append(f"bidirectional={direction.text}")
    if inputs.known != "linear":
        if any(call.name in cupy_views.NAMES for call in network.uses):
            raise Unclear("with skipped input there are no input matrices to look at")
        parts.append(f"input_mode={inputs.text}")
    if trained:
        _check_no_dropout(work, work.argument(setter, names[4]), at)
    algo = '"standard"'
    if "algo" in setter.given and code(setter.given["algo"]) != "None":
        algo = word(work, draft, setter.given["algo"], "algo", at).text
    parts += [f"dtype={dtype}", f"math={math}", f"algo={algo}"]
    return Written(f"{work.v2}.RNNSpec", parts)


def _input_size(work: Work, network: Network, at: cst.CSTNode) -> str:
    """The input size, which came with a descriptor of x, where the spec is made."""
    reasons: list[str] = []
    texts: dict[str | None, str] = {}
    for call in network.uses:
        for name in ("x_desc", "xDesc", "dxDesc"):
            if name not in call.given:
                continue
            try:
                node = call.given[name]
                if call.name.endswith("Ex"):
                    size = data(work, node).features
                elif name == "x_desc" or "ParamsSize" in call.name or "LinLayer" in call.name:
                    size = dimensions(work, Value(node))[1]
                else:
                    size = steps(work, node).features
                texts.setdefault(work.values.key(size), work.text(size, at, "the input size"))
            except Unclear as unclear:
                reasons.append(str(unclear))
    if len(texts) > 1:
        raise Unclear("its descriptor is used for more than one input size")
    if texts:
        return next(iter(texts.values()))
    raise Unclear(
        "a spec says the input size, which cannot be seen where this descriptor is set"
        + (f": {reasons[0]}" if reasons else "")
    )


def _check_no_dropout(work: Work, node: cst.CSTNode, at: cst.CSTNode) -> None:
    """The dropout descriptor of a network that is trained by low-level calls drops nothing.

    Raises:
        Unclear: it does, or cannot be seen.
    """
    value = work.values.follow(Value(node))
    if work.old.constant(value.node) == 0 or code(value.node) == "None":
        return
    made = work.old.made_by(value)
    setter = made
    if made is not None and made.name == "cudnn.DropoutStates":
        base = value.node.value if isinstance(value.node, cst.Attribute) else value.node
        if isinstance(base, cst.BaseExpression) and ratio_of(work, base, at) is None:
            return
    elif made is not None and made.name == "libcudnn.createDropoutDescriptor":
        setter = set_call(work, made, "dropoutDesc", "libcudnn.setDropoutDescriptor")
    ratio = None if setter is None else setter.given.get("dropout")
    if isinstance(ratio, (cst.Integer, cst.Float)) and float(ratio.value) == 0:
        return
    raise Unclear(
        "its dropout descriptor may have a ratio; write dropout= in the spec, and "
        "seed=v2.DropoutState(…) in the forward"
    )


class Networks(CupyRule):
    """CC109, CC221 to CC224, CC227."""

    codes = ("CC109", "CC221", "CC222", "CC223", "CC224", "CC227")
    reason = "its RNN descriptor goes where it cannot be followed"


rule = Networks()
