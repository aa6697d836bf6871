"""How the calls of ``cupy.cudnn``, which take arrays, are compared with the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.legacy.cupy import cudnn, libcudnn
from cudnn_compat.matrix.addresses import address_of
from cudnn_compat.matrix.comparing import Case, Comparison, Found, same, to_host
from cudnn_compat.matrix.equations import GATES
from cudnn_compat.matrix.old_network import (
    TYPES,
    OldNetwork,
    compare_data,
    compare_outputs,
    compare_weights,
)
from cudnn_compat.matrix.old_step import MODES
from cudnn_compat.matrix.operations import (
    ACTIVATIONS,
    COEF,
    SOFTMAXES,
    Operands,
    activation,
    activation_gradient,
    softmax,
    softmax_gradient,
)
from cudnn_compat.matrix.reference import reference_forward
from cudnn_compat.matrix.shapes import HIDDEN, INPUT

__all__ = ["CHECKS", "Slots"]

SEED: Final = 1234


def rnn_forward_inference(case: Case) -> Found:
    """hy, cy and ys."""
    network = OldNetwork(case)
    yield from compare_outputs(network, *network.call("rnn_forward_inference", cx=network.cx))


def train(network: OldNetwork) -> tuple[Any, tuple[Array, ...]]:
    """The reserve, and (hy, cy, ys)."""
    reserve, *outs = network.call("rnn_forward_training", cx=network.cx)
    return reserve, tuple(outs)


def go_back(network: OldNetwork) -> tuple[tuple[Array, ...], Array]:
    """(dhx, dcx, dxs), and dw, of a training forward."""
    reserve, (_, _, ys) = train(network)
    data = network.call(
        "rnn_backward_data",
        cx=network.cx,
        ys=ys,
        reserve_space=reserve,
        dhy=network.dhy,
        dcy=network.dcy,
        dys=network.dy,
    )
    return data, network.call("rnn_backward_weights", ys=ys, reserve_space=reserve)


def rnn_forward_training(case: Case) -> Found:
    """The same as inference, and a reserve that is a pointer to memory."""
    network = OldNetwork(case)
    reserve, outs = train(network)
    yield from compare_outputs(network, *outs)
    yield same("whether the reserve has an address", reserve.ptr != 0, True)
    yield same("whether the reserve has a size", reserve.mem.size > 0, True)


def rnn_backward_data(case: Case) -> Found:
    """dhx, dcx and dxs."""
    network = OldNetwork(case)
    yield from compare_data(network, *go_back(network)[0])


def rnn_backward_weights(case: Case) -> Found:
    """dw, in the shape of w."""
    network = OldNetwork(case)
    _, dw = go_back(network)
    yield same("shape of dw", dw.shape, network.w.shape)
    yield from compare_weights(network, dw)


def softmax_forward(case: Case) -> Found:
    """Along an axis, by each algorithm."""
    data = Operands(case)
    for name, number in SOFTMAXES.items():
        y = cudnn.softmax_forward(case.array(data.x), data.axis, number)
        yield Comparison(f"y of {name}", y, softmax(data.x, name, data.axis))


def softmax_backward(case: Case) -> Found:
    """From the y of the forward."""
    data = Operands(case)
    for name, number in SOFTMAXES.items():
        y = data.rounded(softmax(data.x, name, data.axis))
        dx = cudnn.softmax_backward(case.array(y), case.array(data.dy), data.axis, number)
        wanted = softmax_gradient(y, data.dy, name, data.axis)
        yield Comparison(f"dx of {name}", dx, wanted, "gradient")


def activation_forward(case: Case) -> Found:
    """Every function but identity, which never worked alone."""
    data = Operands(case)
    for name, number in ACTIVATIONS.items():
        y = cudnn.activation_forward(case.array(data.x), number, coef=COEF)
        yield Comparison(f"y of {name}", y, activation(data.x, name))


def activation_backward(case: Case) -> Found:
    """From x and y."""
    data = Operands(case)
    x, dy = case.array(data.x), case.array(data.dy)
    for name, number in ACTIVATIONS.items():
        y = case.array(activation(data.x, name))
        dx = cudnn.activation_backward(x, y, dy, number, coef=COEF)
        wanted = activation_gradient(data.x, data.dy, name)
        yield Comparison(f"dx of {name}", dx, wanted, "gradient")


def activation_identity(case: Case) -> Found:
    """It never worked outside a convolution."""
    cudnn.activation_forward(case.array(Operands(case).x), 5)
    yield same("whether identity is refused", False, True)


def dropout_states(case: Case) -> Found:
    """What is kept is scaled, backward has the same mask, one seed gives one mask."""
    data, ratio = Operands(case), 0.5
    x, dy = case.array(data.x), case.array(data.dy)
    states = cudnn.DropoutStates(None, SEED)
    reserve, y = states.forward(None, x, ratio)
    states.set_dropout_ratio(0.25)  # backward is told the ratio of its own forward
    dx = states.backward(None, dy, ratio, reserve)
    kept = to_host(y) != 0
    share = kept.mean()
    # 5 standard deviations: once in a million.
    allowed = 5 * (ratio * (1 - ratio) / kept.size) ** 0.5
    yield Comparison("share kept", share, 1 - ratio, allowed=allowed)
    yield Comparison("y", y, kept * data.x / (1 - ratio))
    yield Comparison("dx", dx, kept * data.dy / (1 - ratio), "gradient")
    again = cudnn.DropoutStates(None, SEED)
    yield Comparison("y of the same seed", again.forward(None, x, ratio)[1], to_host(y), "exact")
    other = to_host(again.forward(None, x, ratio)[1]) != 0
    yield same("whether the next mask is the same", bool((other == kept).all()), False)


def dropout_between_layers(case: Case) -> Found:
    """The ratio that is set acts between layers: in training only, and 1 lets nothing through."""
    network = OldNetwork(case)
    states = network.states
    states.set_dropout_ratio(1.0)
    outs = network.call("rnn_forward_inference", cx=network.cx)
    yield from compare_outputs(network, *outs)
    _, (hy, _, _) = train(network)
    posed = network.problem
    # Nothing comes from the layer below: as if x of the second layer were zeros.
    below = [[0 * np.ones((len(rows), HIDDEN)) for rows in posed.xs]]
    right = reference_forward(posed.spec, posed.w, posed.xs, posed.hx, posed.cx, below)
    yield Comparison("hy of training", hy, right.hy)


class Slots:
    """Where cuDNN 8 had the matrices and biases of a network of one direction, in elements.

    Matrices first, layer by layer, all input matrices of a layer before its recurrent ones; then
    the biases in the same order.
    """

    def __init__(self, cell: str, layers: int) -> None:
        self.found: dict[tuple[int, int, str], tuple[int, int]] = {}
        gates, place = GATES[cell], 0
        for kind in ("matrix", "bias"):
            for layer in range(layers):
                width = INPUT if layer == 0 else HIDDEN
                for linear in range(2 * gates):
                    size = HIDDEN
                    if kind == "matrix":
                        size *= width if linear < gates else HIDDEN
                    self.found[layer, linear, kind] = (place, size)
                    place += size
        self.size = place


def described(case: Case) -> Any:
    """A descriptor of the row's network."""
    return cudnn.create_rnn_descriptor(
        hidden_size=HIDDEN,
        num_layers=case.spec.num_layers,
        dropout_desc=None,
        input_mode=0,
        direction=0,
        mode=MODES[case.spec.cell],
        data_type=TYPES[case.dtype],
    )


