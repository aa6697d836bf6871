"""How the calls of ``cupy.cuda.cudnn`` that compute are compared with the reference."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.legacy.cupy import libcudnn
from cudnn_compat.matrix.addresses import (
    AddressedNetwork,
    address_of,
    call,
    handle_of,
    tensor,
)
from cudnn_compat.matrix.checks_arrays import Slots
from cudnn_compat.matrix.comparing import Case, Comparison, Found, same, to_host
from cudnn_compat.matrix.old_network import TYPES, compare_data, compare_outputs, compare_weights
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
from cudnn_compat.matrix.shapes import HIDDEN, INPUT

__all__ = ["CHECKS"]


def rnn_inference(case: Case) -> Found:
    """y, hy and cy at the addresses given."""
    network = AddressedNetwork(case)
    network.run("RNNForwardInference")
    yield from compare_outputs(network, network.hy, network.cy, network.y)


def rnn_training(case: Case) -> Found:
    """The same, and a reserve."""
    network = AddressedNetwork(case)
    network.train()
    yield from compare_outputs(network, network.hy, network.cy, network.y)
    assert network.reserve is not None
    yield same("whether the reserve was written", bool(network.reserve.any()), True)


def rnn_backward_data(case: Case) -> Found:
    """dx, dhx and dcx at the addresses given."""
    network = AddressedNetwork(case)
    network.train()
    network.run("RNNBackwardData")
    yield from compare_data(network, network.dhx, network.dcx, network.dx)


def rnn_backward_weights(case: Case) -> Found:
    """Added into dw."""
    network = AddressedNetwork(case)
    network.train()
    network.run("RNNBackwardData")
    network.dw += network.case.xp.asarray(network.w)
    network.run("RNNBackwardWeights")
    yield from compare_weights(network, to_host(network.dw) - to_host(network.w))


def params_size(case: Case) -> Found:
    """Bytes of the weight space, and of workspaces, of which none is needed."""
    network, slots = AddressedNetwork(case), Slots(case.spec.cell, case.spec.num_layers)
    x_desc, dtype = tensor(case.dtype, (1, INPUT, 1)), TYPES[case.dtype]
    size = libcudnn.getRNNParamsSize(network.handle, network.rnn, x_desc, dtype)
    yield Comparison("bytes", size, slots.size * numpy_dtype(case.dtype).itemsize, "exact")
    steps = network.step_tensors(INPUT)
    workspace = libcudnn.getRNNWorkspaceSize(network.handle, network.rnn, network.steps, steps)
    yield Comparison("bytes of a workspace", workspace, 0, "exact")


def lin_layer_params(case: Case) -> Found:
    """Addresses and dimensions of each matrix and bias: those that cuDNN 8 gave."""
    network, slots = AddressedNetwork(case), Slots(case.spec.cell, case.spec.num_layers)
    kind, itemsize = case.options["kind"], numpy_dtype(case.dtype).itemsize
    getter = {"matrix": "Matrix", "bias": "Bias"}[kind]
    found, described = ctypes.c_size_t(), libcudnn.createFilterDescriptor()
    x_desc = tensor(case.dtype, (1, INPUT, 1))
    for (layer, linear, what), (place, size) in slots.found.items():
        if what == kind:
            getattr(libcudnn, f"getRNNLinLayer{getter}Params")(
                network.handle,
                network.rnn,
                layer,
                x_desc,
                network.known["wDesc"],
                network.known["w"],
                linear,
                described,
                ctypes.addressof(found),
            )
            where = (found.value - network.known["w"]) // itemsize
            yield Comparison(f"place of {kind} {layer, linear}", where, place, "exact")
            told = libcudnn.getFilterNdDescriptor(described, 3)
            wanted = (TYPES[case.dtype], 0, 3, (1, HIDDEN, size // HIDDEN))
            yield same(f"dimensions of {kind} {layer, linear}", told, wanted)


@contextmanager
def operation(case: Case) -> Iterator[tuple[Operands, dict[str, Any]]]:
    """Operands, and what the operations take by name; what is written is NaN at first."""
    data = Operands(case)
    x, dy = case.array(data.x), case.array(data.dy)
    result = case.xp.full(data.shape.dims, float("nan"), case.dtype)
    factor = ctypes.c_double if case.dtype == "float64" else ctypes.c_float
    one, zero = factor(1), factor(0)
    described = tensor(case.dtype, data.shape.dims)
    names = ("src", "srcDiff", "dest", "dst", "destDiff", "dy", "dx", "dxt")
    known: dict[str, Any] = dict.fromkeys((f"{name}Desc" for name in names), described) | {
        "handle": handle_of(case),
        "alpha": ctypes.addressof(one),
        "beta": ctypes.addressof(zero),
        "srcData": address_of(x),
        "dstData": address_of(result),
        "result": result,
        "x": x,
        "dy": dy,
    }
    yield data, known
    # Addresses belong to objects, which live until here.
    del x, dy, one, zero


def softmax_addresses(case: Case) -> Found:
    """Over all axes but the first, and over the second; forward, then backward from its y."""
    with operation(case) as (data, known):
        modes = {"instance": 0, "channel": 1}
        for mode, number in modes.items():
            axes = tuple(range(1, data.x.ndim)) if mode == "instance" else (1,)
            for name, algorithm in SOFTMAXES.items():
                known |= {"algorithm": algorithm, "mode": number}
                if not case.options["backward"]:
                    call("softmaxForward", known)
                    wanted = softmax(data.x, name, axes)
                    yield Comparison(f"y of {name}, {mode}", known["result"], wanted)
                    continue
                y = data.rounded(softmax(data.x, name, axes))
                arrays = (case.array(y), known["dy"], known["result"])
                src, diff, result = map(address_of, arrays)
                given = {"srcData": src, "srcDiffData": diff, "destDiffData": result}
                call("softmaxBackward", known | given)
                wanted = softmax_gradient(y, data.dy, name, axes)
                yield Comparison(f"dx of {name}, {mode}", known["result"], wanted, "gradient")


def activation_addresses(case: Case) -> Found:
    """Every function but identity."""
    with operation(case) as (data, known):
        described = libcudnn.createActivationDescriptor()
        known["activationDesc"] = described
        for name, number in ACTIVATIONS.items():
            libcudnn.setActivationDescriptor(described, number, 0, COEF)
            if not case.options["backward"]:
                call("activationForward_v4", known)
                yield Comparison(f"y of {name}", known["result"], activation(data.x, name))
                continue
            y = case.array(activation(data.x, name))
            arrays = (y, known["dy"], known["x"], known["result"])
            src, diff, dest, result = map(address_of, arrays)
            given = {"srcData": src, "srcDiffData": diff, "destData": dest, "destDiffData": result}
            call("activationBackward_v4", known | given)
            wanted = activation_gradient(data.x, data.dy, name)
            yield Comparison(f"dx of {name}", known["result"], wanted, "gradient")
        libcudnn.destroyActivationDescriptor(described)


def factors(case: Case) -> Found:
    """Any other factor of the result than 1 is refused."""
    with operation(case) as (_, known):
        described, half = libcudnn.createActivationDescriptor(), ctypes.c_double(0.5)
        libcudnn.setActivationDescriptor(described, 1, 0, 0.0)
        known |= {"activationDesc": described, "alpha": ctypes.addressof(half)}
        call("activationForward_v4", known)
        yield same("whether a factor of 0.5 is refused", False, True)


def dropout_addresses(case: Case) -> Found:
    """What is kept is scaled, and backward has the same mask."""
    ratio = 0.5
    with operation(case) as (data, known):
        handle, described = known["handle"], libcudnn.createDropoutDescriptor()
        memory = case.xp.empty(libcudnn.dropoutGetStatesSize(handle), "uint8")
        given = (handle, ratio, address_of(memory), memory.size, 1234)
        libcudnn.setDropoutDescriptor(described, *given)
        # The size is that of the current device; a byte for each element is enough for the host.
        needed = max(libcudnn.getDropoutReserveSpaceSize(known["srcDesc"]), data.x.size)
        reserve = case.xp.zeros(needed, "uint8")
        known |= {
            "dropoutDesc": described,
            "reserveSpace": address_of(reserve),
            "reserveSpaceSizeInBytes": needed,
        }
        call("dropoutForward", known)
        y = to_host(known["result"])
        kept = y != 0
        allowed = 5 * (ratio * (1 - ratio) / kept.size) ** 0.5
        yield Comparison("share kept", kept.mean(), 1 - ratio, allowed=allowed)
        yield Comparison("y", y, kept * data.x / (1 - ratio))
        backward = {"dyData": address_of(known["dy"]), "dxData": address_of(known["result"])}
        call("dropoutBackward", known | backward)
        wanted = kept * data.dy / (1 - ratio)
        yield Comparison("dx", known["result"], wanted, "gradient")
        libcudnn.destroyDropoutDescriptor(described)


CHECKS: Final[dict[str, Callable[[Case], Found]]] = {
    function.__name__: function
    for function in (
        rnn_inference,
        rnn_training,
        rnn_backward_data,
        rnn_backward_weights,
        params_size,
        lin_layer_params,
        softmax_addresses,
        activation_addresses,
        factors,
        dropout_addresses,
    )
}
