"""Sequences and batches that the library refuses: more than 65,535 steps, and large batches.

The NumPy engine, which knows no limit, says what is right; and a long sequence is what its parts
give when they are run by hand, each with the states of the one before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from tests.engines.networks import GRADIENTS, OUTPUTS, Data
from tests.gpu.work import on_device, train

pytestmark = pytest.mark.gpu

LIMIT = 65_535
"""Steps that cuDNN takes in one call."""
CLOSE = {"float64": 1e-10, "float32": 2e-4}
"""Of the largest value, or of 1 where that is smaller: sums of as many terms as there are steps."""


def spec_of(cell: str, dtype: str = "float64", **options: Any) -> v2.RNNSpec:
    return v2.RNNSpec(cell, 3, 4, dtype=dtype, math="full", **options)


def drawn(spec: v2.RNNSpec, lengths: Any, layout: str = "time_major", steps: int = 0) -> Data:
    """Data with weights of PyTorch's size, under which no state grows, however long it runs."""
    rng, batch, steps = np.random.default_rng(0), len(lengths), max(steps, *lengths)

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape).astype(spec.dtype)

    rows: tuple[int, ...] = (steps, batch)
    if layout == "batch_major":
        rows = (batch, steps)
    elif layout == "packed":
        rows = (sum(lengths),)
    state, cell = spec.state_shape(batch), spec.cell_shape(batch)
    cells = (normal(*cell), normal(*cell)) if spec.has_cell else (None, None)
    return Data(
        w=v2.init_weights(spec, seed=0),
        x=normal(*rows, spec.input_size),
        hx=normal(*state),
        cx=cells[0],
        dy=normal(*rows, spec.output_size),
        dhy=normal(*state),
        dcy=cells[1],
    )


def on_host(spec: v2.RNNSpec, data: Data, how: Any) -> dict[str, Any]:
    out = v2.rnn_forward(spec, data.w, data.x, data.hx, data.cx, training=True, **how)
    gradients = v2.rnn_backward(out, data.dy, data.dhy, data.dcy)
    return dict(zip(OUTPUTS + GRADIENTS, (*out, *gradients), strict=True))


def assert_close(got: dict[str, Any], wanted: dict[str, Any], dtype: str) -> None:
    for name, right in wanted.items():
        if right is None:
            assert got[name] is None, name
            continue
        value = got[name].get() if hasattr(got[name], "get") else got[name]
        assert value.shape == right.shape, name
        bound = CLOSE[dtype] * max(1.0, float(np.abs(right).max(initial=0.0)))
        np.testing.assert_allclose(value, right, rtol=0, atol=bound, err_msg=name)


CASES: dict[str, tuple[v2.RNNSpec, Any, str]] = {
    "as long as the library takes": (spec_of("lstm"), (LIMIT, LIMIT), "time_major"),
    "one step more": (spec_of("lstm"), (LIMIT + 1, LIMIT + 1), "time_major"),
    "three parts": (spec_of("lstm"), (131_073,), "time_major"),
    "gru bi": (spec_of("gru", bidirectional=True), (70_000, 70_000), "batch_major"),
    "lstm projected, 2 layers, packed": (
        spec_of("lstm", num_layers=2, proj_size=2),
        (LIMIT + 1, 5, 0, 70_000),
        "packed",
    ),
    "tanh bi, 2 layers, ragged": (
        spec_of("tanh", num_layers=2, bidirectional=True),
        (3, LIMIT + 5, 0, LIMIT),
        "time_major",
    ),
    "lstm projected bi, ragged": (
        spec_of("lstm", proj_size=2, bidirectional=True),
        (70_000, 1, LIMIT + 1),
        "batch_major",
    ),
    "gru float32, ragged": (spec_of("gru", "float32"), (70_000, 0, 300), "batch_major"),
    "lstm clipped bi, packed": (
        spec_of("lstm", bidirectional=True, clip=(-0.5, 0.5)),
        (12, LIMIT + 2),
        "packed",
    ),
}


@pytest.mark.parametrize(("spec", "lengths", "layout"), CASES.values(), ids=CASES)
def test_long_sequences_equal_the_numpy_engine_s(
    spec: v2.RNNSpec, lengths: Any, layout: str
) -> None:
    data, how = drawn(spec, lengths, layout), {"lengths": lengths, "layout": layout}
    assert_close(train(spec, on_device(data), how), on_host(spec, data, how), spec.dtype)


