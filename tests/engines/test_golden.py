"""v2 against what the real libraries computed, and where they keep their weights."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.spec import MATHS
from tests import golden
from tests.engine import Engine
from tests.engines.networks import same
from tests.golden import Case, largest

BOUNDS = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-2}
"""Largest absolute difference from a recorded value."""

each_case = pytest.mark.parametrize("case", golden.cases(), ids=lambda case: case.name)
each_params_table = pytest.mark.parametrize(
    "case", [case for case in golden.cases() if case.params], ids=lambda case: case.name
)


def on(engine: Engine, spec: v2.RNNSpec) -> v2.RNNSpec:
    """The recorded network: cuDNN runs the algorithm that the recordings were made with."""
    return spec if engine.on_host else spec.replace(algo="standard")


def forward(
    engine: Engine, case: Case, *, training: bool, seed: int | None = None, math: str = "full"
) -> v2.RNNOutput:
    arguments = [engine.put(case.get(name)) for name in ("w", "x", "hx", "cx")]
    return v2.rnn_forward(
        on(engine, case.spec.replace(math=math)),
        *arguments,
        training=training,
        seed=seed,
        engine=engine.name,
        **case.how_long,
    )


def results(engine: Engine, case: Case, out: v2.RNNOutput) -> dict[str, Any]:
    """Everything that one forward and backward give, by the names of the recordings."""
    dy, dhy, dcy = (engine.put(case.get(name)) for name in ("dy", "dhy", "dcy"))
    gradients = v2.rnn_backward(out, dy, dhy, dcy)
    pairs = zip(golden.OUTPUTS + golden.GRADIENTS, (*out, *gradients), strict=True)
    return {name: engine.get(value) for name, value in pairs}


def bit_for_bit(engine: Engine, case: Case) -> bool:
    """Whether every bit of the recording is to come back: on the GPU generation it was made on."""
    if engine.on_host or case.spec.dtype == "float16":
        return False
    return str(engine.xp.cuda.Device().compute_capability) == "90"


def agreement(computed: dict[str, Any], case: Case, prefix: str = "") -> str:
    """How results agree with the recorded ones of their names, in words for the record."""
    pairs = [(computed[n], case.get(prefix + n)) for n in computed if computed[n] is not None]
    pairs = [(a, b) for a, b in pairs if b is not None]
    if all(a.tobytes() == b.tobytes() for a, b in pairs):
        return "bit for bit"
    return "equal numbers" if all(np.array_equal(a, b) for a, b in pairs) else "within tolerance"


def bound(case: Case) -> float:
    if case.spec.clip and case.spec.dtype == "float64":
        return 1e-7  # the library rounds the bounds of a clip to float32
    return BOUNDS[case.spec.dtype]


def address(array: Any) -> int:
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0])
    return int(array.data.ptr)


def test_there_are_the_cases_that_were_recorded() -> None:
    found = golden.cases()
    assert len([case for case in found if case.name.startswith("legacy:")]) == 64
    assert len([case for case in found if case.name.startswith("v8:")]) == 34
    assert {case.layout for case in found} == {"packed", "time_major", "batch_major"}
    assert {case.spec.bias for case in found} == {"double", "none", "input", "recurrent"}
    assert {case.spec.dtype for case in found} == set(BOUNDS)


@each_case
def test_v2_gives_what_the_library_computed(
    case: Case, engine: Engine, record_property: Any
) -> None:
    computed = results(engine, case, forward(engine, case, training=True))
    check_recorded(computed, case, engine, record_property)


def check_recorded(
    computed: dict[str, Any], case: Case, engine: Engine, record_property: Any
) -> None:
    how = agreement(computed, case)
    if not engine.on_host:
        record_property("golden", f"{case.name}: {how}")
    for name, value in computed.items():
        if value is None:
            assert name not in case.arrays
        else:
            assert value.dtype == case.spec.dtype
            assert largest(value, case.get(name)) <= bound(case), name
            if bit_for_bit(engine, case):
                assert np.array_equal(value, case.get(name)), name
    assert how != "within tolerance" or not bit_for_bit(engine, case)


@each_case
def test_inference_equals_training(case: Case, engine: Engine) -> None:
    trained, inferred = (forward(engine, case, training=training) for training in (True, False))
    for name, a, b in zip(golden.OUTPUTS, trained, inferred, strict=True):
        assert (a is None) == (b is None)
        if a is None:
            continue
        a, b = engine.get(a), engine.get(b)
        assert same(case.spec, engine, a, b, name), name
        recorded = case.get(f"inf_{name}")
        if recorded is not None:
            assert largest(b, recorded) <= bound(case), name
            assert not bit_for_bit(engine, case) or np.array_equal(b, recorded), name


PADDED = [
    case
    for case in golden.cases()
    if case.layout != "packed" and min(case.lengths) < max(case.arrays["x"].shape[:2])
]


@pytest.mark.parametrize("case", PADDED, ids=lambda case: case.name)
def test_padding_is_not_read_and_comes_back_as_zero(case: Case, engine: Engine) -> None:
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
def test_named_weights_are_where_the_library_keeps_its_weights(case: Case, engine: Engine) -> None:
    w = engine.put(case.get("w"))
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
def test_names_stand_for_stacks_of_the_library_s_matrices(case: Case, engine: Engine) -> None:
    w, gates = engine.put(case.get("w")), case.spec.num_gates
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
def test_a_seed_gives_the_masks_that_the_library_drew(record_property: Any) -> None:
    """The masks of the recorded case are those of cuDNN's generator, which NumPy has not."""
    import cupy

    engine, case = Engine("cudnn", cupy), golden.dropout_case()
    computed = results(engine, case, forward(engine, case, training=True, seed=1234))
    check_recorded(computed, case, engine, record_property)


EXACT_MATHS = {"legacy": {"half"}, "v8": {"default", "full"}}
"""What makes the float16 recordings exact: the old calls computed in float16, those of v8 were
recorded with float32 inside."""


@pytest.mark.gpu
@pytest.mark.parametrize("source", EXACT_MATHS)
@pytest.mark.parametrize("math", MATHS)
def test_one_arithmetic_makes_the_float16_recordings_exact(
    math: str, source: str, record_property: Any
) -> None:
    import cupy

    engine, equal, total, worst = Engine("cudnn", cupy), 0, 0, 0.0
    for case in golden.cases():
        if case.spec.dtype != "float16" or not case.name.startswith(f"{source}:"):
            continue
        out = forward(engine, case, training=True, math=math)
        for name, value in results(engine, case, out).items():
            if value is not None:
                total += 1
                equal += np.array_equal(value, case.get(name))
                worst = max(worst, largest(value, case.get(name)))
    found = f"{equal} of {total} arrays equal, largest difference {worst:.1e}"
    record_property(f"golden float16 {source} math={math}", found)
    assert worst <= BOUNDS["float16"]
    if cupy.cuda.Device().compute_capability == "90":  # where they were recorded
        assert (equal == total) == (math in EXACT_MATHS[source]), found
