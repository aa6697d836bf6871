"""What a row of ``downstream_table.py`` says: a program, its environment, its checkout."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from downstream_data import Maker, make_nothing
from downstream_judge import Judge

__all__ = ["DEVICES", "Checkout", "Packages", "Program"]

DEVICES = ("numpy", "gpu")
"""Whose arrays a program computes with."""


@dataclasses.dataclass(frozen=True)
class Packages:
    """What an environment has.

    Attributes:
        name: of the environment; programs with the same packages share it.
        with_dependencies: for pip, at the versions of constraints.txt where they are there.
        alone: for pip, without what they depend on, which is too old or too large: what of it the
            program really needs stands in ``with_dependencies``.
        numpy: an older NumPy than that of constraints.txt, where the program itself needs one.
        modules: what has to be importable where no environment is made (``--here``).
    """

    name: str
    with_dependencies: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    numpy: str | None = None
    modules: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Checkout:
    """Sources that no package has: a folder, named by an environment variable.

    Attributes:
        variable: names the folder.
        needed: a file that has to be in it.
        how: how it is had.
    """

    variable: str
    needed: str
    how: str


@dataclasses.dataclass(frozen=True)
class Program:
    """One program, library or file of tests.

    Attributes:
        calls: what of the old API it uses.
        commands: by device, what stands behind `cudnn-compat run --prepare-chainer`; behind
            "python" it is run by Python itself. {checkout}, {scripts} and {work} are folders.
        judges: by device, what has to come out.
        old_calls: by device, the old names that have to have been called.
        data: makes what it reads, since no data set is downloaded.
        limit: seconds.
        note: what a reader of the result has to know.
    """

    name: str
    calls: str
    packages: Packages
    commands: Mapping[str, tuple[str, ...]]
    judges: Mapping[str, Judge]
    old_calls: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    checkout: Checkout | None = None
    data: Maker = make_nothing
    limit: float = 300
    note: str = ""
