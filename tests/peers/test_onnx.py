"""ONNX's own node vectors and reference evaluator, through the converter.

The vectors of ``onnx.backend.test`` that v2 can express must come out within the tolerance of
float32; for each other one stands here why it cannot be. No vector has ``clip``, ``input_forget``
or other activations (refused: ``tests/unit/test_convert_refusals.py``), ``linear_before_reset=1``
(compared with the reference evaluator below) or lengths below the number of steps (nor has the
evaluator, which reads no ``sequence_lens``; ``test_pytorch.py`` has them).
"""

from __future__ import annotations

import copy
import functools
import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import convert

onnx = pytest.importorskip(
    "onnx", reason="compares with ONNX, which is not installed: extra 'peers'"
)

pytestmark = pytest.mark.peers

TOLERANCE = 2e-5
DOCS = Path(__file__).parents[2] / "docs" / "convert.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", DOCS.read_text("utf-8"), re.M | re.S)

RESET_BEFORE = "linear_before_reset=0, ONNX's default, is the reset-before GRU"
PEEPHOLES = "P has peepholes"
REVERSE = "cuDNN has a reverse direction beside a forward one only"
NOT_EXPRESSIBLE = {
    "test_gru_defaults": RESET_BEFORE,
    "test_gru_with_initial_bias": RESET_BEFORE,
    "test_gru_seq_length": RESET_BEFORE,
    "test_gru_batchwise": RESET_BEFORE,
    "test_gru_reverse": RESET_BEFORE,
    "test_gru_bidirectional": RESET_BEFORE,
    "test_lstm_with_peepholes": PEEPHOLES,
    "test_lstm_reverse": REVERSE,
    "test_simple_rnn_reverse": REVERSE,
}
"""The vectors that v2 cannot express, with the words of the refusal."""


class Vector:
    """One node with its inputs and outputs by the names of the operator's specification."""

    def __init__(self, node: Any, inputs: list[Any], outputs: list[Any]) -> None:
        present = iter(inputs)
        self.op_type = node.op_type
        self.inputs = {name: next(present) for name in node.input if name}
        self.outputs = dict(zip([name for name in node.output if name], outputs, strict=True))
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}

    def changed(self, **attributes: Any) -> Vector:
        """A copy with other attributes."""
        other = copy.copy(self)
        other.inputs = dict(self.inputs)
        other.attributes = self.attributes | attributes
        return other

    @property
    def network(self) -> tuple[v2.RNNSpec, np.ndarray]:
        weights = {name: self.inputs.get(name) for name in "WRBP"}
        return convert.from_onnx(self.op_type, **weights, **self.attributes)

    def run(self) -> dict[str, np.ndarray]:
        """This package's outputs in ONNX's layout."""
        spec, w = self.network
        batch_major = bool(self.attributes.get("layout"))
        states = [self.inputs.get(name) for name in ("initial_h", "initial_c")]
        if batch_major:
            states = [None if s is None else s.swapaxes(0, 1) for s in states]
        y, hy, cy = v2.rnn_forward(
            spec,
            w,
            self.inputs["X"],
            *states,
            lengths=self.inputs.get("sequence_lens"),
            layout="batch_major" if batch_major else "time_major",
        )
        y = y.reshape(*y.shape[:2], spec.num_directions, spec.hidden_size)
        if batch_major:
            hy, cy = hy.swapaxes(0, 1), None if cy is None else cy.swapaxes(0, 1)
        else:
            y = y.swapaxes(1, 2)
        return {"Y": y, "Y_h": hy, "Y_c": cy}


@functools.cache
def vectors() -> dict[str, Vector]:
    # Each of the three modules adds its cases to the list while it is imported; importing all
    # operators, as the loader does, takes ten seconds.
    for operator in ("rnn", "lstm", "gru"):
        importlib.import_module(f"onnx.backend.test.case.node.{operator}")
    found = {}
    for case in onnx.backend.test.case.node._NodeTestCases:
        node = case.model.graph.node[0]
        if node.op_type in ("RNN", "LSTM", "GRU"):
            [(inputs, outputs)] = case.data_sets
            found[case.name] = Vector(node, inputs, outputs)
    return found


EXPRESSIBLE = sorted(vectors().keys() - NOT_EXPRESSIBLE.keys())


def assert_outputs(vector: Vector, got: dict[str, np.ndarray]) -> None:
    assert vector.outputs
    for name, expected in vector.outputs.items():
        assert got[name].dtype == expected.dtype
        np.testing.assert_allclose(got[name], expected, rtol=0, atol=TOLERANCE, err_msg=name)


