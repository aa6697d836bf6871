"""How what stands around the calls of v2 is compared: plans, conversion, a warning.

What other frameworks are given is compared with arrays that are put together here, from the weight
space and from the order of gates in the framework's own documentation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from cudnn_compat import v2
from cudnn_compat.arrays import Array
from cudnn_compat.matrix.comparing import Case, Comparison, Found, same
from cudnn_compat.matrix.equations import GATES
from cudnn_compat.matrix.reference import reference_forward
from cudnn_compat.matrix.shapes import HIDDEN

__all__ = ["CHECKS"]

ONNX: Final = {"lstm": [0, 3, 1, 2], "gru": [1, 0, 2]}
"""ONNX's gates (i o f c; z r h) by cuDNN's (i f g o; r z n)."""

KERAS: Final = {"gru": [1, 0, 2]}
"""Keras's (z r h; its LSTM's i f c o are cuDNN's) by cuDNN's."""


def plans(case: Case) -> Found:
    """A call leaves a plan that says what it was, and clearing leaves none."""
    v2.clear_plans()
    yield Comparison("number of plans after clearing", len(v2.plans()), 0, "exact")
    w, x = case.array(case.problem.w), case.x()
    out = v2.rnn_forward(case.spec, w, x, *case.states(), engine=case.engine)
    yield Comparison("y", out.y, case.join(case.problem.output.ys, case.spec.output_size))
    (plan,) = v2.plans()
    yield same("whether a plan is a PlanInfo", type(plan), v2.PlanInfo)
    yield same("engine of the plan", plan.engine, case.engine)
    told = (plan.layout, plan.steps, plan.batch, plan.ragged, plan.training)
    shape = case.shape
    yield same("what the plan says", told, ("time_major", shape.steps, shape.batch, False, False))
    yield same("algorithm of plan and result", plan.algo, out.algo)
    v2.clear_plans()
    yield Comparison("number of plans at the end", len(v2.plans()), 0, "exact")


def ineffective_option(case: Case) -> Found:
    """Dropout of one layer does nothing, and a warning says so."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spec = v2.RNNSpec(case.spec.cell, 3, 4, dtype=case.spec.dtype, dropout=0.5)
    kinds = [warning.category for warning in caught]
    yield same("warnings", kinds, [v2.IneffectiveOptionWarning])
    w, states = case.array(case.problem.w), case.states()
    out = v2.rnn_forward(spec, w, case.x(), *states, engine=case.engine, training=True)
    yield Comparison("y", out.y, case.join(case.problem.output.ys, case.spec.output_size))


def parts(case: Case, w: Array) -> Iterator[tuple[str, Array, Array, Array, Array]]:
    """Of each layer and direction: the ending of its names, W, R, and two biases."""
    spec, rows, hidden = case.spec, GATES[case.spec.cell] * case.spec.hidden_size, HIDDEN
    directions, place, found = 2 if spec.bidirectional else 1, 0, []

    def take(*shape: int) -> Array:
        nonlocal place
        start, place = place, place + math.prod(shape)
        return w[start:place].reshape(shape)

    for layer in range(spec.num_layers):
        width = hidden * directions if layer else spec.input_size
        for direction in range(directions):
            ending = f"_l{layer}" + "_reverse" * direction
            found.append((ending, take(rows, width), take(rows, hidden)))
    for ending, W, R in found:
        yield ending, W, R, take(rows), take(rows)


def by_layer(case: Case) -> list[list[Any]]:
    """:func:`parts`, a list for each layer."""
    directions = 2 if case.spec.bidirectional else 1
    found = list(parts(case, case.problem.w))
    return [found[at : at + directions] for at in range(0, len(found), directions)]


def turned(gates: Array, case: Case, order: dict[str, list[int]]) -> Array:
    """The rows of all gates in a framework's order."""
    if case.spec.cell not in order:
        return gates
    count = GATES[case.spec.cell]
    return gates.reshape(count, -1, *gates.shape[1:])[order[case.spec.cell]].reshape(gates.shape)


