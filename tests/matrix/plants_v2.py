"""Errors for the checks of v2 and of the RNNDesc dialect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import legacy, v2
from tests.matrix.planting import Plant, changed, off, replaced


def forgets_the_seed(patch: pytest.MonkeyPatch) -> None:
    right = v2.rnn_forward

    def wrong(*arguments: Any, **named: Any) -> Any:
        return right(*arguments, **named | {"seed": None})

    patch.setattr(v2, "rnn_forward", wrong)


def always_the_same_seed(patch: pytest.MonkeyPatch) -> None:
    right = v2.rnn_forward

    def wrong(*arguments: Any, **named: Any) -> Any:
        return right(*arguments, **named | {"seed": 1})

    patch.setattr(v2, "rnn_forward", wrong)


def overwrites(patch: pytest.MonkeyPatch) -> None:
    right = v2.rnn_backward_weights
    patch.setattr(v2, "rnn_backward_weights", lambda out, dw, accumulate=False: right(out, dw=dw))


def adds(patch: pytest.MonkeyPatch) -> None:
    right = v2.rnn_backward_weights
    patch.setattr(v2, "rnn_backward_weights", lambda out, dw: right(out, dw=dw, accumulate=True))


def shuffled_names(named: Any, spec: Any, w: Any) -> Any:
    """Views of another order: biases first."""
    return v2.NamedWeights(spec, np.roll(w, 1))


def nudge(result: tuple[Any, ...], *_: Any) -> tuple[Any, ...]:
    return (result[0] + 1e-3, *result[1:])


def nudge_nested(result: tuple[Any, ...], *_: Any) -> tuple[Any, ...]:
    (first, *rest), *others = result
    return ((first + 1e-3, *rest), *others)


def set_like_the_old_code(desc: Any, Wi: Any, Wh: Any, b: Any) -> None:
    """Writes to the weights that a forward in flight still reads."""
    desc.weights[0][...], desc.weights[1][...], desc.bias[...] = Wi.T, Wh.T, b


def set_without_a_bias(desc: Any, Wi: Any, Wh: Any, b: Any) -> None:
    desc.weights[0][...], desc.weights[1][...] = Wi.T, Wh.T


def with_wrong_bias_gradient(result: Any, *_: Any) -> Any:
    outputs, back = result

    def wrong(*gradients: Any) -> Any:
        found = back(*gradients)
        return found._replace(b=found.b + 1e-3)

    return outputs, wrong


LAYER = v2.LSTM.__mro__[1]
"""What the three layers share."""

PLANTS: dict[tuple[str, str], list[Plant]] = {
    ("v2", "forward"): [off("y"), off("hy"), off("cy")],
    ("v2", "backward"): [off(part, v2, "rnn_backward") for part in ("dx", "dhx", "dcx", "dw")],
    ("v2", "network"): [off("y"), off("cy"), off("dw", v2, "rnn_backward")],
    ("v2", "backward_in_two"): [off("dx", v2, "rnn_backward_data"), adds],
    ("v2", "accumulate"): [overwrites],
    ("v2", "strided"): [off("y"), off("dhx", v2, "rnn_backward")],
    ("v2", "padding"): [off("y"), off("dx", v2, "rnn_backward")],
    ("v2", "dropout"): [off("y"), off("dw", v2, "rnn_backward"), forgets_the_seed],
    ("v2", "dropout_statistics"): [off("y")],
    ("v2", "dropout_from_a_seed"): [forgets_the_seed, always_the_same_seed],
    ("v2", "weight_order"): [
        changed(v2, "named_weights", shuffled_names),
        changed(v2, "weight_size", lambda size, spec: size + 1),
    ],
    ("v2", "init_weights"): [
        changed(v2, "init_weights", lambda w, spec: 2 * w),
        changed(v2, "init_weights", lambda w, spec: abs(w)),
        changed(v2, "init_weights", lambda w, spec: w.astype("float32")),
        off("y"),
    ],
    ("v2", "pack_and_unpack"): [
        changed(v2, "pack", lambda p, *_: v2.Packed(p.data[::-1], p.lengths)),
        changed(v2, "unpack", lambda x, *_: x + 1),
    ],
    ("v2", "layer"): [off("y", LAYER, "forward"), off("hy", LAYER, "forward")],
    ("v2", "layer_copied"): [off("y", LAYER, "forward"), off("dw", v2, "rnn_backward")],
    ("legacy", "constant"): [replaced(legacy, "CUDNN_LSTM", 3)],
    ("legacy", "descriptor"): [
        changed(legacy, "forward", nudge),
        replaced(legacy.RNNDesc, "bias", property(lambda desc: desc.params[:4])),
    ],
    ("legacy", "descriptor_of_layers"): [changed(legacy, "forward", nudge)],
    ("legacy", "setweights"): [
        replaced(legacy, "setweights", set_without_a_bias),
        changed(legacy, "forward", nudge),
    ],
    ("legacy", "setweights_before_back"): [replaced(legacy, "setweights", set_like_the_old_code)],
    ("legacy", "forward"): [changed(legacy, "forward", nudge)],
    ("legacy", "forward_without_c"): [
        changed(legacy, "forward", nudge),
        changed(legacy, "forward", lambda result, *_: (*result, None)),
    ],
    ("legacy", "forward_train"): [
        changed(legacy, "forwardTrain", lambda r, *_: (r[0], nudge(r[1]))),
        changed(legacy, "backwardData", nudge),
    ],
    ("legacy", "backward_data"): [changed(legacy, "backwardData", nudge)],
    ("legacy", "backward_weights"): [
        changed(legacy, "backwardWeights", nudge_nested),
        changed(legacy, "backwardWeights", lambda r, *_: (r[0], r[1] + 1e-3)),
    ],
    ("legacy", "pullback"): [
        changed(legacy, "pullback", nudge_nested),
        changed(legacy, "pullback", with_wrong_bias_gradient),
    ],
    ("legacy", "ngates"): [changed(legacy, "ngates", lambda gates, desc: gates + 1)],
    ("legacy", "params"): [
        changed(legacy, "params", nudge_nested),
        changed(legacy, "params", lambda r, *_: ((r[0][0].copy(), r[0][1]), r[1])),
    ],
    ("legacy", "h_batch"): [changed(legacy, "hBatch", lambda h, *_: h + 1)],
    ("legacy", "h_desc"): [
        changed(legacy, "hDesc", lambda r, *_: (r[0], None if r[1] is None else r[1] + 0)),
        changed(legacy, "hDesc", lambda r, *_: (r[0] and r[0]._replace(dims=(1, 1, 1)), r[1])),
    ],
    ("legacy", "x_desc"): [changed(legacy, "xDesc", lambda found, *_: 2 * found)],
    ("legacy", "warning"): [replaced(legacy, "ngates", lambda mode: 3)],
    ("v2", "plans"): [
        changed(v2, "plans", lambda found: found[:0]),
        off("y"),
    ],
    ("v2", "ineffective_option"): [off("y"), replaced(v2, "IneffectiveOptionWarning", UserWarning)],
    ("v2", "torch"): [
        changed(v2.convert, "to_torch", lambda d, *_: {k: v + 1e-3 for k, v in d.items()}),
        changed(v2.convert, "from_torch", lambda r, *_: (r[0], r[1] + 1e-3)),
        off("y"),
    ],
    ("v2", "onnx"): [
        changed(v2.convert, "to_onnx", lambda n, *_: n._replace(W=[w[:, ::-1] for w in n.W])),
        changed(v2.convert, "from_onnx", lambda r, *_: (r[0], r[1] + 1e-3)),
        off("y"),
    ],
    ("v2", "keras"): [
        changed(v2.convert, "to_keras", lambda n, *_: [[a + 1e-3 for a in part] for part in n]),
        changed(v2.convert, "from_keras", lambda r, *_: (r[0], r[1] + 1e-3)),
        off("y"),
    ],
    ("v2", "change_bias"): [
        off("y"),
        changed(v2.convert, "change_bias", lambda r, *_: (r[0], r[1] + 1e-3)),
    ],
    ("v2", "exception"): [replaced(v2, "ArgumentError", ValueError)],
}
