"""`Packed`, `pack` and `unpack`: taking the padding out and putting it back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_compat import v2
from cudnn_compat.matrix.layouts import join_rows, split_rows
from cudnn_compat.sequences import Sequences, make_sequences
from cudnn_compat.v2 import ArgumentError, DTypeError, Packed

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


@given(some_lengths, st.sampled_from(["time_major", "batch_major"]), some_padding)
@settings(max_examples=100)
def test_unpacking_what_was_packed_gives_x_back_with_zeros_in_the_padding(
    lengths: list[int], layout: str, more: int
) -> None:
    steps = max(lengths, default=0) + more
    x = np.random.default_rng(1).normal(size=shape_of(layout, steps, lengths))
    packed = v2.pack(x, lengths, layout=layout)
    assert packed.lengths == tuple(lengths)
    mine = split_rows(x, lengths, layout)
    assert np.array_equal(packed.data, join_rows(mine, "packed", features=FEATURES))
    back = v2.unpack(packed, steps=steps, layout=layout)
    assert np.array_equal(back, join_rows(mine, layout, steps=steps, features=FEATURES))
    shortest = v2.unpack(packed, layout=layout)
    assert np.array_equal(shortest, join_rows(mine, layout, features=FEATURES))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_packing_and_unpacking_keep_the_dtype(dtype: str) -> None:
    packed = v2.pack(np.ones((3, 2, 1), dtype), [3, 1])
    assert packed.data.dtype == dtype
    assert v2.unpack(packed).dtype == dtype


def test_packing_and_unpacking_copy() -> None:
    x = np.zeros((3, 2, 1))
    packed = v2.pack(x, [3, 3])
    padded = v2.unpack(packed)
    x[...] = 1
    assert not packed.data.any()
    packed.data[...] = 2
    assert not padded.any()


@pytest.mark.parametrize("layout", ["time_major", "batch_major"])
def test_unpacked_arrays_are_contiguous_in_their_own_layout(layout: str) -> None:
    assert v2.unpack(v2.pack(np.zeros((3, 2, 4)), [3, 1]), layout=layout).flags.c_contiguous


def test_padding_may_hold_anything_when_it_is_packed() -> None:
    x = np.full((3, 2, 1), np.nan)
    x[:2, 0], x[:1, 1] = 1, 2
    assert v2.pack(x, [2, 1]).data.ravel().tolist() == [1, 2, 1]


@pytest.mark.peers
@pytest.mark.parametrize("lengths", [[3, 2, 1], [4, 4], [5, 1, 1]])
def test_packed_data_of_sorted_lengths_are_those_of_pytorch(lengths: Any) -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).normal(size=(5, len(lengths), 3))
    packed = v2.pack(x, lengths)
    theirs = torch.nn.utils.rnn.pack_padded_sequence(torch.from_numpy(x), lengths)
    assert np.array_equal(packed.data, theirs.data.numpy())
    assert packed.batch_sizes == tuple(theirs.batch_sizes.tolist())


def test_unpack_needs_at_least_the_longest_length_in_steps() -> None:
    packed = v2.pack(np.ones((3, 2, 1)), [3, 1])
    assert v2.unpack(packed, steps=5).shape == (5, 2, 1)
    with pytest.raises(ArgumentError, match="steps is 2; the longest sequence has 3"):
        v2.unpack(packed, steps=2)


@pytest.mark.parametrize("steps", ["5", 5.0, [5], True, 10**30, np.array([5, 6])], ids=repr)
def test_steps_that_are_no_number_of_steps_are_refused(steps: Any) -> None:
    with pytest.raises(v2.CompatError, match="steps"):
        v2.unpack(v2.pack(np.ones((3, 2, 1)), [3, 1]), steps=steps)


@pytest.mark.parametrize(
    "layout", ["packed", "TIME_MAJOR", None, 0, [], np.array([1, 2])], ids=repr
)
def test_packing_and_unpacking_take_the_two_padded_layouts(layout: Any) -> None:
    with pytest.raises(ArgumentError, match=r"layout is .*wanted .*'time_major'.*'batch_major'"):
        v2.pack(np.ones((3, 2, 1)), [3, 1], layout=layout)
    with pytest.raises(ArgumentError, match=r"layout is .*wanted .*'time_major'.*'batch_major'"):
        v2.unpack(v2.pack(np.ones((3, 2, 1)), [3, 1]), layout=layout)


@pytest.mark.parametrize("x", [None, [[1.0]], "x", np.ma.masked_array([[[1.0]]])], ids=repr)
def test_pack_takes_arrays_only(x: Any) -> None:
    with pytest.raises(DTypeError, match="x is "):
        v2.pack(x, [1])
    with pytest.raises(DTypeError, match="data is "):
        Packed(x, [1])


@pytest.mark.parametrize("shape", [(), (3,), (3, 2), (3, 2, 1, 1)])
def test_pack_takes_three_axes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match=r"x has shape .*three axes"):
        v2.pack(np.ones(shape), [3, 1])


@pytest.mark.parametrize("shape", [(), (3,), (3, 1, 1)])
def test_packed_data_have_two_axes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match=r"data has shape .*wanted \(sum, features\)"):
        Packed(np.ones(shape), [3])


@pytest.mark.parametrize("packed", [None, np.ones((3, 1)), [1], (np.ones((3, 1)), [3])], ids=str)
def test_unpack_takes_a_packed(packed: Any) -> None:
    with pytest.raises(DTypeError, match=r"packed is a .*; wanted a Packed"):
        v2.unpack(packed)


def test_pack_without_lengths_is_refused_in_words() -> None:
    with pytest.raises(DTypeError, match="lengths is None"):
        v2.pack(np.ones((3, 2, 1)), None)


def test_a_packed_cannot_be_changed() -> None:
    packed = v2.pack(np.ones((3, 2, 1)), [3, 1])
    with pytest.raises(AttributeError):
        packed.lengths = (2, 2)  # type: ignore[misc]


def test_changing_the_array_of_lengths_does_not_change_what_was_made_of_it() -> None:
    lengths = np.array([3, 1])
    packed, sequences = v2.pack(np.ones((3, 2, 1)), lengths), geometry("time_major", lengths)
    lengths[...] = 0
    assert packed.lengths == sequences.lengths == (3, 1)
