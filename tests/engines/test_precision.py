"""float16, bfloat16, float32, float64; and what is said when dtypes are mixed."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.matrix.tolerances import kink_distance
from cudnn_compat.v2 import ArgumentError, DTypeError, UnsupportedError
from tests.engine import Engine
from tests.engines.networks import (
    NETWORKS,
    check,
    draw,
    draw_away_from_kinks,
    each_network,
    expected,
    forward,
    run,
)

LENGTHS = (4, 0, 2)
ARGUMENTS = ("w", "x", "hx", "cx", "dy", "dhy", "dcy")

each_dtype = pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
each_half = pytest.mark.parametrize("dtype", ["float16", "bfloat16"])


def in_float32(data: Any) -> Any:
    given = {name: getattr(data, name) for name in ARGUMENTS}
    return data.replace(**{n: None if a is None else a.astype("float32") for n, a in given.items()})


@each_network
@each_dtype
@pytest.mark.parametrize("math", ["default", "full"])
def test_every_dtype_is_right_within_its_tolerance(
    spec: v2.RNNSpec, dtype: str, math: str, engine: Any
) -> None:
    check_precision(spec.replace(dtype=dtype, math=math), engine)


@pytest.mark.gpu
@each_network
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_half_math_of_cudnn_is_right_within_its_tolerance(spec: v2.RNNSpec, dtype: str) -> None:
    import cupy

    check_precision(spec.replace(dtype=dtype, math="half"), Engine("cudnn", cupy))


def check_precision(spec: v2.RNNSpec, engine: Any) -> None:
    engine.needs(spec.dtype)
    near = kink_distance(spec.dtype, spec.math, engine=engine.name, clip=spec.clip is not None)
    data = draw_away_from_kinks(spec, LENGTHS, near)
    check(spec, engine, run(engine, spec, data, lengths=LENGTHS), expected(spec, data, LENGTHS))


@each_network
@each_dtype
def test_results_have_the_dtype_of_the_spec(spec: v2.RNNSpec, dtype: str, engine: Any) -> None:
    engine.needs(dtype)
    spec = spec.replace(dtype=dtype)
    for how in ({}, {"lengths": LENGTHS}):
        for value in run(engine, spec, draw(spec, LENGTHS), **how).values():
            assert value is None or value.dtype == numpy_dtype(dtype)


@each_network
@each_half
def test_the_numpy_engine_computes_half_precision_in_float32_and_rounds_once(
    spec: v2.RNNSpec, dtype: str
) -> None:
    engine = Engine("numpy", np)  # cuDNN rounds what passes from step to step
    half, single = spec.replace(dtype=dtype), spec.replace(dtype="float32")
    for lengths in (LENGTHS, (3, 3)):
        data = draw(half, lengths)
        exact = run(engine, single, in_float32(data), lengths=lengths)
        for name, value in run(engine, half, data, lengths=lengths).items():
            if value is not None:
                assert np.array_equal(value, exact[name].astype(value.dtype)), name


def test_float64_is_not_computed_in_float32(engine: Any) -> None:
    spec = NETWORKS["lstm 2 layers bi"]
    data = draw(spec, LENGTHS)
    exact, results = expected(spec, data, LENGTHS), run(engine, spec, data, lengths=LENGTHS)
    for name, value in results.items():
        difference = np.abs(value - exact[name]).max()
        assert difference < 1e-13 * max(1, np.abs(exact[name]).max()), name


def test_default_and_full_math_are_one_on_numpy() -> None:
    spec = NETWORKS["gru"].replace(dtype="float32")
    data = draw(spec, LENGTHS)
    full, default = (
        v2.rnn_forward(spec.replace(math=math), data.w, data.x, data.hx).y
        for math in ("full", "default")
    )
    assert np.array_equal(full, default)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_the_numpy_engine_refuses_half_math_and_says_what_to_use(
    dtype: str, training: bool
) -> None:
    spec = v2.RNNSpec("gru", 3, 4, dtype=dtype, math="half")
    w = v2.init_weights(spec, 0)
    for engine in (None, "numpy"):
        with pytest.raises(UnsupportedError, match=r"math='half'.*math='default'"):
            v2.rnn_forward(spec, w, np.zeros((2, 1, 3), dtype), training=training, engine=engine)


def test_bfloat16_without_ml_dtypes_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy_dtype.cache_clear()
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    try:
        spec = v2.RNNSpec("gru", 3, 4, dtype="bfloat16")
        calls = (
            lambda: v2.init_weights(spec, 0),
            lambda: v2.rnn_forward(spec, np.zeros(3), np.zeros((2, 1, 3))),
            lambda: v2.GRU(3, 4, dtype="bfloat16"),
        )
        for call in calls:
            with pytest.raises(UnsupportedError, match="pip install ml_dtypes"):
                call()
        assert v2.weight_size(spec) == 108
    finally:
        numpy_dtype.cache_clear()


# --- mixed dtypes ---------------------------------------------------------------------------

OTHERS = {
    "float16": np.dtype("float16"),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float64": np.dtype("float64"),
    "int32": np.dtype("int32"),
    "uint8": np.dtype("uint8"),
    "bool": np.dtype("bool"),
    "complex64": np.dtype("complex64"),
    "object": np.dtype("object"),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("name", ["w", "x", "hx", "cx"])
def test_mixed_dtypes_are_refused_and_every_argument_is_listed_with_its_own(
    name: str, other: Any, engine: Any
) -> None:
    engine.needs(other.name)
    spec = v2.RNNSpec("lstm", 3, 4)
    data = draw(spec, (3, 2))
    mixed = data.replace(**{name: getattr(data, name).astype(other)})
    with pytest.raises(DTypeError) as refusal:
        forward(engine, spec, mixed)
    message = str(refusal.value)
    assert "dtype='float32'" in message
    for argument in ("w", "x", "hx", "cx"):
        dtype = other.name if argument == name else "float32"
        assert f"{argument} {dtype}" in message


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("name", ["dy", "dhy", "dcy"])
def test_mixed_dtypes_of_gradients_are_listed_too(name: str, other: Any, engine: Any) -> None:
    engine.needs(other.name)
    spec = v2.RNNSpec("lstm", 3, 4)
    data = draw(spec, (3, 2))
    out = forward(engine, spec, data)
    given = {n: getattr(data, n) for n in ("dy", "dhy", "dcy")}
    given[name] = given[name].astype(other)
    with pytest.raises(DTypeError) as refusal:
        v2.rnn_backward(out, **{n: engine.put(a) for n, a in given.items()})
    for argument in given:
        dtype = other.name if argument == name else "float32"
        assert f"{argument} {dtype}" in str(refusal.value)


def test_arguments_that_are_not_given_are_not_listed(engine: Any) -> None:
    spec = v2.RNNSpec("lstm", 3, 4)
    data = draw(spec, (3, 2)).without("hx", "cx")
    with pytest.raises(DTypeError) as refusal:
        forward(engine, spec, data.replace(x=data.x.astype("float16")))
    assert "hx" not in str(refusal.value)
    assert "cx" not in str(refusal.value)


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16"])
def test_all_arguments_of_one_dtype_that_is_not_the_spec_s_are_refused(
    dtype: str, engine: Any
) -> None:
    engine.needs(dtype)
    spec = v2.RNNSpec("gru", 3, 4)
    data = draw(spec.replace(dtype=dtype), (3, 2))
    with pytest.raises(DTypeError, match=f"dtype='float32'.*w {dtype}.*x {dtype}.*hx {dtype}"):
        forward(engine, spec, data)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["w", "x", "hx", "cx"])
def test_arguments_on_host_and_gpu_are_refused_and_each_is_listed_with_its_device(
    name: str,
) -> None:
    import cupy

    spec = v2.RNNSpec("lstm", 3, 4)
    data = draw(spec, (3, 2))
    for put, where, elsewhere in ((cupy.asnumpy, "cpu", "cuda:0"), (cupy.asarray, "cuda:0", "cpu")):
        other = cupy.asarray if put is cupy.asnumpy else cupy.asnumpy
        given = {n: (put if n == name else other)(getattr(data, n)) for n in ("w", "x", "hx", "cx")}
        with pytest.raises(ArgumentError, match="different devices") as refusal:
            v2.rnn_forward(spec, **given)
        for n in given:
            assert f"{n} on {where if n == name else elsewhere}" in str(refusal.value)


# CuPy's arrays are never of the other byte order.
def test_arrays_of_the_other_byte_order_are_refused_in_words_that_show_the_difference() -> None:
    spec = v2.RNNSpec("gru", 3, 4)
    data = draw(spec, (3, 2))
    swapped = data.x.astype(data.x.dtype.newbyteorder())
    with pytest.raises(DTypeError) as refusal:
        v2.rnn_forward(spec, data.w, swapped)
    # "x float32" beside "dtype='float32'" would leave the reader where he was.
    assert swapped.dtype.str in str(refusal.value) or "byte order" in str(refusal.value)
