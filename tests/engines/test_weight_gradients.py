"""Where weight gradients go: a fresh array, or a given one that is overwritten or added to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.matrix.tolerances import tolerance
from cudnn_compat.v2 import ArgumentError, DTypeError
from tests.engine import Engine
from tests.engines.networks import NETWORKS, draw, forward, largest, run

SPEC = NETWORKS["lstm 2 layers bi"]
LENGTHS = (4, 2)
DATA = draw(SPEC, LENGTHS)


def training_forward(engine: Any, spec: v2.RNNSpec = SPEC, data: Any = DATA) -> v2.RNNOutput:
    return forward(engine, spec, data, lengths=LENGTHS)


def given_gradients(engine: Any, data: Any = DATA) -> list[Any]:
    return [engine.put(a) for a in (data.dy, data.dhy, data.dcy)]


def after_data(engine: Any, spec: v2.RNNSpec = SPEC, data: Any = DATA) -> v2.RNNOutput:
    out = training_forward(engine, spec, data)
    v2.rnn_backward_data(out, *given_gradients(engine, data))
    return out


def wanted_dw(engine: Any) -> Any:
    return run(engine, SPEC, DATA, lengths=LENGTHS)["dw"]


def test_without_dw_a_fresh_array_is_made_each_time(engine: Any) -> None:
    first, second = (v2.rnn_backward_weights(after_data(engine)) for _ in range(2))
    assert first is not second
    assert np.array_equal(engine.get(first), engine.get(second))


def test_a_given_dw_is_overwritten_and_returned(engine: Any) -> None:
    dw = engine.put(np.full(v2.weight_size(SPEC), np.nan))
    assert v2.rnn_backward_weights(after_data(engine), dw=dw) is dw
    assert np.array_equal(engine.get(dw), wanted_dw(engine))


def test_accumulate_adds_to_what_dw_holds(engine: Any) -> None:
    start = np.random.default_rng(0).normal(size=v2.weight_size(SPEC))
    dw = engine.put(start.copy())
    for _ in range(2):
        assert v2.rnn_backward_weights(after_data(engine), dw=dw, accumulate=True) is dw
    assert largest(engine.get(dw), start + 2 * wanted_dw(engine)) <= 1e-12


def test_accumulate_into_a_float16_dw_rounds_no_more_than_it_must(engine: Any) -> None:
    spec = SPEC.replace(dtype="float16")
    data = draw(spec, LENGTHS)
    fresh = v2.rnn_backward_weights(after_data(engine, spec, data))
    start = np.full(v2.weight_size(spec), 0.5, "float16")
    dw = engine.put(start.copy())
    v2.rnn_backward_weights(after_data(engine, spec, data), dw=dw, accumulate=True)
    exact = start.astype("float64") + engine.get(fresh).astype("float64")
    difference = np.abs(engine.get(dw) - exact)
    if engine.on_host:
        # Half a unit in the last place, of the sum and of the gradient itself.
        assert np.all(difference <= 2.0**-11 * (np.abs(exact) + 0.5))
    else:  # the library adds the steps of a sequence to dw in parts of its own choice
        assert difference.max() <= tolerance("float16", engine="cudnn", what="gradient")


@pytest.mark.parametrize("accumulate", [False, True], ids=["overwrite", "accumulate"])
@pytest.mark.parametrize("view", ["gaps", "reversed"])
def test_dw_may_be_a_view_with_strides_and_what_lies_between_stays(
    view: str, accumulate: bool, engine: Any
) -> None:
    size = v2.weight_size(SPEC)
    memory = engine.put(np.ones(2 * size))
    dw = memory[::2] if view == "gaps" else memory[::-2]
    v2.rnn_backward_weights(after_data(engine), dw=dw, accumulate=accumulate)
    assert largest(engine.get(dw), wanted_dw(engine) + accumulate) <= 1e-12
    between = memory[1::2] if view == "gaps" else memory[-2::-2]
    assert engine.get(between).tolist() == [1.0] * size


def test_a_read_only_dw_is_refused_before_anything_is_computed() -> None:
    # On NumPy alone: CuPy's arrays have no such flag.
    out = v2.rnn_forward(SPEC, DATA.w, DATA.x, training=True)
    v2.rnn_backward_data(out)
    dw = np.zeros(v2.weight_size(SPEC))
    dw.flags.writeable = False
    with pytest.raises(ArgumentError, match="dw is read-only"):
        v2.rnn_backward_weights(out, dw=dw)
    assert not v2.rnn_backward_weights(out, dw=np.zeros_like(dw)).any()


def test_dw_may_be_a_part_of_a_larger_array(engine: Any) -> None:
    size = v2.weight_size(SPEC)
    memory = engine.put(np.full(size + 10, 5.0))
    v2.rnn_backward_weights(after_data(engine), dw=memory[5:-5])
    got = engine.get(memory)
    assert np.array_equal(got[5:-5], wanted_dw(engine))
    assert got[:5].tolist() + got[-5:].tolist() == [5.0] * 10


@pytest.mark.parametrize(
    ("dw", "error"),
    [
        (np.zeros(3), ArgumentError),
        (np.zeros((1, v2.weight_size(SPEC))), ArgumentError),
        (np.zeros(v2.weight_size(SPEC), "float32"), DTypeError),
        (np.zeros(v2.weight_size(SPEC), int), DTypeError),
        ([0.0] * v2.weight_size(SPEC), DTypeError),
        ("dw", DTypeError),
        (0, DTypeError),
        (np.ma.zeros(v2.weight_size(SPEC)), DTypeError),
    ],
    ids=["short", "two axes", "float32", "int", "list", "str", "0", "masked"],
)
def test_a_dw_that_does_not_fit_is_refused_by_name(dw: Any, error: Any, engine: Any) -> None:
    if type(dw) is np.ndarray:
        dw = engine.put(dw)
    with pytest.raises(error, match="dw "):
        v2.rnn_backward_weights(after_data(engine), dw=dw)


@pytest.mark.gpu
def test_a_dw_on_the_host_is_refused_for_a_forward_on_the_gpu_and_the_other_way_round() -> None:
    import cupy

    gpu, host = Engine("cudnn", cupy), Engine("numpy", np)
    dw = np.zeros(v2.weight_size(SPEC))
    for engine, other in ((gpu, host), (host, gpu)):
        with pytest.raises(ArgumentError, match=r"different devices: .*w on .*dw on"):
            v2.rnn_backward_weights(after_data(engine), dw=other.put(dw))