def test_inference_over_a_long_sequence_is_what_training_gives(cupy: Any) -> None:
    spec, lengths = spec_of("gru", bidirectional=True), (70_000, 4)
    data = drawn(spec, lengths)
    out = v2.rnn_forward(spec, *(cupy.asarray(a) for a in (data.w, data.x)), lengths=lengths)
    right = v2.rnn_forward(spec, data.w, data.x, lengths=lengths)
    assert_close(dict(zip(OUTPUTS, out, strict=True)), dict(zip(OUTPUTS, right, strict=True)),
                 spec.dtype)  # fmt: skip


@pytest.mark.parametrize("cut", [LIMIT, 40_000])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_long_sequence_is_its_parts_run_one_after_the_other(
    cupy: Any, cell: str, cut: int
) -> None:
    spec, steps = spec_of(cell, num_layers=2), 70_000
    data = on_device(drawn(spec, (steps, steps)))
    whole = train(spec, data, {})
    first = v2.rnn_forward(spec, data.w, data.x[:cut], data.hx, data.cx, training=True)
    second = v2.rnn_forward(spec, data.w, data.x[cut:], first.hy, first.cy, training=True)
    behind = v2.rnn_backward(second, data.dy[cut:], data.dhy, data.dcy)
    before = v2.rnn_backward(first, data.dy[:cut], behind.dhx, behind.dcx)
    by_hand = {
        "y": cupy.concatenate((first.y, second.y)),
        "hy": second.hy,
        "cy": second.cy,
        "dx": cupy.concatenate((before.dx, behind.dx)),
        "dhx": before.dhx,
        "dcx": before.dcx,
        "dw": before.dw + behind.dw,
    }
    assert_close(whole, {n: None if a is None else a.get() for n, a in by_hand.items()}, spec.dtype)


def test_padding_far_beyond_the_limit_is_only_padding(cupy: Any) -> None:
    spec, lengths = spec_of("lstm", bidirectional=True), (7, 0, 3)
    data = drawn(spec, lengths, steps=70_000)
    for array in (data.x, data.dy):
        array[7:] = np.nan
    how = {"lengths": lengths}
    got = train(spec, on_device(data), how)
    assert not got["y"][7:].any()
    assert not got["dx"][7:].any()
    assert_close(got, on_host(spec, data, how), spec.dtype)


@pytest.mark.parametrize("batch", [LIMIT + 1, 70_000])
@pytest.mark.parametrize("cell", ["lstm", "gru", "tanh"])
def test_large_batches_equal_the_numpy_engine_s(cell: str, batch: int) -> None:
    spec = spec_of(cell, bidirectional=cell == "gru")
    data = drawn(spec, (2,) * batch)
    assert_close(train(spec, on_device(data), {}), on_host(spec, data, {}), spec.dtype)


@pytest.mark.parametrize("layout", ["time_major", "batch_major", "packed"])
def test_large_ragged_batches_equal_the_numpy_engine_s(layout: str) -> None:
    spec = spec_of("lstm", bidirectional=True)
    lengths = tuple(np.random.default_rng(1).integers(0, 4, 70_000).tolist())
    data, how = drawn(spec, lengths, layout), {"lengths": lengths, "layout": layout}
    assert_close(train(spec, on_device(data), how), on_host(spec, data, how), spec.dtype)


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (0, 0)], ids=["T=0", "B=0", "both"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_nothing_to_do_is_done_on_the_gpu_too(cupy: Any, cell: str, shape: Any) -> None:
    spec = spec_of(cell, num_layers=2, bidirectional=True)
    w = cupy.asarray(v2.init_weights(spec, seed=0))
    state = cupy.asarray(np.random.default_rng(0).normal(size=spec.state_shape(shape[1])))
    out = v2.rnn_forward(spec, w, cupy.zeros((*shape, 3)), state, training=True)
    gradients = v2.rnn_backward(out, None, state)
    assert out.engine == "cudnn"
    assert out.y.shape == (*shape, spec.output_size)
    assert bool((out.hy == state).all())
    assert bool((gradients.dhx == state).all())
    assert gradients.dx.shape == (*shape, 3)
    assert not gradients.dw.any()
