"""Views of one matrix or bias in a weight space, and in its gradient."""

from __future__ import annotations

from cudnn_compat.arrays import Array, check_array, is_cupy
from cudnn_compat.errors import ArgumentError
from cudnn_compat.legacy.cupy.described import RNN
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.high.descriptors import Descriptor
from cudnn_compat.legacy.cupy.low.networks import input_size_of
from cudnn_compat.legacy.cupy.registry import find
from cudnn_compat.legacy.cupy.translate import network_of
from cudnn_compat.weights import Slot, linear_slots, weight_layout

__all__ = ["get_rnn_lin_layer_bias_params", "get_rnn_lin_layer_matrix_params"]


@old_name("cudnn")
def get_rnn_lin_layer_matrix_params(
    handle: int,
    rnn_desc: Descriptor,
    layer: int,
    x_desc: Descriptor,
    w_desc: Descriptor,
    w: Array,
    lin_layer_id: int,
) -> Array:
    """The matrix of one linear id, a view: what is written to it is written to ``w``.

    Args:
        layer: pseudo-layer, 2 · layer + direction when bidirectional.
        x_desc: descriptor of a step of x, ``(batch, input, 1)``, which tells the input size.
        w: the weight space, or its gradient, ``(n, 1, 1)`` or ``(n,)``.
        lin_layer_id: LSTM 0–3 input and 4–7 recurrent (i f g o), GRU 0–2 and 3–5 (r z n), else 0
            and 1.

    Returns:
        ``w[offset : offset + size]``; row-major, output features first.

    Raises:
        CuDNNError: there is no such layer or linear id, or w is no weight space of this network.
    """
    return _view(rnn_desc, layer, x_desc, w, lin_layer_id, 0)


@old_name("cudnn")
def get_rnn_lin_layer_bias_params(
    handle: int,
    rnn_desc: Descriptor,
    layer: int,
    x_desc: Descriptor,
    w_desc: Descriptor,
    w: Array,
    lin_layer_id: int,
) -> Array:
    """The bias of one linear id, a view; arguments and errors of the matrix's function."""
    return _view(rnn_desc, layer, x_desc, w, lin_layer_id, 1)


def _view(
    rnn_desc: Descriptor, layer: int, x_desc: Descriptor, w: Array, lin_layer_id: int, which: int
) -> Array:
    check_array("w", w)
    rnn = find(RNN, rnn_desc.value)
    spec = network_of(rnn, input_size_of(x_desc.value), on_gpu=is_cupy(w), dropout=0.0)
    size = weight_layout(spec).size
    if w.size != size or w.ndim == 0 or w.shape[0] != size:
        raise ArgumentError(
            f"w has shape {w.shape}; this network has {size} weights: ({size}, 1, 1)"
        )
    slot: Slot | None = linear_slots(spec, layer, lin_layer_id)[which]
    return w[:0] if slot is None else w[slot.offset : slot.offset + slot.size]
