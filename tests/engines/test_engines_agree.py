"""The NumPy engine against the cuDNN engine, over the whole space of specs and batches."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cudnn_compat import v2
from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.matrix import reference
from cudnn_compat.matrix.tolerances import kink_distance, tolerance
from cudnn_compat.spec import DTYPES, MATHS
from tests.engine import Engine
from tests.engines.drawn import Batch, arguments, batches, call, exact, specs
from tests.engines.networks import GRADIENTS, OUTPUTS, largest, scale

DRAWS = int(os.environ.get("CUDNN_COMPAT_DRAWS", "2000"))
"""Draws of all dtypes together."""

ALGOS = (
    *["auto"] * 38,
    *["standard"] * 28,
    *["persist_static"] * 16,
    *["persist_small_h"] * 16,
    *["persist_dynamic"] * 2,
)
"""As often as each is drawn: the last is compiled for each network, which takes its time."""

sizes = st.one_of(st.integers(1, 40), st.integers(1, 8), st.sampled_from([16, 32, 64]))


@dataclasses.dataclass
class Tally:
    """What was compared, and what cuDNN refused."""

    compared: int = 0
    empty: int = 0
    """Draws without a row, for which no engine computes; they are not counted as compared."""
    with_gradients: int = 0
    algos: Counter[str] = dataclasses.field(default_factory=Counter)
    refused: Counter[str] = dataclasses.field(default_factory=Counter)

    def __str__(self) -> str:
        ran = ", ".join(f"{algo} {count}" for algo, count in sorted(self.algos.items()))
        refused = ", ".join(f"{algo} {count}" for algo, count in sorted(self.refused.items()))
        return (
            f"{self.compared} different draws, gradients of {self.with_gradients}; ran {ran}; "
            f"refused {refused or 'none'}; beside them {self.empty} without a row"
        )


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_both_engines_give_the_same_within_the_sum_of_their_tolerances(
    dtype: str, record_property: Any
) -> None:
    import cupy

    host, gpu, tally = Engine("numpy", np), Engine("cudnn", cupy), Tally()
    gpu.needs(dtype)
    seen = set()

    @given(specs(sizes, (dtype,), MATHS, ALGOS), batches(steps=12, batch=6))
    @settings(
        # Twice as many as are asked for: some have no row, some come twice.
        max_examples=2 * -(-DRAWS // len(DTYPES)),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    def check(spec: v2.RNNSpec, batch: Batch) -> None:
        if spec.algo.startswith("persist_"):
            spec, batch = within_reach(spec, batch)
        given = arguments(spec, batch)
        try:
            out, theirs = call(gpu, spec, batch, given)
        except v2.UnsupportedError:
            # STANDARD does everything that a spec can say, and "auto" falls back to it.
            assert spec.algo.startswith("persist_")
            tally.refused[spec.algo] += 1
            assume(False)
        assert out.algo == spec.algo or spec.algo == "auto"
        # NumPy has no float16 arithmetic: the same function, computed in full.
        _, ours = call(host, spec.replace(math="full"), batch, given)
        smooth = away_from_kinks(spec, batch, given)
        compare(spec, out.algo, ours, theirs, smooth)
        if not sum(batch.lengths):
            tally.empty += 1
        elif (spec, batch) not in seen:
            seen.add((spec, batch))
            tally.compared += 1
            tally.with_gradients += smooth
            tally.algos[out.algo] += 1

    check()
    record_property(f"engines agree, {dtype}", str(tally))
    print(f"{dtype}: {tally}")
    assert tally.compared >= DRAWS // len(DTYPES)


def within_reach(spec: v2.RNNSpec, batch: Batch) -> tuple[v2.RNNSpec, Batch]:
    """Much the same draw, of what the persistent kernels do: most draws they would refuse."""
    if spec.dtype == "float64":
        spec = spec.replace(algo="persist_dynamic")
    math = "default" if spec.math == "half" and spec.dtype == "float16" else spec.math
    spec = spec.replace(bias="double", proj_size=None, math=math)
    equal = (max(batch.lengths, default=0),) * len(batch.lengths)
    return spec, dataclasses.replace(batch, lengths=equal, padding=0)


def away_from_kinks(spec: v2.RNNSpec, batch: Batch, given: dict[str, Any]) -> bool:
    """Whether gradients can be compared: rounding does not decide which of two is right."""
    clips = spec.clip is not None
    if spec.cell != "relu" and not clips:
        return True
    near = kink_distance(spec.dtype, spec.math, engine="cudnn", clip=clips)
    return reference.distance_to_kink(exact(spec, batch, given)[0]) > near


def compare(spec: v2.RNNSpec, algo: str, ours: Any, theirs: Any, gradients: bool) -> None:
    for name in OUTPUTS + GRADIENTS:
        a, b = ours[name], theirs[name]
        assert (a is None) == (b is None), name
        if a is None:
            continue
        assert a.dtype == b.dtype == numpy_dtype(spec.dtype), name
        assert a.shape == b.shape, name
        if name in OUTPUTS or gradients:
            how = {
                "clip": spec.clip is not None,
                "what": "output" if name in OUTPUTS else "gradient",
            }
            allowed = tolerance(spec.dtype, "full", engine="numpy", **how)
            allowed += tolerance(spec.dtype, spec.math, engine="cudnn", algo=algo, **how)
            assert largest(a, b) <= allowed * scale(a), (name, largest(a, b), scale(a))
