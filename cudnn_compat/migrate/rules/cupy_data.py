"""RNN data descriptors and the padding mode: layouts and lengths of a forward."""

from __future__ import annotations

import dataclasses

import libcst as cst

from cudnn_compat.migrate.rules.cupy_memory import address_of, set_call
from cudnn_compat.migrate.rules.cupy_questions import Unclear
from cudnn_compat.migrate.rules.cupy_rule import CupyRule
from cudnn_compat.migrate.rules.cupy_syntax import code
from cudnn_compat.migrate.rules.cupy_values import Value
from cudnn_compat.migrate.rules.cupy_work import Work

__all__ = ["Data", "data", "rule"]


@dataclasses.dataclass(frozen=True, slots=True)
class Data:
    """What an RNN data descriptor says."""

    layout: Value
    steps: Value
    batch: Value
    features: Value
    lengths: Value


def data(work: Work, node: cst.CSTNode) -> Data:
    """What an RNN data descriptor says.

    Raises:
        Unclear: it cannot be seen.
    """
    source = work.old.source(Value(node))
    if source is None or source[0].name != "libcudnn.createRNNDataDescriptor":
        raise Unclear(f"where the descriptor {code(node)} comes from cannot be seen")
    made, given = source
    setter = set_call(work, made, "RNNDataDesc", "libcudnn.setRNNDataDescriptor")
    lengths = address_of(work, Value(work.argument(setter, "seqLengthArray"), given))
    if lengths is None:
        raise Unclear("the lengths of a data descriptor cannot be seen")
    layout, steps, batch, features = (
        Value(work.argument(setter, name), given)
        for name in ("layout", "maxSeqLength", "batchSize", "vectorSize")
    )
    return Data(layout, steps, batch, features, lengths)


class DataDescriptors(CupyRule):
    """CC225 and others."""

    codes = (
        "CC225",
        "CC226",
        "CC232",
        "CC233",
        "CC234",
        "CC235",
    )
    reason = "it serves a call that was left; v2 takes layout= and lengths="


rule = DataDescriptors()
