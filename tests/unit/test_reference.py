"""The slow reference: against what the real libraries computed, and against itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.errors import ArgumentError
from cudnn_compat.matrix import reference
from cudnn_compat.matrix.reference import reference_backward, reference_forward
from tests import golden
from tests.golden import Case, largest

ROOT = Path(__file__).parents[2]
TINY = 1e-13
CELLS = ("relu", "tanh", "lstm", "gru")


def evaluate(case: Case, spec: v2.RNNSpec | None = None, masks: Any = None) -> dict[str, Any]:
    """Everything that a case has recorded, as the reference sees it, in the case's layout."""
    spec = spec or case.spec
    arguments = [case.get("w"), case.rows("x"), case.get("hx"), case.get("cx"), masks]
    out = reference_forward(spec, *arguments)
    gradients = reference_backward(out, case.rows("dy"), case.get("dhy"), case.get("dcy"))
    steps = case.arrays["x"].shape[case.layout == "batch_major"]

    def join(rows: list[np.ndarray]) -> np.ndarray:
        return reference.join_rows(rows, case.layout, steps=steps)

    return {
        "y": join(out.ys),
        "hy": out.hy,
        "cy": out.cy,
        "dx": join(gradients.dxs),
        "dhx": gradients.dhx,
        "dcx": gradients.dcx,
        "dw": gradients.dw,
    }


def some_weights(spec: v2.RNNSpec, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.6, v2.weight_size(spec))


@pytest.mark.parametrize("case", golden.cases(), ids=lambda case: case.name)
def test_the_reference_agrees_with_what_the_library_computed(case: Case) -> None:
    for name, value in evaluate(case).items():
        if value is None:
            assert name not in case.arrays
        else:
            assert largest(value, case.get(name)) <= case.tolerance(name), name


def test_float64_results_with_a_clip_differ_only_because_the_library_rounds_its_bounds() -> None:
    (case,) = (c for c in golden.cases() if c.spec.clip and c.spec.dtype == "float64")
    rounded = tuple(float(np.float32(bound)) for bound in case.spec.clip)
    assert rounded != case.spec.clip
    for name, value in evaluate(case, case.spec.replace(clip=rounded)).items():
        assert largest(value, case.get(name)) <= 1e-12, name


def test_the_recorded_dropout_is_that_of_masks_between_the_layers() -> None:
    case, masks = golden.dropout_case(), golden.dropout_masks()
    kept = np.concatenate([mask.ravel() for layer in masks for mask in layer])
    assert set(kept) == {0.0, 2.0}
    for name, value in evaluate(case, masks=masks).items():
        assert largest(value, case.get(name)) <= 2e-5, name
    undropped = evaluate(case)
    assert largest(undropped["y"], case.get("y")) > 0.01


