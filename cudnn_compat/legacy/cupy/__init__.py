"""The RNNs of CuPy 13 and older: ``cupy.cudnn`` and ``cupy.cuda.cudnn``, on today's libraries.

* :mod:`~cudnn_compat.legacy.cupy.cudnn`     ``cupy.cudnn``, ``cupyx.cudnn``: takes arrays
* :mod:`~cudnn_compat.legacy.cupy.libcudnn`  ``cupy.cuda.cudnn``: takes integers and addresses
* :func:`install`                            lets programs import them under their old names
* :func:`prepare_chainer`                    what Chainer needs beside them

Every call warns once per call site, with what replaces it. Names are loaded at first use, so that
importing this package loads neither NumPy, CuPy nor a C library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cudnn_compat.legacy.cupy import cudnn, libcudnn
    from cudnn_compat.legacy.cupy.chainer import prepare_chainer
    from cudnn_compat.legacy.cupy.errors import CuDNNError
    from cudnn_compat.legacy.cupy.hook import install, installed, state, uninstall

__all__ = [
    "CuDNNError",
    "cudnn",
    "install",
    "installed",
    "libcudnn",
    "prepare_chainer",
    "state",
    "uninstall",
]

_MODULES: Final = {
    "CuDNNError": "errors",
    "install": "hook",
    "installed": "hook",
    "prepare_chainer": "chainer",
    "state": "hook",
    "uninstall": "hook",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'cudnn_compat.legacy.cupy' has no attribute {name!r}")
    module = importlib.import_module(f"cudnn_compat.legacy.cupy.{_MODULES.get(name, name)}")
    # So that the next look-up is a plain one.
    value = globals()[name] = getattr(module, name) if name in _MODULES else module
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