@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_a_vector_that_can_be_expressed_gives_onnx_s_outputs(name: str) -> None:
    vector = vectors()[name]
    assert_outputs(vector, vector.run())


@pytest.mark.parametrize("name", [name for name in NOT_EXPRESSIBLE if name in vectors()])
def test_a_vector_that_cannot_be_expressed_is_refused_in_words(name: str) -> None:
    with pytest.raises(v2.UnsupportedError, match=re.escape(NOT_EXPRESSIBLE[name])):
        vectors()[name].run()


@pytest.mark.parametrize("name", ["test_lstm_reverse", "test_simple_rnn_reverse"])
def test_the_advice_given_for_a_reverse_node_gives_onnx_s_outputs(name: str) -> None:
    vector = vectors()[name]
    turned = vector.changed(direction="forward")
    turned.inputs["X"] = vector.inputs["X"][::-1]
    got = turned.run()
    assert_outputs(vector, {**got, "Y": got["Y"][::-1]})


def test_the_reset_after_form_would_have_been_wrong_for_a_reset_before_vector() -> None:
    # The refusal is no formality. This is the one vector with random weights and a past.
    vector = vectors()["test_gru_seq_length"]
    got = vector.changed(linear_before_reset=1).run()
    assert abs(got["Y_h"] - vector.outputs["Y_h"]).max() > 100 * TOLERANCE


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bias", ["double", "none", "input", "recurrent"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["uni", "bi"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", ["tanh", "lstm", "gru"])
def test_exported_nodes_compute_the_same_in_onnx_s_reference_evaluator(
    cell: str, layers: int, bidirectional: bool, bias: str, dtype: str
) -> None:
    # The evaluator knows no Relu for RNN; tests/unit/test_convert.py has it in plain equations.
    spec = v2.RNNSpec(
        cell, 3, 5, num_layers=layers, bidirectional=bidirectional, bias=bias, dtype=dtype
    )
    w = v2.init_weights(spec, seed=layers)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 4, 3)).astype(dtype)
    states = [rng.standard_normal(spec.state_shape(4)).astype(dtype) for _ in range(2)]
    states = states[: 1 + spec.has_cell]
    nodes = convert.to_onnx(spec, w)
    assert (nodes.B is None) == (bias == "none")
    per_layer = spec.num_directions
    ends: list[list[np.ndarray]] = []
    y = x
    for layer in range(layers):
        begin = [s[layer * per_layer : (layer + 1) * per_layer] for s in states]
        y, *end = evaluate(nodes, layer, y, begin)
        ends.append(end)
        y = y.transpose(0, 2, 1, 3).reshape(6, 4, -1)
    out = v2.rnn_forward(spec, w, x, *states)
    tolerance = TOLERANCE if dtype == "float32" else 1e-12
    expected = [y, *(np.concatenate(parts) for parts in zip(*ends, strict=True))]
    got = [part for part in out if part is not None]
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)


def evaluate(
    nodes: convert.OnnxNodes, layer: int, x: np.ndarray, states: list[np.ndarray]
) -> list[np.ndarray]:
    """Y, Y_h (and Y_c) of one exported node, as a checked model, by ``onnx.reference``."""
    values = {"X": x, "W": nodes.W[layer], "R": nodes.R[layer]}
    if nodes.B is not None:
        values["B"] = nodes.B[layer]
    values.update(zip(("initial_h", "initial_c"), states, strict=False))
    order = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c")[: 5 + len(states)]
    outputs = ("Y", "Y_h", "Y_c")[: 1 + len(states)]
    node = onnx.helper.make_node(
        nodes.op_type, [n if n in values else "" for n in order], outputs, **nodes.attributes
    )
    kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = onnx.helper.make_graph(
        [node],
        "layer",
        [onnx.helper.make_tensor_value_info(n, kind, v.shape) for n, v in values.items()],
        [onnx.helper.make_tensor_value_info(n, kind, [None] * (3 + (n == "Y"))) for n in outputs],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 14)])
    onnx.checker.check_model(model, full_check=True)
    evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator(model)
    return list(evaluator.run(None, values))


@pytest.mark.parametrize("example", [e for e in EXAMPLES if "import onnx" in e])
def test_the_examples_with_onnx_run(example: str) -> None:
    exec(compile(example, str(DOCS), "exec"), {})
