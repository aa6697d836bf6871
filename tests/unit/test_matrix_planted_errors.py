"""Can each check of the compatibility matrix fail?

A plant replaces one function of the package by one that is a little wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudnn_compat import legacy, v2
from cudnn_compat.matrix.rows import all_rows
from cudnn_compat.matrix.run import CHECKS, run_row
from cudnn_compat.matrix.shapes import SequenceShape

ROWS = list(all_rows(["numpy"]))

Plant = Callable[[pytest.MonkeyPatch], None]


def off(part: str, module: Any = v2, name: str = "rnn_forward") -> Plant:
    """An attribute of what a function returns is off by 1e-3."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(module, name)

        def wrong(*arguments: Any, **named: Any) -> Any:
            out = right(*arguments, **named)
            value = getattr(out, part)
            if isinstance(value, v2.Packed):
                changed: Any = v2.Packed(value.data + 1e-3, value.lengths)
            else:
                changed = None if value is None else value + 1e-3
            setattr(out, part, changed)
            return out

        patch.setattr(module, name, wrong)

    return plant


def changed(module: Any, name: str, change: Callable[..., Any]) -> Plant:
    """``change(result, *arguments)`` is returned in place of the result of a function."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(module, name)

        def wrong(*arguments: Any, **named: Any) -> Any:
            return change(right(*arguments, **named), *arguments)

        patch.setattr(module, name, wrong)

    return plant


def replaced(module: Any, name: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(module, name, value)


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
}


def test_there_is_a_planted_error_for_every_check() -> None:
    assert set(PLANTS) == {(api, name) for api, checks in CHECKS.items() for name in checks}


@pytest.mark.parametrize(
    ("api", "check", "plant"),
    [
        pytest.param(*key, plant, id=f"{key[0]}-{key[1]}-{index}")
        for key, plants in PLANTS.items()
        for index, plant in enumerate(plants)
    ],
)
def test_a_planted_error_makes_a_row_fail(
    api: str, check: str, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [r for r in ROWS if (r.feature.api, r.feature.check, r.dtype) == (api, check, "float64")]
    row = next((row for row in rows if row.cell == "lstm"), rows[0])
    assert run_row(row).status == "ok"
    plant(monkeypatch)
    result = run_row(row)
    assert result.status == "failed"
    assert result.reason


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_error_of_a_thousandth_in_y_fails_every_row_that_has_a_y(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    off("y")(monkeypatch)
    rows = [
        row
        for row in ROWS
        if row.feature.check in ("forward", "network", "strided", "padding")
        and row.feature.api == "v2"
        and (row.dtype, row.cell) == (dtype, "gru")
        and row.feature.name != "math_half"
        and isinstance(row.shape, SequenceShape)
        and row.shape.steps * row.shape.batch > 0
    ]
    assert len(rows) > 50
    assert [row.id for row in rows if run_row(row).status != "failed"] == []
