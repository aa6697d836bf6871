"""A snapshot of the public API as text: one fact a line, for people to read and to compare.

::

    function cudnn_compat.v2.pack
        parameter x: positional 1, required, of Array
        returns: Packed

An entry stands at the margin: its kind and its name. Its facts are indented: ``FACT`` or
``FACT: VALUE``.
"""

from __future__ import annotations

from typing import Final

__all__ = ["Snapshot", "parse", "render"]

Snapshot = dict[str, dict[str, str]]
"""Entry to fact to value; the value of a fact that only is or is not is empty."""

INDENT: Final = "    "
OF_PYTHON: Final = ("module", "class", "function", "method", "object")


def _order(entry: str) -> tuple[str, str, str]:
    """Python's names together, by name; then the others by kind."""
    kind, _, name = entry.partition(" ")
    return ("" if kind in OF_PYTHON else kind, name, kind)


def render(snapshot: Snapshot, heading: str = "") -> str:
    """The text. Facts keep their order, which is that of the parameters of a function."""
    lines = [f"# {line}".rstrip() for line in heading.splitlines()]
    for entry in sorted(snapshot, key=_order):
        lines += ["", entry]
        for fact, value in snapshot[entry].items():
            lines.append(f"{INDENT}{fact}: {value}" if value else f"{INDENT}{fact}")
    return "\n".join(lines).strip("\n") + "\n"


def parse(text: str) -> Snapshot:
    """The snapshot of a text.

    Raises:
        ValueError: a line is no entry and no fact, or stands twice; says which.
    """
    snapshot: Snapshot = {}
    facts: dict[str, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            if line in snapshot:
                raise ValueError(f"line {number} is the second entry {line!r}")
            facts = snapshot[line] = {}
            continue
        fact, _, value = line.removeprefix(INDENT).partition(": ")
        if facts is None or fact.startswith(" ") or fact in facts:
            raise ValueError(f"line {number} is no new fact of an entry: {line!r}")
        facts[fact] = value
    return snapshot
