"""The one table of the environments that the matrix is run in. Loads nothing else.

An axis has versions, a rule says which of them cannot be combined and why, and a group says which
combinations are run. ``nox -s matrix`` makes the environments, the tests and the guide read the
table. To add a version, add it to its axis; to drop one, drop it there.
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from cudnn_compat.matrix.format import Combination

__all__ = ["AXES", "CI", "RULES", "TABLE", "Rule", "requirements", "select", "why_not"]

AXES: Final = {
    "python": ("3.11", "3.12", "3.13", "3.14"),
    "numpy": ("1.26", "2.0", "newest"),
    "cupy": (None, "13", "14"),
    "cudnn": (None, "8.9.7", "9.0", "newest"),
}
"""Versions of everything that a user may have. "newest" is what pip takes in that environment."""


class Rule(NamedTuple):
    """Where one version is, another axis has only some.

    Attributes:
        axis, version: the version that demands something.
        other, allowed: the axis that it demands it of, and the versions that remain.
        reason: in words.
    """

    axis: str
    version: str
    other: str
    allowed: tuple[str | None, ...]
    reason: str


RULES: Final = (
    Rule("numpy", "1.26", "python", ("3.11", "3.12"), "NumPy 1.26 ends at Python 3.12"),
    Rule("numpy", "2.0", "python", ("3.11", "3.12"), "NumPy 2.0 ends at Python 3.12"),
    Rule("cupy", "14", "numpy", ("2.0", "newest"), "CuPy 14 needs NumPy 2"),
    Rule("cupy", "13", "python", ("3.11", "3.12", "3.13"), "CuPy 13 has no Python 3.14"),
)
"""What the projects' own wheels do not allow."""


def why_not(python: str, numpy: str, cupy: str | None, cudnn: str | None) -> str | None:
    """Why these versions cannot be combined; None: they can."""
    given = {"python": python, "numpy": numpy, "cupy": cupy, "cudnn": cudnn}
    for rule in RULES:
        if given[rule.axis] == rule.version and given[rule.other] not in rule.allowed:
            return rule.reason
    return None


def _combination(python: str, numpy: str, cupy: str | None, cudnn: str | None) -> Combination:
    versions = {"python": python, "numpy": numpy, "cupy": cupy, "cudnn": cudnn}
    names = {"python": "Python", "numpy": "NumPy", "cupy": "CuPy", "cudnn": "cuDNN"}
    there = {key: version for key, version in versions.items() if version is not None}
    return Combination(
        "-".join(f"{key}-{version}" for key, version in there.items()),
        ", ".join(
            f"newest {names[key]}" if version == "newest" else f"{names[key]} {version}"
            for key, version in there.items()
        ),
        **versions,
    )


def _all() -> Iterator[Combination]:
    """Without a GPU, CuPy and cuDNN do not meet, and NumPy and cuDNN never do.

    So the valid combinations of Python, NumPy and CuPy are all run, with the newest cuDNN where
    there is a CuPy; and each older cuDNN with each Python. One more is the last stack that had the
    old calls itself.
    """
    for python, numpy in itertools.product(AXES["python"], AXES["numpy"]):
        assert python is not None
        assert numpy is not None
        for cupy in AXES["cupy"]:
            cudnn = None if cupy is None else "newest"
            if why_not(python, numpy, cupy, cudnn) is None:
                yield _combination(python, numpy, cupy, cudnn)
    for python, cudnn in itertools.product(AXES["python"], ("8.9.7", "9.0")):
        assert python is not None
        yield _combination(python, "newest", None, cudnn)
    yield _combination("3.11", "1.26", "13", "8.9.7")


TABLE: Final[tuple[Combination, ...]] = tuple(_all())
"""Every environment that is run, or told why not."""

CI: Final = ("python-3.11-numpy-1.26",)
"""What a run of CI makes: a small download, and a NumPy that CI's own environment has not."""


def select(patterns: Sequence[str]) -> tuple[Combination, ...]:
    """The combinations whose id fits one of the patterns (``*`` as in file names); none: all.

    Raises:
        ValueError: a pattern fits none.
    """
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(each.id, pattern) for each in TABLE):
            known = ", ".join(each.id for each in TABLE)
            raise ValueError(f"no environment fits {pattern!r}; there are {known}")
    return tuple(
        each
        for each in TABLE
        if not patterns or any(fnmatch.fnmatchcase(each.id, pattern) for pattern in patterns)
    )


def requirements(combination: Combination) -> list[str]:
    """What pip is to install beside this package; cuDNN is not installed but unpacked."""
    found = [_pinned("numpy", combination.numpy)]
    if combination.cupy is not None:
        found.append(_pinned("cupy-cuda12x", combination.cupy))
    return found


def _pinned(name: str, version: str | None) -> str:
    return name if version in (None, "newest") else f"{name}=={version}.*"
