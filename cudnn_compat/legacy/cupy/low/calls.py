"""What the calls of RNNs share: descriptors checked, and addresses as arrays for the engine.

Every address is taken to hold as much as the spec says, and descriptors that are given must say the
same: a wrong one is refused before anything is read or written.
"""

from __future__ import annotations

import ctypes
from typing import Any

from cudnn_compat.arrays import Array
from cudnn_compat.checking import check_integer
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.choose import engine_of_device
from cudnn_compat.errors import ArgumentError
from cudnn_compat.legacy.cupy import reserves
from cudnn_compat.legacy.cupy.described import RNN, Filter, RNNData, Tensor
from cudnn_compat.legacy.cupy.handles import space_of
from cudnn_compat.legacy.cupy.memory import host_integers
from cudnn_compat.legacy.cupy.registry import find
from cudnn_compat.legacy.cupy.translate import LAYOUTS, by_lengths, by_steps, network_of
from cudnn_compat.sequences import Sequences
from cudnn_compat.weights import weight_layout

__all__ = ["Call", "Pointer", "sequences_of_data", "sequences_of_steps"]

Pointer = tuple[int, int]
"""A descriptor and an address."""


def sequences_of_steps(
    rnn: RNN, steps: int, descriptors: int, name: str = "xDesc", batch: int | None = None
) -> tuple[Sequences, int]:
    """The geometry that a host array of tensor descriptors tells, and the number of features.

    Args:
        descriptors: address of ``steps`` descriptors, each ``(batch of the step, features, 1)``.
        batch: B where a state tells it.

    Raises:
        ArgumentError: they do not belong together.
    """
    steps = check_integer("seqLength", steps, 1)
    numbers = host_integers(name, descriptors, steps, ctypes.c_size_t)
    known: dict[int, tuple[int, ...]] = {}
    sizes, features = [], 0
    for step, number in enumerate(numbers):
        dims = known.get(number)
        if dims is None:
            tensor = find(Tensor, number)
            dims = known[number] = tensor.dims(f"{name}[{step}]")
            if len(dims) != 3 or dims[2] != 1 or tensor.dtype != rnn.dtype:
                raise ArgumentError(
                    f"{name}[{step}] is {tensor.dtype} with dimensions {dims}; wanted {rnn.dtype} "
                    "and (batch, features, 1)"
                )
            if dims[1] != (features or dims[1]):
                raise ArgumentError(
                    f"{name}[{step}] has {dims[1]} features, those before it {features}"
                )
            features = dims[1]
        sizes.append(dims[0])
    return by_steps(tuple(sizes), sum(sizes), sizes[0] if batch is None else batch), features


def sequences_of_data(rnn: RNN, number: int, name: str = "xDesc") -> tuple[Sequences, int]:
    """The geometry that an RNN data descriptor tells, and the number of features.

    Raises:
        ArgumentError: it is not set, or its layout needs ``setRNNPaddingMode``.
    """
    data = find(RNNData, number)
    if data.lengths is None:
        raise ArgumentError(f"{name} has been created but not set")
    if data.dtype != rnn.dtype:
        raise ArgumentError(f"{name} is {data.dtype}, the RNN descriptor {rnn.dtype or 'not set'}")
    layout = LAYOUTS[data.layout]
    if layout == "packed":
        shape: tuple[int, ...] = (sum(data.lengths), data.features)
    elif not rnn.padding:
        raise ArgumentError(
            f"{name} has a padded layout; call setRNNPaddingMode(…, CUDNN_RNN_PADDED_IO_ENABLED)"
        )
    elif layout == "time_major":
        shape = (data.steps, data.batch, data.features)
    else:
        shape = (data.batch, data.steps, data.features)
    return by_lengths(data.lengths, shape, layout), data.features


