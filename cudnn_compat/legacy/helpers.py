"""`setweights`, and the small functions that callers of the old API used beside the steps."""

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

from cudnn_compat.arrays import Array, array_module, check_array, dtype_name, is_cupy, on_device_of
from cudnn_compat.errors import ArgumentError, DTypeError, UnsupportedError
from cudnn_compat.legacy.deprecations import warner
from cudnn_compat.legacy.divide import divider
from cudnn_compat.legacy.modes import cell_of
from cudnn_compat.legacy.rnndesc import RNNDesc
from cudnn_compat.legacy.translate import check_arrays, check_desc, fits, is_zero
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import weight_size

__all__ = ["TensorDesc", "hBatch", "hDesc", "ngates", "params", "setweights", "xDesc"]

_warn_ngates = warner("cudnn_compat.legacy.ngates")
_warn_setweights = warner("cudnn_compat.legacy.setweights")
_warn_params = warner("cudnn_compat.legacy.params")
_warn_hbatch = warner("cudnn_compat.legacy.hBatch")
_warn_hdesc = warner("cudnn_compat.legacy.hDesc")
_warn_xdesc = warner("cudnn_compat.legacy.xDesc")

_CELL_OF_GATES = {1: "tanh", 3: "gru", 4: "lstm"}


class TensorDesc(NamedTuple):
    """What a tensor descriptor told the library.

    Attributes:
        dtype: name of the dtype.
        dims: in the library's order, slowest first: x ``(batch, input, 1)``, h
            ``(layers, batch, hidden)``.
    """

    dtype: str
    dims: tuple[int, ...]


def ngates(desc: RNNDesc | int) -> int:
    """Gates of a descriptor's or a mode's cell: relu, tanh 1; LSTM 4 (i f g o); GRU 3 (r z n)."""
    _warn_ngates()
    if isinstance(desc, RNNDesc):
        return desc.spec.num_gates
    return _gates_of(cell_of(desc))


@functools.cache
def _gates_of(cell: str) -> int:
    return RNNSpec(cell, 1, 1).num_gates


def setweights(desc: RNNDesc, Wi: Array, Wh: Array, b: Array) -> None:
    """Copy weights into ``desc.params`` (Julia: ``setweights!``).

    Forwards that already ran keep the weights they ran with.

    Args:
        desc: a descriptor of one layer.
        Wi: ``(G·hidden, input)``; Wh: ``(G·hidden, hidden)``; b: ``(G·hidden,)``. Of the
            descriptor's dtype; gates in its order.

    Raises:
        UnsupportedError: the descriptor has several layers.
        ArgumentError, DTypeError: an array does not fit. Nothing was changed then.
    """
    _warn_setweights()
    check_desc(desc)
    if desc._spec.num_layers > 1:
        raise UnsupportedError(
            f"setweights has weights for one layer, the descriptor has {desc.layers}; write to the "
            'views of v2.named_weights(desc.spec, desc.params), such as ["weight_ih_l1"]'
        )
    if Wi is None or Wh is None or b is None or not fits(desc, Wi, Wh, b):
        Wi, Wh, b = check_arrays(desc, {"Wi": Wi, "Wh": Wh, "b": b}).values()
    of_wi, of_wh, of_b = desc._targets
    if not (Wi.shape == of_wi.shape and Wh.shape == of_wh.shape and b.shape == of_b.shape):
        _refuse_shapes(desc, Wi=Wi, Wh=Wh, b=b)
    # Equal weights change nothing (the steps of one sequence), so that nobody needs a copy. Not
    # asked of a GPU, where the answer would have to be waited for.
    if desc._live and (
        is_cupy(of_b) or not ((b == of_b).all() and (Wh == of_wh).all() and (Wi == of_wi).all())
    ):
        _give_own_weights(desc)
    with on_device_of(of_wi):
        of_wi[...], of_wh[...], of_b[...] = Wi, Wh, b


def _refuse_shapes(desc: RNNDesc, **arrays: Array) -> None:
    axes = {"Wi": "(G·hidden, input)", "Wh": "(G·hidden, hidden)", "b": "(G·hidden,)"}
    for (name, array), target in zip(arrays.items(), desc._targets, strict=True):
        if array.shape != target.shape:
            hint = f": pass {name}.T" if array.shape == target.shape[::-1] else ""
            raise ArgumentError(
                f"{name} has shape {array.shape}; wanted {target.shape}, {axes[name]}{hint}"
            )


