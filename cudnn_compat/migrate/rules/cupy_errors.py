"""The exception of the old modules: always left."""

from __future__ import annotations

from cudnn_compat.migrate.rule import LeftRule

__all__ = ["rule"]

_HERE = "cudnn_compat.legacy.cupy"


class Errors(LeftRule):
    """``CuDNNError``, which v2 does not raise."""

    names = (f"{_HERE}.CuDNNError", f"{_HERE}.libcudnn.CuDNNError", f"{_HERE}.cudnn.CuDNNError")
    reason = (
        "v2 raises subclasses of v2.CompatError: v2.ArgumentError for wrong arguments, "
        "v2.LibraryError with .status (the library's own number) for the library's"
    )


rule = Errors()
