"""The library's own calls for a workload, with nothing around them.

Descriptors and buffers are made once, and then it is ``cudnnRNNForward`` alone; in training also
``cudnnRNNBackwardData_v8``, zeroing dw, and ``cudnnRNNBackwardWeights_v8``. That is the least that
any user of this library pays, so what this package adds shows beside it. The same calls are also
captured as one CUDA graph, whose replay is one call.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final

from cudnn_compat.arrays import Array, load_cupy
from cudnn_compat.bench.timing import Call
from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.descriptors import Descriptor, rnn_data_descriptor, tensor_descriptor
from cudnn_compat.cudnn.library import load
from cudnn_compat.engines.cudnn.settings import (
    ALGO_CODES,
    DTYPE_CODES,
    LAYOUT_CODES,
    describe,
)
from cudnn_compat.spec import RNNSpec

__all__ = ["ALGORITHMS", "RawCalls", "RawHandle", "RawNetwork", "Replay"]

ALGORITHMS: Final = tuple(ALGO_CODES)


class RawHandle:
    """A handle of its own on a stream; a context, at whose end the handle is gone.

    The stream does not become CuPy's current one: what else is measured stays where it was.

    Args:
        stream: a CuPy stream; None makes one, which can be captured.
    """

    def __init__(self, stream: Any = None) -> None:
        self.xp = load_cupy()
        self.library = load()
        self.stream = self.xp.cuda.Stream(non_blocking=True) if stream is None else stream
        made = ctypes.c_void_p()
        self.library.cudnnCreate(ctypes.byref(made))
        self.address = made.value
        self.library.cudnnSetStream(self.address, self.stream.ptr)

    def __enter__(self) -> RawHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.stream.synchronize()
        self.library.cudnnDestroy(self.address)


class RawNetwork:
    """A spec with an algorithm, described to the library.

    Raises:
        LibraryError: the library refuses it, in its words.
    """

    def __init__(self, handle: RawHandle, spec: RNNSpec, algo: str, *, padded: bool, batch: int):
        self.spec = spec
        self.descriptor = describe(handle.library, spec, algo, padded=padded, dropout=None)
        if algo == "persist_dynamic":
            handle.library.cudnnBuildRNNDynamic(handle.address, self.descriptor, batch)


class RawCalls:
    """The calls for one shape.

    Args:
        layout: ``"time_major"`` or ``"packed"``.
        lengths: descending with ``"packed"``; None: all have ``steps``.
        w, x: device arrays; x with ``steps * batch`` rows.
        dy: gradient of y; with it the calls are those of a training step.
        hx, cx: initial states; None is zeros.

    Raises:
        LibraryError: the library refuses the shape.
    """

    def __init__(
        self,
        handle: RawHandle,
        network: RawNetwork,
        *,
        steps: int,
        batch: int,
        w: Array,
        x: Array,
        dy: Array | None = None,
        hx: Array | None = None,
        cx: Array | None = None,
        layout: str = "time_major",
        lengths: Sequence[int] | None = None,
    ) -> None:
        self._handle, self._network, self._layout = handle, network, layout
        self._library, self._address = handle.library, handle.address
        self.steps, self.batch, self.training = steps, batch, dy is not None
        self._mode = c.CUDNN_FWD_MODE_TRAINING if self.training else c.CUDNN_FWD_MODE_INFERENCE
        self.w, self.x, self.dy, self.hx, self.cx = w, x, dy, hx, cx
        spec, xp = network.spec, handle.xp

        def like(array: Array | None) -> Array | None:
            return None if array is None else xp.zeros(array.shape, array.dtype)

        self.y = xp.zeros((*x.shape[:-1], spec.output_size), x.dtype)
        self.hy = xp.zeros(spec.state_shape(batch), x.dtype)
        self.cy = xp.zeros(spec.cell_shape(batch), x.dtype) if spec.has_cell else None
        self._h = self._described(spec.state_shape(batch))
        self._c = self._described(spec.cell_shape(batch)) if spec.has_cell else None
        self.dx, self.dhx, self.dcx, self.dw = (
            like(array) if self.training else None for array in (x, self.hy, self.cy, w)
        )
        x_data, _ = self._describe_data([steps] * batch)  # no lengths take more than these
        workspace, reserve = self._sizes(x_data)
        self.workspace = xp.empty(max(workspace, 1), "uint8")
        self.reserve = xp.zeros(max(reserve, 1), "uint8") if self.training else None
        self.set_lengths(lengths if lengths is not None else [steps] * batch)
        xp.cuda.Device().synchronize()  # the arrays were filled on the current stream

    def _described(self, shape: tuple[int, ...]) -> Descriptor:
        return tensor_descriptor(self._library, DTYPE_CODES[self._network.spec.dtype], shape)

    def _describe_data(self, lengths: Sequence[int]) -> list[Descriptor]:
        """Descriptors of x and y."""
        spec, packed = self._network.spec, self._layout == "packed"
        return [
            rnn_data_descriptor(
                self._library,
                dtype=DTYPE_CODES[spec.dtype],
                layout=LAYOUT_CODES[self._layout],
                steps=max(lengths) if packed else self.steps,
                features=features,
                lengths=lengths,
            )
            for features in (spec.input_size, spec.output_size)
        ]

    def _sizes(self, x_data: Descriptor) -> tuple[int, int]:
        workspace, reserve = ctypes.c_size_t(), ctypes.c_size_t()
        self._library.cudnnGetRNNTempSpaceSizes(
            self._address,
            self._network.descriptor,
            self._mode,
            x_data,
            ctypes.byref(workspace),
            ctypes.byref(reserve),
        )
        return workspace.value, reserve.value

    def set_lengths(self, lengths: Sequence[int]) -> None:
        """Describe other lengths; none may be longer than ``steps``.

        The arguments of all calls are put together here, so that a call is nothing but itself.
        """
        x, y = self._describe_data(lengths)
        network = (self._address, self._network.descriptor)
        spaces = (self.workspace.nbytes, _at(self.workspace), *_space(self.reserve))
        weights = (self.w.nbytes, _at(self.w))
        h, cell = (self._h, _at(self.hx)), (self._c, _at(self.cx))
        data = (x, _at(self.x), y, _at(self.y))
        states = (*h, _at(self.hy), *cell, _at(self.cy))
        self._forward = (*network, self._mode, None, *data, *states, *weights, *spaces)
        if self.training:
            gradients = (y, _at(self.y), _at(self.dy), x, _at(self.dx))
            ends = (*h, None, _at(self.dhx), *cell, None, _at(self.dcx))
            self._backward_data = (*network, None, *gradients, *ends, *weights, *spaces)
            given = (x, _at(self.x), *h, y, _at(self.y))
            total = (c.CUDNN_WGRAD_MODE_ADD, None, *given, self.w.nbytes, _at(self.dw))
            self._backward_weights = (*network, *total, *spaces)

    def step(self) -> None:
        """All calls of the workload."""
        self.forward()
        if self.training:
            self.backward_data()
            self.backward_weights()

    def forward(self) -> None:
        """``cudnnRNNForward``."""
        self._library.cudnnRNNForward(*self._forward)

    def backward_data(self) -> None:
        """``cudnnRNNBackwardData_v8``."""
        self._library.cudnnRNNBackwardData_v8(*self._backward_data)

    def backward_weights(self) -> None:
        """Zero dw, then ``cudnnRNNBackwardWeights_v8``, which adds."""
        assert self.dw is not None
        self.dw.data.memset_async(0, self.dw.nbytes, self._handle.stream)
        self._library.cudnnRNNBackwardWeights_v8(*self._backward_weights)

    def following(self, lengths: Callable[[], Sequence[int] | None]) -> Call:
        """:meth:`step`, with the next lengths before it where there are any."""

        def call() -> None:
            drawn = lengths()
            if drawn is not None:
                self.set_lengths(drawn)
            self.step()

        return call


class Replay:
    """:meth:`RawCalls.step` as a CUDA graph; calling it replays it on the handle's stream.

    The first calls are made before, outside of the graph, as the library wants it.
    """

    def __init__(self, handle: RawHandle, calls: RawCalls) -> None:
        for _ in range(2):
            calls.step()
        handle.stream.synchronize()
        handle.stream.begin_capture()
        try:
            calls.step()
        except BaseException:
            # The stream would stay in capture; the error of the call is the one to know.
            with contextlib.suppress(Exception):
                handle.stream.end_capture()
            raise
        self._graph = handle.stream.end_capture()
        self._calls, self._stream = calls, handle.stream

    def __call__(self) -> None:
        """Replay it."""
        self._graph.launch(self._stream)


def _at(array: Array | None) -> int | None:
    return None if array is None else array.data.ptr


def _space(array: Array | None) -> tuple[int, int | None]:
    return (0, None) if array is None else (array.nbytes, array.data.ptr)
