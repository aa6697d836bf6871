"""Networks as callers of the dialect write them: with arrays, and with plain addresses."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import numpy as np

from cudnn_compat.legacy.cupy import cudnn, libcudnn
from cudnn_compat.legacy.cupy.handles import make_handle
from tests import golden
from tests.engine import Engine
from tests.golden import Case

MODES = {"relu": 0, "tanh": 1, "lstm": 2, "gru": 3}
TYPES = {"float32": 0, "float64": 1, "float16": 2}
RESULTS = ("y", "hy", "cy", "dx", "dhx", "dcx", "dw")

CASES = [case for case in golden.cases() if case.name.startswith("legacy:")]


@dataclasses.dataclass
class High:
    """A recorded case through ``cupy.cudnn``; ``step`` also gives a different seed or ratio."""

    engine: Engine
    case: Case
    seed: int = 1234

    def __post_init__(self) -> None:
        case = self.case
        self.ex = "" if case.batch_sizes is not None else "_ex"
        self.lengths: Any = case.lengths if self.ex else case.batch_sizes
        self.states = cudnn.DropoutStates(None, self.seed)
        self.states.set_dropout_ratio(case.spec.dropout)
        put = self.engine.put
        self.how = (int(case.spec.bidirectional), MODES[case.spec.cell])
        self.w = put(case.get("w").reshape(-1, 1, 1))
        self.x, self.hx, self.cx = (put(case.get(name)) for name in ("x", "hx", "cx"))

    def call(self, name: str, *arguments: Any) -> Any:
        return getattr(cudnn, name + self.ex)(self.states, *self.how, *arguments)

    def inference(self) -> dict[str, Any]:
        given = (self.hx, self.cx, self.w, self.x, self.lengths)
        return self.named(self.call("rnn_forward_inference", *given), ("hy", "cy", "y"))

    def training(self) -> dict[str, Any]:
        given = (self.hx, self.cx, self.w, self.x, self.lengths)
        self.reserve, *outs = self.call("rnn_forward_training", *given)
        self.y = outs[2]
        return self.named(outs, ("hy", "cy", "y"))

    def backward(self) -> dict[str, Any]:
        dy, dhy, dcy = (self.engine.put(self.case.get(name)) for name in ("dy", "dhy", "dcy"))
        given = (self.hx, self.cx, self.w, self.x, self.y, self.reserve, dhy, dcy, dy)
        grads = self.call("rnn_backward_data", *given, self.lengths)
        named = self.named(grads, ("dhx", "dcx", "dx"))
        given = (self.x, self.hx, self.y, self.w, self.reserve, self.lengths)
        dw = self.call("rnn_backward_weights", *given)
        assert dw.shape == self.w.shape
        return named | {"dw": self.engine.get(dw).reshape(-1)}

    def named(self, values: Any, names: tuple[str, ...]) -> dict[str, Any]:
        return dict(zip(names, map(self.engine.get, values), strict=True))


def handle_of(engine: Engine) -> int:
    """A handle for the engine's memory; what ``create()`` gives on a machine without a GPU."""
    return make_handle(None) if engine.on_host else libcudnn.create()


def at(array: Any) -> int:
    """The address of an array; 0 of None."""
    if array is None:
        return 0
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def tensor(dtype: str, *dims: int, strides: tuple[int, ...] | None = None) -> int:
    """A tensor descriptor, made with ctypes arrays as old code did."""
    made = libcudnn.createTensorDescriptor()
    if strides is None:
        strides = tuple(int(np.prod(dims[axis + 1 :])) for axis in range(len(dims)))
    ints = ctypes.c_int * len(dims)
    shape, steps = ints(*dims), ints(*strides)
    libcudnn.setTensorNdDescriptor(
        made, TYPES[dtype], len(dims), ctypes.addressof(shape), ctypes.addressof(steps)
    )
    return made


def filter_of(dtype: str, size: int) -> int:
    made, dims = libcudnn.createFilterDescriptor(), (ctypes.c_int * 3)(size, 1, 1)
    libcudnn.setFilterNdDescriptor_v4(made, TYPES[dtype], 0, 3, ctypes.addressof(dims))
    return made


def step_tensors(dtype: str, sizes: Any, features: int) -> Any:
    """A host array of tensor descriptors, one for each step."""
    made = [tensor(dtype, size, features, 1) for size in sizes]
    return (ctypes.c_size_t * len(made))(*made)


def sequence_data(dtype: str, layout: int, steps: int, lengths: Any, features: int) -> int:
    made, host = libcudnn.createRNNDataDescriptor(), np.asarray(lengths, np.int32)
    libcudnn.setRNNDataDescriptor(
        made, TYPES[dtype], layout, steps, len(host), features, host.ctypes.data, 0
    )
    return made


