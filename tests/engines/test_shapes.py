"""The forms of x: one step, one sequence, a batch, packed; empty ones; and what comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_compat import v2
from tests.engines.networks import (
    CELLS,
    GRADIENTS,
    LAYOUTS,
    NETWORKS,
    OUTPUTS,
    check,
    draw,
    each_network,
    expected,
    forward,
    largest,
    run,
)

each_layout = pytest.mark.parametrize("layout", LAYOUTS)


def shapes(results: Any) -> dict[str, Any]:
    return {name: None if a is None else a.shape for name, a in results.items()}


def wanted_shapes(spec: v2.RNNSpec, rows: tuple[int, ...], batch: tuple[int, ...]) -> Any:
    """By the table of the documentation; ``batch`` is (B,), or () for an unbatched x."""
    state = (spec.num_layers * (1 + spec.bidirectional), *batch, spec.proj_size or spec.hidden_size)
    cell = (*state[:-1], spec.hidden_size) if spec.cell == "lstm" else None
    directions = 1 + spec.bidirectional
    return {
        "y": (*rows, directions * (spec.proj_size or spec.hidden_size)),
        "hy": state,
        "cy": cell,
        "dx": (*rows, spec.input_size),
        "dhx": state,
        "dcx": cell,
        "dw": (v2.weight_size(spec),),
    }


@each_network
@each_layout
def test_a_batch_has_the_documented_shapes_and_the_right_values(
    spec: v2.RNNSpec, layout: str, engine: Any
) -> None:
    lengths = (4, 4, 4)
    data = draw(spec, lengths, layout=layout)
    how = {"lengths": lengths} if layout == "packed" else {}
    results = run(engine, spec, data, layout=layout, **how)
    rows = {"time_major": (4, 3), "batch_major": (3, 4), "packed": (12,)}[layout]
    assert shapes(results) == wanted_shapes(spec, rows, (3,))
    check(spec, engine, results, expected(spec, data, lengths, layout=layout))


def unbatched(data: Any, step: bool = False) -> Any:
    """The first sequence of a time-major batch (or its first step) by itself."""
    at: Any = (0, 0) if step else (slice(None), 0)
    states = {name: getattr(data, name) for name in ("hx", "cx", "dhy", "dcy")}
    return data.replace(
        x=data.x[at],
        dy=data.dy[at],
        **{n: None if a is None else a[:, 0] for n, a in states.items()},
    )


@each_network
@pytest.mark.parametrize("layout", ["time_major", "batch_major"])
def test_one_unbatched_sequence_is_a_batch_of_one_without_the_batch_axis(
    spec: v2.RNNSpec, layout: str, engine: Any
) -> None:
    data = draw(spec, (4,))
    results = run(engine, spec, unbatched(data), layout=layout)
    assert shapes(results) == wanted_shapes(spec, (4,), ())
    wanted = expected(spec, data, (4,))
    for name in OUTPUTS + GRADIENTS:
        if name != "dw" and wanted[name] is not None:
            wanted[name] = wanted[name][:, 0]
    check(spec, engine, results, wanted)


@each_network
@pytest.mark.parametrize("layout", ["time_major", "batch_major"])
def test_one_step_is_a_sequence_of_one_step_without_the_time_axis(
    spec: v2.RNNSpec, layout: str, engine: Any
) -> None:
    data = draw(spec, (1,))
    results = run(engine, spec, unbatched(data, step=True), layout=layout)
    assert shapes(results) == wanted_shapes(spec, (), ())
    wanted = expected(spec, data, (1,))
    for name in OUTPUTS + GRADIENTS:
        if name != "dw" and wanted[name] is not None:
            wanted[name] = wanted[name][0, 0] if name in ("y", "dx") else wanted[name][:, 0]
    check(spec, engine, results, wanted)


@each_network
def test_a_packed_is_answered_with_a_packed(spec: v2.RNNSpec, engine: Any) -> None:
    lengths = (2, 0, 4)
    data = draw(spec, lengths, layout="packed")
    x = v2.Packed(engine.put(data.x), lengths)
    out = forward(engine, spec, data, layout="packed", lengths=lengths)
    w, hx, cx = (engine.put(a) for a in (data.w, data.hx, data.cx))
    packed = v2.rnn_forward(spec, w, x, hx, cx, training=True, engine=engine.name)
    assert isinstance(packed.y, v2.Packed)
    assert packed.y.lengths == lengths
    assert np.array_equal(engine.get(packed.y), engine.get(out.y))
    dy = engine.put(data.dy)
    wanted = v2.rnn_backward(out, dy)
    gradients = v2.rnn_backward(packed, v2.Packed(dy, lengths))
    assert isinstance(gradients.dx, v2.Packed)
    assert gradients.dx.lengths == lengths
    for a, b in zip(gradients, wanted, strict=True):
        assert (a is None) == (b is None)
        assert a is None or np.array_equal(engine.get(a), engine.get(b))


def test_the_gradient_of_a_packed_y_may_be_an_array_and_not_the_other_way_round(
    engine: Any,
) -> None:
    spec, lengths = NETWORKS["gru"], (3, 1)
    data = draw(spec, lengths, layout="packed")
    x, w, dy = v2.Packed(engine.put(data.x), lengths), engine.put(data.w), engine.put(data.dy)

    def packed_forward() -> Any:
        return v2.rnn_forward(spec, w, x, training=True, engine=engine.name)

    by_array = v2.rnn_backward(packed_forward(), dy).dx
    by_packed = v2.rnn_backward(packed_forward(), v2.Packed(dy, lengths)).dx
    assert np.array_equal(engine.get(by_array), engine.get(by_packed))
    with pytest.raises(v2.ArgumentError, match=r"dy has lengths \(1, 3\); wanted .*\(3, 1\)"):
        v2.rnn_backward(packed_forward(), v2.Packed(dy, (1, 3)))
    out = forward(engine, spec, data, layout="packed", lengths=lengths)
    with pytest.raises(v2.ArgumentError, match="dy is a Packed, but y is an array"):
        v2.rnn_backward(out, v2.Packed(dy, lengths))


@pytest.mark.parametrize(
    "how", [{"lengths": [2, 1]}, {"batch_sizes": [2, 1]}, {"layout": "batch_major"}]
)
def test_a_packed_takes_no_lengths_and_no_other_layout(how: Any, engine: Any) -> None:
    spec = NETWORKS["gru"]
    data = draw(spec, (2, 1), layout="packed")
    with pytest.raises(v2.ArgumentError, match="x is a Packed"):
        v2.rnn_forward(
            spec,
            engine.put(data.w),
            v2.Packed(engine.put(data.x), (2, 1)),
            engine=engine.name,
            **how,
        )


# --- layouts agree with each other ------------------------------------------------------------


@given(
    st.sampled_from(sorted(NETWORKS)),
    st.lists(st.integers(0, 5), min_size=1, max_size=5),
    st.integers(0, 2),
    st.integers(0, 1000),
)
@settings(max_examples=60)
def test_all_layouts_give_the_same(
    engine: Any, name: str, lengths: list[int], more: int, seed: int
) -> None:
    spec, steps = NETWORKS[name], max(lengths) + more
    results = {}
    for layout in LAYOUTS:
        data = draw(spec, lengths, steps=steps, layout=layout, seed=seed)
        results[layout] = run(engine, spec, data, layout=layout, lengths=lengths)
    alive = np.arange(steps)[:, None] < np.array(lengths)
    for key in OUTPUTS + GRADIENTS:
        by_time, by_batch, packed = (results[layout][key] for layout in LAYOUTS)
        if by_time is None:
            assert by_batch is None
            assert packed is None
            continue
        if key in ("y", "dx"):
            by_batch, by_time_rows = by_batch.swapaxes(0, 1), by_time[alive]
        else:
            by_time_rows = by_time
        assert largest(by_time, by_batch) <= 1e-12, key
        assert largest(by_time_rows, packed) <= 1e-12, key


# --- small and empty --------------------------------------------------------------------------

NO_STEPS: dict[str, tuple[tuple[int, ...], dict[str, Any], int]] = {
    "time-major, no steps": ((0, 2), {}, 2),
    "batch-major, no steps": ((2, 0), {"layout": "batch_major"}, 2),
    "packed, empty sequences": ((0,), {"layout": "packed", "lengths": [0, 0]}, 2),
    "packed, no batch sizes": ((0,), {"layout": "packed", "batch_sizes": []}, 2),
    "all of length zero": ((3, 2), {"lengths": [0, 0]}, 2),
    "time-major, no sequences": ((3, 0), {}, 0),
    "batch-major, no sequences": ((0, 3), {"layout": "batch_major"}, 0),
    "no lengths": ((3, 0), {"lengths": []}, 0),
    "packed, no sequences": ((0,), {"layout": "packed", "lengths": []}, 0),
    "nothing at all": ((0, 0), {}, 0),
}


@each_network
@pytest.mark.parametrize(("rows", "how", "batch"), NO_STEPS.values(), ids=NO_STEPS)
def test_where_there_is_nothing_to_do_states_and_their_gradients_are_handed_on(
    spec: v2.RNNSpec, rows: tuple[int, ...], how: Any, batch: int, engine: Any
) -> None:
    data = draw(spec, (0,) * batch)
    data.x, data.dy = (np.full((*rows, n), np.nan) for n in (spec.input_size, spec.output_size))
    results = run(engine, spec, data, **how)
    assert shapes(results) == wanted_shapes(spec, rows, (batch,))
    pairs = [("hy", data.hx), ("cy", data.cx), ("dhx", data.dhy), ("dcx", data.dcy)]
    for name, given_state in pairs:
        assert (results[name] is None) == (given_state is None)
        assert given_state is None or np.array_equal(results[name], given_state)
    for name in ("y", "dx", "dw"):
        assert not results[name].any(), name


@each_network
def test_an_unbatched_sequence_without_steps_hands_its_state_on(
    spec: v2.RNNSpec, engine: Any
) -> None:
    data = unbatched(draw(spec, (0,)))
    results = run(engine, spec, data)
    assert shapes(results) == wanted_shapes(spec, (0,), ())
    assert np.array_equal(results["hy"], data.hx)
    assert np.array_equal(results["dhx"], data.dhy)
    assert not results["dw"].any()


@each_network
def test_without_steps_and_states_the_states_are_zeros(spec: v2.RNNSpec, engine: Any) -> None:
    data = draw(spec, (0, 0)).without("hx", "cx", "dhy", "dcy")
    results = run(engine, spec, data)
    for name in ("hy", "cy", "dhx", "dcx"):
        assert results[name] is None or not results[name].any()


def test_results_of_empty_calls_are_not_the_arguments(engine: Any) -> None:
    spec = NETWORKS["lstm"]
    data = draw(spec, (0, 0))
    hx, cx = engine.put(data.hx), engine.put(data.cx)
    out = v2.rnn_forward(spec, engine.put(data.w), engine.put(data.x), hx, cx, engine=engine.name)
    out.hy[...] = 7
    out.cy[...] = 7
    assert np.array_equal(engine.get(hx), data.hx)
    assert np.array_equal(engine.get(cx), data.cx)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("input_size", "hidden_size"), [(1, 1), (1, 5), (6, 1)])
def test_one_feature_in_or_out_is_enough(
    cell: str, input_size: int, hidden_size: int, engine: Any
) -> None:
    spec = v2.RNNSpec(
        cell, input_size, hidden_size, num_layers=2, bidirectional=True, dtype="float64"
    )
    for lengths in ((1,), (3,), (1, 1), (2, 3)):
        data = draw(spec, lengths)
        check(spec, engine, run(engine, spec, data, lengths=lengths), expected(spec, data, lengths))


@pytest.mark.parametrize("steps", [7, 8, 9, 17])
@pytest.mark.parametrize("cell", CELLS)
def test_longer_sequences_are_as_right_as_short_ones(cell: str, steps: int, engine: Any) -> None:
    spec = v2.RNNSpec(cell, 3, 4, num_layers=2, bidirectional=True, dtype="float64")
    lengths = (steps, steps - 3, steps)
    data = draw(spec, lengths)
    check(spec, engine, run(engine, spec, data, lengths=lengths), expected(spec, data, lengths))


# --- batches are independent sequences --------------------------------------------------------


@each_network
def test_a_sequence_does_not_depend_on_its_neighbours(spec: v2.RNNSpec, engine: Any) -> None:
    data = draw(spec, (4, 4, 4))
    whole = run(engine, spec, data)
    for j in range(3):
        pick = {n: getattr(data, n) for n in ("x", "hx", "cx", "dy", "dhy", "dcy")}
        one = data.replace(**{n: None if a is None else a[:, j : j + 1] for n, a in pick.items()})
        alone = run(engine, spec, one)
        for name in ("y", "hy", "cy", "dx", "dhx", "dcx"):
            if alone[name] is not None:
                assert largest(alone[name], whole[name][:, j : j + 1]) <= 1e-12, name


@each_network
def test_a_batch_of_one_step_is_the_plain_cell(spec: v2.RNNSpec, engine: Any) -> None:
    data = draw(spec, (1, 1, 1))
    results = run(engine, spec, data)
    assert shapes(results) == wanted_shapes(spec, (1, 3), (3,))
    check(spec, engine, results, expected(spec, data, (1, 1, 1)))
