"""Features that are names: constants, what is not offered, exceptions, and being found in CuPy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from cudnn_compat.legacy.cupy.absent import ABSENT, Absent
from cudnn_compat.matrix.checks_names import OLD_CONSTANTS, RAISES
from cudnn_compat.matrix.features import Feature
from cudnn_compat.matrix.features_arrays import NOTHING
from cudnn_compat.matrix.shapes import Item

__all__ = ["NAMES"]

_ONLY_NUMBERS = re.compile(
    "CUDNN_(CONVOLUTION|CROSS|BATCHNORM|BN|CTC|DIVNORM|LRN|POOLING|[0-9]+BIT|ADD|OP|REDUCE|ERRQUERY"
    "|FUSED|PARAM|PTR|SCALAR|SAMPLER)(_|$)"
)
"""How the names of constants begin that no function here takes."""


def _items(names: Iterable[str]) -> tuple[Item, ...]:
    return tuple(Item(name) for name in names)


def _constants(name: str, *, only_numbers: bool, **rest: Any) -> Feature:
    api = "legacy.cupy.libcudnn"
    names = [n for n in OLD_CONSTANTS if bool(_ONLY_NUMBERS.match(n)) == only_numbers]
    calls = tuple(f"cudnn_compat.{api}.{each}" for each in names)
    return Feature(api, name, "constant", _items(names), calls=calls, **NOTHING, **rest)


def _absent(group: Absent) -> list[Feature]:
    name = group.what.removeprefix("a part of ").replace(",", "").replace(" ", "_")
    return [
        Feature(f"legacy.cupy.{module}", name, "absent", _items(names), **NOTHING)
        for module, names in (("cudnn", group.high), ("libcudnn", group.low))
        if names
    ]


def _in_cupy(name: str, check: str, items: str = "", calls: str = "") -> Feature:
    api = "legacy.cupy"
    shapes = _items(items.split()) if items else (None,)
    names = tuple(f"cudnn_compat.{api}.{each}" for each in calls.split())
    return Feature(api, name, check, shapes, calls=names, **NOTHING)


_OFFERED = "install uninstall installed state"

NAMES: Final[tuple[Feature, ...]] = (
    Feature(
        "v2",
        "exceptions",
        "exception",
        _items(RAISES),
        calls=tuple(f"cudnn_compat.v2.{name}" for name in (*RAISES, "CompatError")),
        **NOTHING,
    ),
    _in_cupy("install", "installing", f"compute {_OFFERED}", f"{_OFFERED} cudnn libcudnn"),
    _in_cupy("beside_CuPy", "beside_cupy"),
    _in_cupy("prepare_chainer", "chainer", calls="prepare_chainer CuDNNError"),
    _constants("constants", only_numbers=False),
    _constants(
        "constants_of_what_is_not_offered",
        only_numbers=True,
        differs="a number that programs read at import; no function here takes it",
    ),
    *(feature for group in ABSENT for feature in _absent(group)),
)
"""All of them, with what their rows are run with."""
