"""Parts of the package that only move arrays, on CuPy's: the same as on NumPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_compat import v2
from cudnn_compat.arrays import array_module, check_array, device_of, dtype_name, is_cupy
from cudnn_compat.sequences import LAYOUTS, make_sequences
from cudnn_compat.v2 import ArgumentError, DTypeError, RNNSpec
from tests.engine import Engine

pytestmark = pytest.mark.gpu

some_lengths = st.lists(st.integers(0, 6), max_size=6)
STACK = RNNSpec("lstm", 5, 4, num_layers=2, bidirectional=True, proj_size=3)


@pytest.fixture
def gpu() -> Engine:
    import cupy

    return Engine("cudnn", cupy)


def test_an_array_tells_its_library_device_and_dtype(gpu: Engine) -> None:
    a = gpu.xp.zeros(3, "float32")
    check_array("x", a)
    assert is_cupy(a)
    assert not is_cupy(np.zeros(3))
    assert array_module(a) is gpu.xp
    assert (device_of(a), dtype_name(a)) == ("cuda:0", "float32")


# --- packing ---------------------------------------------------------------------------------


@settings(max_examples=60)
@given(lengths=some_lengths, more=st.integers(0, 2), layout=st.sampled_from(LAYOUTS[:2]))
def test_packing_and_unpacking_give_what_they_give_on_the_host(
    lengths: list[int], more: int, layout: str
) -> None:
    import cupy

    steps, batch = max(lengths, default=0) + more, len(lengths)
    shape = (steps, batch, 2) if layout == "time_major" else (batch, steps, 2)
    x = np.random.default_rng(1).normal(size=shape)
    packed = v2.pack(cupy.asarray(x), lengths, layout=layout)
    wanted = v2.pack(x, lengths, layout=layout)
    assert packed.lengths == wanted.lengths
    assert np.array_equal(packed.data.get(), wanted.data)
    back = v2.unpack(packed, steps=steps, layout=layout)
    assert type(back) is cupy.ndarray
    assert back.flags.c_contiguous
    assert np.array_equal(back.get(), v2.unpack(wanted, steps=steps, layout=layout))


def test_packing_and_unpacking_copy_and_keep_the_dtype(gpu: Engine) -> None:
    for dtype in ("float16", "float32", "int32"):
        x = gpu.xp.zeros((3, 2, 1), dtype)
        packed = v2.pack(x, [3, 3])
        padded = v2.unpack(packed)
        x[...] = 1
        assert not gpu.get(packed.data).any()
        packed.data[...] = 2
        assert not gpu.get(padded).any()
        assert packed.data.dtype == padded.dtype == dtype


def test_padding_may_hold_nan_when_it_is_packed(gpu: Engine) -> None:
    x = np.full((3, 2, 1), np.nan)
    x[:2, 0], x[:1, 1] = 1, 2
    assert v2.pack(gpu.put(x), [2, 1]).data.ravel().tolist() == [1, 2, 1]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_lengths_may_be_an_array_on_the_gpu(dtype: str, gpu: Engine) -> None:
    lengths = gpu.put(np.array([3, 0, 2], dtype))
    sequences = make_sequences("time_major", (4, 3, 1), lengths=lengths)
    assert sequences.lengths == (3, 0, 2)
    assert all(type(n) is int for n in sequences.lengths)
    with pytest.raises(DTypeError, match="lengths has dtype float32"):
        make_sequences("time_major", (4, 3, 1), lengths=lengths.astype("float32"))
    with pytest.raises(ArgumentError, match=r"lengths\[0\] is 3"):
        make_sequences("time_major", (2, 3, 1), lengths=lengths)


@settings(max_examples=60)
@given(lengths=some_lengths, layout=st.sampled_from(LAYOUTS))
def test_rows_and_states_are_sorted_and_unsorted_as_on_the_host(
    lengths: list[int], layout: str
) -> None:
    import cupy

    steps, batch = max(lengths, default=0), len(lengths)
    shapes = {"time_major": (steps, batch, 2), "batch_major": (batch, steps, 2)}
    shape = shapes.get(layout, (sum(lengths), 2))
    sequences = make_sequences(layout, shape, lengths=lengths)
    x = np.random.default_rng(0).normal(size=shape)
    rows = sequences.gather(cupy.asarray(x), x.dtype)
    assert np.array_equal(rows.get(), sequences.gather(x, x.dtype))
    back, wanted = cupy.full(shape, cupy.nan), np.full(shape, np.nan)
    sequences.scatter(rows, back)
    sequences.scatter(rows.get(), wanted)
    assert np.array_equal(back.get(), wanted)
    states = np.random.default_rng(1).normal(size=(2, batch, 3))
    in_order = sequences.sort_states(cupy.asarray(states))
    assert np.array_equal(in_order.get(), sequences.sort_states(states))
    out = cupy.empty(states.shape)
    sequences.unsort_states(in_order, out)
    assert np.array_equal(out.get(), states)


# --- weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_weights_drawn_for_the_gpu_are_those_drawn_for_the_host(dtype: str, gpu: Engine) -> None:
    gpu.needs(dtype)
    spec = STACK.replace(dtype=dtype)
    w = v2.init_weights(spec, seed=3, xp=gpu.xp)
    assert type(w) is gpu.xp.ndarray
    assert dtype_name(w) == dtype
    assert gpu.get(w).tobytes() == v2.init_weights(spec, seed=3).tobytes()


def test_names_are_views_at_the_offsets_that_they_have_on_the_host(gpu: Engine) -> None:
    host = np.arange(v2.weight_size(STACK), dtype="float32")
    w = gpu.put(host)
    named, wanted = v2.named_weights(STACK, w), v2.named_weights(STACK, host)
    assert list(named) == list(wanted)
    for name, view in named.items():
        assert np.array_equal(gpu.get(view), wanted[name]), name
        assert view.data.ptr - w.data.ptr == 4 * int(wanted[name].flat[0])
    pairs = itertools.product(range(STACK.num_pseudo_layers), named.linear_ids())
    for pair in pairs:
        for view, right in zip(named[pair], wanted[pair], strict=True):
            assert (view is None) == (right is None)
            assert view is None or np.array_equal(gpu.get(view), right)
    for view in named.values():
        view[...] = -1
    assert (gpu.get(w) == -1).all()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda w: w[:-1], ArgumentError, "w has shape"),
        (lambda w: w[None], ArgumentError, "w has shape"),
        (lambda w: w.astype("float64"), DTypeError, "float64.*float32"),
        (lambda w: w.repeat(2)[::2], ArgumentError, "not contiguous"),
    ],
    ids=["short", "two axes", "float64", "gaps"],
)
def test_what_is_no_weight_space_on_the_gpu_is_refused(
    change: Any, error: Any, words: str, gpu: Engine
) -> None:
    w = v2.init_weights(STACK, seed=0, xp=gpu.xp)
    with pytest.raises(error, match=words):
        v2.named_weights(STACK, change(w))
