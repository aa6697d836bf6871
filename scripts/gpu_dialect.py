"""The parts of `make gpu` that run the CuPy dialect: what they need, and which aims they missed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any

from chainer_setup import ROOT, VERSION

__all__ = ["HOW_TO_GET_IT", "MISSED", "no_chainer", "no_sources"]

Result = dict[str, Any]

HOW_TO_GET_IT = (
    f"`git clone --depth 1 --branch v{VERSION} https://github.com/chainer/chainer "
    "../chainer-src`, `export CHAINER_SRC=../chainer-src`, and run this part again"
)


def no_sources() -> str | None:
    """Why Chainer's own tests cannot be run, and how to get them; None where they can."""
    named = os.environ.get("CHAINER_SRC")
    if not named:
        return f"CHAINER_SRC names no sources of Chainer {VERSION}. To get them: {HOW_TO_GET_IT}."
    folder = ROOT / named  # where the parts run
    version = folder / "chainer" / "_version.py"
    if folder.is_file() or (
        version.is_file() and f"'{VERSION}'" in version.read_text(encoding="utf-8")
    ):
        return None
    return (
        f"what CHAINER_SRC names does not hold the sources of Chainer {VERSION}. "
        f"To get them: {HOW_TO_GET_IT}."
    )


def no_chainer() -> str | None:
    """Why no program can import Chainer, and how to get it; None where one can."""
    if not os.environ.get("CHAINER_SRC") and importlib.util.find_spec("chainer"):
        return None
    return no_sources()


def _chainer(result: Result) -> list[str]:
    if result["pytest_exit_status"] not in (0, 1):
        return []  # pytest itself broke, which says nothing about the aim
    return list(result["verdict"])


def _chainer_train(result: Result) -> list[str]:
    difference, ratio = result["largest_difference_of_losses"], result["step_time_ratio"]
    missed = []
    if not difference <= result["wanted_difference"]:  # a NaN is no small difference
        missed.append(f"losses differ by {difference:.1e}")
    if not ratio >= result["wanted_ratio"]:
        missed.append(f"steps are {ratio:.2f} times as fast, not {result['wanted_ratio']:.0f}")
    if not result["runs"]["dialect"]["library_calls"].get("cudnnRNNForward"):
        missed.append("cuDNN's RNNs were never called")
    return missed


def _dialect(result: Result) -> list[str]:
    return [
        f"{row['name']} {mode} is slower than there ({row[f'{mode}_speed_up']:.2f})"
        for row in result["rows"]
        for mode in ("inference", "training")
        if not row[f"{mode}_speed_up"] >= 1
    ]


MISSED: dict[str, Callable[[Result], list[str]]] = {
    "chainer": _chainer,
    "chainer_train": _chainer_train,
    "dialect": _dialect,
}
"""By the part's name, in words, what its result shows to be worse than it has to be.

These scripts end with exit status 1 for that; with 1 and without such words, they crashed.
"""
