"""PyTorch: ``torch.nn.RNN``, ``LSTM`` and ``GRU``, by module or by state dict.

Equations and shapes: the documentation of those three classes. Names and gate orders are the same
as here, so nothing is reordered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from cudnn_compat.errors import ArgumentError, DTypeError
from cudnn_compat.spec import RNNSpec
from cudnn_compat.v2.convert.biases import change_bias, plain_network
from cudnn_compat.v2.convert.gates import (
    Weights,
    check_shape,
    common_dtype,
    gather_weights,
    host_array,
)
from cudnn_compat.weights import named_weights, weight_layout

__all__ = ["from_torch", "to_torch"]

_MODES: Final = {"RNN_TANH": "tanh", "RNN_RELU": "relu", "LSTM": "lstm", "GRU": "gru"}
_NAME: Final = re.compile(r"(weight_ih|weight_hh|weight_hr|bias_ih|bias_hh)_l(\d+)(_reverse)?")


def from_torch(source: Any, spec: RNNSpec | None = None) -> Weights:
    """Weights of a PyTorch network.

    Args:
        source: a ``torch.nn.RNN``, ``LSTM`` or ``GRU``, or its state dict: a mapping from names
            (``weight_ih_l0`` ``(G·H, in)``, ``weight_hh_l0`` ``(G·H, P)``, ``weight_hr_l0``
            ``(P, H)``, ``bias_ih_l0`` and ``bias_hh_l0`` ``(G·H,)``, each also with
            ``_reverse``) to tensors or arrays.
        spec: what the network is, where the names and shapes do not tell it (a state dict does not
            tell ``relu`` from ``tanh``) or where options shall come with it (``math``, ``algo``,
            ``dropout``, ``clip``). With one bias in it, PyTorch's two are summed (not for a GRU:
            see :func:`change_bias`).

    Returns:
        ``(spec, w)``. Without ``spec``: bias ``"double"`` or ``"none"``; ``dropout`` is that of the
        module, 0 for a state dict. ``batch_first`` is a property of calls here:
        ``layout="batch_major"``.

    Raises:
        ArgumentError: names are missing or unknown, a shape is wrong, or the spec says otherwise.
        DTypeError: no such module or mapping; mixed dtypes, or a spec of another dtype.
        UnsupportedError: a GRU whose two biases the spec wants as one.
    """
    if spec is not None and not isinstance(spec, RNNSpec):
        raise DTypeError(f"spec is a {type(spec).__name__}; wanted a v2.RNNSpec or None")
    module = None
    if not isinstance(source, Mapping):
        module = source
        if getattr(module, "mode", None) not in _MODES or not hasattr(module, "state_dict"):
            raise DTypeError(
                f"source is a {type(source).__name__}; wanted a torch.nn.RNN, LSTM or GRU, "
                "or a state dict"
            )
        source = module.state_dict()
    arrays = {name: host_array(name, value) for name, value in source.items()}
    found = _description(arrays, None if module is None else _MODES[module.mode], spec)
    if module is not None and spec is None:
        found = found.replace(dropout=float(module.dropout))
    for name, slot in weight_layout(found).names.items():
        check_shape(name, arrays[name], slot.shape, f"by the other shapes, this is {found}")
    network = gather_weights(found, arrays)
    if spec is None:
        return network
    if spec.bias != "none" and found.bias == "none":
        raise ArgumentError(f"the weights have no biases, but the spec has bias='{spec.bias}'")
    _, w = change_bias(*network, spec.bias)
    return spec, w


def to_torch(spec: RNNSpec, w: Any) -> dict[str, np.ndarray]:
    """The state dict that PyTorch's module of the same kind loads, as NumPy arrays.

    ``module.load_state_dict({name: torch.from_numpy(a) for name, a in to_torch(spec, w).items()})``

    Args:
        spec: the description of the network. One bias becomes two, of which one is zero; skip
            input becomes input matrices that are stacked identities.
        w: its flat weight space ``(weight_size(spec),)``, NumPy or CuPy.

    Returns:
        New arrays by PyTorch's names, shapes as in :func:`from_torch`.

    Raises:
        UnsupportedError: the spec has a clip.
        ArgumentError, DTypeError: w is not a weight space of the spec.
    """
    spec, w = plain_network(spec, w, "double", "PyTorch", projection=True)
    return {name: view.copy() for name, view in named_weights(spec, w).items()}


def _description(
    arrays: Mapping[str, np.ndarray], cell: str | None, wanted: RNNSpec | None
) -> RNNSpec:
    """What names and shapes say, checked against the spec that the caller wants."""
    layers = {"weight_ih_l0": 0, "weight_hh_l0": 0}
    for name, array in arrays.items():
        match = _NAME.fullmatch(name)
        if match is None:
            hint = ""
            if _NAME.search(name):
                hint = ": take the part of the state dict that is this layer's, without its prefix"
            raise ArgumentError(
                f"{name!r} is not the name of a weight of an RNN, LSTM or GRU{hint}"
            )
        if array.ndim != 1 + name.startswith("weight"):
            axes = "(gates * hidden,)" if name.startswith("bias") else "two axes"
            raise ArgumentError(f"{name} has shape {array.shape}; wanted {axes}")
        layers[name] = int(match[2])
    _require(layers, arrays)
    weight_hh = arrays["weight_hh_l0"]
    projection = arrays.get("weight_hr_l0")
    hidden = weight_hh.shape[1] if projection is None else projection.shape[1]
    spec = RNNSpec(
        _cell(weight_hh.shape[0], hidden, cell, wanted),
        arrays["weight_ih_l0"].shape[1],
        hidden,
        num_layers=1 + max(layers.values()),
        bidirectional="weight_ih_l0_reverse" in arrays,
        bias="double" if "bias_ih_l0" in arrays or "bias_hh_l0" in arrays else "none",
        proj_size=None if projection is None else projection.shape[0],
        dtype=common_dtype(arrays),
    )
    _require(weight_layout(spec).names, arrays)
    unknown = sorted(arrays.keys() - weight_layout(spec).names.keys())
    if unknown:
        raise ArgumentError(f"{', '.join(unknown)} do not belong to {spec}")
    if wanted is not None:
        _compare(spec, wanted)
    return spec


def _require(names: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ArgumentError(
            f"the state dict has no {', '.join(missing)}; it has {', '.join(arrays) or 'nothing'}"
        )


def _cell(rows: int, hidden: int, cell: str | None, wanted: RNNSpec | None) -> str:
    """The cell, from the module, from the spec, or from the number of gates."""
    if cell is not None:
        return cell
    fitting = [name for name in _MODES.values() if RNNSpec(name, 1, 1).num_gates * hidden == rows]
    if wanted is not None and wanted.cell in fitting:
        return wanted.cell
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ArgumentError(
            f"a state dict does not say whether its cell is {' or '.join(fitting)}: "
            "pass the module itself, or spec"
        )
    raise ArgumentError(
        f"weight_hh_l0 has {rows} rows, which for hidden_size={hidden} is no cell's number of gates"
    )


def _compare(found: RNNSpec, wanted: RNNSpec) -> None:
    """What the caller's spec says must be what the weights are; options are the caller's."""
    if found.dtype != wanted.dtype:
        raise DTypeError(
            f"the weights are {found.dtype} and the spec says dtype='{wanted.dtype}': "
            f"pass spec.replace(dtype='{found.dtype}')"
        )
    fields = ("cell", "input_size", "hidden_size", "num_layers", "bidirectional", "proj_size")
    for field in (*fields, "input_mode"):
        got, want = getattr(found, field), getattr(wanted, field)
        if got != want:
            raise ArgumentError(f"the weights have {field}={got!r}, the spec has {field}={want!r}")
