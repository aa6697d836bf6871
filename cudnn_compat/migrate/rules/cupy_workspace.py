"""The limit of workspaces: RNNs never looked at it."""

from __future__ import annotations

from cudnn_compat.migrate.rules.cupy_rule import CupyRule

__all__ = ["rule"]


class Workspace(CupyRule):
    """CC141."""

    codes = ("CC141",)
    reason = (
        "it was a limit for convolutions, and nothing else here has moved; RNNs take what"
        " they need: remove it"
    )


rule = Workspace()
