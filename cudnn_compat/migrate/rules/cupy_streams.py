"""Streams of handles: always left."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Streams(CupyRule):
    """CC203 and others."""

    codes = (
        "CC203",
        "CC204",
    )
    reason = "v2 runs on CuPy's current stream: put the calls into `with stream:` and remove this"


rule = Streams()
