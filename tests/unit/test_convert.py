"""Converters against plain equations, each written in the convention of its framework.

Keras is not among the test dependencies, so these equations are what stands for it; PyTorch and
ONNX themselves are compared with in ``tests/peers``. What converters refuse is in
``test_convert_refusals.py``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudnn_compat import v2
from cudnn_compat.v2 import convert
from cudnn_compat.v2.convert.gates import GATE_ORDERS
from tests.foreign_equations import run_keras, run_onnx, run_torch

DOCS = Path(__file__).parents[2] / "docs" / "convert.md"
CELLS = ("tanh", "relu", "lstm", "gru")
BATCH, STEPS, TOLERANCE = 2, 5, 1e-12

RUNS: dict[str, Any] = {
    "keras": (convert.to_keras, run_keras),
    "onnx": (convert.to_onnx, run_onnx),
    "torch": (convert.to_torch, run_torch),
}


def read_back(framework: str, spec: v2.RNNSpec, weights: Any) -> tuple[v2.RNNSpec, np.ndarray]:
    if framework == "keras":
        reset_after = True if spec.cell == "gru" else None
        return convert.from_keras(weights, cell=spec.cell, reset_after=reset_after)
    if framework == "onnx":
        return convert.from_onnx(
            weights.op_type, weights.W, weights.R, weights.B, **weights.attributes
        )
    wanted = spec.replace(bias="none" if spec.bias == "none" else "double", input_mode="linear")
    return convert.from_torch(weights, wanted if spec.num_gates == 1 else None)


def networks(**fixed: Any) -> st.SearchStrategy[v2.RNNSpec]:
    choices = {
        "cell": st.sampled_from(CELLS),
        "input_size": st.integers(1, 4),
        "hidden_size": st.integers(1, 4),
        "num_layers": st.integers(1, 3),
        "bidirectional": st.booleans(),
        "bias": st.sampled_from(("double", "none", "input", "recurrent")),
        "dtype": st.sampled_from(("float16", "bfloat16", "float32", "float64")),
    }
    return st.builds(v2.RNNSpec, **choices | {k: st.just(v) for k, v in fixed.items()})


def drawn(spec: v2.RNNSpec) -> tuple[np.ndarray, np.ndarray]:
    """Weights, and x of unit scale."""
    x = np.random.default_rng(3).standard_normal((STEPS, BATCH, spec.input_size))
    return v2.init_weights(spec, seed=7), x


@pytest.mark.parametrize("framework", RUNS)
@given(networks(dtype="float64"))
def test_the_equations_of_each_framework_give_our_result_with_exported_weights(
    framework: str, spec: v2.RNNSpec
) -> None:
    w, x = drawn(spec)
    export, run_plainly = RUNS[framework]
    expected = run_plainly(spec, export(spec, w), x)
    np.testing.assert_allclose(v2.rnn_forward(spec, w, x).y, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("framework", RUNS)
@given(networks(dtype="float64"))
def test_imported_weights_give_the_result_of_the_framework_s_own_equations(
    framework: str, like: v2.RNNSpec
) -> None:
    export, run_plainly = RUNS[framework]
    weights = export(like, drawn(like)[0])
    rng = np.random.default_rng(11)
    arrays = {
        "keras": lambda: [a for layer in weights for a in layer],
        "onnx": lambda: [*weights.W, *weights.R, *(weights.B or ())],
        "torch": lambda: list(weights.values()),
    }[framework]()
    for array in arrays:
        # The scale of init_weights: larger ones let relu grow, and rounding errors with it.
        array[...] = rng.uniform(-1, 1, array.shape) / np.sqrt(like.hidden_size)
    spec, w = read_back(framework, like, weights)
    x = drawn(like)[1]
    expected = run_plainly(like, weights, x)
    np.testing.assert_allclose(v2.rnn_forward(spec, w, x).y, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("framework", RUNS)
@given(networks())
def test_a_round_trip_changes_no_weight(framework: str, spec: v2.RNNSpec) -> None:
    w, _ = drawn(spec)
    weights = RUNS[framework][0](spec, w)
    found, back = read_back(framework, spec, weights)
    several = "input" if framework == "keras" and spec.cell != "gru" else "double"
    same, wanted = convert.change_bias(spec, w, "none" if spec.bias == "none" else several)
    assert found == same
    assert back.dtype == wanted.dtype
    np.testing.assert_array_equal(back, wanted)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("framework", RUNS)
def test_skip_input_becomes_matrices_of_ones_on_the_diagonal(framework: str, cell: str) -> None:
    spec = v2.RNNSpec(cell, 3, 3, num_layers=2, bidirectional=True, input_mode="skip",
                      dtype="float64")  # fmt: skip
    w, x = drawn(spec)
    export, run_plainly = RUNS[framework]
    weights = export(spec, w)
    expected = run_plainly(spec, weights, x)
    np.testing.assert_allclose(v2.rnn_forward(spec, w, x).y, expected, rtol=0, atol=TOLERANCE)
    found, back = read_back(framework, spec, weights)
    assert found.input_mode == "linear"
    np.testing.assert_allclose(v2.rnn_forward(found, back, x).y, expected, rtol=0, atol=TOLERANCE)


def test_projections_travel_to_and_from_torch_names() -> None:
    spec = v2.RNNSpec("lstm", 3, 5, proj_size=2, num_layers=2, bidirectional=True, dtype="float64")
    w, x = drawn(spec)
    state_dict = convert.to_torch(spec, w)
    expected = run_torch(spec, state_dict, x)
    np.testing.assert_allclose(v2.rnn_forward(spec, w, x).y, expected, rtol=0, atol=TOLERANCE)
    found, back = convert.from_torch(state_dict)
    assert found == spec
    np.testing.assert_array_equal(back, w)


@given(networks(dtype="float64"), st.sampled_from(("double", "input", "recurrent", "none")))
def test_other_biases_compute_the_same_or_are_refused(spec: v2.RNNSpec, bias: str) -> None:
    w, x = drawn(spec)
    drops = bias == "none" != spec.bias
    merges = (
        spec.cell == "gru" and bias in ("input", "recurrent") and spec.bias not in (bias, "none")
    )
    if drops or merges:
        with pytest.raises(v2.UnsupportedError, match="drop" if drops else "scaled by r"):
            convert.change_bias(spec, w, bias)
        return
    changed, other = convert.change_bias(spec, w, bias)
    assert changed == spec.replace(bias=bias)
    expected = v2.rnn_forward(spec, w, x).y
    np.testing.assert_allclose(v2.rnn_forward(changed, other, x).y, expected, rtol=0,
                               atol=TOLERANCE)  # fmt: skip


def test_nothing_that_is_returned_shares_memory_with_what_was_given() -> None:
    spec = v2.RNNSpec("gru", 3, 4)
    w = v2.init_weights(spec, seed=0)
    nodes, [keras], state_dict = (
        convert.to_onnx(spec, w),
        convert.to_keras(spec, w),
        convert.to_torch(spec, w),
    )
    assert nodes.B is not None
    exported = [*state_dict.values(), *keras, *nodes.W, *nodes.R, *nodes.B]
    assert not any(np.shares_memory(array, w) for array in exported)
    for _, back in (
        convert.from_torch(state_dict),
        convert.from_keras(keras, cell="gru"),
        convert.from_onnx("GRU", nodes.W, nodes.R, nodes.B, **nodes.attributes),
        convert.change_bias(spec, w, spec.bias),
    ):
        assert not any(np.shares_memory(back, array) for array in (w, *exported))


@pytest.mark.gpu
@pytest.mark.parametrize("framework", RUNS)
def test_weights_on_the_gpu_are_exported_as_those_on_the_host(framework: str) -> None:
    cupy = pytest.importorskip("cupy")
    spec = v2.RNNSpec("gru", 3, 4, num_layers=2, bidirectional=True)
    w = v2.init_weights(spec, seed=0)
    weights = RUNS[framework][0](spec, cupy.asarray(w))
    found, back = read_back(framework, spec, weights)
    assert found == spec
    np.testing.assert_array_equal(back, w)


EXAMPLES = re.findall(r"^```python\n(.*?)^```", DOCS.read_text("utf-8"), re.M | re.S)
PLAIN = [example for example in EXAMPLES if not re.search(r"^import (torch|onnx)", example, re.M)]


@pytest.mark.parametrize("example", PLAIN)
def test_the_examples_of_the_page_run_each_on_its_own(example: str) -> None:
    # Those that import a framework run in tests/peers.
    exec(compile(example, str(DOCS), "exec"), {})


def test_the_table_of_the_page_is_the_order_that_is_used() -> None:
    rows = re.findall(r"^\| (\S+) \| ((?:\w )+)\| ((?:\w )+)\|", DOCS.read_text("utf-8"), re.M)
    letters = {"lstm": str.maketrans("c", "g"), "gru": str.maketrans("h", "n")}
    orders = {
        name.lower(): {
            "lstm": lstm.replace(" ", "").translate(letters["lstm"]),
            "gru": gru.replace(" ", "").translate(letters["gru"]),
        }
        for name, lstm, gru in rows
    }
    assert orders["pytorch"] == orders["cudnn"]
    for name, known in GATE_ORDERS.items():
        assert orders[name] == {cell: known[cell] for cell in ("lstm", "gru")}
