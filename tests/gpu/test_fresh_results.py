"""Results that are allocated together: small ones share memory, and nobody can tell."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.engines.cudnn.device import fresh

pytestmark = pytest.mark.gpu


@pytest.fixture
def pool(cupy: Any) -> Any:
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        yield pool


def ends(array: Any) -> tuple[int, int]:
    return array.data.ptr, array.data.ptr + array.nbytes


@pytest.mark.parametrize("size", [0, 1, 100, 5000, 100_000, 1_000_000])
def test_arrays_do_not_overlap_are_aligned_and_own_their_memory(
    cupy: Any, pool: Any, size: int
) -> None:
    kind = np.dtype("float32")
    shapes = ((1, size), None, (size,), (size, 1), (1, 1, size), (2, size))
    arrays = fresh(cupy, shapes, kind)
    assert arrays[1] is None
    made = [array for array in arrays if array is not None]
    assert [array.shape for array in made] == [shape for shape in shapes if shape is not None]
    spans = sorted(map(ends, made))
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert end <= start
    for array in made:
        assert array.dtype == kind
        assert array.data.ptr % 512 == 0
        assert array.base is None
        assert array.flags.c_contiguous


def test_what_is_kept_of_results_keeps_no_more_than_three_times_its_memory(
    cupy: Any, pool: Any
) -> None:
    kind = np.dtype("float32")
    arrays = fresh(cupy, ((100, 64),) * 8 + ((1000, 64),), kind)
    kept = arrays[1]
    del arrays
    gc.collect()
    assert kept is not None
    assert pool.used_bytes() <= 3 * kept.nbytes
    large = fresh(cupy, ((1000, 1000),) * 2, kind)[:1]
    gc.collect()
    assert large[0] is not None
    assert pool.used_bytes() <= 3 * kept.nbytes + large[0].nbytes + 512


def test_a_long_output_is_let_go_where_only_its_last_state_is_kept(cupy: Any, pool: Any) -> None:
    spec = v2.RNNSpec("lstm", 8, 64)
    w = cupy.zeros(v2.weight_size(spec), "float32")
    x = cupy.zeros((500, 1, 8), "float32")
    hy = v2.rnn_forward(spec, w, x).hy
    for _ in range(8):
        hy = v2.rnn_forward(spec, w, x).hy
    v2.clear_plans()
    del w, x
    gc.collect()
    assert pool.used_bytes() < 4096
    assert hy.shape == (1, 1, 64)
