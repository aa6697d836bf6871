"""Results that share an allocation, or come again once they were let go: nobody can tell."""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.engines.cudnn.device import fresh
from tests.gpu.test_graphs import COMES_BACK, SPECS, changed, store, without_lengths
from tests.gpu.work import all_at_once, as_bytes, assert_same_bytes, on_device, problem, train

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


# --- results that were let go come again ----------------------------------------------------------

LENGTHS = (1,) * 4
AGAIN = 12
"""Calls after which every place that comes back has been recorded."""

KEPT: dict[str, Callable[[Any], Any]] = {
    "itself": lambda array: array,
    "a view": lambda array: array[0],
    "another shape": lambda array: array.reshape(-1),
    "another dtype": lambda array: array.view("uint8"),
    "a view of its end": lambda array: array.reshape(-1)[1:],
    "DLPack": lambda array: cupy_of(array).from_dlpack(array),
}


def cupy_of(array: Any) -> Any:
    import cupy

    return cupy


def steps(name: str) -> tuple[v2.RNNSpec, list[Any], dict[str, Any]]:
    """A network, single steps of it whose numbers differ, and how it is called."""
    spec, data, how = problem(SPECS[name], LENGTHS)
    data = on_device(data)
    for _ in range(COMES_BACK):
        train(spec, data, without_lengths(how))
    return spec, [changed(data, k) for k in range(AGAIN)], without_lengths(how)


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("result", ["y", "hy", "cy", "dx", "dhx", "dcx", "dw"])
def test_what_is_kept_of_results_keeps_its_numbers(cupy: Any, result: str, kept: str) -> None:
    spec, given, how = steps("lstm float32")
    held = []
    for data in given:
        array = train(spec, data, how)[result]
        held.append((KEPT[kept](array), KEPT[kept](array.copy())))
        del array
    for data in given:
        train(spec, data, how)
    for got, wanted in held:
        assert_same_bytes(as_bytes({result: got}), as_bytes({result: wanted}))


def test_what_a_pointer_was_kept_of_keeps_its_numbers(cupy: Any) -> None:
    spec, given, how = steps("lstm float32")
    held = []
    for data in given:
        out = v2.rnn_forward(spec, data.w, data.x, data.hx, data.cx, training=True, **how)
        held.append((out.hy.data, out.hy.data + 0, out.hy.copy()))
    for data in given:
        train(spec, data, how)
    for first, second, wanted in held:
        for pointer in (first, second):
            got = cupy.ndarray(wanted.shape, wanted.dtype, pointer)
            assert_same_bytes(as_bytes({"hy": got}), as_bytes({"hy": wanted}))


@pytest.mark.parametrize("training", [False, True])
def test_results_that_were_let_go_come_again(cupy: Any, training: bool) -> None:
    spec, given, how = steps("lstm float32")

    def place(data: Any) -> int:
        arrays = (data.w, data.x, data.hx, data.cx)
        out = v2.rnn_forward(spec, *arrays, training=training, **how)
        if training:
            v2.rnn_backward(out, data.dy)
        return int(out.y.data.ptr)

    for _ in range(COMES_BACK):
        place(given[0])
    assert len({place(data) for data in given}) == 1


def test_who_has_a_weak_reference_to_results_never_sees_others_in_their_place(cupy: Any) -> None:
    spec, given, how = steps("lstm float32")
    seen = []
    for data in given:
        out = v2.rnn_forward(spec, data.w, data.x, data.hx, data.cx, training=True, **how)
        seen.append(weakref.ref(out.y))
        del out
    results = train(spec, given[0], how)
    assert all(one() is not results["y"] for one in seen)


def test_threads_that_meet_on_one_stream_get_results_of_their_own(cupy: Any) -> None:
    spec, given, how = steps("lstm float32")

    def infer(data: Any) -> Any:
        return v2.rnn_forward(spec, data.w, data.x, data.hx, data.cx, **how).y

    for _ in range(COMES_BACK):
        infer(given[0])
    wanted = [cupy.asnumpy(infer(data)) for data in given]

    def work(number: int) -> int:
        wrong = 0
        for k in range(300):
            which = (number + k) % AGAIN
            y = infer(given[which])
            wrong += not np.array_equal(cupy.asnumpy(y), wanted[which])
        return wrong

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        assert sum(all_at_once(work, 8)) == 0
    finally:
        sys.setswitchinterval(before)


def test_a_loop_that_hands_its_state_on_computes_what_plain_calls_compute(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, given, how = steps("lstm float32")

    def loop() -> list[dict[str, bytes]]:
        hx, cx, seen = given[0].hx, given[0].cx, []
        for k in range(60):
            y, hx, cx = v2.rnn_forward(spec, given[0].w, given[k % AGAIN].x, hx, cx, **how)
            seen.append(as_bytes({"y": y, "hy": hx, "cy": cx}))
        return seen

    got = loop()
    monkeypatch.setenv("CUDNN_COMPAT_GRAPHS", "off")
    v2.clear_plans()
    for one, wanted in zip(got, loop(), strict=True):
        assert_same_bytes(one, wanted)
    v2.clear_plans()


def test_what_is_kept_to_come_again_is_counted_and_goes_with_the_plans(
    cupy: Any, pool: Any
) -> None:
    spec, given, how = steps("lstm float32")
    v2.clear_plans()
    gc.collect()
    before = pool.used_bytes()
    for data in given:
        train(spec, data, how)
    (slot,) = store()._slots
    sets = [one for recycled in slot._recycled.values() for one in recycled._sets]
    assert len(sets) == 2  # one forward, one backward
    arrays = [array for one in sets for array in one.results.arrays if array is not None]
    assert slot.bytes > sum(array.nbytes for array in [*arrays, *slot._arrays.values()])
    del slot, sets, arrays
    v2.clear_plans()
    gc.collect()
    assert pool.used_bytes() == before
