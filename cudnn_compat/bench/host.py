"""What the host spends on an old call of one step, beside the library's bare call for the same."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from cudnn_compat import legacy
from cudnn_compat.arrays import load_cupy
from cudnn_compat.bench.raw import RawCalls, RawHandle, RawNetwork
from cudnn_compat.bench.timing import Call, undisturbed
from cudnn_compat.legacy.cupy import cudnn, libcudnn
from cudnn_compat.spec import RNNSpec

__all__ = ["ALLOWED_US", "CALLS", "rows_of_call"]

ALLOWED_US: Final = 30
"""What an old call may cost the host more than the bare one."""

CELLS: Final = {
    "tanh": legacy.CUDNN_RNN_TANH,
    "gru": legacy.CUDNN_GRU,
    "lstm": legacy.CUDNN_LSTM,
}
SHAPES: Final = ((1, 16, 32), (64, 256, 256))
"""Batch, input, hidden."""

CALLS: Final = ("legacy.forward", "cupy.cudnn.rnn_forward_inference")

TURN: Final = 8
TURNS: Final = 120

Row = dict[str, Any]


def rows_of_call(name: str, turns: int = TURNS) -> list[Row]:
    """A row for each cell and shape: medians of the host's µs, and of the differences."""
    rows = []
    for cell in CELLS:
        for batch, inputs, hidden in SHAPES:
            spec = RNNSpec(cell, inputs, hidden, math="full", algo="standard")
            about = {"call": name, "cell": cell, "batch": batch, "input": inputs, "hidden": hidden}
            try:
                with _quietly(), undisturbed():
                    rows.append(about | _measured(name, spec, batch, turns))
            except Exception as error:  # the other shapes are still worth measuring
                rows.append(about | {"error": f"{type(error).__name__}: {error}"})
    return rows


def _measured(name: str, spec: RNNSpec, batch: int, turns: int) -> Row:
    xp = load_cupy()
    stream = xp.cuda.get_current_stream()
    arrays = _Arrays(spec, batch, xp)
    old = (_legacy if name == CALLS[0] else _dialect)(arrays)
    layout = "time_major" if name == CALLS[0] else "packed"
    with RawHandle(stream) as handle:
        network = RawNetwork(handle, spec, "standard", padded=layout != "packed", batch=batch)
        bare = RawCalls(
            handle,
            network,
            steps=1,
            batch=batch,
            w=arrays.w,
            x=arrays.x,
            hx=arrays.hx,
            cx=arrays.cx,
            layout=layout,
        ).forward
        times = np.array(list(_in_turns(old, bare, stream, turns)))
    call, alone = np.median(times, axis=0)
    more = float(np.median(times[:, 0] - times[:, 1]))
    return {
        "call_us": float(call),
        "bare_us": float(alone),
        "more_us": more,
        "allowed_us": ALLOWED_US,
        "met": more <= ALLOWED_US,
    }


def _in_turns(old: Call, bare: Call, stream: Any, turns: int) -> Iterator[tuple[float, float]]:
    """Host µs of both, turn by turn. The GPU is idle before each, so that no call waits for it."""
    for number in range(-10, turns):
        times = {}
        for call in (old, bare) if number % 2 else (bare, old):
            stream.synchronize()
            start = time.perf_counter_ns()
            for _ in range(TURN):
                call()
            times[call] = (time.perf_counter_ns() - start) / TURN / 1000
        if number >= 0:
            yield times[old], times[bare]


class _Arrays:
    """The same step for all."""

    def __init__(self, spec: RNNSpec, batch: int, xp: Any) -> None:
        from cudnn_compat import v2

        rng = np.random.default_rng(0)

        def draw(*shape: int) -> Any:
            return xp.asarray(rng.uniform(-0.5, 0.5, shape).astype("float32"))

        self.spec, self.batch, self.xp = spec, batch, xp
        self.w = draw(v2.weight_size(spec))
        self.x = draw(batch, spec.input_size)
        self.hx = draw(*spec.state_shape(batch))
        self.cx = draw(*spec.cell_shape(batch)) if spec.has_cell else None


def _legacy(arrays: _Arrays) -> Call:
    spec = arrays.spec
    desc = legacy.RNNDesc(CELLS[spec.cell], spec.input_size, spec.hidden_size, xp=arrays.xp)
    desc.params[...] = arrays.w
    given = [array[0].T for array in (arrays.hx, arrays.cx) if array is not None]
    x = arrays.x.T
    return lambda: legacy.forward(desc, x, *given)


def _dialect(arrays: _Arrays) -> Call:
    states = cudnn.DropoutStates(None, 0)
    mode = CELLS[arrays.spec.cell]
    given = (states, libcudnn.CUDNN_UNIDIRECTIONAL, mode, arrays.hx, arrays.cx)
    w, x, lengths = arrays.w.reshape(-1, 1, 1), arrays.x, [arrays.batch]
    return lambda: cudnn.rnn_forward_inference(*given, w, x, lengths)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """The calls are old on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", legacy.LegacyAPIWarning)
        yield
