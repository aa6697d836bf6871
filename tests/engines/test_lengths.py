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
    Arrays,
    check,
    draw,
    each_network,
    expected,
    forward,
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


# --- the reverse direction ------------------------------------------------------------------


def one_direction(spec: v2.RNNSpec, data: Any, lengths: Any, reverse: bool) -> tuple[Any, Any]:
    """A unidirectional network with the weights and states of one direction, and its data.

    For the reverse direction each sequence is reversed by itself.
    """
    single = spec.replace(bidirectional=False)
    names, w = v2.named_weights(spec, data.w), np.empty(v2.weight_size(single))
    for name, view in v2.named_weights(single, w).items():
        view[...] = names[name + "_reverse" * reverse]
    half = slice(spec.state_size, None) if reverse else slice(spec.state_size)
    x, dy = data.x, data.dy[..., half]
    if reverse:
        x, dy = reversed_each(x, lengths), reversed_each(dy, lengths)
    states = {name: getattr(data, name) for name in ("hx", "cx", "dhy", "dcy")}
    mine = {n: None if a is None else a[int(reverse)][None] for n, a in states.items()}
    return single, data.replace(w=w, x=x, dy=dy, **mine)


def reversed_each(a: Any, lengths: Any) -> Any:
    out = np.zeros_like(a)
    for j, length in enumerate(lengths):
        out[:length, j] = a[:length, j][::-1]
    return out


@pytest.mark.parametrize("lengths", [(4, 4, 4), (2, 4, 0), (1, 3, 4)], ids=str)
@pytest.mark.parametrize("name", ["relu bi skip", "gru one bias", "lstm", "tanh"])
def test_each_direction_is_a_network_by_itself_and_reverse_starts_at_the_own_last_step(
    name: str, lengths: Any, engine: Any
) -> None:
    spec = NETWORKS[name].replace(bidirectional=True)
    data = draw(spec, lengths, steps=4)
    both = run(engine, spec, data, lengths=lengths)
    dx = np.zeros_like(both["dx"])
    for reverse in (False, True):
        single, mine = one_direction(spec, data, lengths, reverse)
        alone = run(engine, single, mine, lengths=lengths)
        y, dx_alone = alone["y"], alone["dx"]
        if reverse:
            y, dx_alone = reversed_each(y, lengths), reversed_each(dx_alone, lengths)
        dx += dx_alone
        half = slice(spec.state_size, None) if reverse else slice(spec.state_size)
        assert largest(both["y"][..., half], y) <= 1e-12
        for key in ("hy", "cy", "dhx", "dcx"):
            if both[key] is not None:
                assert largest(both[key][int(reverse)], alone[key][0]) <= 1e-12, key
        names = v2.named_weights(spec, both["dw"])
        for key, view in v2.named_weights(single, alone["dw"]).items():
            assert largest(names[key + "_reverse" * reverse], view) <= 1e-12, key
    assert largest(both["dx"], dx) <= 1e-12


# --- order, repetition, batch sizes ---------------------------------------------------------


@each_network
@each_layout
def test_the_order_of_the_sequences_does_not_matter(
    spec: v2.RNNSpec, layout: str, engine: Any
) -> None:
    lengths, order = (2, 5, 0, 3, 5), [4, 2, 0, 3, 1]
    data = draw(spec, lengths)
    pick = {name: getattr(data, name) for name in ("x", "hx", "cx", "dy", "dhy", "dcy")}
    moved = data.replace(**{n: None if a is None else a[:, order] for n, a in pick.items()})
    moved_lengths = [lengths[j] for j in order]

    def padded(a: Any, lengths: Any) -> Arrays:
        b = in_layout(a, lengths, layout)
        return in_time_major(run(engine, spec, b, layout=layout, lengths=lengths), lengths, layout)

    straight, permuted = padded(data, lengths), padded(moved, moved_lengths)
    for name in ("y", "hy", "cy", "dx", "dhx", "dcx"):
        if straight[name] is not None:
            assert largest(straight[name][:, order], permuted[name]) <= 1e-12, name
    assert largest(straight["dw"], permuted["dw"]) <= 1e-12


def in_layout(data: Any, lengths: Any, layout: str) -> Any:
    if layout == "time_major":
        return data
    if layout == "batch_major":
        return data.replace(x=data.x.swapaxes(0, 1), dy=data.dy.swapaxes(0, 1))
    return data.replace(x=v2.pack(data.x, lengths).data, dy=v2.pack(data.dy, lengths).data)


def in_time_major(results: Arrays, lengths: Any, layout: str) -> Arrays:
    if layout == "time_major":
        return results
    for name in ("y", "dx"):
        if layout == "batch_major":
            results[name] = results[name].swapaxes(0, 1)
        else:
            results[name] = v2.unpack(v2.Packed(results[name], lengths))
    return results


def test_lengths_that_change_from_call_to_call_do_not_mix(engine: Any) -> None:
    spec = NETWORKS["gru 2 layers bi"]
    rng = np.random.default_rng(0)
    batches = [tuple(int(n) for n in rng.integers(0, 7, 4)) for _ in range(40)]
    data = draw(spec, (6, 6, 6, 6))
    buffer = np.empty(4, "int32")
    kept = []
    for lengths in batches:
        buffer[...] = lengths
        out = forward(engine, spec, data, lengths=buffer)
        kept.append(out)
    buffer[...] = 0
    for lengths, out in zip(batches, kept, strict=True):
        gradients = v2.rnn_backward(out, *(engine.put(a) for a in (data.dy, data.dhy)))
        names = ("y", "hy", "cy", "dx", "dhx", "dcx", "dw")
        values = [engine.get(a) for a in (*out, *gradients)]
        wanted = expected(spec, data, lengths)
        check(spec, engine, dict(zip(names, values, strict=True)), wanted)
