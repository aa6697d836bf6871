"""What is asked of the library, or told to it, beside networks."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Settings(CupyRule):
    """CC140 and others."""

    codes = (
        "CC140",
        "CC142",
        "CC200",
    )
    reason = (
        "v2 is not asked this: workspaces and tensor cores are the engine's, and what a "
        "release lacks raises UnsupportedError (v2.plans() tells what ran); remove the "
        "question"
    )


rule = Settings()
