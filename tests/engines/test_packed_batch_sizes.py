"""Packed batches described by the number of sequences in each step, as the old calls did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from tests.engines.networks import NETWORKS, check, draw, each_network, expected, forward, run

BATCH_SIZES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "falling": ((3, 2, 1), (3, 2, 1)),
    "equal": ((2, 2, 2), (3, 3)),
    "steps without sequences": ((2, 1, 0, 0), (2, 1)),
    "one step": ((4,), (1, 1, 1, 1)),
    "one sequence": ((1, 1, 1), (3,)),
    "long and short": ((4, 4, 1, 1, 1), (5, 2, 2, 2)),
}
"""Batch sizes, and the lengths that they mean."""


@each_network
@pytest.mark.parametrize(("sizes", "lengths"), BATCH_SIZES.values(), ids=BATCH_SIZES)
def test_batch_sizes_give_what_the_lengths_give(
    spec: v2.RNNSpec, sizes: Any, lengths: Any, engine: Any
) -> None:
    data = draw(spec, lengths, layout="packed")
    results = run(engine, spec, data, layout="packed", batch_sizes=sizes)
    check(spec, engine, results, expected(spec, data, lengths, layout="packed"))
    by_lengths = run(engine, spec, data, layout="packed", lengths=lengths)
    for name, value in by_lengths.items():
        assert value is None or np.array_equal(results[name], value), name


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64"])
def test_batch_sizes_may_be_an_array_of_any_integer_dtype(dtype: str, engine: Any) -> None:
    spec = NETWORKS["gru"]
    data = draw(spec, (3, 2, 1), layout="packed")
    sizes = engine.put(np.array([3, 2, 1], dtype))
    out = forward(engine, spec, data, layout="packed", batch_sizes=sizes)
    wanted = forward(engine, spec, data, layout="packed", batch_sizes=[3, 2, 1])
    assert np.array_equal(engine.get(out.y), engine.get(wanted.y))


@each_network
@pytest.mark.parametrize("sizes", [(2, 1), (), (0, 0)], ids=str)
def test_sequences_of_the_state_that_never_occur_are_empty(
    spec: v2.RNNSpec, sizes: Any, engine: Any
) -> None:
    lengths = (2, 1, 0, 0) if any(sizes) else (0, 0, 0, 0)
    data = draw(spec, lengths, layout="packed")
    results = run(engine, spec, data, layout="packed", batch_sizes=sizes)
    check(spec, engine, results, expected(spec, data, lengths, layout="packed"))
    assert np.array_equal(results["hy"][:, 2:], data.hx[:, 2:])


def test_the_cell_state_alone_tells_the_batch_too(engine: Any) -> None:
    spec = NETWORKS["lstm"]
    data = draw(spec, (2, 1, 0), layout="packed").without("hx")
    results = run(engine, spec, data, layout="packed", batch_sizes=(2, 1))
    assert results["hy"].shape == (1, 3, 4)
    assert np.array_equal(results["cy"][:, 2], data.cx[:, 2])
    assert not results["hy"][:, 2].any()


def test_without_states_the_first_step_tells_the_batch(engine: Any) -> None:
    spec = NETWORKS["lstm"]
    data = draw(spec, (2, 1), layout="packed").without("hx", "cx", "dhy", "dcy")
    results = run(engine, spec, data, layout="packed", batch_sizes=(2, 1))
    assert results["hy"].shape == (1, 2, 4)


def test_states_with_fewer_sequences_than_the_first_step_are_refused(engine: Any) -> None:
    spec = NETWORKS["lstm"]
    data = draw(spec, (2, 1), layout="packed")
    two_states = draw(spec, (1,))
    data = data.replace(hx=two_states.hx, cx=two_states.cx)
    with pytest.raises(v2.ArgumentError, match=r"batch_sizes\[0\] is 2.*batch of 1"):
        forward(engine, spec, data, layout="packed", batch_sizes=(2, 1))


def test_hx_and_cx_of_different_batches_are_refused(engine: Any) -> None:
    spec = NETWORKS["lstm"]
    data = draw(spec, (2, 1, 0), layout="packed").replace(cx=draw(spec, (1, 1)).cx)
    with pytest.raises(v2.ArgumentError, match="cx has a batch of 2"):
        forward(engine, spec, data, layout="packed", batch_sizes=(2, 1))
    with pytest.raises(v2.ArgumentError, match="cx has a batch of 2"):
        forward(engine, spec, data, layout="packed", lengths=(2, 1, 0))
