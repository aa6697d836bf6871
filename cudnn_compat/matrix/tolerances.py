"""How far results may be from an exact evaluation: the one table that tests and the matrix read.

The numbers are largest absolute differences, for data and weights of unit scale and networks as
small as those of the tests (up to about three layers, a few hundred rows, tens of features).
What was measured on a GPU, over random networks: ``scripts/measure_tolerances.py``, and
``docs/records/2026-11-30-tolerances-nvidia-h200.json``: STANDARD used half of a bound at most;
other networks came nearer, as told below. Rounding grows with the size of the values and with the
number of terms in a sum, so that a network of thousands of steps, or values in the hundreds, needs
a bound of its own.
"""

from __future__ import annotations

from typing import Final

from cudnn_compat.errors import ArgumentError

__all__ = ["kink_distance", "tolerance"]

_FLOAT64: Final = (1e-12, 1e-12)
_FLOAT32: Final = (2e-5, 2e-5)

_TENSOR_FLOAT: Final = (2e-2, 5e-2)
"""10 bits behind the point in the factors of a product, sums in float32. cuDNN 9.19 on an H200
differed from full float32 by up to 2e-2 in y and 4.5e-2 in dw. Float16 inside float32 keeps as
many bits."""

_QUICK_TANH: Final = (1e-3, 1e-3)
"""The persistent kernels of cuDNN approximate tanh, in float32 and whatever the math. With
``math="full"`` they were up to 4.4e-4 from exact on an H200, STANDARD up to 2e-5."""

_FLOAT16: Final = (2e-2, 2e-2)
"""Results (and, in cuDNN, what passes from layer to layer) rounded to 10 bits behind the point.
The recorded outputs are up to 7e-3 from exact, the recorded weight gradients, made with float16
arithmetic, up to 1.1e-2."""

_BFLOAT16: Final = (1.6e-1, 1.6e-1)
"""Rounded like float16 but to 7 bits, that is 8 times as coarsely."""

_TABLE: Final = {
    ("numpy", "float64", "default"): _FLOAT64,
    ("numpy", "float64", "full"): _FLOAT64,
    ("numpy", "float32", "default"): _FLOAT32,
    ("numpy", "float32", "full"): _FLOAT32,
    ("numpy", "float16", "default"): _FLOAT16,
    ("numpy", "float16", "full"): _FLOAT16,
    ("numpy", "bfloat16", "default"): _BFLOAT16,
    ("numpy", "bfloat16", "full"): _BFLOAT16,
    ("cudnn", "float64", "default"): _FLOAT64,
    ("cudnn", "float64", "full"): _FLOAT64,
    ("cudnn", "float32", "default"): _TENSOR_FLOAT,
    ("cudnn", "float32", "full"): _FLOAT32,
    ("cudnn", "float32", "half"): _TENSOR_FLOAT,
    ("cudnn", "float16", "default"): _FLOAT16,
    ("cudnn", "float16", "full"): _FLOAT16,
    ("cudnn", "float16", "half"): _FLOAT16,
    ("cudnn", "bfloat16", "default"): _BFLOAT16,
    ("cudnn", "bfloat16", "full"): _BFLOAT16,
}
"""(engine, dtype, math) to bounds of (outputs, gradients)."""

_FLOAT32_CLIP: Final = 1e-7
"""cuDNN takes the bounds of a clip as float32, which moves them by up to 6e-8 of their size."""


def tolerance(
    dtype: str,
    math: str = "default",
    *,
    engine: str = "numpy",
    algo: str = "auto",
    clip: bool = False,
    what: str = "output",
) -> float:
    """The largest absolute difference from an exact evaluation that is allowed.

    Args:
        dtype: the spec's dtype. Results are compared with an evaluation of the same, already
            rounded, arguments.
        math: the spec's ``math``.
        engine: who computed: ``"numpy"``, or ``"cudnn"``, also for recorded results of that
            library. With ``"cudnn"``, float32 and ``math="default"`` the bound is that of TF32.
        algo: the algorithm, where the spec names one or a result says so; ``"auto"`` chooses
            STANDARD where ``math="full"``.
        clip: whether the spec has a clip.
        what: ``"output"`` (y, hy, cy) or ``"gradient"`` (dx, dhx, dcx, dw).

    Raises:
        ArgumentError: this combination is not computed by that engine, or ``what`` is unknown.
    """
    if what not in ("output", "gradient"):
        raise ArgumentError(f"what is {what!r}; wanted 'output' or 'gradient'")
    bounds = _TABLE.get((engine, dtype, math))
    if bounds is None:
        raise ArgumentError(f"no tolerance for engine={engine!r}, dtype={dtype!r}, math={math!r}")
    if engine == "cudnn" and bounds is _FLOAT32 and algo.startswith("persist"):
        bounds = _QUICK_TANH
    bound = bounds[what == "gradient"]
    return max(bound, _FLOAT32_CLIP) if clip and engine == "cudnn" else bound


_KINK: Final = {
    ("numpy", "float64"): 1e-9,
    ("numpy", "float32"): 1e-4,
    ("numpy", "float16"): 1e-4,
    ("numpy", "bfloat16"): 1e-4,
    ("cudnn", "float64"): 1e-9,
    ("cudnn", "float32"): 1e-2,
    ("cudnn", "float16"): 1e-2,
    ("cudnn", "bfloat16"): 2e-2,
}
"""NumPy computes the short dtypes in float32; cuDNN rounds what passes from step to step."""


def kink_distance(
    dtype: str, math: str = "default", *, engine: str = "numpy", clip: bool = False
) -> float:
    """How near to where a relu or a clip bends a value may come to the other side by rounding.

    Nearer than this either gradient is right, so that there is nothing to compare.

    Args:
        dtype, math, engine, clip: as for :func:`tolerance`.
    """
    if engine == "cudnn" and dtype == "float32" and math == "full":
        return 1e-4
    distance = _KINK[engine, dtype]
    if math == "half":
        return 2 * distance
    return max(distance, 10 * _FLOAT32_CLIP) if clip and engine == "cudnn" else distance
