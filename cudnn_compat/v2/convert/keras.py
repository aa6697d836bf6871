"""Keras: ``SimpleRNN``, ``LSTM``, ``GRU``, and ``Bidirectional`` around them.

Equations: Keras's documentation and the ``call`` of its cells. Matrices multiply from the right
(``x @ kernel + h @ recurrent_kernel``), so they are the transposes of those here; a GRU computes
``h = z * h_prev + (1 - z) * n``, and with ``reset_after=True``
``n = tanh(x W + b[0] + r * (h R + b[1]))``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from cudnn_compat.errors import ArgumentError, DTypeError, UnsupportedError
from cudnn_compat.spec import CELLS, RNNSpec
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

__all__ = ["from_keras", "to_keras"]

_KINDS: Final = ("kernel", "recurrent_kernel", "bias")
_FIELDS: Final = ("weight_ih", "weight_hh", "bias_ih")


def from_keras(
    weights: Sequence[Any],
    *,
    cell: str,
    reset_after: bool | None = None,
    activation: str | None = None,
    recurrent_activation: str | None = None,
) -> Weights:
    """Weights of one Keras layer, or of several that are stacked.

    Args:
        weights: what ``layer.get_weights()`` gives: ``[kernel (I, G·H), recurrent_kernel
            (H, G·H), bias (G·H,)]``, without the bias where ``use_bias=False``, and for
            ``Bidirectional`` (``merge_mode="concat"``) the same again for the backward layer. For
            stacked layers a list of such lists, first layer first. The bias of a GRU with
            ``reset_after=True`` is ``(2, 3·H)``.
        cell: ``"lstm"``, ``"gru"``, or for a SimpleRNN its activation, ``"tanh"`` or ``"relu"``.
        reset_after: the GRU's option. Its bias tells it; without biases it must be said.
        activation: the layer's option where it is not the default, ``"tanh"`` (SimpleRNN: cell).
        recurrent_activation: likewise, default ``"sigmoid"``.

    Returns:
        ``(spec, w)``, with ``bias="input"`` for one bias, ``"double"`` for a GRU's two, ``"none"``
        for none. Keras's x is ``layout="batch_major"``; its dropout acts elsewhere and is not
        taken over.

    Raises:
        UnsupportedError: a reset-before GRU, or an activation that cuDNN has not.
        ArgumentError: a shape or number of arrays is wrong, or ``reset_after`` is missing.
        DTypeError: what came are not arrays, or their dtypes are mixed.
    """
    _check_activations(cell, activation, recurrent_activation)
    layers = _layers(weights)
    if cell == "gru":
        _check_reset_after(layers, reset_after)
    elif reset_after is not None:
        raise ArgumentError(f"reset_after is an option of GRU layers; cell is {cell!r}")
    per_direction = len(layers[0]) // (2 if len(layers[0]) > 3 else 1)
    first, second = layers[0][:2]
    for name, matrix in (("kernel", first), ("recurrent_kernel", second)):
        if matrix.ndim != 2:
            raise ArgumentError(f"{name} has shape {matrix.shape}; wanted two axes")
    one_bias = "double" if cell == "gru" else "input"
    spec = RNNSpec(
        cell,
        first.shape[0],
        second.shape[0],
        num_layers=len(layers),
        bidirectional=len(layers[0]) > 3,
        bias=one_bias if per_direction == 3 else "none",
        dtype=common_dtype(
            {f"weights[{i}][{k}]": a for i, layer in enumerate(layers) for k, a in enumerate(layer)}
        ),
    )
    arrays = {}
    for layer, flat in enumerate(layers):
        for direction, suffix in enumerate(suffixes(spec, layer)):
            part = flat[direction * per_direction : (direction + 1) * per_direction]
            where = f"layer {layer}, {'backward' if direction else 'forward'}: "
            _check_part(spec, layer, part, where)
            for kind, array in zip(_FIELDS, part, strict=False):
                if array.ndim == 2 and kind == "bias_ih":
                    arrays["bias_ih" + suffix] = _from_order(array[0], cell)
                    arrays["bias_hh" + suffix] = _from_order(array[1], cell)
                else:
                    arrays[kind + suffix] = _from_order(array.T, cell)
    return gather_weights(spec, arrays)


def to_keras(spec: RNNSpec, w: Any, *, reset_after: bool = True) -> list[list[np.ndarray]]:
    """What ``layer.set_weights`` takes, for each layer.

    Args:
        spec: the description of the network. In LSTM and SimpleRNN two biases are summed; a GRU has
            both, zeros where the spec has one. Skip input becomes kernels of stacked identities.
        w: its flat weight space ``(weight_size(spec),)``, NumPy or CuPy.
        reset_after: the option of the Keras GRU that shall take them.

    Returns:
        For each layer its list of new arrays, as in :func:`from_keras`.

    Raises:
        UnsupportedError: projection or clip, or ``reset_after=False``.
        ArgumentError, DTypeError: w is not a weight space of the spec.
    """
    gru = isinstance(spec, RNNSpec) and spec.cell == "gru"
    if gru and not reset_after:
        refuse_reset_before("reset_after=False")
    bias = "double" if gru else "input"
    spec, w = plain_network(spec, w, bias, "Keras", projection=False)
    named = named_weights(spec, w)
    layers = []
    for layer in range(spec.num_layers):
        arrays: list[np.ndarray] = []
        for suffix in suffixes(spec, layer):
            part = {
                kind: _to_order(named[kind + suffix], spec.cell)
                for kind in (*_FIELDS, "bias_hh")
                if kind + suffix in named
            }
            arrays += [np.ascontiguousarray(part[kind].T) for kind in _FIELDS[:2]]
            if gru and spec.bias != "none":
                arrays.append(np.stack((part["bias_ih"], part["bias_hh"])))
            elif spec.bias != "none":
                arrays.append(part["bias_ih"])
        layers.append(arrays)
    return layers


def _from_order(stacked: np.ndarray, cell: str) -> np.ndarray:
    return reorder(stacked, cell, source="keras", target="cudnn")


def _to_order(stacked: np.ndarray, cell: str) -> np.ndarray:
    return reorder(stacked, cell, source="cudnn", target="keras")


def _layers(weights: Any) -> list[list[np.ndarray]]:
    """A list of arrays for each layer; all layers have the same number of them."""
    if not isinstance(weights, (list, tuple)) or not weights:
        raise DTypeError(
            f"weights is a {type(weights).__name__}; wanted a list: layer.get_weights(), or a list "
            "of those"
        )
    nested = [isinstance(item, (list, tuple)) for item in weights]
    if not any(nested):
        weights = [weights]
    elif not all(nested):
        raise DTypeError(
            "weights mixes arrays and lists; wanted one layer's arrays or lists of them"
        )
    layers = [
        [host_array(f"weights[{i}][{k}]", array) for k, array in enumerate(layer)]
        for i, layer in enumerate(weights)
    ]
    counts = [len(layer) for layer in layers]
    if set(counts) - {2, 3, 4, 6} or len(set(counts)) > 1:
        raise ArgumentError(
            f"the layers have {counts} arrays; wanted 2 (no bias) or 3 for each, "
            "or 4 or 6 for Bidirectional"
        )
    return layers


def _check_activations(cell: Any, activation: str | None, recurrent: str | None) -> None:
    if cell not in CELLS:
        raise ArgumentError(f"cell is {cell!r}; wanted one of {', '.join(map(repr, CELLS))}")
    plain = cell in ("tanh", "relu")
    wanted = cell if plain else "tanh"
    if activation not in (None, wanted):
        raise UnsupportedError(
            f"activation is {activation!r}; a {cell} network has {wanted!r} only"
        )
    if plain and recurrent is not None:
        raise ArgumentError("recurrent_activation is an option of LSTM and GRU layers")
    if recurrent not in (None, "sigmoid"):
        raise UnsupportedError(
            f"recurrent_activation is {recurrent!r}; cuDNN has 'sigmoid' only "
            "(old Keras's default was 'hard_sigmoid')"
        )


def _check_reset_after(layers: list[list[np.ndarray]], reset_after: bool | None) -> None:
    """Refuse the reset-before form, whether the option or the bias says so."""
    if reset_after is not None and not reset_after:
        refuse_reset_before("reset_after=False")
    biases = [array for layer in layers if len(layer) in (3, 6) for array in layer[2::3]]
    for bias in biases:
        if bias.ndim == 1:
            refuse_reset_before(f"a GRU whose bias has shape {bias.shape}, not (2, 3 * hidden),")
    if not biases and reset_after is None:
        raise ArgumentError(
            "without biases nothing tells which form of GRU this is: pass reset_after=True if the "
            "layer has it (the default since TensorFlow 2; before that it was False)"
        )


def _check_part(spec: RNNSpec, layer: int, part: list[np.ndarray], where: str) -> None:
    columns = spec.num_gates * spec.hidden_size
    bias = (2, columns) if spec.cell == "gru" else (columns,)
    shapes = ((spec.layer_input_size(layer), columns), (spec.hidden_size, columns), bias)
    axes = ("(inputs, gates * hidden)", "(hidden, gates * hidden)", "gates * hidden last")
    for kind, array, shape, words in zip(_KINDS, part, shapes, axes, strict=False):
        check_shape(where + kind, array, shape, words)
