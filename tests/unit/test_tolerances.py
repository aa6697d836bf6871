"""The one table of allowed differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cudnn_compat.errors import ArgumentError
from cudnn_compat.matrix.tolerances import kink_distance, tolerance
from cudnn_compat.spec import DTYPES, MATHS, RNNSpec

WHAT = ("output", "gradient")


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("math", ["default", "full"])
@pytest.mark.parametrize(
    ("dtype", "bound"), [("float64", 1e-12), ("float32", 2e-5), ("float16", 2e-2)]
)
def test_numpy_has_one_promised_bound_for_each_dtype(
    dtype: str, bound: float, math: str, what: str
) -> None:
    assert tolerance(dtype, math, what=what) == bound
    assert tolerance(dtype, math, clip=True, what=what) == bound


@pytest.mark.parametrize("what", WHAT)
def test_recordings_of_the_library_with_a_clip_are_compared_at_float32_bounds(what: str) -> None:
    assert tolerance("float64", engine="cudnn", what=what) == 1e-12
    assert tolerance("float64", engine="cudnn", clip=True, what=what) == 1e-7
    assert tolerance("float32", "full", engine="cudnn", clip=True, what=what) == 2e-5
    # Rounding a bound to float32 moves it by at most half a unit in the last place.
    assert np.finfo(np.float32).eps / 2 < 1e-7


def test_the_bound_of_float32_on_cudnn_follows_the_switch_for_tf32() -> None:
    assert tolerance("float32", "default", engine="cudnn") == 2e-2
    assert tolerance("float32", "default", engine="cudnn", what="gradient") == 5e-2
    assert tolerance("float32", "full", engine="cudnn", what="gradient") == 2e-5
    assert tolerance("float32", "full", engine="cudnn", algo="standard") == 2e-5
    assert tolerance("float32", "full", engine="cudnn", algo="persist_static") == 1e-3
    assert tolerance("float64", "full", engine="cudnn", algo="persist_dynamic") == 1e-12
    assert tolerance("float32", "full", algo="persist_static") == 2e-5  # NumPy has one algorithm


@pytest.mark.parametrize("engine", ["numpy", "cudnn"])
def test_every_dtype_and_math_that_an_engine_computes_has_a_bound(engine: str) -> None:
    for dtype, math, what in itertools.product(DTYPES, MATHS, WHAT):
        try:
            RNNSpec("lstm", 2, 3, dtype=dtype, math=math)
        except ArgumentError:
            exists = False
        else:
            exists = engine == "cudnn" or math != "half"
        if exists:
            assert 0 < tolerance(dtype, math, engine=engine, what=what) < 0.2
        else:
            with pytest.raises(ArgumentError, match="no tolerance"):
                tolerance(dtype, math, engine=engine, what=what)


@pytest.mark.parametrize("what", WHAT)
def test_coarser_dtypes_have_wider_bounds_in_proportion_to_their_rounding(what: str) -> None:
    bounds = [tolerance(dtype, "full", engine="cudnn", what=what) for dtype in DTYPES]
    half, brain, single, double = bounds
    assert double < single < half < brain
    assert brain == pytest.approx(half * 2 ** (10 - 7))  # bits behind the point


def test_every_dtype_and_math_has_a_distance_to_kinks_wider_where_more_is_rounded() -> None:
    assert kink_distance("float64") < kink_distance("float32") == kink_distance("float16")
    full, default, half = (kink_distance("float32", math, engine="cudnn") for math in
                           ("full", "default", "half"))  # fmt: skip
    assert full < default < half
    assert kink_distance("float16", engine="cudnn") < kink_distance("bfloat16", engine="cudnn")
    # The library takes the bounds of a clip as float32.
    clipped = kink_distance("float64", engine="cudnn", clip=True)
    assert kink_distance("float64", engine="cudnn") < clipped < 1e-5


def test_unknown_words_are_refused() -> None:
    with pytest.raises(ArgumentError, match="what is 'loss'"):
        tolerance("float32", what="loss")
    with pytest.raises(ArgumentError, match="no tolerance"):
        tolerance("int8")
    with pytest.raises(ArgumentError, match="no tolerance"):
        tolerance("float32", engine="torch")
