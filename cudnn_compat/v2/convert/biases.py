"""From one bias mode to another, and from skip input to linear input."""

from __future__ import annotations

from typing import Any

import numpy as np

from cudnn_compat.errors import DTypeError, UnsupportedError
from cudnn_compat.spec import RNNSpec
from cudnn_compat.v2.convert.gates import Weights, gather_weights, host_array
from cudnn_compat.weights import named_weights, weight_layout

__all__ = ["change_bias", "linear_input", "plain_network"]


def change_bias(spec: RNNSpec, w: Any, bias: str) -> Weights:
    """The same network with other biases (Keras has one, PyTorch and ONNX have two).

    Two biases become one by their sum, which is exact up to one rounding, except in a GRU:
    its recurrent bias of n stands inside ``r * (R h + b_R)``, so that no single bias can replace
    both. Biases that come new are zero.

    Args:
        spec: the description of the network.
        w: its flat weight space ``(weight_size(spec),)``, NumPy or CuPy.
        bias: ``"double"``, ``"input"``, ``"recurrent"`` or ``"none"``.

    Returns:
        ``(spec, w)``: the spec with that bias mode, and a new weight space on the host.

    Raises:
        UnsupportedError: no network with such biases computes the same.
        ArgumentError, DTypeError: an argument is wrong.
    """
    if not isinstance(spec, RNNSpec):
        raise DTypeError(f"spec is a {type(spec).__name__}; wanted a v2.RNNSpec")
    target = spec.replace(bias=bias)
    arrays = dict(named_weights(spec, np.ascontiguousarray(host_array("w", w))))
    for name, slot in weight_layout(target).names.items():
        if name.startswith("bias"):
            arrays.setdefault(name, np.zeros(slot.shape, arrays["weight_hh_l0"].dtype))
    for name in arrays.keys() - weight_layout(target).names.keys():
        if bias == "none":
            raise UnsupportedError(
                f"bias='none' would drop the biases of this network (bias='{spec.bias}')"
            )
        if spec.cell == "gru":
            raise UnsupportedError(
                f"a GRU with bias='{spec.bias}' cannot be written with bias='{bias}': in "
                "n = tanh(W x + b_W + r * (R h + b_R)) the recurrent bias is scaled by r and the "
                "input bias is not, so neither can stand for the other; 'double' holds both"
            )
        kept = name.replace("_hh", "_ih") if bias == "input" else name.replace("_ih", "_hh")
        arrays[kept] = arrays[kept] + arrays[name]
    return gather_weights(target, arrays)


def linear_input(spec: RNNSpec, w: np.ndarray) -> Weights:
    """Skip input written as linear input: x is added to every gate, so W is stacked identities."""
    if spec.input_mode == "linear":
        return spec, w
    target = spec.replace(input_mode="linear")
    arrays = dict(named_weights(spec, w))
    identity = np.eye(spec.hidden_size, dtype=w.dtype)
    for name in weight_layout(target).names.keys() - arrays.keys():
        arrays[name] = np.tile(identity, (spec.num_gates, 1))
    return gather_weights(target, arrays)


def plain_network(spec: RNNSpec, w: Any, bias: str, framework: str, *, projection: bool) -> Weights:
    """The network as another framework can hold it: linear input, no clip, biases as wanted.

    Args:
        bias: the mode for a network that has biases; one without stays so.
        framework: its name, for messages.
        projection: whether it has projections.

    Raises:
        UnsupportedError: the framework has no counterpart of something in the spec.
    """
    if not isinstance(spec, RNNSpec):
        raise DTypeError(f"spec is a {type(spec).__name__}; wanted a v2.RNNSpec")
    if spec.clip is not None:
        raise UnsupportedError(
            f"clip={spec.clip} bounds the cell state, and {framework} has nothing that does; "
            "pass spec.replace(clip=None) to convert the weights alone"
        )
    if spec.proj_size is not None and not projection:
        raise UnsupportedError(
            f"{framework} has no projection; the spec has proj_size={spec.proj_size}"
        )
    spec, w = change_bias(spec, w, spec.bias if spec.bias == "none" else bias)
    return linear_input(spec, w)
