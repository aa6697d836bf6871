"""Times of calls: turns, medians, and how many calls make a turn."""

from __future__ import annotations

import gc

import pytest

from cudnn_compat.bench.timing import (
    Pace,
    Timing,
    host_timer,
    median,
    spread,
    take_turns,
    undisturbed,
)


class Side:
    """A timer of calls that take so long, and notes of what it was asked."""

    def __init__(self, us: float, order: list[str] | None = None, name: str = "") -> None:
        self.us, self.counts, self.order, self.name = us, [], order, name

    def __call__(self, count: int) -> Timing:
        self.counts.append(count)
        if self.order is not None:
            self.order.append(self.name)
        return Timing(self.us, self.us + 1)


def test_a_turn_has_as_many_calls_as_fit_into_it_and_at_least_one() -> None:
    pace = Pace(rounds=3, round_ms=1, warm_up=0, warm_up_calls=4)
    fast, slow = Side(99), Side(5000)
    take_turns({"fast": fast, "slow": slow}, pace)
    assert fast.counts == [4, 2, 10, 10, 10]
    assert slow.counts == [4, 1, 1, 1]


def test_sides_take_turns_and_the_order_turns_around_from_round_to_round() -> None:
    order: list[str] = []
    sides = {name: Side(10, order, name) for name in "abc"}
    times = take_turns(sides, Pace(rounds=2, round_ms=0.1, warm_up=0, warm_up_calls=1))
    assert order[-6:] == ["a", "b", "c", "c", "b", "a"]
    assert times == {name: [Timing(10, 11)] * 2 for name in "abc"}


def test_warming_up_lasts_as_long_as_it_is_told_to() -> None:
    side = Side(10)
    take_turns({"": side}, Pace(rounds=1, round_ms=0.1, warm_up=0.02, warm_up_calls=1))
    assert side.counts.count(1) > 10


def test_medians_are_taken_clock_by_clock() -> None:
    assert median([Timing(1, 30), Timing(2, 10), Timing(9, 20)]) == Timing(2, 20)


def test_the_spread_is_that_of_the_speed_ups_of_single_rounds() -> None:
    ours, theirs = [Timing(1, 0), Timing(2, 0)], [Timing(3, 0), Timing(3, 0)]
    assert spread(ours, theirs) == (1.5, 3.0)


def test_the_host_s_clock_measures_one_call() -> None:
    calls = []

    def call() -> None:
        calls.append(1)

    timing = host_timer(call)(50)
    assert len(calls) == 50
    assert timing.device == timing.wall
    assert 0 < timing.wall < 1000


def test_a_pace_without_rounds_is_refused() -> None:
    with pytest.raises(ValueError, match="rounds is 0; wanted at least 1"):
        Pace(rounds=0)


def test_nothing_is_collected_while_something_is_measured() -> None:
    assert gc.isenabled()
    with undisturbed():
        assert not gc.isenabled()
    assert gc.isenabled()
