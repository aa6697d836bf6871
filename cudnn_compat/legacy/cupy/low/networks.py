"""RNN descriptors, the sizes that follow from them, and plans of the persistent algorithms."""

from __future__ import annotations

from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.checking import check_integer
from cudnn_compat.engines.choose import engine_of_device
from cudnn_compat.errors import ArgumentError
from cudnn_compat.legacy.cupy import constants as c
from cudnn_compat.legacy.cupy.described import RNN, Dropout, PersistentPlan, Tensor, dtype_of
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.handles import space_of
from cudnn_compat.legacy.cupy.low.calls import sequences_of_steps
from cudnn_compat.legacy.cupy.registry import find, give_number, release
from cudnn_compat.legacy.cupy.translate import (
    ALGORITHMS,
    CELLS,
    DIRECTIONS,
    INPUT_MODES,
    choice,
    network_of,
)
from cudnn_compat.weights import weight_layout

__all__ = [
    "createPersistentRNNPlan",
    "createRNNDescriptor",
    "destroyPersistentRNNPlan",
    "destroyRNNDescriptor",
    "getRNNPaddingMode",
    "getRNNParamsSize",
    "getRNNTrainingReserveSize",
    "getRNNWorkspaceSize",
    "input_size_of",
    "setPersistentRNNPlan",
    "setRNNDescriptor_v5",
    "setRNNDescriptor_v6",
    "setRNNPaddingMode",
    "set_rnn",
]


@old_name("libcudnn")
def createRNNDescriptor() -> int:
    """A descriptor of a network, to be set."""
    return give_number(RNN())


@old_name("libcudnn")
def destroyRNNDescriptor(rnnDesc: int) -> None:
    """Forget a descriptor of a network."""
    release(RNN, rnnDesc)


@old_name("libcudnn")
def setRNNDescriptor_v5(
    rnnDesc: int,
    hiddenSize: int,
    numLayers: int,
    dropoutDesc: int,
    inputMode: int,
    direction: int,
    mode: int,
    dataType: int,
) -> None:
    """As :func:`setRNNDescriptor_v6`, with the standard algorithm."""
    set_rnn(
        find(RNN, rnnDesc),
        hiddenSize,
        numLayers,
        dropoutDesc,
        inputMode,
        direction,
        mode,
        c.CUDNN_RNN_ALGO_STANDARD,
        dataType,
    )


@old_name("libcudnn")
def setRNNDescriptor_v6(
    handle: int,
    rnnDesc: int,
    hiddenSize: int,
    numLayers: int,
    dropoutDesc: int,
    inputMode: int,
    direction: int,
    mode: int,
    algo: int,
    dataType: int,
) -> None:
    """Say what a network is. Its input size comes later, with a descriptor of x.

    Args:
        dropoutDesc: 0 for none; its ratio is asked for by each call.
    """
    set_rnn(
        find(RNN, rnnDesc),
        hiddenSize,
        numLayers,
        dropoutDesc,
        inputMode,
        direction,
        mode,
        algo,
        dataType,
    )


def set_rnn(
    rnn: RNN,
    hidden_size: int,
    num_layers: int,
    dropout: int,
    input_mode: int,
    direction: int,
    mode: int,
    algo: int,
    data_type: int,
) -> None:
    """Set a description; nothing is changed where something is wrong.

    Raises:
        ArgumentError, UnsupportedError: it is not understood.
    """
    hidden_size = check_integer("hiddenSize", hidden_size, 1)
    num_layers = check_integer("numLayers", num_layers, 1)
    generator = find(Dropout, dropout) if dropout else None
    for name, value, known in (
        ("inputMode", input_mode, INPUT_MODES),
        ("direction", direction, DIRECTIONS),
        ("mode", mode, CELLS),
        ("algo", algo, ALGORITHMS),
    ):
        choice(name, value, known)
    dtype = dtype_of(data_type)
    rnn.hidden_size, rnn.num_layers, rnn.dropout = hidden_size, num_layers, generator
    rnn.input_mode, rnn.direction, rnn.mode = input_mode, direction, mode
    rnn.algo, rnn.dtype = algo, dtype


