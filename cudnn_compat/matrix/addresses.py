"""Calls of ``cupy.cuda.cudnn``: integers and addresses, passed by the names that they had."""

from __future__ import annotations

import ctypes
import inspect
import math
import re
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from cudnn_compat.arrays import Array, is_cupy
from cudnn_compat.legacy.cupy import libcudnn
from cudnn_compat.legacy.cupy.handles import make_handle
from cudnn_compat.matrix.comparing import Case
from cudnn_compat.matrix.old_network import TYPES, OldNetwork

__all__ = ["AddressedNetwork", "address_of", "call", "handle_of", "integers", "tensor"]

IGNORED: Final = re.findall(
    r"\w+",
    "workspace workSpace workSpaceSizeInBytes kDesc keys cDesc cAttn iDesc iAttn qDesc queries "
    "dcDesc dcAttn dkDesc dkeys",
)
"""What no engine needs, and what the old library ignored."""


def address_of(array: Array | None) -> int:
    """Where an array begins; 0 of None."""
    if array is None:
        return 0
    return int(array.data.ptr if is_cupy(array) else array.__array_interface__["data"][0])


def call(name: str, known: dict[str, Any]) -> Any:
    """Call a function of ``libcudnn`` with those of ``known`` that it has as parameters."""
    function = getattr(libcudnn, name)
    return function(**{each: known[each] for each in inspect.signature(function).parameters})


def handle_of(case: Case) -> int:
    """A handle for the memory of the row's engine: on the host, what there is without a GPU."""
    return make_handle(None) if case.on_host else libcudnn.create()


def integers(values: Iterable[int]) -> Any:
    """A host array of C ints."""
    given = tuple(values)
    return (ctypes.c_int * len(given))(*given)


def tensor(dtype: str, dims: tuple[int, ...]) -> int:
    """A tensor descriptor of contiguous memory."""
    shape = integers(dims)
    strides = integers(math.prod(dims[axis + 1 :]) for axis in range(len(dims)))
    made: int = libcudnn.createTensorDescriptor()
    addresses = (ctypes.addressof(shape), ctypes.addressof(strides))
    libcudnn.setTensorNdDescriptor(made, TYPES[dtype], len(dims), *addresses)
    return made


class AddressedNetwork(OldNetwork):
    """The same network as descriptors and addresses.

    Attributes:
        known: arguments by name, those of forward at first; what is written is filled with NaN.
    """

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.handle = handle_of(case)
        self.rnn = libcudnn.createRNNDescriptor()
        self.describe_network()
        libcudnn.setRNNPaddingMode(self.rnn, int(self.padded))
        xp, dtype = case.xp, case.dtype
        output = (*self.x.shape[:-1], self.spec.output_size)
        nan = float("nan")
        self.y, self.dx = xp.full(output, nan, dtype), xp.full(self.x.shape, nan, dtype)
        assert self.hx is not None
        self.hy, self.dhx = (xp.full(self.hx.shape, nan, dtype) for _ in range(2))
        has_cell = self.cx is not None
        self.cy, self.dcx = (
            xp.full(self.hx.shape, nan, dtype) if has_cell else None for _ in range(2)
        )
        self.dw = xp.zeros(self.w.shape, dtype)
        self.reserve: Array | None = None
        state = tensor(dtype, self.hx.shape)
        weights = libcudnn.createFilterDescriptor()
        dims = integers(self.w.shape)
        libcudnn.setFilterNdDescriptor_v4(weights, TYPES[dtype], 0, 3, ctypes.addressof(dims))
        self._keep: list[Any] = []
        x, y = (self.sequences(each) for each in (self.spec.input_size, self.spec.output_size))
        self.known: dict[str, Any] = dict.fromkeys(IGNORED, 0) | {
            "handle": self.handle,
            "rnnDesc": self.rnn,
            "seqLength": self.steps,
        }
        for name, array, descriptor in (
            *((f"{d}x", getattr(self, f"{d}x"), x) for d in ("", "d")),
            *((f"{d}y", getattr(self, f"{d}y"), y) for d in ("", "d")),
            *((n, getattr(self, n), state) for n in ("hx", "hy", "dhx", "dhy")),
            *((n, getattr(self, n), state * has_cell) for n in ("cx", "cy", "dcx", "dcy")),
            *((n, getattr(self, n), weights) for n in ("w", "dw")),
        ):
            self.known |= {name: address_of(array), f"{name}Desc": descriptor}

    def describe_network(self) -> None:
        """``setRNNDescriptor_v6`` or ``_v5``, with a dropout descriptor whose ratio is 0."""
        self.dropout = libcudnn.createDropoutDescriptor()
        self.generator = self.case.xp.empty(libcudnn.dropoutGetStatesSize(self.handle), "uint8")
        given = (0.0, address_of(self.generator), self.generator.size, 1234)
        libcudnn.setDropoutDescriptor(self.dropout, self.handle, *given)
        known = {
            "handle": self.handle,
            "rnnDesc": self.rnn,
            "hiddenSize": self.spec.hidden_size,
            "numLayers": self.spec.num_layers,
            "dropoutDesc": self.dropout,
            "inputMode": int(self.spec.input_mode == "skip"),
            "direction": self.direction,
            "mode": self.mode,
            "algo": 0,
            "dataType": TYPES[self.case.dtype],
        }
        call(f"setRNNDescriptor_{self.case.options.get('version', 'v6')}", known)

    @property
    def steps(self) -> int:
        """T."""
        return self.x.shape[0] if self.padded else len(self.lengths)

    @property
    def batch_sizes(self) -> list[int]:
        """Of each step, as the calls without Ex want to know."""
        if self.padded:
            return [len(self.lengths)] * self.steps
        return [int(size) for size in self.lengths]

    def sequences(self, features: int) -> int:
        """What describes x or y: an RNN data descriptor, or a host array of a tensor for a step."""
        if not self.padded:
            return self.step_tensors(features)
        made: int = libcudnn.createRNNDataDescriptor()
        lengths = np.ascontiguousarray(self.lengths, np.int32)
        libcudnn.setRNNDataDescriptor(
            RNNDataDesc=made,
            dataType=TYPES[self.case.dtype],
            layout=0,
            maxSeqLength=self.steps,
            batchSize=len(lengths),
            vectorSize=features,
            seqLengthArray=address_of(lengths),
            paddingFill=0,
        )
        return made

    def step_tensors(self, features: int) -> int:
        """The address of a host array of tensor descriptors, one for each step."""
        made = [tensor(self.case.dtype, (size, features, 1)) for size in self.batch_sizes]
        array = (ctypes.c_size_t * len(made))(*made)
        self._keep.append(array)
        return ctypes.addressof(array)

    def run(self, name: str) -> None:
        """One of the eight calls."""
        call(name + "Ex" * self.padded, self.known)

    def train(self) -> None:
        """A training forward with a reserve of its size."""
        size = libcudnn.getRNNTrainingReserveSize(
            self.handle, self.rnn, self.steps, self.step_tensors(self.spec.input_size)
        )
        self.reserve = self.case.xp.zeros(size, "uint8")
        self.known |= {
            "reserveSpace": address_of(self.reserve),
            "reserveSpaceSizeInBytes": size,
        }
        self.run("RNNForwardTraining")
