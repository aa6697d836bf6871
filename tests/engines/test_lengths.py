"""Sequences of different lengths, empty ones among them, and what padding may do: nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_compat import v2
from tests.engines.networks import (
    LAYOUTS,
    NETWORKS,
    check,
    draw,
    each_network,
    expected,
    largest,
    run,
)

STEPS = 5
LENGTHS = {
    "sorted": (5, 3, 2),
    "unsorted": (2, 5, 3),
    "equal but short": (3, 3, 3),
    "empty last": (5, 5, 0),
    "empty first": (0, 4, 2),
    "empty in the middle": (5, 0, 3),
    "all but one empty": (0, 0, 5),
    "all empty": (0, 0),
    "ties": (2, 4, 2, 4, 0, 0),
    "one sequence": (3,),
    "one empty sequence": (0,),
}

each_lengths = pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
each_layout = pytest.mark.parametrize("layout", LAYOUTS)


def padding(lengths: Any, layout: str) -> Any:
    """Which rows of a padded x, y, dx or dy are padding."""
    mask = np.arange(STEPS)[:, None] >= np.array(lengths)
    return mask if layout == "time_major" else mask.T


@each_network
@each_lengths
@each_layout
def test_ragged_batches_are_right_in_every_layout(
    spec: v2.RNNSpec, lengths: Any, layout: str, engine: Any
) -> None:
    data = draw(spec, lengths, steps=STEPS, layout=layout)
    results = run(engine, spec, data, layout=layout, lengths=lengths)
    check(spec, engine, results, expected(spec, data, lengths, layout=layout))


@each_network
@each_lengths
def test_every_sequence_gets_what_it_would_get_alone(
    spec: v2.RNNSpec, lengths: Any, engine: Any
) -> None:
    data = draw(spec, lengths, steps=STEPS)
    whole = run(engine, spec, data, lengths=lengths)
    dw = np.zeros_like(data.w)
    for j, length in enumerate(lengths):
        alone = run(engine, spec, sequence(data, j, length))
        for name in ("y", "dx"):
            assert largest(whole[name][:length, j], alone[name]) <= 1e-12, name
        for name in ("hy", "cy", "dhx", "dcx"):
            if whole[name] is not None:
                assert largest(whole[name][:, j], alone[name]) <= 1e-12, name
        dw += alone["dw"]
    assert largest(whole["dw"], dw) <= 1e-11


def sequence(data: Any, j: int, length: int) -> Any:
    """Sequence j of a time-major batch, unbatched and without its padding."""
    states = {name: getattr(data, name) for name in ("hx", "cx", "dhy", "dcy")}
    return data.replace(
        x=data.x[:length, j],
        dy=data.dy[:length, j],
        **{name: None if a is None else a[:, j] for name, a in states.items()},
    )


@given(
    st.sampled_from(sorted(NETWORKS)),
    st.lists(st.integers(0, 12), min_size=1, max_size=7),
    st.sampled_from(LAYOUTS),
    st.integers(0, 3),
    st.integers(0, 10**6),
)
@settings(max_examples=80)
def test_any_lengths_in_any_layout_are_right(
    engine: Any, name: str, lengths: list[int], layout: str, more: int, seed: int
) -> None:
    spec = NETWORKS[name]
    data = draw(spec, lengths, steps=max(lengths) + more, layout=layout, seed=seed)
    results = run(engine, spec, data, layout=layout, lengths=lengths)
    check(spec, engine, results, expected(spec, data, lengths, layout=layout))


# --- padding --------------------------------------------------------------------------------


@each_network
@pytest.mark.parametrize("layout", ["time_major", "batch_major"])
def test_padding_of_nan_reaches_nothing_and_padding_of_y_and_dx_is_zero(
    spec: v2.RNNSpec, layout: str, engine: Any
) -> None:
    for lengths in LENGTHS.values():
        mask = padding(lengths, layout)
        data = draw(spec, lengths, steps=STEPS, layout=layout)
        clean = run(engine, spec, data, layout=layout, lengths=lengths)
        data.x[mask] = np.nan
        data.dy[mask] = np.nan
        results = run(engine, spec, data, layout=layout, lengths=lengths)
        for name, value in clean.items():
            assert value is None or np.array_equal(results[name], value), name
        assert not results["y"][mask].any()
        assert not results["dx"][mask].any()


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
def test_padding_may_be_infinite_or_huge_without_a_warning(value: float, engine: Any) -> None:
    spec, lengths = NETWORKS["lstm 2 layers bi"], (2, 5, 0)
    data = draw(spec, lengths, steps=STEPS)
    clean = run(engine, spec, data, lengths=lengths)
    mask = padding(lengths, "time_major")
    data.x[mask] = data.dy[mask] = value
    with np.errstate(all="raise"):
        results = run(engine, spec, data, lengths=lengths)
    for name, wanted in clean.items():
        assert np.array_equal(results[name], wanted), name


@each_network
def test_an_empty_sequence_hands_its_states_and_their_gradients_on(
    spec: v2.RNNSpec, engine: Any
) -> None:
    for lengths in ((5, 5, 0), (0, 5, 3), (5, 0, 3), (0, 0)):
        data = draw(spec, lengths, steps=STEPS)
        results = run(engine, spec, data, lengths=lengths)
        empty = [j for j, length in enumerate(lengths) if length == 0]
        pairs = [("hy", data.hx), ("cy", data.cx), ("dhx", data.dhy), ("dcx", data.dcy)]
        for name, given_state in pairs:
            if given_state is not None:
                assert np.array_equal(results[name][:, empty], given_state[:, empty]), name
        assert not results["y"][:, empty].any()
        assert not results["dx"][:, empty].any()


@each_network
def test_an_empty_sequence_adds_nothing_to_the_weight_gradients(
    spec: v2.RNNSpec, engine: Any
) -> None:
    data = draw(spec, (4, 0, 2))
    with_empty = run(engine, spec, data, lengths=(4, 0, 2))
    pick = {name: getattr(data, name) for name in ("x", "hx", "cx", "dy", "dhy", "dcy")}
    without = data.replace(**{n: None if a is None else a[:, [0, 2]] for n, a in pick.items()})
    assert largest(run(engine, spec, without, lengths=(4, 2))["dw"], with_empty["dw"]) <= 1e-12


# --- lengths and no lengths -----------------------------------------------------------------


@each_network
@pytest.mark.parametrize("layout", ["time_major", "batch_major"])
def test_full_lengths_are_the_same_as_none(spec: v2.RNNSpec, layout: str, engine: Any) -> None:
    data = draw(spec, (4, 4), layout=layout)
    none = run(engine, spec, data, layout=layout)
    full = run(engine, spec, data, layout=layout, lengths=[4, 4])
    for name, value in none.items():
        assert value is None or np.array_equal(full[name], value), name


def test_an_unbatched_sequence_may_have_a_length(engine: Any) -> None:
    spec = NETWORKS["lstm 2 layers bi"]
    data = sequence(draw(spec, (5,)), 0, 5)
    short = data.replace(x=data.x[:2], dy=data.dy[:2])
    results, wanted = run(engine, spec, data, lengths=[2]), run(engine, spec, short)
    for name, value in wanted.items():
        if name in ("y", "dx"):
            assert largest(results[name][:2], value) <= 1e-12
            assert not results[name][2:].any()
        else:
            assert largest(results[name], value) <= 1e-12


def test_zero_padding_without_lengths_changes_a_bidirectional_result(engine: Any) -> None:
    spec = NETWORKS["lstm 2 layers bi"]
    data = draw(spec, (2, 5), steps=5)
    data.x[2:, 0] = 0
    by_lengths = run(engine, spec, data, lengths=(2, 5))
    padded = run(engine, spec, data)
    assert largest(by_lengths["y"][:2, 0], padded["y"][:2, 0]) > 0.01
    assert largest(by_lengths["hy"][:, 0], padded["hy"][:, 0]) > 0.01
    assert largest(by_lengths["y"][:, 1], padded["y"][:, 1]) <= 1e-12


def test_zero_padding_without_lengths_changes_the_final_state_in_one_direction(
    engine: Any,
) -> None:
    spec = NETWORKS["lstm"]
    data = draw(spec, (2, 5), steps=5)
    data.x[2:, 0] = 0
    by_lengths = run(engine, spec, data, lengths=(2, 5))
    padded = run(engine, spec, data)
    assert largest(by_lengths["y"][:2, 0], padded["y"][:2, 0]) <= 1e-12
    assert largest(by_lengths["hy"][:, 0], padded["hy"][:, 0]) > 0.01
