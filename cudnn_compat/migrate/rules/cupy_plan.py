"""The plan of a file: made by the rules of the dialect together, and carried out."""

from __future__ import annotations

import libcst as cst

from cudnn_compat.legacy.table import TABLE
from cudnn_compat.migrate.file_context import FileContext
from cudnn_compat.migrate.rules import (
    cupy_backward,
    cupy_networks,
    cupy_plumbing,
    cupy_states,
)
from cudnn_compat.migrate.rules.cupy_replace import put_in_place
from cudnn_compat.migrate.rules.cupy_syntax import code
from cudnn_compat.migrate.rules.cupy_work import Work

__all__ = ["carry_out"]

_CODES = {row.old: row.code for row in TABLE}
_HOME = "cudnn_compat.legacy.cupy."


def carry_out(file: FileContext) -> dict[cst.CSTNode, str]:
    """Plan a file and put the new code in place.

    Returns:
        Why each place that is left is left, by its node.
    """
    if not _concerns(file):
        return {}
    work = Work(file)
    clean = file.wanted()
    for _ in range(20):
        file.want(clean)
        clean = file.wanted()
        work.start()
        cupy_networks.move(work)
        cupy_backward.move(work)
        cupy_plumbing.clear(work)
        cupy_states.move(work)
        cupy_plumbing.clear(work)
        _check(work)
        if not work.again:
            break
    else:
        file.want(clean)
        return dict.fromkeys(work.reasons, "its parts depend on each other in too many ways")
    put_in_place(work)
    for call in work.old.calls:
        if call.fault:
            work.leave([call], call.fault)
        unseen = file.names.use(call.node.func) is None  # by the engine itself
        if unseen and not work.gone(call.node) and call.name in _METHODS:
            reason = work.reasons.get(call.node, "")
            file.left(call.node, _CODES[_HOME + call.name], reason or _METHODS[call.name])
    return work.reasons


_METHODS = {
    f"cudnn.DropoutStates.{name}": "v2 has no dropout of its own: draw a mask with the array "
    "library's generator, keep it, and multiply by mask / (1 - ratio)"
    for name in ("forward", "backward", "set_dropout_ratio")
}


def _concerns(file: FileContext) -> bool:
    """Whether a file may have something of the dialect."""
    return any(
        isinstance(node, (cst.Import, cst.ImportFrom)) and "cupy" in code(node)
        for node in _all(file.tree)
    )


def _all(node: cst.CSTNode) -> list[cst.CSTNode]:
    return [node, *(inner for child in node.children for inner in _all(child))]


def _check(work: Work) -> None:
    """What was assumed of variables holds; what does not hold is left in the next round."""
    for place, reason in work.promises:
        if work.alive(place):
            for definition in work.flow.definitions[place]:
                if definition.value is not None:
                    work.refuse(definition.value, reason)
    for made, _ in work.networks:
        for place in work.holders(made.node):
            others = [n for n in work.alive(place) if not work.copied(n)]
            if others or work.flow.hidden(place):
                work.refuse(made.node, "its RNN descriptor is used for something else too")
