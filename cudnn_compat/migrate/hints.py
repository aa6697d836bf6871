"""What all files of a program together say about the objects of one class."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from cudnn_compat.migrate.outline import ClassOutline, Outline

__all__ = ["Hints", "hints_of"]

_HARMLESS = frozenset(("object", "ABC", "Generic", "Protocol", "Hashable", "Sized"))
"""Bases that bring no methods."""


@dataclasses.dataclass(frozen=True)
class Hints:
    """What may happen to a class and its objects, in whatever file.

    Attributes:
        members: what its subclasses, and their other bases, define.
        assigned: attributes that are assigned to objects that may be of it.
        unseen: other bases of its subclasses that are in none of the files.
        keywords: what other files pass arguments by.
        compares_types: whether any file asks if two objects are of one class.
    """

    members: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()
    compares_types: bool = False


def hints_of(outlines: Sequence[Outline], index: int, root: str) -> Hints:
    """The hints for one of the files.

    Args:
        root: the name of the class. What derives from it is judged by names alone, and so is rather
            more than less.
    """
    classes = [each for outline in outlines for each in outline.classes]
    known = {each.name for each in classes}
    derived = _derived(outlines, root)
    family = [each for each in classes if each.name in derived and each.name != root]
    unseen = set()
    todo = list(family)
    while todo:  # what they inherit beside the class stands before it, or may
        for head, *rest in todo.pop().bases:
            if head in derived or derived.intersection(rest):
                continue
            if head not in known | _HARMLESS:
                unseen.add(head)
            more = [each for each in classes if each.name == head and each not in family]
            family += more
            todo += more
    everything = frozenset().union(*(each.assigned for each in outlines))
    others = (each.keywords for place, each in enumerate(outlines) if place != index)
    return Hints(
        frozenset(name for each in family for name in each.members),
        everything.union(*(each.assigned for each in family)),
        frozenset(unseen),
        frozenset().union(*others),
        any(each.compares_types for each in outlines),
    )


def _derived(outlines: Sequence[Outline], root: str) -> set[str]:
    """Names of what is the class, may be it under another name, or derives from it."""
    found = {root}
    more = True
    while more:
        new = {
            name for outline in outlines for name, values in _all(outline) if found & values
        } - found
        found |= new
        more = bool(new)
    return found


def _all(outline: Outline) -> Iterator[tuple[str, frozenset[str]]]:
    yield from outline.means.items()
    for each in outline.classes:
        yield each.name, frozenset(_flat(each))


def _flat(each: ClassOutline) -> Iterator[str]:
    for base in each.bases:
        yield from base
