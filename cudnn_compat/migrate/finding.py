"""What is reported about one place of a program."""

from __future__ import annotations

import dataclasses
from typing import Literal

__all__ = ["Finding"]


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class Finding:
    """One use of an old name: moved, or left with the reason.

    Attributes:
        file: path of the file, as it was given.
        line, column: where it stands in the source that was given; both count from 1.
        what: ``"moved"`` or ``"left"``.
        code: of the old name (``"CC012"``); empty for names that have no row in the table.
        name: the old name (``"forward"``).
        reason: why it was left; empty where it was moved.
    """

    file: str
    line: int
    column: int
    what: Literal["moved", "left"]
    code: str
    name: str
    reason: str = ""

    def __str__(self) -> str:
        said = f"{self.code} {self.name}".strip()
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.file}:{self.line}:{self.column}: {self.what} {said}{reason}"