@old_name("libcudnn")
def setRNNPaddingMode(rnnDesc: int, paddingMode: int) -> None:
    """Whether the calls with Ex may be given padded layouts."""
    known = {c.CUDNN_RNN_PADDED_IO_DISABLED: "disabled", c.CUDNN_RNN_PADDED_IO_ENABLED: "enabled"}
    choice("paddingMode", paddingMode, known)
    find(RNN, rnnDesc).padding = paddingMode


@old_name("libcudnn")
def getRNNPaddingMode(rnnDesc: int) -> int:
    """What :func:`setRNNPaddingMode` was given, ``CUDNN_RNN_PADDED_IO_DISABLED`` at first."""
    return find(RNN, rnnDesc).padding


@old_name("libcudnn")
def getRNNParamsSize(handle: int, rnnDesc: int, xDesc: int, dataType: int) -> int:
    """Bytes of the weight space.

    Args:
        xDesc: descriptor of a step of x, ``(batch, input, 1)``.
    """
    rnn, space = find(RNN, rnnDesc), space_of(handle)
    spec = network_of(rnn, input_size_of(xDesc), on_gpu=space.device is not None, dropout=0.0)
    if dtype_of(dataType) != rnn.dtype:
        raise ArgumentError(f"dataType is {dataType}, the RNN descriptor has {rnn.dtype}")
    return weight_layout(spec).size * numpy_dtype(spec.dtype).itemsize


@old_name("libcudnn")
def getRNNWorkspaceSize(handle: int, rnnDesc: int, seqLength: int, xDesc: int) -> int:
    """0 bytes: the engines bring their own scratch memory."""
    find(RNN, rnnDesc)
    space_of(handle)
    return 0


@old_name("libcudnn")
def getRNNTrainingReserveSize(handle: int, rnnDesc: int, seqLength: int, xDesc: int) -> int:
    """Bytes of the reserve of a training forward, with the dropout ratio that is set now.

    Args:
        xDesc: address of a host array of seqLength tensor descriptors, each ``(batch, input, 1)``.
    """
    rnn, space = find(RNN, rnnDesc), space_of(handle)
    sequences, input_size = sequences_of_steps(rnn, seqLength, xDesc)
    spec = network_of(rnn, input_size, on_gpu=space.device is not None)
    engine = engine_of_device(space.name)
    plan = engine.plan(spec, sequences, training=True, device=space.name, begins=False)
    size: int = plan.reserve_bytes(sequences)
    if rnn.padding == c.CUDNN_RNN_PADDED_IO_ENABLED:
        # The calls with Ex take sequences in any order, which these descriptors do not tell; an
        # engine that sorts them keeps the rows of y once more.
        size += sequences.total * spec.output_size * numpy_dtype(spec.dtype).itemsize
    return size


@old_name("libcudnn")
def createPersistentRNNPlan(rnnDesc: int, minibatch: int, dataType: int) -> int:
    """A plan of the persistent algorithms. The engines make their own; this one is only held."""
    find(RNN, rnnDesc)
    dtype_of(dataType)
    return give_number(PersistentPlan(check_integer("minibatch", minibatch, 1)))


@old_name("libcudnn")
def setPersistentRNNPlan(rnnDesc: int, plan: int) -> None:
    """Nothing more is to be said: the engines make a plan for every batch size."""
    find(RNN, rnnDesc)
    find(PersistentPlan, plan)


@old_name("libcudnn")
def destroyPersistentRNNPlan(plan: int) -> None:
    """Forget a plan."""
    release(PersistentPlan, plan)


def input_size_of(number: int) -> int:
    """The input size in a descriptor of a step of x: ``(batch, input, 1)``.

    Raises:
        ArgumentError: it has another form.
    """
    dims = find(Tensor, number).dims("xDesc")
    if len(dims) < 2:
        raise ArgumentError(f"xDesc has dimensions {dims}; wanted (batch, input, 1)")
    return dims[1]
