"""What no time can be below: arithmetic, memory, and the steps that wait for each other.

The three are lower bounds of a workload on a machine, whoever computes it:

- *arithmetic*: the matrix products over the peak of the tensor cores;
- *memory*: x, w and y (in training also dy, dx and dw) moved once, over the bandwidth;
- *exchange*: one step needs h of the step before from every multiprocessor that shares the
  recurrent weights, so steps times the time of one such exchange. Layers can run a step behind
  each other and directions side by side, which the bound allows for.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.bench.grid import Workload
from cudnn_compat.weights import weight_layout

__all__ = ["MACHINES", "Floor", "Machine", "floor_of", "floors_of", "machine", "products"]


@dataclasses.dataclass(frozen=True)
class Machine:
    """A GPU's measured ceilings.

    Attributes:
        flops: by dtype, multiplications and additions a second in matrix products.
        bandwidth: bytes a second between the GPU and its memory, read and written together.
        exchange: (multiprocessors, µs): how long one step's exchange of h takes between so many at
            most; ascending.
        on_chip: bytes of registers and shared memory of one multiprocessor, for weights.
    """

    flops: dict[str, float]
    bandwidth: float
    exchange: tuple[tuple[int, float], ...]
    on_chip: int


MACHINES: Final = {
    # Measured on one H200: bfloat16 products of 790 TFLOP/s, copies of 4.3 TB/s. TF32 is half of
    # bfloat16 on this GPU (its data sheet: 495 and 989), float64 67 TFLOP/s (data sheet). The
    # exchange, measured: within one multiprocessor; a cluster of 2, 4, 8, 16 blocks, by a barrier
    # and 1 KB from each to all through distributed shared memory; the whole grid through L2. On the
    # chip: 227 KB of shared memory and 256 KB of registers each (NVIDIA's guide to the GPU).
    "H200": Machine(
        flops={"float16": 790e12, "bfloat16": 790e12, "float32": 395e12, "float64": 67e12},
        bandwidth=4.3e12,
        exchange=((1, 0.40), (2, 0.42), (4, 0.52), (8, 0.73), (16, 1.15), (132, 1.37)),
        on_chip=(227 + 256) << 10,
    ),
}


def machine(name: str | None) -> Machine | None:
    """The GPU of that name; None where nothing was measured on its kind."""
    return next((found for part, found in MACHINES.items() if name and part in name), None)


@dataclasses.dataclass(frozen=True)
class Floor:
    """A lower bound in µs, and what sets it."""

    us: float
    by: str


def floors_of(workload: Workload, mode: str, on: Machine) -> dict[str, float]:
    """All three bounds in µs, by name."""
    return {
        "arithmetic": 1e6 * products(workload, mode) / on.flops[workload.dtype],
        "memory": 1e6 * _bytes(workload, mode) / on.bandwidth,
        "exchange": _chain(workload, mode) * _exchange(workload, on),
    }


def floor_of(workload: Workload, mode: str, on: Machine) -> Floor:
    """The largest of the bounds."""
    floors = floors_of(workload, mode, on)
    by = max(floors, key=floors.__getitem__)
    return Floor(floors[by], by)


def products(workload: Workload, mode: str) -> float:
    """Multiplications and additions: every weight of a matrix meets every row once.

    In training twice more: for the gradients of data, and for those of weights.
    """
    layout = weight_layout(workload.spec())
    matrices = sum(
        slot.size
        for part in layout.pseudo_layers
        for slot in (part.weight_ih, part.weight_hh, part.weight_hr)
        if slot is not None
    )
    return 2 * matrices * workload.rows * (3 if mode == "training" else 1)


def _bytes(workload: Workload, mode: str) -> float:
    """What has to come from memory or go there, once each."""
    spec = workload.spec()
    elements = workload.rows * (spec.input_size + spec.output_size) + weight_layout(spec).size
    if mode == "training":
        elements *= 2  # dx, dy and dw are as large
    return elements * numpy_dtype(workload.dtype).itemsize


def _chain(workload: Workload, mode: str) -> float:
    """Steps that wait for each other: forward, and in training backward as well.

    Of lengths that are drawn it is the longest that counts: of B uniform draws, on average.
    """
    steps: float = workload.steps
    if workload.lengths is not None:
        shortest, longest = workload.lengths
        steps = shortest + (longest - shortest) * workload.batch / (workload.batch + 1)
    return (steps + workload.layers - 1) * (2 if mode == "training" else 1)


def _exchange(workload: Workload, on: Machine) -> float:
    """µs of a step's exchange between as few multiprocessors as hold the recurrent weights."""
    part = weight_layout(workload.spec()).pseudo_layers[0]
    size = part.weight_hh.size + (part.weight_hr.size if part.weight_hr else 0)
    needed = math.ceil(size * numpy_dtype(workload.dtype).itemsize / on.on_chip)
    for multiprocessors, us in on.exchange:
        if needed <= multiprocessors:
            return us
    return on.exchange[-1][1]
