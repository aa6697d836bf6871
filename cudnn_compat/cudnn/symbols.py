"""Which released cuDNN has which C function: what its wheels were found to have.

``symbols.json`` beside this file was made by ``scripts/symbol_manifest.py`` from the newest patch
of each minor version, for Linux on x86-64. It is read at the first question, not by importing this.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from packaging.version import Version

__all__ = ["FILE", "Manifest", "read_manifest"]

FILE = Path(__file__).with_name("symbols.json")
"""The committed data."""


@dataclass(frozen=True)
class Manifest:
    """What the released libraries have.

    Attributes:
        releases: minor version (``"9.12"``), oldest first, to facts about the patch that was read:
            ``version``, ``wheel``, ``sha256``, ``bytes``, ``libraries``, ``read`` (the day).
        functions: minor version to the names of its functions.
    """

    releases: Mapping[str, Mapping[str, Any]]
    functions: Mapping[str, frozenset[str]]

    @property
    def names(self) -> frozenset[str]:
        """Every function that any release has."""
        return frozenset().union(*self.functions.values())

    def has(self, name: str, version: Version) -> bool | None:
        """Whether the minor version that a version belongs to has a function; None: not known."""
        functions = self.functions.get(f"{version.major}.{version.minor}")
        return None if functions is None else name in functions

    def spans(self, name: str) -> list[str]:
        """First and last minor version of each stretch of releases that have a function.

        Returns:
            ``["8.8-8.9"]``; two entries for a function that was away in between.
        """
        found = []
        for has, minors in groupby(self.releases, lambda minor: name in self.functions[minor]):
            if has:
                stretch = list(minors)
                found.append(f"{stretch[0]}-{stretch[-1]}")
        return found

    def in_words(self, name: str) -> str:
        """The releases that have a function: ``"8.8 to 9.12"``, ``"none"``."""
        spans = [span.split("-") for span in self.spans(name)]
        return ", ".join(first if first == last else f"{first} to {last}" for first, last in spans)

    def history(self, name: str) -> str:
        """Since when a function exists and when it ended, in words: "it …"."""
        spans = self.spans(name)
        minors = list(self.releases)
        if not spans:
            return f"no released cuDNN from {minors[0]} to {minors[-1]} has it"
        first, last = spans[0].split("-")[0], spans[-1].split("-")[1]
        words = []
        if first != minors[0]:
            words.append(f"it exists from cuDNN {first} on")
        for before, after in pairwise(spans):
            words.append(f"it was away between {before.split('-')[1]} and {after.split('-')[0]}")
        if last != minors[-1]:
            words.append(f"it ended with cuDNN {last}")
        return " and ".join(words) or f"every released cuDNN from {first} to {last} has it"

    def lacking(self, names: Iterable[str], version: Version) -> list[str]:
        """Those of some functions that a version lacks; empty where it is not known."""
        return sorted(name for name in names if self.has(name, version) is False)

    def with_release(
        self, minor: str, facts: Mapping[str, Any], functions: Iterable[str]
    ) -> Manifest:
        """The same with one release more, or again."""
        releases = {**self.releases, minor: facts}
        return Manifest(
            {each: releases[each] for each in sorted(releases, key=Version)},
            {**self.functions, minor: frozenset(functions)},
        )


@functools.cache
def read_manifest() -> Manifest:
    """The committed data, read once."""
    data = json.loads(FILE.read_text(encoding="utf-8"))
    releases = {_minor(release["version"]): release for release in data["releases"]}
    minors = list(releases)
    functions: dict[str, set[str]] = {minor: set() for minor in minors}
    for name, spans in data["functions"].items():
        for minor in _in_spans(spans, minors):
            functions[minor].add(name)
    return Manifest(releases, {minor: frozenset(names) for minor, names in functions.items()})


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _in_spans(spans: Iterable[str], minors: list[str]) -> Iterator[str]:
    for span in spans:
        first, last = span.split("-")
        yield from minors[minors.index(first) : minors.index(last) + 1]
