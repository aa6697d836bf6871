"""The order in which each framework stacks its gates, and what is common to all converters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from cudnn_compat.arrays import check_array, dtype_name, is_cupy, numpy_dtype
from cudnn_compat.errors import ArgumentError, DTypeError, UnsupportedError
from cudnn_compat.spec import DTYPES, RNNSpec
from cudnn_compat.weights import named_weights, weight_size

__all__ = [
    "GATE_ORDERS",
    "Weights",
    "check_shape",
    "common_dtype",
    "gather_weights",
    "host_array",
    "refuse_reset_before",
    "reorder",
    "suffixes",
]

Weights: TypeAlias = tuple[RNNSpec, np.ndarray]
"""A network: its description and its flat weight space on the host."""

GATE_ORDERS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "cudnn": {"relu": "n", "tanh": "n", "lstm": "ifgo", "gru": "rzn"},
        "keras": {"relu": "n", "tanh": "n", "lstm": "ifgo", "gru": "zrn"},
        "onnx": {"relu": "n", "tanh": "n", "lstm": "iofg", "gru": "zrn"},
    }
)
"""Gates from first to last, in cuDNN's letters (ONNX and Keras write c for g and h for n)."""


def reorder(stacked: np.ndarray, cell: str, *, source: str, target: str) -> np.ndarray:
    """Gates stacked along the first axis, from one framework's order to another's; a new array."""
    order = [GATE_ORDERS[source][cell].index(gate) for gate in GATE_ORDERS[target][cell]]
    gates = stacked.reshape(len(order), -1, *stacked.shape[1:])
    return gates[order].reshape(stacked.shape)


def refuse_reset_before(given: str) -> None:
    """Refuse a GRU whose reset gate acts before the recurrent product.

    Args:
        given: what in the caller's arguments says so.
    """
    raise UnsupportedError(
        f"{given} is the reset-before GRU, n = tanh(W x + R (r * h) + b). This package and cuDNN "
        "compute the reset-after GRU, n = tanh(W x + b_W + r * (R h + b_R)), which is another "
        "function of the same weights: train or export the model in that form"
    )


def host_array(name: str, value: Any) -> np.ndarray:
    """``value`` as a NumPy array: from NumPy, CuPy, or by ``detach().cpu().numpy()``.

    May share memory with ``value``.

    Raises:
        DTypeError: it is nothing of the kind.
    """
    if is_cupy(value):
        return np.asarray(value.get())
    if isinstance(value, np.ndarray):
        check_array(name, value)
        return np.asarray(value)
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            # NumPy has no bfloat16, so torch gives none; every bfloat16 is a float32.
            return np.asarray(value.float().numpy()).astype(numpy_dtype("bfloat16"))
    if not isinstance(value, type) and callable(getattr(value, "numpy", None)):
        value = value.numpy()
    check_array(name, value)
    return np.asarray(value)


def common_dtype(arrays: Mapping[str, np.ndarray]) -> str:
    """The name of the one dtype of ``arrays``.

    Raises:
        DTypeError: they are mixed, or not of a dtype that a spec can have; lists them.
    """
    names = {dtype_name(array) for array in arrays.values()}
    if len(names) == 1 and names <= set(DTYPES):
        return names.pop()
    listed = ", ".join(f"{name} {dtype_name(array)}" for name, array in arrays.items())
    raise DTypeError(f"the arrays are {listed}; wanted one of {', '.join(DTYPES)} for all")


def check_shape(name: str, array: np.ndarray, shape: tuple[int, ...], axes: str) -> None:
    """Refuse an array of another shape; ``axes`` says in words what the axes are."""
    if array.shape != shape:
        raise ArgumentError(f"{name} has shape {array.shape}; wanted {shape}: {axes}")


def suffixes(spec: RNNSpec, layer: int) -> Sequence[str]:
    """The ends of the names of one layer's weights, one for each direction."""
    return tuple(f"_l{layer}{end}" for end in ("", "_reverse")[: spec.num_directions])


def gather_weights(spec: RNNSpec, arrays: Mapping[str, np.ndarray]) -> Weights:
    """A new weight space from arrays by name, whose gates are in cuDNN's order."""
    w = np.empty(weight_size(spec), numpy_dtype(spec.dtype))
    for name, view in named_weights(spec, w).items():
        view[...] = arrays[name]
    return spec, w
