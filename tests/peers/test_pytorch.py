"""Against PyTorch on the CPU with the same weights: outputs and all gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_compat import v2

torch = pytest.importorskip(
    "torch",
    reason="compares with PyTorch, which is not installed: extra 'peers'",
)

from tests.peers.torch_runs import (  # noqa: E402 - needs torch
    FORMS,
    TOLERANCE,
    Problem,
    assert_equal_results,
    torch_module,
)

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN"),
]

CELLS = ("tanh", "relu", "lstm", "gru")
DTYPES = ("float32", "float64")
UNSORTED = (3, 6, 1, 5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", ["double", "none"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["uni", "bi"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("cell", CELLS)
def test_outputs_and_all_gradients_agree(
    cell: str, layers: int, bidirectional: bool, bias: str, dtype: str
) -> None:
    spec = v2.RNNSpec(
        cell, 3, 5, num_layers=layers, bidirectional=bidirectional, bias=bias, dtype=dtype
    )
    assert_equal_results(Problem(spec))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", ["double", "none"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["uni", "bi"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_projected_lstms_agree(layers: int, bidirectional: bool, bias: str, dtype: str) -> None:
    spec = v2.RNNSpec(
        "lstm",
        3,
        5,
        num_layers=layers,
        bidirectional=bidirectional,
        bias=bias,
        proj_size=2,
        dtype=dtype,
    )
    assert_equal_results(Problem(spec))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("states", [True, False], ids=["given", "zero"])
@pytest.mark.parametrize("form", ["batch_major", "unbatched"])
@pytest.mark.parametrize("cell", CELLS)
def test_batch_first_and_unbatched_input_agree(
    cell: str, form: str, states: bool, dtype: str
) -> None:
    spec = v2.RNNSpec(cell, 3, 5, num_layers=2, bidirectional=True, dtype=dtype)
    assert_equal_results(Problem(spec, form=form, states=states))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lengths", [(6, 4, 4, 1), UNSORTED, (2, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("form", ["padded", "packed"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["uni", "bi"])
@pytest.mark.parametrize("cell", CELLS)
def test_packed_sequences_sorted_and_unsorted_agree(
    cell: str, bidirectional: bool, form: str, lengths: tuple[int, ...], dtype: str
) -> None:
    spec = v2.RNNSpec(cell, 3, 5, num_layers=2, bidirectional=bidirectional, dtype=dtype)
    assert_equal_results(Problem(spec, form=form, lengths=lengths))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    cell = draw(st.sampled_from(CELLS))
    hidden = draw(st.integers(1, 8))
    projects = cell == "lstm" and hidden > 1 and draw(st.booleans())
    spec = v2.RNNSpec(
        cell,
        draw(st.integers(1, 8)),
        hidden,
        num_layers=draw(st.integers(1, 3)),
        bidirectional=draw(st.booleans()),
        bias=draw(st.sampled_from(("double", "none"))),
        proj_size=draw(st.integers(1, hidden - 1)) if projects else None,
        # In float32 two right answers may fall on different sides of relu's kink.
        dtype="float64" if cell == "relu" else draw(st.sampled_from(DTYPES)),
    )
    steps, form = draw(st.integers(1, 9)), draw(st.sampled_from(FORMS))
    batch = 1 if form == "unbatched" else draw(st.integers(1, 6))
    lengths = None
    if form in ("padded", "packed"):
        lengths = tuple(draw(st.lists(st.integers(1, steps), min_size=batch, max_size=batch)))
    parts = ("dy", "dhy", "dcy") if spec.has_cell else ("dy", "dhy")
    gradients = draw(st.lists(st.sampled_from(parts), unique=True, min_size=1))
    return Problem(
        spec,
        steps,
        batch,
        form,
        lengths,
        states=draw(st.booleans()),
        gradients=tuple(gradients),
        seed=draw(st.integers(0, 2**32 - 1)),
    )


@settings(max_examples=300)
@given(problems())
def test_drawn_networks_and_batches_agree(problem: Problem) -> None:
    assert_equal_results(problem)


@pytest.mark.parametrize(
    ("cell", "gradients"),
    [(cell, (gradient,)) for cell in CELLS for gradient in ("dy", "dhy")]
    + [("lstm", ("dcy",)), ("lstm", ("dhy", "dcy"))],
    ids=str,
)
@pytest.mark.parametrize("lengths", [None, UNSORTED], ids=["equal", "ragged"])
def test_a_loss_of_some_outputs_only_has_pytorch_s_gradients(
    lengths: tuple[int, ...] | None, cell: str, gradients: tuple[str, ...]
) -> None:
    spec = v2.RNNSpec(cell, 3, 5, num_layers=2, bidirectional=True, dtype="float64")
    form = "time_major" if lengths is None else "padded"
    assert_equal_results(Problem(spec, form=form, lengths=lengths, gradients=gradients))


@pytest.mark.parametrize("form", ["time_major", "batch_major", "padded"])
@pytest.mark.parametrize("kind", ["transposed", "reversed", "stride 0", "stride 0 in one axis"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_gradient_that_is_a_view_gives_what_its_values_give(
    cell: str, kind: str, form: str
) -> None:
    spec = v2.RNNSpec(cell, 3, 5, num_layers=2, bidirectional=True, dtype="float64")
    lengths = UNSORTED if form == "padded" else None
    problem = Problem(spec, form=form, lengths=lengths)
    dy = problem.arrays()["dy"]
    view: np.ndarray = {
        "transposed": lambda: np.asfortranarray(dy),
        "reversed": lambda: dy[::-1, ::-1, ::-1],
        "stride 0": lambda: np.broadcast_to(np.float64(0.5), dy.shape),
        "stride 0 in one axis": lambda: np.broadcast_to(dy[:, :, :1], dy.shape),
    }[kind]()
    assert not view.flags.c_contiguous
    assert_equal_results(problem, dy=view)


@pytest.mark.parametrize("cell", CELLS)
def test_inference_is_eval_mode_and_its_results_have_the_same_parts(cell: str) -> None:
    spec = v2.RNNSpec(cell, 3, 5, num_layers=3, dropout=0.9, dtype="float64")
    w = v2.init_weights(spec, seed=2)
    x = Problem(spec).arrays()["x"]
    module = torch_module(spec, w).eval()
    y, last = module(torch.from_numpy(x))
    out = v2.rnn_forward(spec, w, x)
    training = v2.rnn_forward(spec.replace(dropout=0.0), w, x, training=True)
    expected = (y, *last) if spec.has_cell else (y, last, None)
    for ours, trained, theirs in zip(out, training, expected, strict=True):
        assert type(ours) is type(trained)
        if theirs is None:
            assert ours is None
            continue
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=0, atol=TOLERANCE["float64"])
        np.testing.assert_array_equal(ours, trained)


@pytest.mark.parametrize("cell", CELLS)
def test_each_sequence_of_a_batch_is_what_pytorch_gives_for_it_alone(cell: str) -> None:
    spec = v2.RNNSpec(cell, 3, 5, num_layers=2, bidirectional=True, dtype="float64")
    w = v2.init_weights(spec, seed=3)
    problem = Problem(spec, form="padded", lengths=(3, 6, 0, 5))
    arrays = problem.arrays()
    x = arrays["x"]
    states = [arrays[name] for name in ("hx", "cx") if name in arrays]
    out = v2.rnn_forward(spec, w, x, *states, lengths=problem.lengths)
    module = torch_module(spec, w)
    for j, length in enumerate((3, 6, 0, 5)):
        ends = [state[:, j] for state in (out.hy, out.cy) if state is not None]
        alone = [torch.from_numpy(state[:, j].copy()) for state in states]
        if length == 0:
            for end, start in zip(ends, alone, strict=True):
                np.testing.assert_array_equal(end, start)
            assert not out.y[:, j].any()
            continue
        y, last = module(
            torch.from_numpy(x[:length, j].copy()), tuple(alone) if spec.has_cell else alone[0]
        )
        for got, expected in zip(
            (out.y[:length, j], *ends), (y, *(last if spec.has_cell else (last,))), strict=True
        ):
            np.testing.assert_allclose(
                got, expected.detach().numpy(), rtol=0, atol=TOLERANCE["float64"]
            )


def test_zero_padding_without_lengths_is_another_result_in_both_libraries() -> None:
    spec = v2.RNNSpec("lstm", 3, 5, bidirectional=True, dtype="float64")
    w = v2.init_weights(spec, seed=4)
    x = Problem(spec).arrays()["x"]
    lengths = (6, 4, 2, 1)
    for j, length in enumerate(lengths):
        x[length:, j] = 0
    blind = v2.rnn_forward(spec, w, x).y
    y, _ = torch_module(spec, w)(torch.from_numpy(x))
    np.testing.assert_allclose(blind, y.detach().numpy(), rtol=0, atol=TOLERANCE["float64"])
    told = v2.rnn_forward(spec, w, x, lengths=lengths).y
    np.testing.assert_allclose(told[:, 0], blind[:, 0], rtol=0, atol=TOLERANCE["float64"])
    for j, length in enumerate(lengths[1:], 1):
        forward, reverse = np.split(abs(told - blind)[:length, j], 2, axis=1)
        assert forward.max() < TOLERANCE["float64"]
        assert reverse.max() > 1e-3


def test_pytorch_s_batch_sizes_are_ours() -> None:
    spec = v2.RNNSpec("gru", 3, 5, bidirectional=True, dtype="float64")
    w = v2.init_weights(spec, seed=5)
    x = torch.from_numpy(Problem(spec).arrays()["x"])
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor((6, 4, 4, 1)))
    y, hy = torch_module(spec, w)(packed)
    out = v2.rnn_forward(
        spec, w, packed.data.numpy(), batch_sizes=packed.batch_sizes.numpy(), layout="packed"
    )
    np.testing.assert_allclose(out.y, y.data.detach().numpy(), rtol=0, atol=TOLERANCE["float64"])
    np.testing.assert_allclose(out.hy, hy.detach().numpy(), rtol=0, atol=TOLERANCE["float64"])