def _give_own_weights(desc: RNNDesc) -> None:
    """One copy of the weights for all forwards whose backward is still to come."""
    copy = None
    for out in desc._live.take():
        copy = out.own_weights(copy)


def params(w: Array, input: int, hidden: int, n: int = 1) -> tuple[tuple[Array, Array], Array]:
    """Divide the flat weight space of a one-layer network.

    Args:
        w: flat weights, with one or two biases per gate.
        input, hidden: sizes.
        n: gates: 1, 3 or 4.

    Returns:
        ``((Wi (input, n·hidden), Wh (hidden, n·hidden)), b (n·hidden,))``: views of w; b is the
        input half of two biases.

    Raises:
        ArgumentError, DTypeError: w is not such a weight space.
    """
    _warn_params()
    check_array("w", w)
    try:
        cell = _CELL_OF_GATES.get(operator.index(n))
        sizes = operator.index(input), operator.index(hidden)
    except TypeError:
        raise DTypeError(
            f"input, hidden, n are {input!r}, {hidden!r}, {n!r}; wanted integers"
        ) from None
    if cell is None:
        raise ArgumentError(f"n is {n}; wanted the gates of a cell: 1, 3 or 4")
    if min(sizes) < 1:
        raise ArgumentError(f"input, hidden are {sizes}; wanted 1 or more")
    specs = [RNNSpec(cell, *sizes, bias=bias) for bias in ("double", "input")]
    accepted = [weight_size(spec) for spec in specs]
    if w.shape not in [(size,) for size in accepted]:
        raise ArgumentError(
            f"w has shape {w.shape}; wanted ({accepted[0]},), or ({accepted[1]},) with one bias; "
            "for more layers use v2.named_weights"
        )
    if not w.flags.c_contiguous:
        raise ArgumentError("w is not contiguous, so no views can be given; pass a copy of it")
    return divider(specs[0])(w)


def hBatch(x: Array, h: Array) -> Array:
    """h over the batch of x.

    Args:
        x: ``(input,)`` or ``(input, batch)``.
        h: ``(hidden,)``, ``(hidden, 1)`` or ``(hidden, batch)``.

    Returns:
        h itself where x is a vector, else a new ``(hidden, batch)`` array, Fortran-ordered.

    Raises:
        ArgumentError, DTypeError: a shape is wrong.
    """
    _warn_hbatch()
    for name, array in (("x", x), ("h", h)):
        _check_vector_or_matrix(name, array)
    batch = x.shape[1] if x.ndim == 2 else 1
    if h.ndim == 2 and h.shape[1] not in (1, batch):
        raise ArgumentError(
            f"h has shape {h.shape}; wanted {h.shape[0]} by 1 or {batch}: the batch of x {x.shape}"
        )
    if x.ndim == 1:
        return h
    with on_device_of(h):
        out = array_module(h).empty((batch, h.shape[0]), h.dtype)
        out[...] = h.T
    return out.T


def hDesc(h: Array | int | None) -> tuple[TensorDesc | None, Array | None]:
    """The descriptor of a state, and the state: ``(TensorDesc, h)``.

    Args:
        h: ``(hidden,)``, ``(hidden, batch)`` or ``(hidden, batch, layers)``; None or 0 is no state:
            ``(None, None)``.

    Raises:
        ArgumentError, DTypeError: another shape, another integer, no array.
    """
    _warn_hdesc()
    if is_zero("h", h):
        return None, None
    check_array("h", h)
    assert h is not None and not isinstance(h, int)
    if not 1 <= h.ndim <= 3:
        raise ArgumentError(f"h has shape {h.shape}; wanted (hidden,) or (hidden, batch)")
    return TensorDesc(dtype_name(h), (1, 1, *h.shape[::-1])[-3:]), h


def xDesc(x: Array) -> list[TensorDesc]:
    """The descriptors of the steps of x ``(input,)`` or ``(input, batch)``: a list of one.

    Raises:
        ArgumentError, DTypeError: another shape, no array.
    """
    _warn_xdesc()
    _check_vector_or_matrix("x", x)
    batch = x.shape[1] if x.ndim == 2 else 1
    return [TensorDesc(dtype_name(x), (batch, x.shape[0], 1))]


def _check_vector_or_matrix(name: str, array: Any) -> None:
    check_array(name, array)
    if array.ndim not in (1, 2):
        size = "input" if name == "x" else "hidden"
        raise ArgumentError(f"{name} has shape {array.shape}; wanted ({size},) or ({size}, batch)")