def lin_layer_params(case: Case) -> Found:
    """Views of ``w``: in the place that cuDNN 8 had them, and what is written is written to w."""
    kind, slots = case.options["kind"], Slots(case.spec.cell, case.spec.num_layers)
    getter = getattr(cudnn, f"get_rnn_lin_layer_{kind}_params")
    w = case.xp.zeros((slots.size, 1, 1), case.dtype)
    x_desc = cudnn.create_tensor_nd_descriptor(case.xp.zeros((1, INPUT, 1), case.dtype))
    w_desc, rnn = cudnn.create_filter_descriptor(w), described(case)
    for (layer, linear, what), (place, size) in slots.found.items():
        if what == kind:
            view = getter(None, rnn, layer, x_desc, w_desc, w, linear)
            where = (address_of(view) - address_of(w)) // w.dtype.itemsize
            yield same(f"place of {kind} {layer, linear}", (where, view.size), (place, size))
            view[...] = linear + 1
            yield Comparison("w there", w[place : place + size].mean(), linear + 1, "exact")


def create_descriptors(case: Case) -> Found:
    """Integers that are all different, of arrays; the getters of the low level tell what is set."""
    number, x = TYPES[case.dtype], case.xp.zeros((2, 3, 4, 5), case.dtype)
    yield Comparison("data type", cudnn.get_data_type(x.dtype), number, "exact")
    made = {
        "tensor": cudnn.create_tensor_descriptor(x),
        "tensor_nd": cudnn.create_tensor_nd_descriptor(x),
        "filter": cudnn.create_filter_descriptor(x),
    }
    for name in ("tensor", "tensor_nd"):
        numbers = libcudnn.getTensor4dDescriptor(made[name].value)
        yield Comparison(name, numbers, (number, 2, 3, 4, 5, 60, 20, 5, 1), "exact")
    told = libcudnn.getFilterNdDescriptor(made["filter"].value, 4)
    yield same("filter", told, (number, 0, 4, (2, 3, 4, 5)))
    empty = cudnn.create_tensor_nd_descriptor(case.xp.zeros((0, 3), case.dtype))
    yield Comparison("descriptor of no elements", empty.value, 0, "exact")
    yield same("different numbers", len({each.value for each in made.values()}), 3)


