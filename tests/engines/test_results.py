"""What a call returns: arity, types, defaults of the states, and that it does not vary."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.spec import ALGOS
from tests.engines.networks import (
    NETWORKS,
    OUTPUTS,
    check_same,
    draw,
    each_network,
    forward,
    run,
    same,
)


@each_network
@pytest.mark.parametrize("missing", [("hx", "cx"), ("hx",), ("cx",)], ids="+".join)
def test_states_that_are_not_given_are_zeros(
    spec: v2.RNNSpec, missing: tuple[str, ...], engine: Any
) -> None:
    lengths = (3, 1)
    data = draw(spec, lengths)
    zeros = {
        name: None if getattr(data, name) is None else np.zeros_like(getattr(data, name))
        for name in missing
    }
    absent = run(engine, spec, data.without(*missing), lengths=lengths)
    given_zeros = run(engine, spec, data.replace(**zeros), lengths=lengths)
    check_same(spec, engine, absent, given_zeros)


@each_network
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_results_have_one_arity_and_type_in_training_and_inference(
    spec: v2.RNNSpec, training: bool, engine: Any
) -> None:
    out = forward(engine, spec, draw(spec, (3, 2)), lengths=(3, 2), training=training)
    y, hy, cy = out
    assert (y is out.y, hy is out.hy, cy is out.cy) == (True, True, True)
    assert (cy is None) == (spec.cell != "lstm")
    for array in filter(lambda a: a is not None, out):
        assert type(array) is engine.xp.ndarray
        assert array.dtype == spec.dtype
        assert engine.get(array).flags.writeable
    assert out.engine == engine.name
    assert isinstance(out.algo, str)
    assert out.spec is spec
    assert out.training is out.can_backward is training
    assert (out.reserve_bytes > 0) is training


def test_gradients_have_four_parts_and_dcx_is_none_without_a_cell(engine: Any) -> None:
    for name in ("lstm", "gru"):
        spec = NETWORKS[name]
        gradients = v2.rnn_backward(forward(engine, spec, draw(spec, (3, 2))))
        dx, dhx, dcx, dw = gradients
        assert (dx is gradients.dx, dhx is gradients.dhx, dw is gradients.dw) == (True, True, True)
        assert (dcx is None) == (name == "gru")


@each_network
def test_inference_equals_training(spec: v2.RNNSpec, engine: Any) -> None:
    for lengths in ((4, 4), (1, 4, 0)):
        data = draw(spec, lengths)
        trained, inferred = (
            forward(engine, spec, data, lengths=lengths, training=training)
            for training in (True, False)
        )
        for name, a, b in zip(OUTPUTS, trained, inferred, strict=True):
            assert (a is None) == (b is None)
            assert a is None or same(spec, engine, engine.get(a), engine.get(b), name), name


@pytest.mark.parametrize("algo", ALGOS)
def test_the_numpy_engine_takes_any_algorithm_and_reports_its_own_name(algo: str) -> None:
    spec = v2.RNNSpec("gru", 3, 4, algo=algo)
    out = v2.rnn_forward(spec, v2.init_weights(spec, 0), np.zeros((2, 1, 3), "float32"))
    assert (out.engine, out.algo) == ("numpy", "numpy")


@pytest.mark.gpu
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("lengths", [(4, 4), (4, 2)], ids=["equal", "ragged"])
@pytest.mark.parametrize("algo", ALGOS)
def test_the_cudnn_engine_runs_the_algorithm_that_is_asked_for_or_says_that_it_cannot(
    algo: str, lengths: tuple[int, ...], training: bool
) -> None:
    import cupy

    spec = v2.RNNSpec("gru", 3, 4, algo=algo)
    w, x = v2.init_weights(spec, 0, xp=cupy), cupy.zeros((4, 2, 3), "float32")
    try:
        out = v2.rnn_forward(spec, w, x, lengths=lengths, training=training)
    except v2.UnsupportedError:
        # STANDARD does everything, and "auto" falls back to it; the persistent ones take no
        # ragged batches; own kernels need a GPU with thread-block clusters, but for the smallest.
        assert algo.startswith("persist_") or algo == "fused"
    else:
        assert out.engine == "cudnn"
        assert out.algo == algo or (algo == "auto" and out.algo in ALGOS[1:])


def test_the_same_call_gives_the_same_bits(engine: Any) -> None:
    spec = NETWORKS["lstm 2 layers bi"]
    data = draw(spec, (5, 2, 4))
    first, second = (run(engine, spec, data, lengths=(5, 2, 4)) for _ in range(2))
    for name, value in first.items():
        assert np.array_equal(value, second[name]), name


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_a_training_output_is_not_copied_or_pickled_and_says_so(
    copied: Callable[[Any], Any], engine: Any
) -> None:
    spec = v2.RNNSpec("gru", 3, 4)
    w, x = engine.put(v2.init_weights(spec, seed=0)), engine.put(np.ones((2, 1, 3), "float32"))
    out = v2.rnn_forward(spec, w, x, training=True)
    with pytest.raises(v2.TapeError, match="cannot be copied or pickled; take y"):
        copied(out)
    assert out.can_backward
    assert copied(v2.rnn_forward(spec, w, x))