class Call:
    """One call: its network and geometry, and views of what its pointers point to."""

    def __init__(
        self,
        handle: int,
        rnn: RNN,
        sequences: Sequences,
        input_size: int,
        *,
        training: bool,
        reserve: Pointer | None = None,
        backward: bool = False,
    ) -> None:
        """``reserve`` is its address and its size in bytes."""
        self.rnn, self.sequences, self.training = rnn, sequences, training
        self.space = space = space_of(handle)
        self.before: reserves.Forward | None = None
        self.reserve_address = 0
        ratio = None if training else 0.0
        if reserve is not None:
            self.reserve_address = check_integer("reserveSpace", reserve[0], 0, 2**64)
        if backward:
            self.before = reserves.recall(space.name, self.reserve_address)
            if self.before is not None:
                ratio = self.before.ratio
        on_gpu = space.device is not None
        self.spec = network_of(rnn, input_size, on_gpu=on_gpu, dropout=ratio)
        self.engine = engine_of_device(space.name)
        self.plan: Any = self.engine.plan(
            self.spec, sequences, training=training, device=space.name, begins=not backward
        )
        self.reserve: Array | None = None
        if reserve is not None:
            needed = self.plan.reserve_bytes(sequences)
            if reserve[1] < needed:
                raise ArgumentError(
                    f"reserveSpaceSizeInBytes is {reserve[1]}; this call needs {needed}: ask "
                    "getRNNTrainingReserveSize when dropout and shapes are as in the call"
                )
            self.reserve = space.needed("reserveSpace", reserve[0], (needed,), "uint8")

    def weights(self, name: str, pointer: Pointer) -> Array:
        """w or dw, flat.

        Raises:
            ArgumentError: NULL, or of another size or dtype.
        """
        described, size = find(Filter, pointer[0]), weight_layout(self.spec).size
        given = described.size(f"{name}Desc")
        if given != size or described.dtype != self.spec.dtype:
            raise ArgumentError(
                f"{name}Desc describes {given} elements of {described.dtype}; this network has "
                f"{size} weights of {self.spec.dtype}"
            )
        return self.space.needed(name, pointer[1], (size,), self.spec.dtype)

    def state(self, name: str, pointer: Pointer) -> Array | None:
        """A state ``(L·D, B, H)``, or None for NULL.

        Raises:
            ArgumentError: its descriptor, where it is given, is not set or says otherwise.
        """
        shape = self.spec.state_shape(self.sequences.batch)
        if pointer[0]:
            tensor = find(Tensor, pointer[0])
            dims = tensor.dims(f"{name}Desc")
            if dims != shape or tensor.dtype != self.spec.dtype:
                raise ArgumentError(
                    f"{name}Desc is {tensor.dtype} with dimensions {dims}; wanted "
                    f"{self.spec.dtype} and {shape}"
                )
        return self.space.view(pointer[1], shape, self.spec.dtype)

    def cell(self, name: str, pointer: Pointer) -> Array | None:
        """A cell state, or None for NULL and where the cell has none."""
        found = self.state(name, pointer)
        return found if self.spec.has_cell else None

    def data(self, name: str, address: int, features: int, *, optional: bool = False) -> Any:
        """x, y or a gradient of one, in the call's layout.

        Raises:
            ArgumentError: NULL, unless that is allowed.
        """
        sequences = self.sequences
        shape: tuple[int, ...] = (sequences.total, features)
        if sequences.layout == "time_major":
            shape = (sequences.steps, sequences.batch, features)
        elif sequences.layout == "batch_major":
            shape = (sequences.batch, sequences.steps, features)
        if optional:
            return self.space.view(address, shape, self.spec.dtype)
        return self.space.needed(name, address, shape, self.spec.dtype)

    def state_to_write(self, name: str, pointer: Pointer) -> Array:
        """A state that the engine writes; scratch memory where it is not wanted (NULL)."""
        found = self.state(name, pointer)
        if found is None:
            shape = self.spec.state_shape(self.sequences.batch)
            return self.engine.empty(shape, self.spec.dtype, self.space.name)
        return found

    def generator(self) -> DropoutState | None:
        """The generator of dropout, where dropout acts.

        Raises:
            ArgumentError: the dropout descriptor has none.
        """
        if not self.training or not self.spec.drops:
            return None
        dropout = self.rnn.dropout
        if dropout is None or dropout.state is None:
            raise ArgumentError("the dropout descriptor was set without states: no generator")
        return dropout.state

    def forward(
        self, w: Pointer, x: int, hx: Pointer, cx: Pointer, y: int, hy: Pointer, cy: Pointer
    ) -> None:
        """Compute, and remember the forward of a reserve."""
        spec = self.spec
        self.engine.forward(
            self.plan,
            self.sequences,
            self.weights("w", w),
            self.data("x", x, spec.input_size),
            self.state("hx", hx),
            self.cell("cx", cx),
            y=self.data("y", y, spec.output_size),
            hy=self.state("hy", hy),
            cy=self.cell("cy", cy),
            reserve=self.reserve,
            dropout=self.generator(),
        )
        if self.training:
            reserves.remember(self.space.name, self.reserve_address, spec.dropout)

    def backward_data(
        self,
        w: Pointer,
        hx: Pointer,
        cx: Pointer,
        y: int,
        dy: int,
        dhy: Pointer,
        dcy: Pointer,
        dx: int,
        dhx: Pointer,
        dcx: Pointer,
    ) -> None:
        """Compute the gradients of x and of the states."""
        spec = self.spec
        target = self.data("dx", dx, spec.input_size)
        arguments = (
            self.weights("w", w),
            target,  # in the place of x, which the old call was not given
            self.state("hx", hx),
            self.cell("cx", cx),
            self.data("y", y, spec.output_size),
            self.reserve,
        )
        gradients = {
            "dy": self.data("dy", dy, spec.output_size, optional=True),
            "dhy": self.state("dhy", dhy),
            "dcy": self.cell("dcy", dcy),
            "dx": target,
            "dhx": self.state_to_write("dhx", dhx),
            "dcx": self.cell("dcx", dcx),
        }
        reserves.begin_data(self.before)
        self.engine.backward_data(self.plan, self.sequences, *arguments, **gradients)

    def backward_weights(self, x: int, hx: Pointer, y: int, dw: Pointer) -> None:
        """Add the gradients of the weights into dw."""
        spec = self.spec
        target = self.weights("dw", dw)
        arguments = (
            target,  # in the place of w, which the old call was not given
            self.data("x", x, spec.input_size),
            self.state("hx", hx),
            self.data("y", y, spec.output_size),
            self.reserve,
        )
        reserves.begin_weights(self.before)
        self.engine.backward_weights(self.plan, self.sequences, *arguments, dw=target)