def dropout_descriptor(case: Case) -> Found:
    """A descriptor of dropout whose ratio is changed, and a network that has it."""
    handle = cudnn.get_handle()
    memory = cudnn.create_dropout_states(handle)
    yield same("whether there are states", memory.size > 0, True)
    made = cudnn.create_dropout_descriptor(handle, 0.5, address_of(memory), memory.size, SEED)
    cudnn.set_dropout_descriptor(made, handle, 0.25)
    rnn = cudnn.create_rnn_descriptor(HIDDEN, 2, made, 0, 0, 2, 0, algo=0)
    yield same("numbers", made.value != rnn.value and made.value * rnn.value != 0, True)


def settings(case: Case) -> Found:
    """The handle is one; the workspace's size is remembered; what tensor cores there are."""
    yield same("two handles", cudnn.get_handle(), cudnn.get_handle())
    size = cudnn.get_max_workspace_size()
    try:
        cudnn.set_max_workspace_size(4096)
        yield Comparison("workspace", cudnn.get_max_workspace_size(), 4096, "exact")
    finally:
        cudnn.set_max_workspace_size(size)
    yield same("tensor cores for float64", cudnn.is_tensor_core_available("float64"), False)


def descriptor(case: Case) -> Found:
    """It owns a number, and destroys it once."""
    destroyed: list[int] = []
    made = cudnn.Descriptor(7, destroyed.append)
    yield Comparison("value", made.value, 7, "exact")
    del made
    yield same("destroyed", destroyed, [7])


CHECKS: Final[dict[str, Callable[[Case], Found]]] = {
    function.__name__: function
    for function in (
        rnn_forward_inference,
        rnn_forward_training,
        rnn_backward_data,
        rnn_backward_weights,
        softmax_forward,
        softmax_backward,
        activation_forward,
        activation_backward,
        activation_identity,
        dropout_states,
        dropout_between_layers,
        lin_layer_params,
        create_descriptors,
        dropout_descriptor,
        settings,
        descriptor,
    )
}
