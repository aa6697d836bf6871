"""The old API: the RNN calls of CUDA.jl 2.x, translated onto :mod:`cudnn_compat.v2`.

Arrays are feature-first, as there: ``x (input,)`` or ``(input, batch)``. Every call warns once per
call site, with what replaces it; :mod:`cudnn_compat.legacy.deprecations` says how to silence that.
Nothing is removed before 3.0.

>>> from cudnn_compat.legacy import CUDNN_LSTM, RNNDesc, forward, pullback, setweights
>>> desc = RNNDesc(CUDNN_LSTM, 64, 128)
>>> setweights(desc, Wi, Wh, b)                         # doctest: +SKIP
>>> y, h, c = forward(desc, x, h, c)                    # doctest: +SKIP
>>> (y, h, c), back = pullback(desc, x, h, c)           # doctest: +SKIP
>>> grad = back(dy, None, None)                         # doctest: +SKIP

Names are loaded at first use, so that the table of old names can be read without NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cudnn_compat.legacy.deprecations import LegacyAPIWarning, RemovedIn3Warning

if TYPE_CHECKING:
    from cudnn_compat.legacy.gradients import backwardData, backwardWeights, pullback
    from cudnn_compat.legacy.helpers import hBatch, hDesc, ngates, params, setweights, xDesc
    from cudnn_compat.legacy.rnndesc import (
        CUDNN_GRU,
        CUDNN_LSTM,
        CUDNN_RNN_RELU,
        CUDNN_RNN_TANH,
        RNNDesc,
    )
    from cudnn_compat.legacy.steps import forward, forwardTrain

__all__ = [
    "CUDNN_GRU",
    "CUDNN_LSTM",
    "CUDNN_RNN_RELU",
    "CUDNN_RNN_TANH",
    "LegacyAPIWarning",
    "RNNDesc",
    "RemovedIn3Warning",
    "backwardData",
    "backwardWeights",
    "forward",
    "forwardTrain",
    "hBatch",
    "hDesc",
    "ngates",
    "params",
    "pullback",
    "setweights",
    "xDesc",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'cudnn_compat.legacy' has no attribute {name!r}")
    for module in ("rnndesc", "steps", "gradients", "helpers"):
        loaded = importlib.import_module(f"cudnn_compat.legacy.{module}")
        if name in loaded.__all__:
            # So that the next look-up is a plain one.
            value = globals()[name] = getattr(loaded, name)
            return value
    raise AssertionError(f"{name} is public and nowhere defined")


def __dir__() -> list[str]:
    return sorted(__all__)
