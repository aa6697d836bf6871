"""The calls of RNNs that take arrays: the basic ones, and those with ``_ex``.

``lengths`` means two things: in the basic calls the batch size of each time step, never increasing;
with ``_ex`` the number of steps of each sequence, in any order.
"""

from __future__ import annotations

from typing import Any

from cudnn_compat.arrays import Array
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.high import runs

__all__ = [
    "rnn_backward_data",
    "rnn_backward_data_ex",
    "rnn_backward_weights",
    "rnn_backward_weights_ex",
    "rnn_forward_inference",
    "rnn_forward_inference_ex",
    "rnn_forward_training",
    "rnn_forward_training_ex",
]


@old_name("cudnn")
def rnn_forward_inference(
    states: Any,
    direction_mode: int,
    rnn_mode: int,
    hx: Array,
    cx: Array | None,
    w: Array,
    xs: Array,
    lengths: Any,
) -> tuple[Array, Array, Array]:
    """Run a network over packed sequences, longest first. Shapes as in the training call.

    Returns:
        ``(hy, cy, ys)``.
    """
    given = runs.Given(states, direction_mode, rnn_mode, hx, w, xs, lengths, "packed")
    return runs.forward(given, cx, training=False)[1:]


@old_name("cudnn")
def rnn_forward_training(
    states: Any,
    direction_mode: int,
    rnn_mode: int,
    hx: Array,
    cx: Array | None,
    w: Array,
    xs: Array,
    lengths: Any,
) -> tuple[Any, Array, Array, Array]:
    """The same, with dropout, keeping what the two backward calls need.

    Args:
        states: a ``DropoutStates``, whose ratio acts between layers.
        direction_mode: ``CUDNN_UNIDIRECTIONAL`` or ``CUDNN_BIDIRECTIONAL``; D directions.
        rnn_mode: ``CUDNN_RNN_RELU``, ``CUDNN_RNN_TANH``, ``CUDNN_LSTM`` or ``CUDNN_GRU``.
        hx: ``(L·D, B, H)``, which says how many layers and units there are.
        cx: ``(L·D, B, H)`` of an LSTM; None starts from zeros, and then cy is of shape ``(0,)``.
        w: the weight space, of any shape (``(n, 1, 1)``), with two biases.
        xs: ``(sum, I)``, step after step.
        lengths: batch size of each step, never increasing.

    Returns:
        ``(reserve_space, hy, cy, ys)``; ys is ``(sum, D·H)``. The reserve is a
        ``cupy.cuda.MemoryPointer``, or on the host an object like it.

    Raises:
        CuDNNError: a shape, a length or a number does not fit; says which.
        TypeError: no arrays, or dtypes that are mixed or unknown to cuDNN.
    """
    given = runs.Given(states, direction_mode, rnn_mode, hx, w, xs, lengths, "packed")
    return runs.forward(given, cx, training=True)


@old_name("cudnn")
def rnn_backward_data(
    states: Any,
    direction_mode: int,
    rnn_mode: int,
    hx: Array,
    cx: Array | None,
    w: Array,
    xs: Array,
    ys: Array,
    reserve_space: Any,
    dhy: Array | None,
    dcy: Array | None,
    dys: Array | None,
    lengths: Any,
) -> tuple[Array, Array, Array]:
    """Gradients of hx, cx and xs, with the dropout of the forward that gave the reserve.

    Gradients that are None are zeros.

    Returns:
        ``(dhx, dcx, dxs)``; dcx is of shape ``(0,)`` where cx is None.
    """
    given = runs.Given(states, direction_mode, rnn_mode, hx, w, xs, lengths, "packed")
    return runs.backward_data(given, cx, ys, reserve_space, dhy, dcy, dys)


@old_name("cudnn")
def rnn_backward_weights(
    states: Any,
    direction_mode: int,
    rnn_mode: int,
    xs: Array,
    hx: Array,
    ys: Array,
    w: Array,
    reserve_space: Any,
    lengths: Any,
) -> Array:
    """Gradient of w, in its shape; after :func:`rnn_backward_data` on the same reserve."""
    given = runs.Given(states, direction_mode, rnn_mode, hx, w, xs, lengths, "packed")
    return runs.backward_weights(given, ys, reserve_space)


@old_name("cudnn")
def rnn_forward_inference_ex(
    states: Any,
    direction_mode: int,
    rnn_mode: int,
    hx: Array,
    cx: Array | None,
    w: Array,
    xs: Array,
    lengths: Any,
) -> tuple[Array, Array, Array]:
    """Run a network over padded sequences. Shapes as in the training call with ``_ex``.

    Returns:
        ``(hy, cy, ys)``.
    """
    given = runs.Given(states, direction_mode, rnn_mode, hx, w, xs, lengths, "time_major")
    return runs.forward(given, cx, training=False)[1:]


@old_name("cudnn")
def rnn_forward_training_ex(
    states: Any,
    direction_mode: int,
    rnn_mode: int,
    hx: Array,
    cx: Array | None,
    w: Array,
    xs: Array,
    lengths: Any,
) -> tuple[Any, Array, Array, Array]:
    """As :func:`rnn_forward_training`, for padded sequences.

    Args:
        xs: ``(steps, batch, I)``; its padding is not read.
        lengths: steps of each sequence, in any order.

    Returns:
        ``(reserve_space, hy, cy, ys)``; ys is ``(steps, batch, D·H)``, its padding zero.
    """
    given = runs.Given(states, direction_mode, rnn_mode, hx, w, xs, lengths, "time_major")
    return runs.forward(given, cx, training=True)


@old_name("cudnn")
def rnn_backward_data_ex(
    states: Any,
    direction_mode: int,
    rnn_mode: int,
    hx: Array,
    cx: Array | None,
    w: Array,
    xs: Array,
    ys: Array,
    reserve_space: Any,
    dhy: Array | None,
    dcy: Array | None,
    dys: Array | None,
    lengths: Any,
) -> tuple[Array, Array, Array]:
    """As :func:`rnn_backward_data`, for padded sequences; the padding of dxs is zero."""
    given = runs.Given(states, direction_mode, rnn_mode, hx, w, xs, lengths, "time_major")
    return runs.backward_data(given, cx, ys, reserve_space, dhy, dcy, dys)


@old_name("cudnn")
def rnn_backward_weights_ex(
    states: Any,
    direction_mode: int,
    rnn_mode: int,
    xs: Array,
    hx: Array,
    ys: Array,
    w: Array,
    reserve_space: Any,
    lengths: Any,
) -> Array:
    """As :func:`rnn_backward_weights`, for padded sequences."""
    given = runs.Given(states, direction_mode, rnn_mode, hx, w, xs, lengths, "time_major")
    return runs.backward_weights(given, ys, reserve_space)
