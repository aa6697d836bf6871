"""Extreme values, very long sequences, and other people's NumPy settings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.matrix.tolerances import tolerance
from tests.engines.networks import (
    CELLS,
    NETWORKS,
    Data,
    check,
    draw,
    each_network,
    expected,
    largest,
    run,
)

FLOATS = ("float32", "float64")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [30.0, 1e3, 1e6, 1e30])
@pytest.mark.parametrize("cell", ["tanh", "lstm", "gru"])
def test_saturated_gates_give_finite_results_without_a_warning(
    cell: str, scale: float, dtype: str, engine: Any
) -> None:
    # In full precision: TF32 keeps 10 bits of a gate's input, which may be a thousand here.
    spec = v2.RNNSpec(cell, 3, 4, num_layers=2, bidirectional=True, dtype=dtype, math="full")
    for lengths in ((10, 10), (2, 9, 0)):
        data = draw(spec, lengths)
        data.x *= np.asarray(scale, dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            results = run(engine, spec, data, lengths=lengths)
        wanted = expected(spec, data, lengths)
        for name in ("y", "hy", "cy", "dx", "dhx", "dcx"):
            if results[name] is not None:
                assert np.isfinite(results[name]).all(), name
                assert largest(results[name], wanted[name]) <= (
                    1e-4 if dtype == "float32" else 1e-10
                ), name


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_closed_gate_is_closed_and_an_open_one_open(sign: int, dtype: str, engine: Any) -> None:
    # With biases of ±1e4 every sigmoid is 0 or 1, so that an LSTM forgets or keeps its cell.
    spec = v2.RNNSpec("lstm", 2, 3, dtype=dtype, math="full")
    data = draw(spec, (9, 9))
    names = v2.named_weights(spec, data.w)
    forget = names[0, 1]
    assert forget.bias is not None
    forget.bias[...] = sign * 1e4
    names[0, 0].bias[...] = -1e4  # nothing enters
    results = run(engine, spec, data)
    wanted = data.cx if sign > 0 else np.zeros_like(data.cx)
    if engine.on_host:
        assert np.array_equal(results["cy"], wanted)
    else:  # the library's sigmoid is its own affair
        assert largest(results["cy"], wanted) <= tolerance(dtype, "full", engine="cudnn")


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_gru_whose_update_gate_is_open_hands_its_state_on(dtype: str, engine: Any) -> None:
    spec = v2.RNNSpec("gru", 2, 3, dtype=dtype, math="full")
    data = draw(spec, (9, 9)).without("dy")
    names = v2.named_weights(spec, data.w)
    names[0, 1].bias[...] = 1e4
    results = run(engine, spec, data)
    bound = 1e-6 if dtype == "float32" else 1e-15
    if not engine.on_host:  # n + z (h - n) is the same equation and rounds
        bound = tolerance(dtype, "full", engine="cudnn")
    assert largest(results["hy"], data.hx) <= bound
    assert largest(results["dhx"], data.dhy) <= bound


@each_network
def test_strict_settings_of_numpy_s_floating_point_errors_do_not_break_a_call(
    spec: v2.RNNSpec, engine: Any
) -> None:
    # Rounding a tiny number to 0 is no error here; a caller may have made it one for his code.
    for dtype in FLOATS:
        strict = spec.replace(dtype=dtype)
        data = draw(strict, (12, 5))
        data.x *= np.asarray(200, dtype)
        wanted = run(engine, strict, data, lengths=(12, 5))
        with np.errstate(all="raise"):
            results = run(engine, strict, data, lengths=(12, 5))
        for name, value in wanted.items():
            assert value is None or np.array_equal(results[name], value), name


def test_a_call_leaves_numpy_s_settings_as_they_were(engine: Any) -> None:
    spec = NETWORKS["lstm"]
    with np.errstate(over="raise", under="warn", invalid="ignore", divide="print"):
        before = np.geterr()
        run(engine, spec, draw(spec, (3, 2)))
        assert np.geterr() == before


@pytest.mark.parametrize("cell", CELLS)
def test_a_nan_stays_in_its_own_sequence_and_after_its_own_step(cell: str, engine: Any) -> None:
    spec = v2.RNNSpec(cell, 3, 4, dtype="float64")
    data = draw(spec, (4, 4))
    clean = run(engine, spec, data)
    data.x[2, 0] = np.nan
    results = run(engine, spec, data)
    assert np.array_equal(results["y"][:2], clean["y"][:2])
    assert np.array_equal(results["y"][:, 1], clean["y"][:, 1])
    if cell != "relu" or engine.on_host:  # fmaxf(NaN, 0) is 0: what the library makes of it is open
        assert np.isnan(results["y"][2:, 0]).all()
        assert np.isnan(results["hy"][:, 0]).all()


@pytest.mark.parametrize("cell", CELLS)
def test_65536_steps_are_not_too_many(cell: str, engine: Any) -> None:
    # A recurrence that forgets: the end of a long run is that of its last steps.
    steps = 65_536
    spec = v2.RNNSpec(cell, 1, 2, dtype="float64")
    rng = np.random.default_rng(0)
    w = 0.3 * rng.normal(size=v2.weight_size(spec))
    x = rng.normal(size=(steps, 1, 1))
    out = v2.rnn_forward(spec, engine.put(w), engine.put(x), engine=engine.name)
    assert out.y.shape == (steps, 1, 2)
    tail = Data(w, x[-200:], None, None, None, None, None)
    wanted = expected(spec, tail, (200,))
    assert largest(engine.get(out.y)[-50:], wanted["y"][-50:]) <= 1e-12
    assert largest(engine.get(out.hy), wanted["hy"]) <= 1e-12


@pytest.mark.parametrize("cell", CELLS)
def test_many_sequences_of_one_step_are_right(cell: str, engine: Any) -> None:
    # More rows than the blocks in which backward walks over them.
    spec = v2.RNNSpec(cell, 2, 3, dtype="float64")
    lengths = (1,) * 6000
    data = draw(spec, lengths)
    results = run(engine, spec, data)
    some = slice(5980, 6000)
    pick = {n: getattr(data, n) for n in ("x", "hx", "cx", "dy", "dhy", "dcy")}
    few = data.replace(**{n: None if a is None else a[:, some] for n, a in pick.items()})
    wanted = expected(spec, few, (1,) * 20)
    for name in ("y", "hy", "cy", "dx", "dhx", "dcx"):
        if wanted[name] is not None:
            assert largest(results[name][:, some], wanted[name]) <= 1e-12, name


def test_wide_layers_are_right_across_the_blocks_of_backward(engine: Any) -> None:
    for cell in ("lstm", "gru", "tanh"):
        spec = v2.RNNSpec(cell, 7, 300, dtype="float64")
        lengths = (30, 12, 21)
        data = draw(spec, lengths)
        data.w *= 0.1
        results, wanted = run(engine, spec, data, lengths=lengths), expected(spec, data, lengths)
        for name, value in wanted.items():
            assert value is None or largest(results[name], value) <= 1e-11, name


def test_a_clip_that_binds_everywhere_is_right(engine: Any) -> None:
    for clip in ((-0.01, 0.01), (0.0, 0.0), (0.5, 0.6), (-np.inf, 0.0)):
        spec = v2.RNNSpec(
            "lstm", 3, 4, num_layers=2, bidirectional=True, clip=clip, dtype="float64"
        )
        data = draw(spec, (9, 4, 0))
        results = run(engine, spec, data, lengths=(9, 4, 0))
        check(spec, engine, results, expected(spec, data, (9, 4, 0)))


def test_the_cell_state_that_comes_back_is_not_clipped(engine: Any) -> None:
    spec = v2.RNNSpec("lstm", 3, 4, clip=(-0.01, 0.01), dtype="float64")
    results = run(engine, spec, draw(spec, (9, 4)))
    assert np.abs(results["cy"]).max() > 0.1
    assert np.abs(results["y"]).max() <= np.tanh(0.01)


def test_what_is_too_large_for_float16_is_infinite_without_a_warning(engine: Any) -> None:
    spec = v2.RNNSpec("relu", 2, 2, dtype="float16")
    w = engine.put(np.full(v2.weight_size(spec), 2, "float16"))
    x = engine.put(np.full((3, 1, 2), 1000, "float16"))  # y is 4,002, 20,010 and more than 65,504
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = v2.rnn_forward(spec, w, x, training=True, engine=engine.name)
        dy = engine.put(np.full((3, 1, 2), 100, "float16"))
        gradients = v2.rnn_backward(out, dy)
    assert np.isposinf(engine.get(out.hy)).all()
    dw = engine.get(gradients.dw)
    assert np.isposinf(dw[:4]).all()  # of the weights of x
    assert np.isfinite(engine.get(gradients.dx)).all()
