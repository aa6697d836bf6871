"""Records that look like real ones, with something of every status."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Write = Callable[..., Path]

NO_GPU = "cuDNN 9.19.0 is here, but no GPU: no NVIDIA driver"
NO_HALF = "the NumPy engine has no float16 arithmetic (math='half'); use math='default'"
DIFFERS = "8907 where no library can be loaded"
LONG = "; ".join(f"reason number {number} of a long list, told in full" for number in range(12))


def capability(id_: str, status: str = "works", reason: str = "", **more: Any) -> Json:
    """A capability whose rows all have one status."""
    api, feature, engine = id_.split("/")
    reasons = [{"status": status, "reason": reason, "rows": 4, "example": f"{id_}/-"}]
    made: Json = {
        "id": id_,
        "api": api,
        "feature": feature,
        "engine": None if engine == "-" else engine,
        "entry_points": ["cudnn_compat.v2.rnn_forward"],
        "status": status,
        "counts": {status: 4},
        "cells": {},
        "dtypes": {},
        "error": 1e-6 if status == "works" else None,
        "tolerance": 2e-5 if status == "works" else None,
        "reasons": [] if status == "works" else reasons,
    }
    return made | more


def record(id_: str, versions: str, *capabilities: Json, **more: Any) -> Json:
    """A record; ``versions`` is ``"3.12.1 2.0.2 14.1.1 -"``, of Python, NumPy, CuPy and cuDNN."""
    names = ("python", "numpy", "cupy", "cudnn")
    there = {
        name: None if version == "-" else version
        for name, version in zip(names, versions.split(), strict=True)
    }
    asked = {name: version and ".".join(version.split(".")[:2]) for name, version in there.items()}
    tested = more.pop("tested", True)
    combination = {
        "id": id_,
        "label": f"the environment {id_}",
        **asked,
        "versions": there if tested else dict.fromkeys(names),
        "gpu": more.pop("gpu", None),
        "tested": tested,
        "reason": more.pop("reason", None),
    }
    made: Json = {
        "schema": 1,
        "created": "2026-11-30T11:30:00+00:00",
        "combination": combination,
        "environment": {"cudnn_compat": {"version": "2.0.0"}} if tested else None,
        "summary": {},
        "capabilities": list(capabilities),
        "rows_kept": "exceptions",
        "rows": [],
    }
    return made | more


def usual(**engine: Any) -> list[Json]:
    """What a record of an environment without a GPU has, with something of every status."""
    on_gpu = engine or {"status": "not tested here", "reason": NO_GPU}
    wide = [f"feature_with_a_long_name_{number}" for number in range(8)]
    mixed = {"counts": {"works": 3, "refused": 1}, "status": "works differently"}
    return [
        *(capability(f"v2/{name}/numpy") for name in wide),
        capability("v2/math_half/numpy", "refused", NO_HALF),
        capability("v2/some_rows/numpy", "refused", LONG) | mixed,
        *(capability(f"v2/{name}/cudnn", **on_gpu) for name in wide),
        capability("v2/backward/cudnn", **on_gpu),
        capability("legacy/forward/numpy"),
        capability("legacy.cupy.cudnn/convolution_forward/-", "not offered", "use CuPy's own"),
        capability("legacy.cupy.libcudnn/getVersion/-", "works differently", DIFFERS),
    ]


def library(*lacks: str) -> list[Json]:
    names = ("cudnnRNNForward", "cudnnGetLastErrorString")
    return [
        capability(f"cudnn/{name}/library", "refused", "it exists from cuDNN 9.0 on")
        if name in lacks
        else capability(f"cudnn/{name}/library")
        for name in names
    ]


def records() -> list[Json]:
    """Twelve environments, as a page of the project has them."""
    pairs = [("1.26.4", "13.6.0"), ("2.0.2", "13.6.0"), ("2.4.6", "14.1.1")]
    made = [
        record(f"py{python}-numpy{numpy[:3]}", f"{python}.7 {numpy} {cupy} -", *usual())
        for python in ("3.11", "3.12")
        for numpy, cupy in pairs
    ]
    absent = "no interpreter of Python 3.14 was found"
    made += [
        record("py3.13", "3.13.2 2.4.6 14.1.1 -", *usual()),
        record("py3.14", "3.14 newest 14 -", tested=False, reason=absent),
        record("cudnn8.9", "3.11.7 2.4.6 - 8.9.7", *library("cudnnGetLastErrorString")),
        record("cudnn9.0", "3.11.7 2.4.6 - 9.0.0", *library()),
        record("cudnn9.28", "3.11.7 2.4.6 - 9.28.1", *library()),
    ]
    # A GPU is at hand seldom: its record is old, and of the release before.
    on_gpu = record(
        "gpu", "3.12.3 2.4.6 14.1.1 9.19.0", *usual(status="works"), *library(), gpu="NVIDIA H200"
    )
    on_gpu["created"] = "2026-06-03T10:00:00+02:00"
    on_gpu["environment"]["cudnn_compat"]["version"] = "2.0.0rc1"
    last = next(each for each in on_gpu["capabilities"] if each["id"] == "v2/backward/cudnn")
    last |= capability(last["id"], "failed", "dx is off by 3.1")
    return [*made, on_gpu]
