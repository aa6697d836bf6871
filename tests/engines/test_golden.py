"""v2 against what the real libraries computed, and where they keep their weights."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from tests import golden
from tests.golden import Case, largest

BOUNDS = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-2}
"""Largest absolute difference from a recorded value."""

each_case = pytest.mark.parametrize("case", golden.cases(), ids=lambda case: case.name)
each_params_table = pytest.mark.parametrize(
    "case", [case for case in golden.cases() if case.params], ids=lambda case: case.name
)


def forward(engine: Any, case: Case, *, training: bool, seed: int | None = None) -> v2.RNNOutput:
    arguments = [engine.put(case.get(name)) for name in ("w", "x", "hx", "cx")]
    return v2.rnn_forward(
        case.spec, *arguments, training=training, seed=seed, engine=engine.name, **case.how_long
    )


def results(engine: Any, case: Case, out: v2.RNNOutput) -> dict[str, Any]:
    """Everything that one forward and backward give, by the names of the recordings."""
    dy, dhy, dcy = (engine.put(case.get(name)) for name in ("dy", "dhy", "dcy"))
    gradients = v2.rnn_backward(out, dy, dhy, dcy)
    pairs = zip(golden.OUTPUTS + golden.GRADIENTS, (*out, *gradients), strict=True)
    return {name: engine.get(value) for name, value in pairs}


def bound(case: Case) -> float:
    if case.spec.clip and case.spec.dtype == "float64":
        return 1e-7  # the library rounds the bounds of a clip to float32
    return BOUNDS[case.spec.dtype]


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_there_are_the_cases_that_were_recorded() -> None:
    found = golden.cases()
    assert len([case for case in found if case.name.startswith("legacy:")]) == 64
    assert len([case for case in found if case.name.startswith("v8:")]) == 34
    assert {case.layout for case in found} == {"packed", "time_major", "batch_major"}
    assert {case.spec.bias for case in found} == {"double", "none", "input", "recurrent"}
    assert {case.spec.dtype for case in found} == set(BOUNDS)


@each_case
def test_v2_gives_what_the_library_computed(case: Case, engine: Any) -> None:
    computed = results(engine, case, forward(engine, case, training=True))
    assert bound(case) == case.tolerance("y") == case.tolerance("dw")
    for name, value in computed.items():
        if value is None:
            assert name not in case.arrays
        else:
            assert value.dtype == case.spec.dtype
            assert largest(value, case.get(name)) <= bound(case), name


@each_case
def test_inference_equals_training_exactly(case: Case, engine: Any) -> None:
    trained, inferred = (forward(engine, case, training=training) for training in (True, False))
    for name, a, b in zip(golden.OUTPUTS, trained, inferred, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert np.array_equal(engine.get(a), engine.get(b)), name
        recorded = case.get(f"inf_{name}")
        if recorded is not None:
            assert largest(engine.get(b), recorded) <= bound(case), name


PADDED = [
    case
    for case in golden.cases()
    if case.layout != "packed" and min(case.lengths) < max(case.arrays["x"].shape[:2])
]


@pytest.mark.parametrize("case", PADDED, ids=lambda case: case.name)
def test_padding_is_not_read_and_comes_back_as_zero(case: Case, engine: Any) -> None:
    steps = case.arrays["x"].shape[case.layout == "batch_major"]
    padding = np.arange(steps)[:, None] >= np.array(case.lengths)
    padding = padding.T if case.layout == "batch_major" else padding
    poisoned = dataclasses.replace(case, arrays={name: case.get(name) for name in case.arrays})
    for name in ("x", "dy"):
        poisoned.arrays[name][padding] = np.nan
    before, after = (
        results(engine, of, forward(engine, of, training=True)) for of in (case, poisoned)
    )
    assert padding.any()
    for name in ("y", "dx"):
        assert not after[name][padding].any()
    for name, value in after.items():
        assert value is None or np.array_equal(value, before[name]), name


@each_params_table
def test_named_weights_are_where_the_library_keeps_its_weights(case: Case) -> None:
    w = case.get("w")
    named = v2.named_weights(case.spec, w)
    covered = 0
    for row in case.params:
        found = named[row.pseudo_layer, row.linear_id]
        if row.matrix_offset is None:
            assert found.matrix is None
        else:
            shape = found.matrix.shape if len(row.matrix_shape) == 2 else (found.matrix.size,)
            assert (address(found.matrix) - address(w)) // w.itemsize == row.matrix_offset
            assert shape == row.matrix_shape
            assert found.matrix.flags.c_contiguous
            covered += found.matrix.size
        if row.bias_offset is None:
            assert found.bias is None
        else:
            assert (address(found.bias) - address(w)) // w.itemsize == row.bias_offset
            assert found.bias.shape == (row.bias_size,)
            covered += found.bias.size
    assert covered == w.size == v2.weight_size(case.spec)
    # The library knows the id of a projection in every LSTM, also where there is none.
    ids = {(row.pseudo_layer, row.linear_id) for row in case.params}
    assert ids >= set(itertools.product(range(case.spec.num_pseudo_layers), named.linear_ids()))


@each_params_table
def test_names_stand_for_stacks_of_the_library_s_matrices(case: Case) -> None:
    w, gates = case.get("w"), case.spec.num_gates
    named = v2.named_weights(case.spec, w)
    first_ids = {"ih": 0, "hh": gates, "hr": 8}
    rows = {(row.pseudo_layer, row.linear_id): row for row in case.params}
    for name, view in named.items():
        kind, side, layer, *reverse = name.split("_")
        index = int(layer[1:]) * case.spec.num_directions + bool(reverse)
        row = rows[index, first_ids[side]]
        offset = row.matrix_offset if kind == "weight" else row.bias_offset
        assert (address(view) - address(w)) // w.itemsize == offset
    assert sum(view.size for view in named.values()) == w.size


@pytest.mark.gpu
@pytest.mark.xfail(raises=v2.UnsupportedError, reason="there is no cuDNN engine yet")
def test_a_seed_gives_the_masks_that_the_library_drew() -> None:
    """On a GPU only: the masks of the recorded case are those of cuDNN's generator."""
    import cupy

    case = golden.dropout_case()
    w, x, hx, cx, dy, dhy, dcy = (
        cupy.asarray(case.get(name)) for name in ("w", "x", "hx", "cx", "dy", "dhy", "dcy")
    )
    out = v2.rnn_forward(case.spec, w, x, hx, cx, training=True, seed=1234, **case.how_long)
    gradients = v2.rnn_backward(out, dy, dhy, dcy)
    pairs = zip(golden.OUTPUTS + golden.GRADIENTS, (*out, *gradients), strict=True)
    for name, value in pairs:
        assert largest(value.get(), case.get(name)) <= 2e-5, name
