"""Lengths and batch sizes: which are understood, which are refused, and that they say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_compat import v2
from cudnn_compat.sequences import LAYOUTS, Sequences, make_sequences
from cudnn_compat.v2 import ArgumentError, Packed

FEATURES = 2
some_lengths = st.lists(st.integers(0, 6), max_size=6)
some_padding = st.integers(0, 2)


def shape_of(layout: str, steps: int, lengths: Any) -> tuple[int, ...]:
    if layout == "packed":
        return (sum(lengths), FEATURES)
    batch = len(lengths)
    return (steps, batch, FEATURES) if layout == "time_major" else (batch, steps, FEATURES)


def geometry(layout: str, lengths: Any, more_steps: int = 0) -> Sequences:
    steps = max(lengths, default=0) + more_steps
    return make_sequences(layout, shape_of(layout, steps, lengths), lengths=lengths)


UNDERSTOOD = [
    [3, 0, 2],
    (3, 0, 2),
    range(3, 0, -1),
    [np.int64(3), np.uint8(0), 2],
    np.array([3, 0, 2]),
    *(np.array([3, 0, 2], dtype) for dtype in "bBhHiIlLqQ"),
    np.array([3, 0, 2], ">i4"),
    np.array([3, 9, 0, 9, 2, 9])[::2],
    np.array([2, 0, 3])[::-1],
]


@pytest.mark.parametrize("lengths", UNDERSTOOD, ids=lambda a: f"{type(a).__name__} {a}")
@pytest.mark.parametrize("name", ["lengths", "pack", "Packed"])
def test_lengths_come_as_list_tuple_range_or_array_of_any_integer_dtype(
    lengths: Any, name: str
) -> None:
    wanted = tuple(int(n) for n in lengths)
    x = np.zeros((4, 3, FEATURES))
    if name == "lengths":
        known = make_sequences("time_major", x.shape, lengths=lengths).lengths
    elif name == "pack":
        known = v2.pack(x, lengths).lengths
    else:
        known = Packed(np.zeros((sum(wanted), FEATURES)), lengths).lengths
    assert known == wanted
    assert all(type(n) is int for n in known)


@pytest.mark.peers
def test_lengths_may_be_a_tensor_of_integers() -> None:
    torch = pytest.importorskip("torch")
    for lengths in (torch.tensor([3, 0, 2]), [torch.tensor(3), 0, torch.tensor(2)]):
        assert make_sequences("time_major", (4, 3, 1), lengths=lengths).lengths == (3, 0, 2)


NOT_UNDERSTOOD: list[tuple[Any, str]] = [
    (5, "lengths"),
    (np.int64(5), "lengths"),
    (np.array(5), "lengths"),
    ("302", "lengths"),
    (b"\x03\x00\x02", "lengths"),
    (..., "lengths"),
    ({3, 0, 2}, "lengths"),
    ({3: 1, 0: 1, 2: 1}, "lengths"),
    (np.ma.masked_array([3, 0, 2], [False, True, False]), "lengths"),
    (np.array([[3], [0], [2]]), r"lengths .*\(3, 1\)"),
    (np.array([3.0, 0.0, 2.0]), "lengths .*float64"),
    (np.array([True, False, True]), "lengths .*bool"),
    (np.array([3, 0, 2], complex), "lengths .*complex128"),
    (np.array([3, 0, 2], object), "lengths .*object"),
    (np.array(["3", "0", "2"]), "lengths"),
    (np.array([3, 0, 2], "m8[s]"), "lengths .*timedelta"),
    ([3.0, 0, 2], r"lengths\[0\] is 3.0"),
    ([3, "0", 2], r"lengths\[1\] is '0'"),
    ([3, 0, None], r"lengths\[2\] is None"),
    ([3, True, 2], r"lengths\[1\] is True"),
    ([3, np.True_, 2], r"lengths\[1\] is .*True"),
    ([[3], [0], [2]], r"lengths\[0\]"),
]


@pytest.mark.parametrize(("lengths", "words"), NOT_UNDERSTOOD, ids=lambda a: repr(a)[:30])
def test_lengths_that_are_no_sequence_of_integers_are_refused(lengths: Any, words: str) -> None:
    x = np.zeros((4, 3, FEATURES))
    for call in (
        lambda: make_sequences("time_major", x.shape, lengths=lengths),
        lambda: make_sequences("packed", (5, FEATURES), lengths=lengths),
        lambda: v2.pack(x, lengths),
        lambda: Packed(x[:, 0], lengths),
    ):
        with pytest.raises(v2.CompatError, match=words):
            call()


@pytest.mark.parametrize(
    ("lengths", "index", "value"),
    [([5, 6, 7], 1, 6), ([5, -1, 7], 1, -1), ([0, 0, 10**6], 2, 10**6), ([-5, 9, 9], 0, -5)],
)
def test_a_length_out_of_range_is_refused_with_index_value_and_steps(
    lengths: Any, index: int, value: int
) -> None:
    for layout, shape in (("time_major", (5, 3, 1)), ("batch_major", (3, 5, 1))):
        with pytest.raises(ArgumentError) as refusal:
            make_sequences(layout, shape, lengths=lengths)
        assert f"lengths[{index}] is {value}" in str(refusal.value)
        assert "T=5" in str(refusal.value)


@pytest.mark.parametrize("layout", ["time_major", "batch_major"])
@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_there_must_be_one_length_for_each_sequence(layout: str, count: int) -> None:
    with pytest.raises(ArgumentError, match=f"lengths has {count} entries.* 3 sequences"):
        make_sequences(layout, shape_of(layout, 5, (5, 5, 5)), lengths=[1] * count)


def test_packed_lengths_must_add_up_to_the_rows() -> None:
    with pytest.raises(ArgumentError, match=r"7 rows.*lengths add up to 6"):
        make_sequences("packed", (7, 1), lengths=[3, 2, 1])
    with pytest.raises(ArgumentError, match=r"lengths\[1\] is -1"):
        make_sequences("packed", (7, 1), lengths=[8, -1])


def test_packed_needs_exactly_one_of_lengths_and_batch_sizes() -> None:
    with pytest.raises(ArgumentError, match="exactly one of lengths and batch_sizes; got neither"):
        make_sequences("packed", (3, 1))
    with pytest.raises(ArgumentError, match="exactly one of lengths and batch_sizes; got both"):
        make_sequences("packed", (3, 1), lengths=[3], batch_sizes=[1, 1, 1])


@pytest.mark.parametrize("layout", ["time_major", "batch_major"])
def test_batch_sizes_are_for_the_packed_layout(layout: str) -> None:
    with pytest.raises(ArgumentError, match=f"batch_sizes is for layout='packed'.*{layout}"):
        make_sequences(layout, (3, 3, 1), batch_sizes=[3, 3, 3])


@pytest.mark.parametrize(
    ("batch_sizes", "words"),
    [
        ([1, 2], r"batch_sizes\[1\] is 2; wanted non-increasing"),
        ([3, -1, 1], r"batch_sizes\[1\] is -1"),
        ([4, -1], r"batch_sizes\[1\] is -1"),
        ([2], "3 rows.*batch_sizes add up to 2"),
        ([], "3 rows.*batch_sizes add up to 0"),
        ([2, 1.0], r"batch_sizes\[1\] is 1.0"),
        ("21", "batch_sizes is '21'"),
        (3, "batch_sizes"),
        (np.array([2.0, 1.0]), "batch_sizes has dtype float64"),
        (np.array([[2], [1]]), "batch_sizes has shape"),
        # Far too many sequences are refused before anything of their size is made.
        ([10**6], "batch_sizes add up to"),
        ([10**9], "batch_sizes"),
        ([10**12], "batch_sizes"),
        ([10**30], "batch_sizes"),
    ],
)
def test_batch_sizes_that_fit_no_batch_are_refused_in_words(batch_sizes: Any, words: str) -> None:
    with pytest.raises(v2.CompatError, match=words):
        make_sequences("packed", (3, 1), batch_sizes=batch_sizes)


def test_more_sequences_in_a_step_than_states_are_refused_with_both_numbers() -> None:
    with pytest.raises(ArgumentError, match=r"batch_sizes\[0\] is 3.*batch of 2"):
        make_sequences("packed", (3, 1), batch_sizes=[3], batch=2)


@pytest.mark.parametrize(
    ("lengths", "batch_sizes"),
    [
        ([3, 2, 1], [3, 2, 1]),
        ([1, 3, 2], [3, 2, 1]),
        ([5, 5, 0], [2, 2, 2, 2, 2]),
        ([0, 0], []),
        ([], []),
        ([4], [1, 1, 1, 1]),
        ([0, 2, 0, 1], [2, 1]),
        ([3, 3, 3], [3, 3, 3]),
    ],
)
def test_batch_sizes_count_the_sequences_that_are_longer_than_each_step(
    lengths: Any, batch_sizes: Any
) -> None:
    for layout in LAYOUTS:
        assert geometry(layout, lengths).batch_sizes == tuple(batch_sizes)
    packed = Packed(np.zeros((sum(lengths), 1)), lengths)
    assert packed.batch_sizes == tuple(batch_sizes)


@given(some_lengths, some_padding)
@settings(max_examples=60)
def test_lengths_and_batch_sizes_say_the_same(lengths: list[int], more: int) -> None:
    by_lengths = geometry("time_major", lengths, more)
    sizes = by_lengths.batch_sizes[: max(lengths, default=0)]
    assert sizes == tuple(sum(n > t for n in lengths) for t in range(max(lengths, default=0)))
    back = make_sequences("packed", (sum(lengths), 1), batch_sizes=sizes, batch=len(lengths))
    assert list(back.lengths) == sorted(lengths, reverse=True)
    assert back.total == by_lengths.total == sum(lengths)


def test_without_a_state_the_first_batch_size_is_the_number_of_sequences() -> None:
    assert make_sequences("packed", (6, 1), batch_sizes=[3, 2, 1]).lengths == (3, 2, 1)
    assert make_sequences("packed", (6, 1), batch_sizes=(3, 2, 1), batch=5).lengths == (
        3,
        2,
        1,
        0,
        0,
    )
    assert make_sequences("packed", (0, 1), batch_sizes=[0, 0]).lengths == ()
    assert make_sequences("packed", (0, 1), batch_sizes=[], batch=2).lengths == (0, 0)
    assert make_sequences("packed", (3, 1), batch_sizes=[2, 1, 0, 0]).lengths == (2, 1)


def test_equal_lengths_are_not_ragged_however_they_are_given() -> None:
    for layout in LAYOUTS:
        assert not geometry(layout, [4, 4, 4]).ragged
        assert geometry(layout, [4, 3, 4]).ragged
    assert geometry("time_major", [4, 4], more_steps=1).ragged
    assert make_sequences("batch_major", (2, 4, 1)).lengths == (4, 4)
