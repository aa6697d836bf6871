"""The sides of a comparison: this package, and PyTorch's modules with the same weights.

Both get the same arrays, have the same precision (TF32 is allowed for float32 on both) and work on
the default stream. With new lengths in every call PyTorch packs and unpacks, as its users must.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cudnn_compat import v2
from cudnn_compat.arrays import Array, load_cupy, numpy_dtype
from cudnn_compat.bench.grid import MODES, Workload
from cudnn_compat.bench.timing import Call
from cudnn_compat.v2 import convert

__all__ = ["CLOSE", "Inputs", "Side", "difference", "ours", "theirs"]

LENGTHS = 64
"""Lengths that are drawn beforehand; calls take one after the other."""

CLOSE = {"float64": 1e-6, "float32": 5e-2, "float16": 5e-2, "bfloat16": 3e-1}
"""Largest difference of outputs between the two sides; TF32, and weights of PyTorch's size."""


@dataclasses.dataclass(frozen=True)
class Side:
    """What one library does for a workload.

    Attributes:
        calls: by mode.
        output: y in float32 on the host, of the first lengths.
        choice: by mode, in words, which way the library took in the last call.
    """

    calls: dict[str, Call]
    output: Callable[[], np.ndarray]
    choice: Callable[[str], str] = lambda mode: ""


class Inputs:
    """Arrays on the host that all sides start from, and the lengths of each call."""

    def __init__(self, workload: Workload) -> None:
        rng = np.random.default_rng(0)
        self.workload = workload
        self.spec = workload.spec()
        self.dtype = numpy_dtype(workload.dtype)
        self.w = v2.init_weights(self.spec, seed=0)
        rows = (workload.steps, workload.batch)
        self.x = rng.standard_normal((*rows, workload.input), dtype=np.float32)
        self.dy = rng.standard_normal((*rows, self.spec.output_size), dtype=np.float32)
        self.lengths = [workload.draw_lengths(rng) for _ in range(LENGTHS)]

    def on(self, xp: Any) -> tuple[Any, Any, Any]:
        """``w, x, dy`` in the workload's dtype, as arrays of the module ``xp``."""
        w, x, dy = (xp.asarray(each.astype(self.dtype)) for each in (self.w, self.x, self.dy))
        return w, x, dy

    def counter(self) -> Callable[[], list[int] | None]:
        """A function that gives the lengths of call after call."""
        calls = 0

        def following() -> list[int] | None:
            nonlocal calls
            calls += 1
            return self.lengths[calls % LENGTHS]

        return following


def ours(inputs: Inputs, engine: str) -> Side:
    """This package, on the engine ``"numpy"`` or ``"cudnn"``."""
    xp = load_cupy() if engine == "cudnn" else np
    spec = inputs.spec
    w, x, dy = inputs.on(xp)
    following, choices = inputs.counter(), dict.fromkeys(MODES, "")

    def inference() -> Any:
        out = v2.rnn_forward(spec, w, x, lengths=following())
        choices["inference"] = out.algo
        return out

    def training() -> Any:
        out = v2.rnn_forward(spec, w, x, lengths=following(), training=True)
        choices["training"] = out.algo
        return v2.rnn_backward(out, dy)

    if engine == "cudnn":
        for call in (inference, training):
            _settle(call, inputs.workload)

    def output() -> np.ndarray:
        y: Array = v2.rnn_forward(spec, w, x, lengths=inputs.lengths[0]).y
        host = y.get() if engine == "cudnn" else y
        return np.asarray(host, dtype=np.float32)

    return Side({"inference": inference, "training": training}, output, choices.__getitem__)


_PATIENCE = 15.0
"""Seconds: kernels that are new to a machine take some to compile."""


def _settle(call: Call, workload: Workload) -> None:
    """Call until ``algo="auto"`` has found what is fastest; what is timed is what stays.

    Plans of other workloads do not matter: some are called too seldom to be settled.
    """
    cuda = load_cupy().cuda
    spec, shape = workload.spec(), (workload.steps, workload.batch)

    def settled() -> bool:
        kept = v2.plans()
        mine = [one for one in kept if one.spec == spec and (one.steps, one.batch) == shape]
        return all(plan.settled for plan in mine)

    end = time.perf_counter() + _PATIENCE
    call()
    while time.perf_counter() < end and not settled():
        call()
        cuda.get_current_stream().synchronize()


def theirs(inputs: Inputs, device: str) -> Side:
    """PyTorch's module with the same weights, on ``"cpu"`` or ``"cuda"``.

    Raises:
        ImportError: PyTorch is not installed.
    """
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    torch.backends.cudnn.allow_tf32 = True
    dtype = getattr(torch, inputs.workload.dtype)
    module = _module(torch, inputs, dtype, device)
    x, dy = (torch.tensor(a, dtype=dtype, device=device) for a in (inputs.x, inputs.dy))
    following = inputs.counter()

    def run(data: Any, lengths: list[int] | None) -> Any:
        if lengths is None:
            return module(data)[0]
        packed = pack_padded_sequence(data, torch.tensor(lengths), enforce_sorted=False)
        return pad_packed_sequence(module(packed)[0], total_length=inputs.workload.steps)[0]

    def inference() -> Any:
        with torch.inference_mode():
            return run(x, following())

    def training() -> Any:
        module.zero_grad(set_to_none=True)
        leaf = x.detach().requires_grad_(True)
        run(leaf, following()).backward(dy)
        return leaf.grad

    def output() -> np.ndarray:
        with torch.inference_mode():
            y: np.ndarray = run(x, inputs.lengths[0]).float().cpu().numpy()
        return y

    return Side({"inference": inference, "training": training}, output)


def _module(torch: Any, inputs: Inputs, dtype: Any, device: str) -> Any:
    spec = inputs.spec
    options: dict[str, Any] = {"proj_size": spec.proj_size or 0} if spec.has_cell else {}
    if spec.num_gates == 1:
        options["nonlinearity"] = spec.cell
    kinds = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
    module = kinds.get(spec.cell, torch.nn.RNN)(
        spec.input_size,
        spec.hidden_size,
        spec.num_layers,
        bidirectional=spec.bidirectional,
        device=device,
        dtype=dtype,
        **options,
    )
    state = convert.to_torch(spec, inputs.w)
    module.load_state_dict({n: torch.tensor(a.astype(np.float32)) for n, a in state.items()})
    return module


def difference(workload: Workload, ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of two outputs.

    Raises:
        ArithmeticError: it is too large for times to mean anything.
    """
    largest = float(np.abs(ours.astype(np.float64) - theirs).max())
    if not largest <= CLOSE[workload.dtype]:  # a NaN is no small difference
        raise ArithmeticError(
            f"the outputs of the two sides differ by {largest:.1e}, which is more than "
            f"{CLOSE[workload.dtype]:.0e}: nothing is timed"
        )
    return largest
