"""RNN code written for any cuDNN runs on the cuDNN you have today, or on none.

Two generations of one thing stand side by side:

``cudnn_compat.v2``
    the new API: :class:`~cudnn_compat.v2.RNNSpec`, functional calls and layers, on NumPy.
``cudnn_compat.legacy``
    the old API, translated onto ``v2`` call by call, each call marked with what replaces it.

Both are loaded at first use: ``import cudnn_compat`` loads neither NumPy nor CuPy nor a C library.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from cudnn_compat._version import __version__

__all__ = ["__version__", "errors", "legacy", "v2"]


def __getattr__(name: str) -> ModuleType:
    if name in ("errors", "legacy", "v2"):
        return importlib.import_module(f"cudnn_compat.{name}")
    raise AttributeError(f"module 'cudnn_compat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