def compare_computed(case: Case, found: Any, *, exact: bool = True) -> Found:
    """Weights that came back from a framework are those that went there, and compute the same."""
    spec, w = found
    if exact:
        yield Comparison("w that came back", w, case.problem.w, "exact")
    hx, cx = case.states()
    x, w = case.x(), case.array(w)
    spec = spec.replace(math=case.math)
    out = v2.rnn_forward(spec, w, x, hx, cx, engine=case.engine)
    yield Comparison("y", out.y, case.join(case.problem.output.ys, case.spec.output_size))


def torch(case: Case) -> Found:
    """PyTorch's names and shapes, and back."""
    given = v2.convert.to_torch(case.spec, case.array(case.problem.w))
    named: dict[str, Array] = {}
    for ending, W, R, b_W, b_R in parts(case, case.problem.w):
        arrays = {"weight_ih": W, "weight_hh": R, "bias_ih": b_W, "bias_hh": b_R}
        named |= {name + ending: array for name, array in arrays.items()}
    yield same("names", sorted(given), sorted(named))
    for name, array in named.items():
        yield Comparison(name, given[name], array, "exact")
    yield from compare_computed(case, v2.convert.from_torch(given, case.spec))


def onnx(case: Case) -> Found:
    """ONNX's operators, orders of gates and attributes, and back."""
    nodes = v2.convert.to_onnx(case.spec, case.array(case.problem.w))
    yield same("whether it is an OnnxNodes", type(nodes), v2.convert.OnnxNodes)
    operator = {"lstm": "LSTM", "gru": "GRU"}.get(case.spec.cell, "RNN")
    yield same("operator", nodes.op_type, operator)
    for layer, directions in enumerate(by_layer(case)):
        columns = list(zip(*directions, strict=True))[1:]
        W, R, b_W, b_R = (
            np.stack([turned(part, case, ONNX) for part in column]) for column in columns
        )
        assert nodes.B is not None
        yield Comparison(f"W of layer {layer}", nodes.W[layer], W, "exact")
        yield Comparison(f"R of layer {layer}", nodes.R[layer], R, "exact")
        yield Comparison(f"B of layer {layer}", nodes.B[layer], np.hstack((b_W, b_R)), "exact")
    back = v2.convert.from_onnx(nodes.op_type, nodes.W, nodes.R, nodes.B, **nodes.attributes)
    yield from compare_computed(case, back)


def keras(case: Case) -> Found:
    """Keras's lists of arrays, and back; of two biases only the GRU keeps both."""
    given = v2.convert.to_keras(case.spec, case.array(case.problem.w))
    gru = case.spec.cell == "gru"
    for layer, directions in enumerate(by_layer(case)):
        wanted: list[Array] = []
        for _, W, R, b_W, b_R in directions:
            W, R, b_W, b_R = (turned(part, case, KERAS) for part in (W, R, b_W, b_R))
            wanted += [W.T, R.T, np.stack((b_W, b_R)) if gru else b_W + b_R]
        yield same(f"arrays of layer {layer}", len(given[layer]), len(wanted))
        for index, array in enumerate(wanted):
            # A sum of two biases is rounded in the dtype.
            name = f"array {index} of layer {layer}"
            yield Comparison(name, given[layer][index], array)
    back = v2.convert.from_keras(given, cell=case.spec.cell)
    yield from compare_computed(case, back, exact=gru)


def change_bias(case: Case) -> Found:
    """One bias as two computes the same."""
    spec, w = v2.convert.change_bias(case.spec, case.array(case.problem.w), "double")
    yield same("bias of the new spec", spec.bias, "double")
    out = v2.rnn_forward(spec, case.array(w), case.x(), *case.states(), engine=case.engine)
    right = reference_forward(spec, w, case.problem.xs, case.problem.hx, case.problem.cx)
    yield Comparison("y", out.y, case.join(case.problem.output.ys, case.spec.output_size))
    yield Comparison("y by the new weights", out.y, case.join(right.ys, case.spec.output_size))


CHECKS: Final[dict[str, Callable[[Case], Found]]] = {
    function.__name__: function
    for function in (plans, ineffective_option, torch, onnx, keras, change_bias)
}
