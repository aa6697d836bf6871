"""The recorded results of the real libraries (``tests/data``) as cases for tests.

``data/README.md`` says how they were recorded and what the keys mean. Everything here is as a
caller of v2 would pass it: only the names of the two files are made equal.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from cudnn_compat import v2
from cudnn_compat.matrix import reference
from cudnn_compat.matrix.tolerances import tolerance
from tests.dropout_masks import find_masks

__all__ = [
    "DATA",
    "GRADIENTS",
    "OUTPUTS",
    "Case",
    "Linear",
    "cases",
    "dropout_case",
    "dropout_masks",
    "largest",
]

DATA = Path(__file__).parent / "data"
OUTPUTS = ("y", "hy", "cy")
GRADIENTS = ("dx", "dhx", "dcx", "dw")

_NAMES = {"xs": "x", "ys": "y", "dxs": "dx", "dys": "dy"}


@dataclasses.dataclass(frozen=True)
class Linear:
    """A row of a params table: where the library said a matrix and its bias lie, in elements.

    Sizes and offsets are None where the library returned none.
    """

    pseudo_layer: int
    linear_id: int
    matrix_offset: int | None
    matrix_shape: tuple[int, ...] | None
    """``(rows, columns)``, or ``(size,)`` where only that was recorded."""
    bias_offset: int | None
    bias_size: int | None


@dataclasses.dataclass(frozen=True)
class Case:
    """One recorded call: its arguments, its results and the params table."""

    name: str
    spec: v2.RNNSpec
    layout: str
    lengths: tuple[int, ...]
    """Steps of each sequence, in the caller's order."""
    batch_sizes: tuple[int, ...] | None
    """What the old basic calls took instead."""
    arrays: dict[str, np.ndarray]
    """``w, x, hx, cx, dy, dhy, dcy, y, hy, cy, dx, dhx, dcx, dw`` and, of the inference call,
    ``inf_y, inf_hy, inf_cy``; absent ones are missing."""
    params: tuple[Linear, ...]

    def get(self, name: str) -> Any:
        """A copy of an array, or None where the case has none."""
        array = self.arrays.get(name)
        return None if array is None else array.copy()

    def rows(self, name: str) -> list[np.ndarray]:
        """x, dy, y or dx cut into sequences, in float64."""
        return reference.split_rows(self.arrays[name], self.lengths, self.layout)

    @property
    def how_long(self) -> dict[str, Any]:
        """The arguments of ``rnn_forward`` that say which layout and lengths x has."""
        if self.batch_sizes is not None:
            return {"layout": self.layout, "batch_sizes": self.batch_sizes}
        return {"layout": self.layout, "lengths": self.lengths}

    def tolerance(self, name: str) -> float:
        """Allowed difference from the recorded ``y``, ``dw``, …"""
        return tolerance(
            self.spec.dtype,
            self.spec.math,
            engine="cudnn",
            clip=self.spec.clip is not None,
            what="output" if name in OUTPUTS else "gradient",
        )


def largest(a: Any, b: Any) -> float:
    """Largest absolute difference of two arrays of one shape; NaN where either has one."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, (a.shape, b.shape)
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0.0))


def cases() -> list[Case]:
    """All recorded cases without dropout."""
    return [case for case in _all_cases() if not case.spec.dropout]


def dropout_case() -> Case:
    """The one case with dropout (three LSTM layers, ratio 0.5), whose masks cuDNN drew."""
    (case,) = (case for case in _all_cases() if case.spec.dropout)
    return case


@functools.cache
def dropout_masks() -> list[list[np.ndarray]]:
    """The masks of :func:`dropout_case`, as the slow reference takes them."""
    case = dropout_case()
    return find_masks(
        case.spec,
        case.get("w"),
        case.rows("x"),
        case.get("hx"),
        case.get("cx"),
        case.rows("y"),
        within=1e-6,
    )


@functools.cache
def _all_cases() -> list[Case]:
    loaded = []
    for source in ("legacy", "v8"):
        with np.load(DATA / f"{source}_golden.npz") as file:
            names = sorted({key.partition("/")[0] for key in file.files})
            for name in names:
                arrays = {
                    key.partition("/")[2]: file[key]
                    for key in file.files
                    if key.startswith(f"{name}/")
                }
                meta = json.loads(str(arrays.pop("meta")))
                loaded.append((_legacy if source == "legacy" else _v8)(name, meta, arrays))
    return loaded


def _legacy(name: str, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Case:
    arrays.pop("params", None)
    arrays = {_renamed(key): array for key, array in arrays.items()}
    for key in ("w", "dw"):
        arrays[key] = arrays[key].reshape(-1)
    batch_sizes = tuple(meta["lengths"]) if meta["api"] == "basic" else None
    lengths = meta["lengths"]
    if batch_sizes is not None:
        lengths = reference.lengths_from_batch_sizes(batch_sizes, arrays["hx"].shape[1])
    params = tuple(
        Linear(layer, linear, offset, (size,), bias_offset, bias_size)
        for layer, linear, offset, size, bias_offset, bias_size in meta.get("params", ())
    )
    return Case(
        f"legacy:{name}",
        _spec(meta, dropout=meta.get("dropout", 0.0)),
        "time_major" if batch_sizes is None else "packed",
        tuple(lengths),
        batch_sizes,
        arrays,
        params,
    )


def _v8(name: str, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Case:
    spec = _spec(
        meta,
        bias=meta["bias"],
        input_mode=meta["input_mode"],
        proj_size=meta["proj"],
        clip=meta["clip"] and tuple(meta["clip"]),
    )
    params = tuple(
        Linear(
            layer,
            linear,
            offset,
            dims and tuple(dims[1:]),
            bias_offset,
            bias_dims and int(np.prod(bias_dims)),
        )
        for layer, linear, offset, dims, bias_offset, bias_dims in meta["params"]
    )
    return Case(f"v8:{name}", spec, meta["layout"], tuple(meta["lengths"]), None, arrays, params)


def _renamed(key: str) -> str:
    prefix, _, rest = key.rpartition("_")
    return "_".join(filter(None, (prefix, _NAMES.get(rest, rest))))


def _spec(meta: dict[str, Any], **more: Any) -> v2.RNNSpec:
    # Recorded without TF32, float16 of the new calls with float32 arithmetic: math="full".
    return v2.RNNSpec(
        meta["cell"],
        meta["input"],
        meta["hidden"],
        num_layers=meta["layers"],
        bidirectional=meta["direction"] == "bi",
        dtype=meta["dtype"],
        math="full",
        **more,
    )
