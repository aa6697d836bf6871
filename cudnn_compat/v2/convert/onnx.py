"""ONNX: the operators ``RNN``, ``LSTM`` and ``GRU``, one node for each layer.

Equations: the operators' specification. A node has an axis of directions, biases of both kinds
behind each other, and another order of gates; a GRU computes ``H = (1 - z) * h + z * H_prev``, and
with ``linear_before_reset=1`` ``h = tanh(X W + Wb + r * (H_prev R + Rb))``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from cudnn_compat.errors import ArgumentError, DTypeError, UnsupportedError
from cudnn_compat.spec import RNNSpec
from cudnn_compat.v2.convert.biases import plain_network
from cudnn_compat.v2.convert.gates import (
    Weights,
    check_shape,
    common_dtype,
    gather_weights,
    host_array,
    refuse_reset_before,
    reorder,
    suffixes,
)
from cudnn_compat.weights import named_weights

__all__ = ["OnnxNodes", "from_onnx", "to_onnx"]

_OPERATORS: Final = {"relu": "RNN", "tanh": "RNN", "lstm": "LSTM", "gru": "GRU"}
_ACTIVATIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "relu": ("Relu",),
        "tanh": ("Tanh",),
        "lstm": ("Sigmoid", "Tanh", "Tanh"),
        "gru": ("Sigmoid", "Tanh"),
    }
)
_DIRECTIONS: Final = ("forward", "reverse", "bidirectional")


@dataclasses.dataclass(frozen=True, eq=False)
class OnnxNodes:
    """A network as ONNX has it: one node for each layer, all with the same attributes.

    ``from_onnx(nodes.op_type, nodes.W, nodes.R, nodes.B, **nodes.attributes)`` reads it back, and
    ``onnx.helper.make_node(nodes.op_type, inputs, outputs, **nodes.attributes)`` makes a node.

    Attributes:
        op_type: ``"RNN"``, ``"LSTM"`` or ``"GRU"``.
        W: for each layer its input matrices ``(D, G·H, in)``.
        R: for each layer its recurrent matrices ``(D, G·H, H)``.
        B: for each layer its biases ``(D, 2·G·H)``, or None for a network without.
        attributes: the attributes of each node.
    """

    op_type: str
    W: list[np.ndarray]
    R: list[np.ndarray]
    B: list[np.ndarray] | None
    attributes: dict[str, Any]


def from_onnx(
    op_type: str,
    W: Any,
    R: Any,
    B: Any = None,
    P: Any = None,
    *,
    hidden_size: int | None = None,
    direction: str | bytes = "forward",
    activations: Sequence[str | bytes] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    input_forget: int = 0,
    linear_before_reset: int = 0,
    layout: int = 0,
) -> Weights:
    """Weights of an ONNX node, or of several that are stacked.

    Inputs and attributes have ONNX's names and defaults, so that those of a node can be passed as
    they are: ``**{a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}``.

    Args:
        op_type: ``"RNN"``, ``"LSTM"`` or ``"GRU"``.
        W: input matrices ``(D, G·H, I)``; for stacked layers a list of arrays, first layer first.
        R: recurrent matrices ``(D, G·H, H)``, or a list likewise.
        B: biases ``(D, 2·G·H)``, or a list likewise; None for none.
        P: peepholes, which cuDNN has not: None, or zeros.
        layout: 0 or 1; changes no weights: pass ``layout="batch_major"`` to calls for 1.
        hidden_size, direction, activations, clip, input_forget, linear_before_reset: attributes of
            the node, the same for all layers.
        activation_alpha, activation_beta: parameters of activations that cuDNN has not; those it
            has (Sigmoid, Tanh, Relu) take none, so their values change nothing.

    Returns:
        ``(spec, w)`` with ``bias="double"`` or ``"none"``. The input ``sequence_lens`` is
        ``lengths`` of calls; an output Y ``(T, D, B, H)`` is ``y`` ``(T, B, D·H)`` with its last
        axis split into D and H.

    Raises:
        UnsupportedError: something cuDNN has no counterpart for; says what and why.
        ArgumentError: a shape, a number of layers or an attribute is wrong.
        DTypeError: what came are not arrays, or their dtypes are mixed.
    """
    direction = _text(direction)
    if direction not in _DIRECTIONS:
        raise ArgumentError(f"direction is {direction!r}; wanted one of {', '.join(_DIRECTIONS)}")
    bidirectional = direction == "bidirectional"
    cell = _cell(op_type, activations, 2 if bidirectional else 1)
    if layout not in (0, 1):
        raise ArgumentError(f"layout is {layout!r}; wanted 0 or 1")
    _refuse_what_cudnn_lacks(cell, direction, clip, input_forget, linear_before_reset)
    inputs = {
        name: _layers(name, value) for name, value in (("W", W), ("R", R), ("B", B), ("P", P))
    }
    counts = {name: len(layers) for name, layers in inputs.items() if layers}
    if not counts.keys() >= {"W", "R"} or len(set(counts.values())) > 1:
        raise ArgumentError(
            f"the numbers of layers are {counts}; wanted the same for W, R and what else is given"
        )
    if any(np.any(array) for array in inputs["P"]):
        raise UnsupportedError(
            "P has peepholes (gates that see the cell state); cuDNN's LSTM has none"
        )
    first, second = inputs["W"][0], inputs["R"][0]
    for name, array in (("W", first), ("R", second)):
        if array.ndim != 3:
            raise ArgumentError(
                f"{name} has shape {array.shape}; wanted three axes: "
                "(directions, gates * hidden, inputs or hidden)"
            )
    spec = RNNSpec(
        cell,
        first.shape[2],
        second.shape[2],
        num_layers=len(inputs["W"]),
        bidirectional=bidirectional,
        bias="double" if inputs["B"] else "none",
        dtype=common_dtype({f"{k}[{i}]": a for k in "WRB" for i, a in enumerate(inputs[k])}),
    )
    if hidden_size not in (None, spec.hidden_size):
        raise ArgumentError(f"hidden_size is {hidden_size}, but R has shape {second.shape}")
    arrays = {}
    for layer in range(spec.num_layers):
        w, r = inputs["W"][layer], inputs["R"][layer]
        b = inputs["B"][layer] if inputs["B"] else None
        _check_layer(spec, layer, w, r, b)
        for index, suffix in enumerate(suffixes(spec, layer)):
            parts = {"weight_ih": w[index], "weight_hh": r[index]}
            if b is not None:
                parts["bias_ih"], parts["bias_hh"] = np.split(b[index], 2)
            for kind, part in parts.items():
                arrays[kind + suffix] = reorder(part, cell, source="onnx", target="cudnn")
    return gather_weights(spec, arrays)


def to_onnx(spec: RNNSpec, w: Any) -> OnnxNodes:
    """The nodes that compute the same in ONNX.

    Args:
        spec: the description of the network. One bias becomes two, of which one is zero; skip
            input becomes input matrices that are stacked identities. Dropout has no place in
            these operators.
        w: its flat weight space ``(weight_size(spec),)``, NumPy or CuPy.

    Returns:
        :class:`OnnxNodes`. Between two nodes Y ``(T, D, B, H)`` becomes the X ``(T, B, D·H)`` of
        the next: Transpose ``(0, 2, 1, 3)``, then Reshape ``(0, 0, -1)``.

    Raises:
        UnsupportedError: projection or clip.
        ArgumentError, DTypeError: w is not a weight space of the spec.
    """
    spec, w = plain_network(spec, w, "double", "ONNX", projection=False)
    named = named_weights(spec, w)

    def stacked(kind: str, layer: int) -> np.ndarray:
        return np.stack(
            [
                reorder(named[kind + suffix], spec.cell, source="cudnn", target="onnx")
                for suffix in suffixes(spec, layer)
            ]
        )

    layers = range(spec.num_layers)
    biases = None
    if spec.bias != "none":
        biases = [np.hstack((stacked("bias_ih", i), stacked("bias_hh", i))) for i in layers]
    attributes: dict[str, Any] = {
        "hidden_size": spec.hidden_size,
        "direction": "bidirectional" if spec.bidirectional else "forward",
        "activations": list(_ACTIVATIONS[spec.cell]) * spec.num_directions,
    }
    if spec.cell == "gru":
        attributes["linear_before_reset"] = 1
    return OnnxNodes(
        _OPERATORS[spec.cell],
        [stacked("weight_ih", i) for i in layers],
        [stacked("weight_hh", i) for i in layers],
        biases,
        attributes,
    )


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _layers(name: str, value: Any) -> list[np.ndarray]:
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        return [host_array(name, value)]
    return [host_array(f"{name}[{index}]", array) for index, array in enumerate(value)]


def _cell(op_type: Any, activations: Any, directions: int) -> str:
    """The cell of an operator with these activations."""
    cells = [cell for cell, operator in _OPERATORS.items() if operator == op_type]
    if not cells:
        raise ArgumentError(f"op_type is {op_type!r}; wanted 'RNN', 'LSTM' or 'GRU'")
    if activations is None:
        return cells[-1]
    if isinstance(activations, (str, bytes)):
        raise DTypeError(f"activations is {activations!r}; wanted a list of names")
    given = tuple(str(_text(name)).capitalize() for name in activations)
    for cell in cells:
        if given == _ACTIVATIONS[cell] * directions:
            return cell
    wanted = " or ".join(str(list(_ACTIVATIONS[cell] * directions)) for cell in cells)
    raise UnsupportedError(f"activations are {list(given)}; cuDNN's {op_type} has {wanted} only")


def _refuse_what_cudnn_lacks(
    cell: str, direction: str, clip: float | None, input_forget: int, linear_before_reset: int
) -> None:
    """Refuse attributes that make another function of the node."""
    if cell == "gru" and not linear_before_reset:
        refuse_reset_before("linear_before_reset=0, ONNX's default,")
    if direction == "reverse":
        raise UnsupportedError(
            "direction='reverse' alone: cuDNN has a reverse direction beside a forward one only. "
            "Convert with direction='forward', and reverse the steps of each sequence in x and in y"
        )
    if clip is not None:
        raise UnsupportedError(
            f"clip={clip}: ONNX bounds what enters each activation, cuDNN the cell state of an LSTM"
        )
    if input_forget:
        raise UnsupportedError(
            f"input_forget={input_forget} couples the gates, f = 1 - i; cuDNN's are independent"
        )


def _check_layer(
    spec: RNNSpec, layer: int, w: np.ndarray, r: np.ndarray, b: np.ndarray | None
) -> None:
    directions, rows = spec.num_directions, spec.num_gates * spec.hidden_size
    wanted = "(directions, gates * hidden, inputs)"
    check_shape(f"W[{layer}]", w, (directions, rows, spec.layer_input_size(layer)), wanted)
    wanted = "(directions, gates * hidden, hidden)"
    check_shape(f"R[{layer}]", r, (directions, rows, spec.hidden_size), wanted)
    if b is not None:
        wanted = "(directions, 2 * gates * hidden)"
        check_shape(f"B[{layer}]", b, (directions, 2 * rows), wanted)
