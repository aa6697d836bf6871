"""Which engine serves a call: the arrays' device decides, or the caller names one."""

from __future__ import annotations

import functools

from cudnn_compat.arrays import Array, is_cupy
from cudnn_compat.checking import check_name
from cudnn_compat.engines.interface import AnyEngine
from cudnn_compat.errors import UnsupportedError

__all__ = ["ENGINES", "check_engine", "choose_engine"]

ENGINES = ("numpy", "cudnn")
"""Names that ``engine=`` takes."""

_NO_CUDNN = (
    "the cuDNN engine is not part of this release of cudnn_compat, so CuPy arrays cannot be "
    "served: pass NumPy arrays (cupy.asnumpy(…)) to the NumPy engine"
)


def choose_engine(name: str | None, w: Array) -> AnyEngine:
    """The engine called ``name``, or the one for the device that ``w`` is on.

    Raises:
        ArgumentError: there is no engine of that name.
        UnsupportedError: that engine cannot serve these arrays; says what to do.
    """
    on_gpu = is_cupy(w)
    if name is None and not on_gpu:
        return numpy_engine()
    check_engine(name)
    if name == "numpy":
        if on_gpu:
            raise UnsupportedError(
                "engine='numpy' computes on the host and w is a CuPy array; "
                "pass NumPy arrays (cupy.asnumpy(…))"
            )
        return numpy_engine()
    raise UnsupportedError(_NO_CUDNN)


def check_engine(name: object) -> None:
    """``name`` is None or the name of an engine.

    Raises:
        ArgumentError: it is not.
    """
    if name is not None:
        check_name("engine", name, ENGINES)


@functools.cache
def numpy_engine() -> AnyEngine:
    """The NumPy engine, loaded at first use."""
    from cudnn_compat.engines.numpy import NumpyEngine

    return NumpyEngine()
