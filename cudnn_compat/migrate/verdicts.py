"""What was decided about the places of a file: findings, marks, and what blocks other places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import libcst as cst
from libcst.metadata import CodeRange

from cudnn_compat.migrate.file_context import FileContext
from cudnn_compat.migrate.finding import Finding
from cudnn_compat.migrate.known import Use
from cudnn_compat.migrate.rules import RULES

__all__ = ["EXPORTED", "IN_CLASS", "Verdicts"]

EXPORTED: Final = "other files import it from here (or __all__ lists it): import it there directly"
IN_CLASS: Final = "it is imported into a class, as an attribute of that: import it at the top"
_ESCAPES: Final = "the module itself is used as a value, so what is taken from it cannot be seen"
_UNUSED: Final = "it is imported and not used here; remove it if no other file takes it from here"


class Verdicts:
    """Collected while a file is rewritten.

    Attributes:
        findings: of every place.
        blocked: the first place that was left, of each group of rules that has one.
        marks: texts of the comments, by the statement they belong above.
    """

    def __init__(self, file: FileContext, positions: Mapping[cst.CSTNode, Any]) -> None:
        self.file = file
        self.positions = positions
        self.findings: list[Finding] = []
        self.blocked: dict[str, Finding] = {}
        self.marks: dict[cst.CSTNode, list[str]] = {}

    def moved(self, use: Use, node: cst.CSTNode) -> None:
        """New code stands in its place."""
        self._add("moved", use, node)

    def left(self, use: Use, node: cst.CSTNode, reason: str) -> None:
        """It stays, and with it what its rule belongs together with."""
        finding = self._add("left", use, node, reason)
        rule = RULES.get(use.qualified)
        if rule is not None and rule.group is not None:
            self.blocked.setdefault(rule.group, finding)
        self._mark(node, finding)

    def left_module(self, use: Use, node: cst.CSTNode) -> None:
        """A whole module goes somewhere: its names may be used there."""
        self.left(use, node, _ESCAPES)
        for qualified, rule in RULES.items():
            if rule.group is not None and qualified.rpartition(".")[0] == use.qualified:
                self.blocked.setdefault(rule.group, self.findings[-1])

    def stays(self, use: Use, node: cst.CSTNode, culprit: Finding) -> None:
        """It could move, but another place of its group cannot. That one has the mark."""
        self._add("left", use, node, f"stays, because {culprit.name} in {culprit.file} has to stay")

    def unused(self, use: Use, node: cst.CSTNode) -> None:
        """It is imported for nothing: no object is made, so nothing has to stay for it."""
        self._mark(node, self._add("left", use, node, _UNUSED))

    def _add(
        self, what: Literal["moved", "left"], use: Use, node: cst.CSTNode, reason: str = ""
    ) -> Finding:
        start = cast("CodeRange", self.positions[node]).start
        code = use.row.code if use.row is not None else ""
        finding = Finding(
            self.file.path, start.line, start.column + 1, what, code, use.name, reason
        )
        self.findings.append(finding)
        return finding

    def _mark(self, node: cst.CSTNode, finding: Finding) -> None:
        while not hasattr(node, "leading_lines"):
            node = self.file.names.parents[node]
        text = f"{finding.code} {finding.name}".strip() + f": {finding.reason}"
        texts = self.marks.setdefault(node, [])
        if text not in texts:
            texts.append(text)
