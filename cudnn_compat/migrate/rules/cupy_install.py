"""What makes the old modules importable: it goes once nothing old is imported any more."""

from __future__ import annotations

from cudnn_compat.migrate.rule import LeftRule

__all__ = ["rule"]

_HERE = "cudnn_compat.legacy.cupy"


class Install(LeftRule):
    """``install()`` and its like."""

    names = tuple(
        f"{_HERE}.{name}"
        for name in ("install", "installed", "prepare_chainer", "state", "uninstall")
    )
    reason = "it makes the old modules importable: remove it when no part of the program needs them"


rule = Install()
