"""Recurrent networks as plain equations, each in the convention of the framework it is named after.

Nothing of the package computes here; only the description of a network is taken from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cudnn_compat import v2
from cudnn_compat.v2 import convert

__all__ = ["run_keras", "run_onnx", "run_torch"]

Step = Callable[[np.ndarray, Any], Any]


def sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def relu(a: np.ndarray) -> np.ndarray:
    return np.maximum(a, 0)


def keras_step(cell: str, kernel: Any, recurrent: Any, bias: Any = None) -> Step:
    """One step as Keras's cells write it; matrices from the right, gates i f c o and z r h."""
    if cell == "lstm":

        def step(x: np.ndarray, state: Any) -> Any:
            h, c = state
            total = x @ kernel + h @ recurrent + (0 if bias is None else bias)
            i, f, candidate, o = np.split(total, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(candidate)
            return sigmoid(o) * np.tanh(c), c

    elif cell == "gru":

        def step(x: np.ndarray, state: Any) -> Any:
            (h,) = state
            input_bias, recurrent_bias = (0, 0) if bias is None else bias
            x_z, x_r, x_h = np.split(x @ kernel + input_bias, 3, axis=1)
            r_z, r_r, r_h = np.split(h @ recurrent + recurrent_bias, 3, axis=1)
            z, r = sigmoid(x_z + r_z), sigmoid(x_r + r_r)
            return (z * h + (1 - z) * np.tanh(x_h + r * r_h),)

    else:
        activation = {"tanh": np.tanh, "relu": relu}[cell]

        def step(x: np.ndarray, state: Any) -> Any:
            return (activation(x @ kernel + state[0] @ recurrent + (0 if bias is None else bias)),)

    return step


def onnx_step(cell: str, W: Any, R: Any, B: Any = None) -> Step:
    """One step as the operators' specification writes it; gates i o f c and z r h."""
    Wb, Rb = np.zeros((2, len(W))) if B is None else np.split(B, 2)
    if cell == "lstm":

        def step(x: np.ndarray, state: Any) -> Any:
            h, c = state
            i, o, f, candidate = np.split(x @ W.T + h @ R.T + Wb + Rb, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(candidate)
            return sigmoid(o) * np.tanh(c), c

    elif cell == "gru":
        (Wz, Wr, Wh), (Rz, Rr, Rh) = np.split(W, 3), np.split(R, 3)
        (Wbz, Wbr, Wbh), (Rbz, Rbr, Rbh) = np.split(Wb, 3), np.split(Rb, 3)

        def step(x: np.ndarray, state: Any) -> Any:
            (h,) = state
            z = sigmoid(x @ Wz.T + h @ Rz.T + Wbz + Rbz)
            r = sigmoid(x @ Wr.T + h @ Rr.T + Wbr + Rbr)
            candidate = np.tanh(x @ Wh.T + r * (h @ Rh.T + Rbh) + Wbh)
            return ((1 - z) * candidate + z * h,)

    else:
        activation = {"tanh": np.tanh, "relu": relu}[cell]

        def step(x: np.ndarray, state: Any) -> Any:
            return (activation(x @ W.T + state[0] @ R.T + Wb + Rb),)

    return step


def torch_step(cell: str, state_dict: dict[str, np.ndarray], suffix: str) -> Step:
    """One step as PyTorch's documentation writes it; gates i f g o and r z n."""
    wi, wh = state_dict[f"weight_ih{suffix}"], state_dict[f"weight_hh{suffix}"]
    bi, bh = (state_dict.get(f"{name}{suffix}", 0) for name in ("bias_ih", "bias_hh"))
    project = state_dict.get(f"weight_hr{suffix}")

    def step(x: np.ndarray, state: Any) -> Any:
        h, *c = state
        from_x, from_h = x @ wi.T + bi, h @ wh.T + bh
        if cell == "lstm":
            i, f, g, o = np.split(from_x + from_h, 4, axis=1)
            new_c = sigmoid(f) * c[0] + sigmoid(i) * np.tanh(g)
            new_h = sigmoid(o) * np.tanh(new_c)
            return (new_h if project is None else new_h @ project.T), new_c
        if cell == "gru":
            (x_r, x_z, x_n), (h_r, h_z, h_n) = (np.split(a, 3, axis=1) for a in (from_x, from_h))
            z = sigmoid(x_z + h_z)
            return ((1 - z) * np.tanh(x_n + sigmoid(x_r + h_r) * h_n) + z * h,)
        return ({"tanh": np.tanh, "relu": relu}[cell](from_x + from_h),)

    return step


def run(layers: list[list[Step]], spec: v2.RNNSpec, x: np.ndarray) -> np.ndarray:
    """y ``(T, B, D·P)`` of stacked layers, each with one step function for each direction."""
    for steps in layers:
        outputs = []
        for direction, step in enumerate(steps):
            state: Any = (np.zeros((x.shape[1], spec.state_size)),)
            if spec.has_cell:
                state = (*state, np.zeros((x.shape[1], spec.hidden_size)))
            order = range(len(x))
            y = np.empty((*x.shape[:2], spec.state_size))
            for t in reversed(order) if direction else order:
                state = step(x[t], state)
                y[t] = state[0]
            outputs.append(y)
        x = np.concatenate(outputs, axis=2)
    return x


def run_keras(spec: v2.RNNSpec, layers: list[list[np.ndarray]], x: np.ndarray) -> np.ndarray:
    """y of what ``to_keras`` gave; x is time-major, as everywhere in this file."""
    steps = []
    for arrays in layers:
        size = len(arrays) // spec.num_directions
        parts = [arrays[start : start + size] for start in range(0, len(arrays), size)]
        steps.append([keras_step(spec.cell, *part) for part in parts])
    return run(steps, spec, x)


def run_onnx(spec: v2.RNNSpec, nodes: convert.OnnxNodes, x: np.ndarray) -> np.ndarray:
    """y of what ``to_onnx`` gave."""
    biases = nodes.B or [[None] * spec.num_directions] * spec.num_layers
    layers = [
        [onnx_step(spec.cell, *parts) for parts in zip(*layer, strict=True)]
        for layer in zip(nodes.W, nodes.R, biases, strict=True)
    ]
    return run(layers, spec, x)


def run_torch(spec: v2.RNNSpec, state_dict: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """y of what ``to_torch`` gave."""
    ends = ("", "_reverse")[: spec.num_directions]
    layers = [
        [torch_step(spec.cell, state_dict, f"_l{layer}{end}") for end in ends]
        for layer in range(spec.num_layers)
    ]
    return run(layers, spec, x)
