"""Results that nobody has any more are handed out again unnoticed, on a CuPy made here."""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudnn_compat.engines.cudnn.graphs import recycling
from cudnn_compat.engines.cudnn.graphs.recycling import Recycled

KIND = np.dtype("float32")
SHAPES = ((1, 2, 8), (1, 2, 8), None, (1000,))


class Memory:
    """A piece of memory of its own."""

    places = itertools.count(1 << 20, 1 << 16)

    def __init__(self) -> None:
        self.ptr = next(self.places)

    def free(self) -> None:
        self.ptr = 0


class Pointer:
    """``cupy.cuda.MemoryPointer``."""

    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem = mem
        self.ptr = mem.ptr + offset

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.mem, self.ptr - self.mem.ptr + offset)

    def __iadd__(self, offset: int) -> Pointer:
        self.ptr += offset
        return self


class Ndarray:
    """``cupy.ndarray``."""

    # As CuPy's, attributes are looked up without running anything of Python's.
    __slots__ = ("__weakref__", "data", "dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, data: Pointer) -> None:
        self.shape = shape
        self.dtype = dtype
        self.data = data


class Other(Ndarray):
    """A class of the caller's, of which an array can become one."""

    __slots__ = ()


class Pool:
    """``cupy.cuda.MemoryPool``."""

    def __init__(self) -> None:
        self.allocations = 0

    def malloc(self, size: int) -> Pointer:
        self.allocations += 1
        return Pointer(Memory(), 0)


class Cupy:
    """What is asked of CuPy."""

    ndarray: type = Ndarray

    def __init__(self) -> None:
        self.pool = Pool()
        self.cuda = types.SimpleNamespace(
            get_allocator=lambda: self.pool.malloc, alloc=lambda size: self.pool.malloc(size)
        )

    @property
    def allocations(self) -> int:
        return self.pool.allocations


def always(size: int) -> bool:
    return True


@pytest.fixture
def ask() -> Callable[[], list[Any]]:
    """A function that gives the results of call after call."""
    return caller()


def caller(
    shapes: Any = SHAPES, admit: Callable[[int], bool] = always, xp: Any = None
) -> Callable[[], list[Any]]:
    recycled = Recycled(xp or Cupy(), shapes, KIND)  # type: ignore[arg-type]

    def ask() -> list[Any]:
        results = recycled.results(shapes, admit)
        assert results is not None
        assert list(results.addresses) == [place or 0 for place in places(list(results.arrays))]
        return list(results.arrays)

    return ask


def places(arrays: list[Any]) -> list[int | None]:
    return [None if array is None else array.data.ptr for array in arrays]


def test_results_have_the_shapes_that_were_asked_for(ask: Any) -> None:
    for _ in range(3):
        results = ask()
        assert [None if one is None else one.shape for one in results] == list(SHAPES)
        assert all(one is None or one.dtype == KIND for one in results)
        assert len(set(places(results))) == len(SHAPES)


def test_results_that_were_let_go_are_handed_out_again() -> None:
    xp = Cupy()
    ask = caller(xp=xp)
    first = places(ask())
    made = xp.allocations
    for _ in range(100):
        assert places(ask()) == first
    assert xp.allocations == made


KEPT: dict[str, Callable[[list[Any]], Any]] = {
    "all": lambda arrays: arrays,
    "an array": lambda arrays: arrays[1],
    "the last array": lambda arrays: arrays[3],
    "its pointer": lambda arrays: arrays[0].data,
    "another pointer": lambda arrays: arrays[0].data + 4,
    "its memory": lambda arrays: arrays[3].data.mem,
    "a weak reference": lambda arrays: weakref.ref(arrays[1]),
    "an array in a cycle": lambda arrays: in_a_cycle(arrays[0]),
}


def in_a_cycle(array: Any) -> Any:
    cycle: list[Any] = [array]
    cycle.append(cycle)
    return cycle


@pytest.mark.parametrize("kept", KEPT)
def test_results_are_not_handed_out_while_anybody_has(kept: str, ask: Any) -> None:
    first = ask()
    before = places(first)
    keep = KEPT[kept](first)
    del first
    second = ask()
    assert set(places(second)).isdisjoint(set(before) - {None})
    del second
    keep = None
    gc.collect()
    del keep
    # Both are free: whichever comes, it is one of the two.
    assert before in [places(ask()) for _ in range(2)]


def reshape(arrays: list[Any]) -> None:
    arrays[0].shape = (16,)


def of_another_class(arrays: list[Any]) -> None:
    arrays[0].__class__ = Other


def move_pointer(arrays: list[Any]) -> None:
    pointer = arrays[0].data
    pointer += 128


def free_memory(arrays: list[Any]) -> None:
    arrays[0].data.mem.free()


@pytest.mark.parametrize("change", [reshape, of_another_class, move_pointer, free_memory])
def test_results_that_were_changed_are_not_handed_out(change: Any, ask: Any) -> None:
    first = ask()
    change(first)
    del first
    for _ in range(5):
        results = ask()
        assert [None if one is None else one.shape for one in results] == list(SHAPES)
        assert all(type(one) is Ndarray for one in results if one is not None)
        assert all(one.data.ptr >= one.data.mem.ptr > 0 for one in results if one is not None)
        assert all(one.data.ptr % 512 == 0 for one in results if one is not None)


def test_arrays_that_can_be_given_attributes_are_not_kept() -> None:
    class Open(Ndarray):
        pass

    xp = Cupy()
    xp.ndarray = Open
    ask = caller(xp=xp)
    ask()[0].name = "mine"
    assert not hasattr(ask()[0], "name")


def test_memory_comes_from_the_allocator_that_is_in_force() -> None:
    xp = Cupy()
    ask = caller(xp=xp)
    before = places(ask())
    xp.pool, mine = Pool(), xp.pool
    assert places(ask()) != before
    assert xp.pool.allocations == 2
    xp.pool = mine
    assert places(ask()) != before  # which was let go


def test_who_allocates_is_not_kept() -> None:
    xp = Cupy()
    ask = caller(xp=xp)
    ask()
    pool = weakref.ref(xp.pool)
    xp.pool = Pool()
    gc.collect()
    assert pool() is None


def test_a_function_may_be_what_allocates() -> None:
    xp = Cupy()
    malloc = xp.pool.malloc
    xp.cuda.get_allocator = lambda: len  # of a module
    xp.cuda.alloc = lambda size: malloc(size)
    ask = caller(xp=xp)
    first = places(ask())
    assert places(ask()) == first


def test_two_sets_take_turns_where_the_last_results_are_still_had() -> None:
    xp = Cupy()
    ask = caller(xp=xp)
    seen = []
    results: Any = None
    for _ in range(50):
        results = ask()
        seen.append(tuple(places(results)))
    assert len(set(seen)) == 2
    assert all(one != other for one, other in itertools.pairwise(seen))
    assert xp.allocations == 4  # the small ones share memory


def test_who_keeps_everything_is_not_looked_for_in_every_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = []
    original = recycling._Set.is_free

    def is_free(self: Any) -> bool:
        looked.append(self)
        return original(self)

    monkeypatch.setattr(recycling._Set, "is_free", is_free)
    ask, kept = caller(), []
    for _ in range(1000):
        kept.append(ask())
    assert len(looked) < 100
    kept.clear()
    before = {tuple(places(ask())) for _ in range(600)}
    assert len(before) < 300  # it has looked again, and found them


def test_nothing_is_kept_that_may_not_be() -> None:
    asked: list[int] = []
    xp = Cupy()
    ask = caller(admit=lambda size: bool(asked.append(size)), xp=xp)
    for _ in range(5):
        ask()
    assert asked == [5120] * 5
    assert xp.allocations == 5 * 2


def test_where_there_is_no_room_for_a_second_set_the_first_still_comes_again() -> None:
    answers = [True]
    xp = Cupy()
    ask = caller(admit=lambda size: bool(answers) and answers.pop(), xp=xp)
    kept = ask()
    ask()
    first = places(ask())
    for _ in range(50):
        assert places(ask()) == first
    assert places(kept) != first


def test_what_is_kept_is_asked_for_once_each() -> None:
    asked: list[int] = []
    ask = caller(admit=lambda size: asked.append(size) is None)
    kept = [ask() for _ in range(5)]
    assert asked == [5120, 5120]
    del kept


def test_large_results_are_not_kept() -> None:
    xp = Cupy()
    ask = caller(((2 << 20,),), xp=xp)
    for _ in range(3):
        ask()
    assert xp.allocations == 3


def test_results_of_other_shapes_are_fresh() -> None:
    recycled = Recycled(Cupy(), SHAPES, KIND)  # type: ignore[arg-type]
    before = recycled.results(SHAPES, always).addresses  # type: ignore[union-attr]
    other: Any = ((3,), (4,), (5,), (6,))
    results: Any = recycled.results(other, always)
    assert [one.shape for one in results.arrays] == list(other)
    del results
    results = recycled.results(SHAPES, always)
    assert results.addresses == before


def test_where_counts_do_not_say_who_has_an_object_results_are_fresh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    xp = Cupy()
    ask = caller(xp=xp)
    for _ in range(3):
        ask()
    assert xp.allocations == 3 * 2


@given(st.lists(st.integers(-1, 5), max_size=60))
def test_nobody_ever_gets_what_somebody_has(steps: list[int]) -> None:
    ask = caller()
    held: list[list[Any]] = []
    for step in steps:
        if step < 0 or not held:
            held.append(ask())
        else:
            del held[step % len(held)]
        had = [place for results in held for place in places(results) if place is not None]
        assert len(set(had)) == len(had)


def test_an_allocator_that_puts_results_where_graphs_cannot_write_is_told() -> None:
    xp = Cupy()
    xp.cuda.alloc = lambda size: Pointer(Memory(), 4)
    assert Recycled(xp, SHAPES, KIND).results(SHAPES, always) is None


def test_a_weak_reference_that_is_used_while_one_looks_gets_nothing_that_others_get() -> None:
    """The other thread turns a weak reference into a strong one again and again."""
    recycled: Any = Recycled(Cupy(), SHAPES, KIND)  # type: ignore[arg-type]
    references: list[Any] = []
    had: list[Any] = [None]
    over = threading.Event()

    def use_references() -> None:
        while not over.is_set():
            with contextlib.suppress(IndexError):
                reference = references.pop()
                array = reference()
                del reference
                had[0] = array
                time.sleep(0)
                had[0] = array = None

    def share() -> int:
        shared, end = 0, time.monotonic() + 1.5
        while time.monotonic() < end:
            recycled._pause = recycled._misses = 0
            (array, *_), _ = recycled.results(SHAPES, always)
            references.append(weakref.ref(array))
            array = None
            (array, *_), _ = recycled.results(SHAPES, always)
            other = had[0]
            shared += other is not None and other is array
            array = other = None
            references.clear()
        return shared

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-7)
    try:
        with ThreadPoolExecutor(1) as pool:
            using = pool.submit(use_references)
            shared = share()
            over.set()
            using.result()
    finally:
        sys.setswitchinterval(before)
    assert shared == 0
