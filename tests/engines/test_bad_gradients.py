"""Every wrong gradient gives one of the package's exceptions, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import ArgumentError, DTypeError
from tests.engine import Engine
from tests.engines.networks import NETWORKS, draw

LSTM, STACK = NETWORKS["lstm"], NETWORKS["lstm projected bi"]


def f(*shape: int) -> Any:
    return np.ones(shape)


def training_forward(engine: Any, spec: v2.RNNSpec, form: str) -> v2.RNNOutput:
    """5 steps, batch 2."""
    data = draw(spec, (5, 2), steps=5, layout="packed" if form == "packed" else "time_major")
    how: dict[str, Any] = {"training": True}
    x = data.x
    if form == "unbatched":
        x = x[:, 0]
    elif form == "step":
        x = x[0, 0]
    elif form == "batch_major":
        x, how["layout"] = x.swapaxes(0, 1), form
    elif form == "packed":
        x = v2.Packed(engine.put(x), (5, 2))
    return v2.rnn_forward(spec, engine.put(data.w), x if form == "packed" else engine.put(x), **how)


ROWS: list[tuple[v2.RNNSpec, str, str, Any, tuple[int, ...]]] = [
    # spec, form of x, argument, what comes, what is wanted
    (LSTM, "batched", "dy", f(5, 2, 3), (5, 2, 4)),
    (LSTM, "batched", "dy", f(2, 5, 4), (5, 2, 4)),
    (LSTM, "batched", "dy", f(5, 1, 4), (5, 2, 4)),
    (LSTM, "batched", "dy", f(10, 4), (5, 2, 4)),
    (LSTM, "batched", "dy", f(1, 5, 2, 4), (5, 2, 4)),
    (LSTM, "batched", "dy", f(), (5, 2, 4)),
    (LSTM, "batched", "dy", f(0), (5, 2, 4)),
    (LSTM, "batched", "dhy", f(2, 4), (1, 2, 4)),
    (LSTM, "batched", "dhy", f(1, 1, 4), (1, 2, 4)),
    (LSTM, "batched", "dhy", f(2, 2, 4), (1, 2, 4)),
    (LSTM, "batched", "dhy", f(), (1, 2, 4)),
    (LSTM, "batched", "dcy", f(1, 2, 3), (1, 2, 4)),
    (LSTM, "batched", "dcy", f(4), (1, 2, 4)),
    (LSTM, "batch_major", "dy", f(5, 2, 4), (2, 5, 4)),
    (LSTM, "unbatched", "dy", f(5, 1, 4), (5, 4)),
    (LSTM, "unbatched", "dy", f(4), (5, 4)),
    (LSTM, "unbatched", "dhy", f(1, 1, 4), (1, 4)),
    (LSTM, "unbatched", "dcy", f(4), (1, 4)),
    (LSTM, "step", "dy", f(1, 4), (4,)),
    (LSTM, "step", "dy", f(1, 1, 4), (4,)),
    (LSTM, "step", "dhy", f(1, 1, 4), (1, 4)),
    (LSTM, "packed", "dy", f(5, 2, 4), (7, 4)),
    (LSTM, "packed", "dy", f(6, 4), (7, 4)),
    (STACK, "batched", "dy", f(5, 2, 10), (5, 2, 4)),
    (STACK, "batched", "dhy", f(4, 2, 5), (4, 2, 2)),
    (STACK, "batched", "dcy", f(4, 2, 2), (4, 2, 5)),
    (STACK, "batched", "dhy", f(2, 2, 2), (4, 2, 2)),
]


@pytest.mark.parametrize(
    ("spec", "form", "name", "gradient", "wanted"),
    ROWS,
    ids=[f"{form} {name} {gradient.shape}" for _, form, name, gradient, _ in ROWS],
)
@pytest.mark.parametrize("call", [v2.rnn_backward, v2.rnn_backward_data], ids=lambda c: c.__name__)
def test_a_gradient_of_a_wrong_shape_is_refused_with_both_shapes(
    call: Any, spec: v2.RNNSpec, form: str, name: str, gradient: Any, wanted: Any, engine: Any
) -> None:
    out = training_forward(engine, spec, form)
    with pytest.raises(ArgumentError) as refusal:
        call(out, **{name: engine.put(gradient)})
    message = str(refusal.value)
    assert f"{name} has shape {gradient.shape}" in message
    assert str(wanted) in message
    assert out.can_backward


NO_GRADIENTS: dict[str, Any] = {
    "7": 7,
    "0": 0,
    "1.0": 1.0,
    "list": [[1.0]],
    "str": "dy",
    "NumPy scalar": np.float64(1),
    "masked array": np.ma.masked_array(f(5, 2, 4)),
    "True": True,
    "the output": training_forward(Engine("numpy", np), LSTM, "batched"),
}


@pytest.mark.parametrize("gradient", NO_GRADIENTS.values(), ids=NO_GRADIENTS)
@pytest.mark.parametrize("name", ["dy", "dhy", "dcy"])
@pytest.mark.parametrize("call", [v2.rnn_backward, v2.rnn_backward_data], ids=lambda c: c.__name__)
def test_what_is_no_array_is_no_gradient(call: Any, name: str, gradient: Any, engine: Any) -> None:
    with pytest.raises(DTypeError, match=rf"{name} is a "):
        call(training_forward(engine, LSTM, "batched"), **{name: gradient})


@pytest.mark.peers
def test_a_tensor_as_a_gradient_is_refused_with_the_way_to_share_its_memory(
    engine: Any,
) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(DTypeError, match=r"dy is a torch.Tensor.*from_dlpack\(dy\)"):
        v2.rnn_backward(training_forward(engine, LSTM, "batched"), torch.zeros(5, 2, 4))


@pytest.mark.parametrize("name", ["dhy", "dcy"])
def test_a_packed_is_no_gradient_of_a_state(name: str, engine: Any) -> None:
    packed = v2.Packed(engine.put(f(7, 4)), (5, 2))
    with pytest.raises(DTypeError, match=f"{name} is a .*Packed"):
        v2.rnn_backward(training_forward(engine, LSTM, "packed"), **{name: packed})


def test_a_packed_gradient_of_wrong_features_is_refused_with_both_shapes(engine: Any) -> None:
    out = training_forward(engine, LSTM, "packed")
    with pytest.raises(ArgumentError, match=r"dy has shape \(7, 3\).*\(7, 4\)"):
        v2.rnn_backward(out, v2.Packed(engine.put(f(7, 3)), (5, 2)))


@pytest.mark.parametrize("accumulate", ["yes", None, 2, np.array([1, 2])], ids=repr)
def test_accumulate_is_true_or_false(accumulate: Any, engine: Any) -> None:
    out = training_forward(engine, LSTM, "batched")
    v2.rnn_backward_data(out)
    dw = engine.put(np.zeros(v2.weight_size(LSTM)))
    with pytest.raises(v2.CompatError, match="accumulate"):
        v2.rnn_backward_weights(out, dw=dw, accumulate=accumulate)


@pytest.mark.parametrize("call", [v2.rnn_backward, v2.rnn_backward_data], ids=lambda c: c.__name__)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_an_output_that_was_exchanged_does_not_let_a_wrong_gradient_pass(
    call: Any, dtype: str, engine: Any
) -> None:
    out = training_forward(engine, LSTM, "batched")
    out.y = out.y.astype(dtype)
    with pytest.raises(DTypeError, match=dtype):
        call(out, out.y)
    assert out.can_backward


def test_weights_for_backward_that_are_unlike_the_forwards_are_refused(engine: Any) -> None:
    out = training_forward(engine, LSTM, "batched")
    before = out.weights
    with pytest.raises(DTypeError, match="copy float32"):
        out.own_weights(before.astype("float32"))
    with pytest.raises(v2.ArgumentError, match="copy"):
        out.own_weights(before[:-1].copy())
    assert out.weights is before
    assert out.can_backward
