"""Lengths and layouts: the geometry of a batch, the way to sorted packed order and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_compat.matrix.layouts import join_rows, split_rows
from cudnn_compat.sequences import LAYOUTS, Run, Sequences, make_sequences

FEATURES = 2
some_lengths = st.lists(st.integers(0, 6), max_size=6)
some_layouts = st.sampled_from(LAYOUTS)
some_padding = st.integers(0, 2)


def shape_of(layout: str, steps: int, lengths: Any) -> tuple[int, ...]:
    if layout == "packed":
        return (sum(lengths), FEATURES)
    batch = len(lengths)
    return (steps, batch, FEATURES) if layout == "time_major" else (batch, steps, FEATURES)


def geometry(layout: str, lengths: Any, more_steps: int = 0) -> Sequences:
    steps = max(lengths, default=0) + more_steps
    return make_sequences(layout, shape_of(layout, steps, lengths), lengths=lengths)


def rows_of(lengths: Any) -> list[np.ndarray]:
    """Sequences whose rows say who they are: (sequence, step), counted from 1."""
    return [
        np.array([(j + 1.0, t + 1.0) for t in range(n)]).reshape(n, 2)
        for j, n in enumerate(lengths)
    ]


def sorted_packed(lengths: Any) -> np.ndarray:
    """What the module's docstring says sorted packed order is, written out."""
    order = sorted(range(len(lengths)), key=lambda j: -lengths[j])  # sorted() is stable
    rows = rows_of(lengths)
    longest = max(lengths, default=0)
    picked = [rows[j][t] for t in range(longest) for j in order if lengths[j] > t]
    return np.array(picked).reshape(len(picked), 2)


@given(some_lengths, some_layouts, some_padding)
@settings(max_examples=150)
def test_gathered_rows_are_in_sorted_packed_order(
    lengths: list[int], layout: str, more: int
) -> None:
    sequences = geometry(layout, lengths, more)
    x = join_rows(rows_of(lengths), layout, steps=sequences.steps, features=FEATURES)
    assert np.array_equal(sequences.gather(x, x.dtype), sorted_packed(lengths))


@given(some_lengths, some_layouts, some_padding)
@settings(max_examples=150)
def test_scattering_gathered_rows_gives_x_back_with_zeros_in_the_padding(
    lengths: list[int], layout: str, more: int
) -> None:
    sequences = geometry(layout, lengths, more)
    shape = shape_of(layout, sequences.steps, lengths)
    x = np.random.default_rng(0).normal(size=shape)
    back = np.full(shape, np.nan)
    sequences.scatter(sequences.gather(x, x.dtype), back)
    mine = split_rows(x, lengths, layout)
    assert np.array_equal(back, join_rows(mine, layout, steps=sequences.steps, features=FEATURES))


@given(some_lengths, some_padding)
@settings(max_examples=60)
def test_states_are_sorted_like_the_rows_and_come_back_in_the_order_of_the_caller(
    lengths: list[int], more: int
) -> None:
    sequences = geometry("time_major", lengths, more)
    states = np.arange(2.0 * len(lengths)).reshape(2, len(lengths), 1)
    in_order = sequences.sort_states(states)
    longest_first = [lengths[int(j)] for j in in_order[0, :, 0]]
    assert longest_first == sorted(lengths, reverse=True)
    back = np.full_like(states, np.nan)
    sequences.unsort_states(in_order, back)
    assert np.array_equal(back, states)


def test_sorting_is_stable_and_does_nothing_where_the_order_is_right_already() -> None:
    assert geometry("time_major", [2, 3, 2, 3]).order.tolist() == [1, 3, 0, 2]  # type: ignore[union-attr]
    assert geometry("time_major", [3, 3, 2, 0]).order is None
    assert geometry("time_major", [3, 3]).order is None
    states = np.zeros((1, 4, 1))
    assert geometry("time_major", [3, 3, 2, 0]).sort_states(states) is states


@pytest.mark.parametrize(
    ("layout", "lengths", "in_order"),
    [
        ("time_major", [4, 4], True),
        ("time_major", [4, 3], False),
        ("packed", [4, 3, 0], True),
        ("packed", [4, 4], True),
        ("packed", [3, 4], False),
        ("batch_major", [4, 4], False),
        ("batch_major", [4, 3], False),
    ],
)
def test_what_is_in_order_already_is_not_copied(layout: str, lengths: Any, in_order: bool) -> None:
    sequences = geometry(layout, lengths)
    x = np.zeros(shape_of(layout, sequences.steps, lengths))
    assert sequences.in_order is in_order
    assert np.shares_memory(sequences.gather(x, x.dtype), x) is in_order
    assert not np.shares_memory(sequences.gather(x, np.dtype("float32")), x)


@given(some_lengths, some_layouts, some_padding, st.booleans())
@settings(max_examples=150)
def test_previous_is_the_row_one_step_earlier_in_the_direction_or_the_initial_state(
    lengths: list[int], layout: str, more: int, reverse: bool
) -> None:
    sequences = geometry(layout, lengths, more)
    order = sorted(range(len(lengths)), key=lambda j: -lengths[j])
    values = sorted_packed(lengths)
    initial = np.array([(j + 1.0, -1.0) for j in order]).reshape(len(order), 2)
    before = sequences.previous(values, initial, reverse)
    wanted = []
    for j, step in values:
        last = lengths[int(j) - 1]
        at_start = step == (last if reverse else 1)
        wanted.append((j, -1.0 if at_start else step + (1 if reverse else -1)))
    assert np.array_equal(before, np.array(wanted).reshape(len(wanted), 2))
    assert not np.shares_memory(before, values)


@given(some_lengths, some_layouts, some_padding)
@settings(max_examples=60)
def test_runs_cover_all_rows_in_steps_of_equal_batch(
    lengths: list[int], layout: str, more: int
) -> None:
    sequences = geometry(layout, lengths, more)
    position, steps = 0, 0
    for run in sequences.runs:
        assert isinstance(run, Run)
        assert run.start == position
        assert run.batch > 0
        assert run.steps > 0
        assert set(sequences.batch_sizes[steps : steps + run.steps]) == {run.batch}
        position, steps = run.stop, steps + run.steps
    assert position == sequences.total == sum(lengths)
    batches = [run.batch for run in sequences.runs]
    assert batches == sorted(set(batches), reverse=True)