SPECS = [
    v2.RNNSpec(cell, 2, 3, num_layers=2, bidirectional=True, dtype="float64") for cell in CELLS
]
SPECS += [
    v2.RNNSpec("gru", 2, 3, bias="input", dtype="float64"),
    v2.RNNSpec("gru", 2, 3, bias="recurrent", dtype="float64"),
    v2.RNNSpec("lstm", 3, 3, num_layers=2, input_mode="skip", bias="none", dtype="float64"),
    v2.RNNSpec("lstm", 2, 4, bidirectional=True, proj_size=2, clip=(-0.3, 0.2), dtype="float64"),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_reference_gradients_agree_with_finite_differences(spec: v2.RNNSpec) -> None:
    rng = np.random.default_rng(5)
    lengths, batch, step = (3, 0, 1), 3, 1e-5
    w = some_weights(spec)
    xs = [rng.normal(size=(length, spec.input_size)) for length in lengths]
    hx, cx = (rng.normal(size=s) for s in (spec.state_shape(batch), spec.cell_shape(batch)))
    dys = [rng.normal(size=(length, spec.output_size)) for length in lengths]
    dhy, dcy = rng.normal(size=hx.shape), rng.normal(size=cx.shape)
    masks = [[rng.choice([0.0, 2.0], dy.shape) for dy in dys]] * (spec.num_layers - 1)

    def loss() -> float:
        out = reference_forward(spec, w, xs, hx, cx, masks)
        total = sum(np.vdot(y, dy) for y, dy in zip(out.ys, dys, strict=True))
        total += np.vdot(out.hy, dhy)
        return float(total + (0 if out.cy is None else np.vdot(out.cy, dcy)))

    out = reference_forward(spec, w, xs, hx, cx, masks)
    assert reference.distance_to_kink(out) > 100 * step
    gradients = reference_backward(out, dys, dhy, dcy)
    pairs = [(w, gradients.dw), (hx, gradients.dhx), *zip(xs, gradients.dxs, strict=True)]
    if spec.has_cell:
        pairs.append((cx, gradients.dcx))
    for values, gradient in pairs:
        slopes = np.zeros(values.shape)
        for index in np.ndindex(values.shape):
            kept = values[index]
            values[index] = kept + step
            above = loss()
            values[index] = kept - step
            slopes[index] = (above - loss()) / (2 * step)
            values[index] = kept
        assert np.linalg.norm(slopes - gradient) <= 1e-8 * max(np.linalg.norm(slopes), 1)


@pytest.mark.parametrize("cell", CELLS)
def test_an_empty_sequence_hands_its_state_on_in_the_reference(cell: str) -> None:
    spec = v2.RNNSpec(cell, 2, 3, num_layers=2, bidirectional=True)
    rng = np.random.default_rng(1)
    w, hx, cx = some_weights(spec), rng.normal(size=(4, 2, 3)), rng.normal(size=(4, 2, 3))
    out = reference_forward(spec, w, [np.zeros((0, 2)), rng.normal(size=(2, 2))], hx, cx)
    gradients = reference_backward(out, None, hx, cx)
    assert np.array_equal(out.hy[:, 0], hx[:, 0])
    assert np.array_equal(gradients.dhx[:, 0], hx[:, 0])
    assert not np.array_equal(out.hy[:, 1], hx[:, 1])
    assert out.ys[0].shape == (0, 6)
    assert gradients.dxs[0].shape == (0, 2)
    if spec.has_cell:
        assert np.array_equal(out.cy[:, 0], cx[:, 0])
        assert np.array_equal(gradients.dcx[:, 0], cx[:, 0])
    alone = reference_backward(
        reference_forward(spec, w, [np.zeros((0, 2))], hx[:, :1], cx[:, :1]), None, hx[:, :1]
    )
    assert not alone.dw.any()


@pytest.mark.parametrize("cell", CELLS)
def test_the_reverse_direction_is_the_reversed_sequence_run_forward(cell: str) -> None:
    both, one = v2.RNNSpec(cell, 2, 3, bidirectional=True, bias="none"), v2.RNNSpec(cell, 2, 3)
    one = one.replace(bias="none")
    w = some_weights(both)
    x = np.random.default_rng(2).normal(size=(4, 2))
    out = reference_forward(both, w, [x])
    _, half = np.split(w, 2)
    alone = reference_forward(one, half, [x[::-1]])
    assert largest(out.ys[0][:, 3:], alone.ys[0][::-1]) <= TINY
    assert largest(out.hy[1], alone.hy[0]) <= TINY


@pytest.mark.parametrize("cell", CELLS)
def test_single_biases_are_one_function_for_every_cell_but_gru(cell: str) -> None:
    spec = v2.RNNSpec(cell, 2, 3, bias="input")
    w, x = some_weights(spec), np.random.default_rng(3).normal(size=(3, 2))
    by_input = reference_forward(spec, w, [x]).ys[0]
    by_recurrent = reference_forward(spec.replace(bias="recurrent"), w, [x]).ys[0]
    if cell == "gru":
        assert largest(by_input, by_recurrent) > 1e-3
    else:
        assert largest(by_input, by_recurrent) <= TINY


def test_a_gru_step_by_hand() -> None:
    # H = 1: r = σ(ln 3) = 3/4, z = σ(-ln 3) = 1/4, n = tanh(0.1 + 3/4 · 0.4).
    spec = v2.RNNSpec("gru", 1, 1)
    w = np.array([0, 0, 0, 0, 0, 0, np.log(3), 0, 0.1, 0, -np.log(3), 0.4])
    out = reference_forward(spec, w, [np.zeros((1, 1))], np.full((1, 1, 1), 2.0))
    assert largest(out.ys[0], np.array([[0.75 * np.tanh(0.4) + 0.25 * 2]])) <= TINY


def test_an_lstm_step_with_clip_by_hand() -> None:
    # All gates are σ(0) = 1/2 and g = tanh(0.8): c = 1/2 clip(9) + 1/2 g, h = 1/2 tanh(clip(c)).
    spec = v2.RNNSpec("lstm", 1, 1, bias="input", clip=(-1.0, 1.0))
    w = np.array([0.0] * 8 + [0, 0, 0.8, 0])
    out = reference_forward(spec, w, [np.zeros((1, 1))], None, np.full((1, 1, 1), 9.0))
    c = 0.5 + 0.5 * np.tanh(0.8)
    assert out.cy.item() == pytest.approx(c, abs=TINY)
    assert out.hy.item() == pytest.approx(0.5 * np.tanh(c), abs=TINY)
    gradients = reference_backward(out, dcy=np.ones((1, 1, 1)))
    assert gradients.dcx.item() == 0.0  # 9 is outside the bounds


def test_forward_and_backward_change_no_argument() -> None:
    spec = v2.RNNSpec("lstm", 2, 3, num_layers=2)
    rng = np.random.default_rng(4)
    states = [rng.normal(size=(2, 1, 3)) for _ in range(4)]
    arguments = [some_weights(spec), rng.normal(size=(3, 2)), rng.normal(size=(3, 3)), *states]
    before = [argument.copy() for argument in arguments]
    w, x, dy, hx, cx, dhy, dcy = arguments
    out = reference_forward(spec, w, [x], hx, cx)
    first = reference_backward(out, [dy], dhy, dcy)
    again = reference_backward(out, [dy], dhy, dcy)
    assert all(np.array_equal(a, b) for a, b in zip(arguments, before, strict=True))
    assert np.array_equal(first.dw, again.dw)


def test_the_reference_computes_in_float64_whatever_comes() -> None:
    spec = v2.RNNSpec("lstm", 2, 3)
    w, x = some_weights(spec).astype(np.float32), np.ones((2, 2), np.float16)
    out = reference_forward(spec, w, [x])
    gradients = reference_backward(out, [np.ones((2, 3), np.float32)])
    arrays = [out.ys[0], out.hy, out.cy, gradients.dxs[0], *gradients[1:]]
    assert {array.dtype for array in arrays} == {np.dtype("float64")}
    exact = reference_forward(spec, w.astype(np.float64), [x.astype(np.float64)])
    assert np.array_equal(out.hy, exact.hy)


@pytest.mark.parametrize("change", [-1, 1])
def test_a_weight_space_of_the_wrong_size_is_refused(change: int) -> None:
    spec = v2.RNNSpec("gru", 2, 3)
    with pytest.raises(ArgumentError, match="w has"):
        reference_forward(spec, np.zeros(v2.weight_size(spec) + change), [np.zeros((1, 2))])


def test_packed_rows_are_those_of_the_longer_sequences_step_by_step() -> None:
    a, b, c = np.array([[1.0], [2.0], [3.0]]), np.zeros((0, 1)), np.array([[10.0], [20.0]])
    packed = reference.join_rows([a, b, c], "packed")
    assert packed.ravel().tolist() == [1, 10, 2, 20, 3]
    split = reference.split_rows(packed, [3, 0, 2], "packed")
    assert [rows.ravel().tolist() for rows in split] == [[1, 2, 3], [], [10, 20]]
    with pytest.raises(ArgumentError, match="5 rows"):
        reference.split_rows(packed, [3, 0, 1], "packed")


@pytest.mark.parametrize("layout", ["time_major", "batch_major"])
def test_padded_rows_are_cut_at_their_lengths_and_joined_with_zeros(layout: str) -> None:
    x = np.arange(1.0, 13.0).reshape(3, 4, 1)
    steps, batch = (3, 4) if layout == "time_major" else (4, 3)
    lengths = [2, 0, 3, 1][:batch]
    split = reference.split_rows(x, lengths, layout)
    by_sequence = x.swapaxes(0, 1) if layout == "time_major" else x
    for rows, whole, length in zip(split, by_sequence, lengths, strict=True):
        assert np.array_equal(rows, whole[:length])
    joined = reference.join_rows(split, layout, steps=steps)
    assert joined.shape == x.shape
    assert joined.sum() == sum(rows.sum() for rows in split)
    again = reference.split_rows(joined, lengths, layout)
    assert all(np.array_equal(a, b) for a, b in zip(split, again, strict=True))
    assert len(reference.split_rows(x, None, layout)[0]) == steps


def test_lengths_come_from_batch_sizes() -> None:
    assert reference.lengths_from_batch_sizes([4, 4, 3, 1, 1]) == [5, 3, 3, 2]
    assert reference.lengths_from_batch_sizes([2, 1], batch=3) == [2, 1, 0]
    assert reference.lengths_from_batch_sizes([]) == []


def test_the_reference_loads_no_engine_and_neither_api() -> None:
    program = "import cudnn_compat.matrix.reference, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = [name for name in done.stdout.split() if name.startswith("cudnn_compat.")]
    forbidden = ("engines", "v2", "legacy", "weights", "sequences", "dropout")
    assert "cudnn_compat.matrix.reference" in loaded
    assert not [name for name in loaded if name.split(".")[1] in forbidden]
