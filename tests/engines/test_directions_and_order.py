"""Reverse directions, and orders of sequences that must not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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

each_layout = pytest.mark.parametrize("layout", LAYOUTS)


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
