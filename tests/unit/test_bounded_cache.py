"""The cache of plans: bounds, order, weights, threads, and making that asks for more or fails."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudnn_compat.engines.cache import BoundedCache

SOON = 10.0
"""Seconds after which something that should not wait is taken to wait."""


class Thing:
    """Something to be kept, of a weight."""

    def __init__(self, weight: int = 0) -> None:
        self.weight = weight


def never() -> Any:
    raise AssertionError("what is there is not made again")


# --- bounds and order ------------------------------------------------------------------------


def test_an_entry_is_made_at_first_use_and_found_from_then_on() -> None:
    cache: BoundedCache[Thing] = BoundedCache(2)
    made = cache.get("a", Thing)
    assert cache.get("a", never) is made
    assert cache.get("b", Thing) is not made


@pytest.mark.parametrize("size", [1, 2, 5])
def test_it_never_keeps_more_entries_than_it_may(size: int) -> None:
    cache: BoundedCache[int] = BoundedCache(size)
    for k in range(1, 20):
        assert cache.get(k, lambda k=k: k) == k
        assert len(cache.entries()) == min(k, size)
    assert cache.entries() == tuple(range(20 - size, 20))


def test_what_was_used_last_stays_and_what_was_used_longest_ago_goes() -> None:
    cache: BoundedCache[str] = BoundedCache(3)
    for key in "abc":
        cache.get(key, lambda key=key: key)
    cache.get("a", never)
    assert cache.entries() == ("b", "c", "a")
    cache.get("d", lambda: "d")
    assert cache.entries() == ("c", "a", "d")


def test_what_is_evicted_or_cleared_lives_on_with_whoever_uses_it_and_with_nobody_else() -> None:
    cache: BoundedCache[Thing] = BoundedCache(1)
    used = cache.get("a", Thing)
    unused = weakref.ref(cache.get("b", Thing))
    assert used.weight == 0
    cache.clear()
    gc.collect()
    assert unused() is None
    assert cache.entries() == ()
    assert cache.get("a", Thing) is not used


def test_one_entry_can_be_discarded_and_a_key_that_is_not_there_too() -> None:
    cache: BoundedCache[str] = BoundedCache(3)
    for key in "ab":
        cache.get(key, lambda key=key: key)
    cache.discard("a")
    cache.discard("nothing")
    assert cache.entries() == ("b",)


def test_who_asks_again_and_again_finds_an_entry_by_its_place() -> None:
    cache: BoundedCache[str] = BoundedCache(2)
    kept, made = cache.keep("a", lambda: "a")
    assert (kept.use(), made) == ("a", "a")
    assert cache.keep("a", never) == (kept, "a")
    cache.get("b", lambda: "b")
    kept.use()  # so that it was used last
    cache.get("c", lambda: "c")
    assert cache.entries() == ("a", "c")


@pytest.mark.parametrize("end", ["evict", "discard", "clear"])
def test_a_place_keeps_nothing_that_the_cache_has_let_go(end: str) -> None:
    cache: BoundedCache[Thing] = BoundedCache(1)
    kept, made = cache.keep("a", Thing)
    gone = weakref.ref(made)
    del made
    if end == "evict":
        cache.get("b", Thing)
    elif end == "discard":
        cache.discard("a")
    else:
        cache.clear()
    gc.collect()
    assert kept.use() is None
    assert gone() is None
    assert cache.keep("a", Thing)[0] is not kept


def test_nothing_cannot_be_kept() -> None:
    cache: BoundedCache[None] = BoundedCache(1)
    with pytest.raises(TypeError, match="None"):
        cache.get("a", lambda: None)
    assert cache.entries() == ()


# --- weights ---------------------------------------------------------------------------------


def weighing(most: int, maxsize: int = 100) -> BoundedCache[Thing]:
    return BoundedCache(maxsize, most=most, weigh=lambda thing: thing.weight)


def total(cache: BoundedCache[Thing]) -> int:
    return sum(thing.weight for thing in cache.entries())


def test_entries_together_never_weigh_more_than_they_may() -> None:
    cache = weighing(10)
    for k, weight in enumerate([4, 4, 4, 1, 9, 2, 10, 3]):
        cache.get(k, lambda weight=weight: Thing(weight))
        assert total(cache) <= 10
    assert [thing.weight for thing in cache.entries()] == [3]


def test_an_entry_that_weighs_too_much_by_itself_is_given_but_not_kept() -> None:
    cache = weighing(10)
    kept = cache.get("a", lambda: Thing(10))
    heavy = cache.get("b", lambda: Thing(11))
    assert heavy.weight == 11
    assert cache.entries() == (kept,)
    assert cache.get("b", lambda: Thing(11)) is not heavy


def test_weight_that_was_discarded_or_cleared_is_there_again() -> None:
    cache = weighing(10)
    cache.get("a", lambda: Thing(6))
    cache.discard("a")
    cache.get("b", lambda: Thing(6))
    cache.get("c", lambda: Thing(4))
    assert total(cache) == 10
    cache.clear()
    for key in "de":
        cache.get(key, lambda: Thing(5))
    assert total(cache) == 10


operations = st.lists(
    st.one_of(
        st.tuples(st.just("get"), st.integers(0, 9)),
        st.tuples(st.just("discard"), st.integers(0, 9)),
        st.tuples(st.just("clear"), st.just(0)),
    ),
    max_size=60,
)


@given(operations, st.integers(1, 4), st.integers(0, 12))
def test_it_holds_what_a_plain_list_would_hold(done: Any, maxsize: int, most: int) -> None:
    # Key k weighs k. The list is in order of use.
    cache: BoundedCache[int] = BoundedCache(maxsize, most=most, weigh=lambda k: k)
    held: list[int] = []
    for what, key in done:
        if what == "clear":
            cache.clear()
            held.clear()
            continue
        if what == "discard":
            cache.discard(key)
            held = [k for k in held if k != key]
            continue
        assert cache.get(key, lambda key=key: key) == key
        if key <= most or key in held:
            held = [k for k in held if k != key] + [key]
        while len(held) > maxsize or sum(held) > most:
            held.pop(0)
        assert cache.entries() == tuple(held)
    assert cache.entries() == tuple(held)


# --- making that asks for more, or fails -------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 10])
def test_making_an_entry_may_ask_for_others(size: int) -> None:
    cache: BoundedCache[int] = BoundedCache(size)

    def factorial(n: int) -> int:
        return cache.get(n, lambda: n * factorial(n - 1) if n else 1)

    assert factorial(6) == 720
    assert len(cache.entries()) == min(size, 7)
    assert cache.entries()[-1] == 720


def test_an_exception_while_making_leaves_nothing_and_no_lock() -> None:
    cache: BoundedCache[str] = BoundedCache(2)
    cache.get("a", lambda: "a")

    def fail() -> str:
        cache.get("part", lambda: "part")
        raise RuntimeError("planted")

    for _ in range(3):
        with pytest.raises(RuntimeError, match="planted"):
            cache.get("b", fail)
    assert cache.entries() == ("a", "part")
    # From another thread, which a lock that is still held would keep out.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(cache.get, "b", lambda: "b").result(SOON) == "b"


# --- threads ---------------------------------------------------------------------------------


def all_at_once(*work: Callable[[], Any]) -> list[Any]:
    """What each gives in a thread of its own; they start together."""
    barrier = threading.Barrier(len(work))

    def run(one: Callable[[], Any]) -> Any:
        barrier.wait()
        return one()

    with ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(run, work))


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_an_entry_that_many_threads_want_is_made_once() -> None:
    cache: BoundedCache[Thing] = BoundedCache(100)
    counts = itertools.count()
    made: list[int] = []

    def make() -> Thing:
        made.append(next(counts))
        return Thing()

    for key in range(50):
        things = all_at_once(*[lambda key=key: cache.get(key, make)] * 8)
        assert len(set(map(id, things))) == 1
    assert len(made) == 50


@pytest.mark.usefixtures("switching")
def test_entries_can_be_listed_cleared_and_evicted_while_others_get_them() -> None:
    cache: BoundedCache[int] = BoundedCache(8, most=200, weigh=lambda k: k)
    rounds = 4000

    def get(step: int) -> None:
        for i in range(rounds):
            key = step * i % 23
            assert cache.get(key, lambda key=key: key) == key

    def look() -> None:
        for _ in range(rounds):
            entries = cache.entries()
            assert len(entries) <= 8
            assert len(set(entries)) == len(entries)

    def clear() -> None:
        for i in range(rounds // 10):
            cache.discard(i % 23)
            if i % 10 == 0:
                cache.clear()

    all_at_once(lambda: get(1), lambda: get(7), look, look, clear)
    # Nothing of the weight was lost or counted twice: exactly as much fits as before.
    cache.clear()
    for key in (100, 60, 40):
        cache.get(key, lambda key=key: key)
    assert cache.entries() == (100, 60, 40)


def test_what_is_there_can_be_had_while_something_else_is_made() -> None:
    cache: BoundedCache[str] = BoundedCache(3)
    cache.get("a", lambda: "a")
    making, go_on = threading.Event(), threading.Event()

    def slowly() -> str:
        making.set()
        assert go_on.wait(SOON)
        return "b"

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(cache.get, "b", slowly)
        try:
            assert making.wait(SOON)
            assert pool.submit(cache.get, "a", never).result(SOON / 2) == "a"
            assert pool.submit(cache.entries).result(SOON / 2) == ("a",)
        finally:
            go_on.set()
        assert slow.result(SOON) == "b"
    assert cache.entries() == ("a", "b")