@dataclasses.dataclass
class Low:
    """A recorded case through ``cupy.cuda.cudnn``: descriptors and addresses."""

    engine: Engine
    case: Case
    seed: int = 1234

    def __post_init__(self) -> None:
        case, spec, engine = self.case, self.case.spec, self.engine
        self.handle, self.dtype = handle_of(engine), spec.dtype
        self.basic = case.batch_sizes is not None
        self.dropout = libcudnn.createDropoutDescriptor()
        memory = engine.xp.empty(libcudnn.dropoutGetStatesSize(self.handle), "uint8")
        libcudnn.setDropoutDescriptor(
            self.dropout, self.handle, spec.dropout, at(memory), memory.size, self.seed
        )
        self.rnn = libcudnn.createRNNDescriptor()
        libcudnn.setRNNDescriptor_v6(
            self.handle,
            self.rnn,
            spec.hidden_size,
            spec.num_layers,
            self.dropout,
            0,
            int(spec.bidirectional),
            MODES[spec.cell],
            0,
            TYPES[self.dtype],
        )
        self.w = engine.put(case.get("w"))
        self.x, self.hx, self.cx = (engine.put(case.get(name)) for name in ("x", "hx", "cx"))
        self.y = self.empty((*self.x.shape[:-1], spec.output_size))
        batch = self.hx.shape[1]
        self.w_desc = filter_of(self.dtype, self.w.size)
        self.h_desc = tensor(self.dtype, *spec.state_shape(batch))
        self.c_desc = self.h_desc if spec.has_cell else 0
        sizes = case.batch_sizes if self.basic else [batch] * self.x.shape[0]
        self.steps = len(sizes)
        self.x_steps = step_tensors(self.dtype, sizes, spec.input_size)
        self.y_steps = step_tensors(self.dtype, sizes, spec.output_size)
        if self.basic:
            self.first: tuple[Any, ...] = (self.handle, self.rnn, self.steps)
            self.x_desc, self.y_desc = map(ctypes.addressof, (self.x_steps, self.y_steps))
            self.attention: tuple[int, ...] = ()
        else:
            self.first = (self.handle, self.rnn)
            libcudnn.setRNNPaddingMode(self.rnn, 1)
            self.x_desc, self.y_desc = (
                sequence_data(self.dtype, 0, self.steps, case.lengths, features)
                for features in (spec.input_size, spec.output_size)
            )
            self.attention = (0,) * 8

    def empty(self, shape: tuple[int, ...]) -> Any:
        made = self.engine.xp.empty(shape, self.dtype)
        made.fill(np.nan)  # whatever is not written shows
        return made

    def call(self, name: str, *arguments: Any) -> None:
        getattr(libcudnn, name if self.basic else f"{name}Ex")(*self.first, *arguments)

    def forward(self, name: str, *reserve: int) -> dict[str, Any]:
        self.hy = self.empty(self.hx.shape)
        self.cy = self.empty(self.hx.shape) if self.case.spec.has_cell else None
        self.call(
            name,
            self.x_desc,
            at(self.x),
            self.h_desc,
            at(self.hx),
            self.c_desc,
            at(self.cx),
            self.w_desc,
            at(self.w),
            self.y_desc,
            at(self.y),
            self.h_desc,
            at(self.hy),
            self.c_desc,
            at(self.cy),
            *self.attention,
            0,
            0,
            *reserve,
        )
        names = {"y": self.y, "hy": self.hy, "cy": self.cy}
        return {key: self.engine.get(value) for key, value in names.items()}

    def inference(self) -> dict[str, Any]:
        return self.forward("RNNForwardInference")

    def training(self) -> dict[str, Any]:
        size = libcudnn.getRNNTrainingReserveSize(
            self.handle, self.rnn, self.steps, ctypes.addressof(self.x_steps)
        )
        # A little more than needed: old code kept one buffer for several shapes.
        self.reserve = self.engine.xp.zeros(size + 64, "uint8")
        return self.forward("RNNForwardTraining", at(self.reserve), self.reserve.size)

    def backward(self) -> dict[str, Any]:
        case, spec = self.case, self.case.spec
        dy, dhy, dcy = (self.engine.put(case.get(name)) for name in ("dy", "dhy", "dcy"))
        dx, dhx = self.empty(self.x.shape), self.empty(self.hx.shape)
        dcx = self.empty(self.hx.shape) if spec.has_cell else None
        dw = self.engine.xp.zeros(self.w.shape, self.dtype)
        reserve = (at(self.reserve), self.reserve.size)
        ignored = () if self.basic else (0, 0)
        self.call(
            "RNNBackwardData",
            self.y_desc,
            at(self.y),
            self.y_desc,
            at(dy),
            *ignored,
            self.h_desc,
            at(dhy),
            self.c_desc,
            at(dcy),
            self.w_desc,
            at(self.w),
            self.h_desc,
            at(self.hx),
            self.c_desc,
            at(self.cx),
            self.x_desc,
            at(dx),
            self.h_desc,
            at(dhx),
            self.c_desc,
            at(dcx),
            *ignored,
            0,
            0,
            *reserve,
        )
        self.call(
            "RNNBackwardWeights",
            self.x_desc,
            at(self.x),
            self.h_desc,
            at(self.hx),
            self.y_desc,
            at(self.y),
            0,
            0,
            self.w_desc,
            at(dw),
            *reserve,
        )
        named = {"dx": dx, "dhx": dhx, "dcx": dcx, "dw": dw}
        return {key: self.engine.get(value) for key, value in named.items()}
