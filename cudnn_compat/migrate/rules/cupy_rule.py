"""What the rules of this dialect share: one plan for a file says what becomes of each call."""

from __future__ import annotations

import weakref
from typing import ClassVar

import libcst as cst

from cudnn_compat.migrate.file_context import FileContext
from cudnn_compat.migrate.rule import Answer, CallSite, Left, Rule, Site

__all__ = ["CupyRule"]

_plans: weakref.WeakKeyDictionary[FileContext, dict[cst.CSTNode, str]] = weakref.WeakKeyDictionary()


class CupyRule(Rule):
    """A rule whose places are decided by the plan of the whole file.

    Attributes:
        reason: what is said of a place that the plan says nothing about.
    """

    reason: ClassVar[str] = "it is used as a value, so the calls that it gets cannot be seen"

    def prepare(self, file: FileContext) -> None:
        """Make the plan of a file, once, and carry it out."""
        if file not in _plans:
            from cudnn_compat.migrate.rules.cupy_plan import carry_out

            _plans[file] = carry_out(file)

    def call(self, site: CallSite) -> Answer:
        """Left, with the reason that the plan found."""
        return Left(_plans[site.file].get(site.original, self.reason))

    def value(self, site: Site) -> Answer:
        """Left, with the reason that the plan found."""
        return Left(_plans[site.file].get(site.original, self.reason))
