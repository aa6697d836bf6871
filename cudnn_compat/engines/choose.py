"""Which engine serves a call: the arrays' device decides, or the caller names one."""

from __future__ import annotations

import functools

from cudnn_compat.arrays import Array, is_cupy
from cudnn_compat.checking import check_name
from cudnn_compat.engines.interface import AnyEngine
from cudnn_compat.errors import UnsupportedError

__all__ = ["ENGINES", "check_engine", "choose_engine", "engine_of_device", "loaded_engines"]

ENGINES = ("numpy", "cudnn")
"""Names that ``engine=`` takes."""


def choose_engine(name: str | None, w: Array) -> AnyEngine:
    """The engine called ``name``, or the one for the device that ``w`` is on.

    Raises:
        ArgumentError: there is no engine of that name.
        UnsupportedError: that engine cannot serve these arrays; says what to do.
    """
    on_gpu = is_cupy(w)
    if name is None:
        return cudnn_engine() if on_gpu else numpy_engine()
    check_engine(name)
    if name == "numpy":
        if on_gpu:
            raise UnsupportedError(
                "engine='numpy' computes on the host and w is a CuPy array; "
                "pass NumPy arrays (cupy.asnumpy(…))"
            )
        return numpy_engine()
    if not on_gpu:
        raise UnsupportedError(
            "engine='cudnn' computes on a GPU and w is a NumPy array; "
            "pass CuPy arrays (cupy.asarray(…); extras cuda12, cuda13), or leave engine out"
        )
    return cudnn_engine()


def engine_of_device(device: str) -> AnyEngine:
    """The engine for arrays on ``"cpu"`` or ``"cuda:N"``."""
    return numpy_engine() if device == "cpu" else cudnn_engine()


def loaded_engines() -> tuple[AnyEngine, ...]:
    """The engines that have served a call in this process."""
    return tuple(
        engine() for engine in (numpy_engine, cudnn_engine) if engine.cache_info().currsize
    )


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


@functools.cache
def cudnn_engine() -> AnyEngine:
    """The cuDNN engine, loaded at first use; the C library is loaded by its first call."""
    from cudnn_compat.engines.cudnn import CudnnEngine

    return CudnnEngine()
