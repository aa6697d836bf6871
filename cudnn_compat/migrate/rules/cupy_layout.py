"""Calls as lines of text that fit the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

__all__ = ["Part", "Written", "lines"]

_WIDTH = 99


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """A call: ``function(parts)suffix``, or with a name in front where it is a keyword."""

    function: str
    parts: Sequence[Part]
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.parts))}){self.suffix}"


Part: TypeAlias = "str | Written"


def lines(prefix: str, call: Written, depth: int, indent: str = "    ") -> list[str]:
    """``prefix`` and a call, in as few lines as the page has room for.

    Args:
        depth: columns that the statement is indented by.
    """
    whole = f"{prefix}{call}"
    if depth + len(whole) <= _WIDTH:
        return [whole]
    inner: list[str] = []
    row = ""
    for part in call.parts:
        text = f"{part},"
        if row and depth + len(indent) + len(row) + 1 + len(text) > _WIDTH:
            inner.append(row)
            row = ""
        if isinstance(part, Written) and depth + len(indent) + len(text) > _WIDTH:
            *first, last = lines("", part, depth + len(indent), indent)
            inner += [*first, f"{last},"]
        else:
            row = f"{row} {text}".strip()
    if row:
        inner.append(row)
    return [f"{prefix}{call.function}(", *(indent + line for line in inner), f"){call.suffix}"]
