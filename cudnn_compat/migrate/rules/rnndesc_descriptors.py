"""``hDesc`` and ``xDesc`` made descriptors of arrays, which v2 does not have."""

from __future__ import annotations

from cudnn_compat.migrate.rule import LeftRule

__all__ = ["rule"]


class ArrayDescriptors(LeftRule):
    """See the module."""

    codes = ("CC023", "CC024")
    reason = "v2 takes arrays and has no descriptors: remove what uses the descriptor, then this"


rule = ArrayDescriptors()
