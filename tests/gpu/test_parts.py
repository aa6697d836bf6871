"""Batches that the library computes in parts of a few steps: what the whole gives.

What otherwise happens beyond 65,535 steps happens here beyond three or four. The bookkeeping alone,
without a GPU: ``tests/unit/test_parts_of_long_sequences.py``.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cudnn_compat import v2
from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.engines import choose
from cudnn_compat.engines.cudnn import CudnnEngine
from cudnn_compat.matrix import reference
from cudnn_compat.matrix.tolerances import kink_distance, tolerance
from cudnn_compat.spec import DTYPES
from tests.dropout_masks import find_masks
from tests.engine import Engine
from tests.engines.drawn import Batch, arguments, batches, call, exact, in_form, specs
from tests.engines.networks import GRADIENTS, OUTPUTS, largest, scale

pytestmark = pytest.mark.gpu

EVERYTHING = OUTPUTS + GRADIENTS
MOST = 3
"""Steps of a part, where nothing else is said."""
DRAWS = 15
"""Networks that are drawn for each dtype."""
BATCHES = {
    "equal": Batch("time_major", (11, 11, 11), 0, frozenset(), False, "tuple", 1),
    "whole parts": Batch("batch_major", (9, 9, 9), 0, frozenset(), False, "tuple", 2),
    "ragged": Batch("packed", (4, 0, 11, 3), 0, frozenset(), False, "tuple", 3),
    "padded": Batch("time_major", (7, 12, 0), 2, frozenset(), False, "tuple", 4),
}

each_batch = pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_way = pytest.mark.parametrize("both", [False, True], ids=["one way", "both ways"])


@functools.cache
def engine_of_parts(most: int) -> CudnnEngine:
    return CudnnEngine(max_steps=most)


@contextlib.contextmanager
def in_parts(most: int = MOST) -> Iterator[None]:
    """Inside, what has more steps is computed in parts of so many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "cudnn_engine", functools.cache(lambda: engine_of_parts(most)))
        yield


@pytest.fixture
def gpu(cupy: Any) -> Engine:
    return Engine("cudnn", cupy)


def check(
    spec: v2.RNNSpec, got: Any, wanted: Any, names: Any, *, algo: str = "standard", times: int = 1
) -> None:
    """Results are as near to what is wanted as the tolerance (so many times) allows."""
    how = {"engine": "cudnn", "algo": algo, "clip": spec.clip is not None}
    for name in names:
        value, right = got[name], wanted[name]
        assert (value is None) == (right is None), name
        if value is not None:
            what = "output" if name in OUTPUTS else "gradient"
            allowed = times * tolerance(spec.dtype, spec.math, what=what, **how) * scale(right)
            assert value.dtype == numpy_dtype(spec.dtype), name
            assert largest(value, right) <= allowed, (name, largest(value, right), allowed)


def check_all(gpu: Engine, spec: v2.RNNSpec, batch: Batch, most: int) -> v2.RNNOutput:
    """In parts: what the whole gives, and the reference."""
    given = arguments(spec, batch)
    out, wanted = exact(spec, batch, given)
    wanted = {name: in_form(value, name, batch) for name, value in wanted.items()}
    whole, by_the_whole = call(gpu, spec, batch, given)
    with in_parts(most):
        parts, by_parts = call(gpu, spec, batch, given)
    near = kink_distance(spec.dtype, spec.math, engine="cudnn", clip=spec.clip is not None)
    # Where a value is too near to a kink, rounding decides which gradient is right.
    smooth = reference.distance_to_kink(out) > near
    names = EVERYTHING if smooth else OUTPUTS
    check(spec, by_parts, wanted, names, algo=parts.algo)
    algo = max(whole.algo, parts.algo, key=lambda algo: algo.startswith("persist"))
    check(spec, by_parts, by_the_whole, names, algo=algo, times=2)
    return parts


@each_dtype
def test_parts_give_what_the_whole_gives_and_what_the_reference_says(
    dtype: str, gpu: Engine
) -> None:
    gpu.needs(dtype)
    long_batches = batches(steps=11).filter(lambda batch: batch.steps > 4)

    @given(specs(dtypes=(dtype,)), long_batches, st.sampled_from([3, 4]))
    @settings(
        max_examples=DRAWS,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    def drawn(spec: v2.RNNSpec, batch: Batch, most: int) -> None:
        check_all(gpu, spec, batch, most)

    drawn()


@each_way
def test_the_engine_of_these_tests_does_cut(both: bool, gpu: Engine) -> None:
    engine_of_parts(MOST).clear()
    spec = v2.RNNSpec("tanh", 2, 3, bidirectional=both, algo="standard")
    with in_parts():
        call(gpu, spec, BATCHES["equal"], arguments(spec, BATCHES["equal"]))
        assert {plan.steps for plan in v2.plans() if plan.engine == "cudnn"} == {11, 3, 2}


@pytest.mark.parametrize("steps", [9, 11])
@pytest.mark.parametrize(
    ("cell", "dtype"),
    [("lstm", "float32"), ("gru", "float16"), ("tanh", "bfloat16"), ("relu", "float32")],
)
@each_way
def test_parts_of_equal_sequences_may_run_on_a_persistent_kernel(
    both: bool, cell: str, dtype: str, steps: int, gpu: Engine
) -> None:
    gpu.needs(dtype)
    spec = v2.RNNSpec(cell, 16, 32, num_layers=2, bidirectional=both, dtype=dtype)
    batch = Batch("time_major", (steps,) * 3, 0, frozenset(), False, "tuple", steps)
    assert check_all(gpu, spec, batch, MOST).algo.startswith("persist")


@pytest.mark.parametrize("algo", ["standard", "persist_static", "persist_small_h"])
@each_way
def test_parts_run_on_the_algorithm_that_the_spec_names(both: bool, algo: str, gpu: Engine) -> None:
    spec = v2.RNNSpec("lstm", 64, 64, bidirectional=both, dtype="float16", algo=algo)
    given = arguments(spec, BATCHES["equal"])
    try:
        call(gpu, spec, BATCHES["equal"], given)
    except v2.UnsupportedError as error:
        pytest.skip(f"{algo} is refused by the library: {str(error)[:80]}")
    assert check_all(gpu, spec, BATCHES["equal"], MOST).algo == algo


# --- dropout -----------------------------------------------------------------------------------


def train(
    gpu: Engine, spec: v2.RNNSpec, batch: Batch, given: Any, seed: Any
) -> tuple[dict[str, Any], Any]:
    """Results in parts under dropout as NumPy arrays by name, and the rows of y by sequence."""
    w, x, hx, cx, dy, dhy, dcy = (
        gpu.put(given.get(name)) for name in ("w", "x", "hx", "cx", "dy", "dhy", "dcy")
    )
    how = {"layout": batch.layout, "lengths": batch.lengths, "training": True, "seed": seed}
    with in_parts():
        out = v2.rnn_forward(spec, w, x, hx, cx, **how)
        values = map(gpu.get, (*out, *v2.rnn_backward(out, dy, dhy, dcy)))
        results = dict(zip(EVERYTHING, values, strict=True))
    return results, reference.split_rows(results["y"], batch.lengths, batch.layout)


def expected(spec: v2.RNNSpec, batch: Batch, given: Any, masks: Any) -> dict[str, Any]:
    """What the reference says under these masks."""
    xs, dys = (reference.split_rows(given[n], batch.lengths, batch.layout) for n in ("x", "dy"))
    out = reference.reference_forward(spec, given["w"], xs, given.get("hx"), given.get("cx"), masks)
    dxs, *others = reference.reference_backward(out, dys, given.get("dhy"), given.get("dcy"))
    y, dx = (
        reference.join_rows(rows, batch.layout, steps=batch.steps, features=features)
        for rows, features in ((out.ys, spec.output_size), (dxs, spec.input_size))
    )
    return dict(zip(EVERYTHING, (y, out.hy, out.cy, dx, *others), strict=True))


def see_through(spec: v2.RNNSpec, below: float = 0.0) -> Any:
    """Weights of a relu network: the last layer adds ``below``, all others give 1 for anything."""
    w, top = np.zeros(v2.weight_size(spec), numpy_dtype(spec.dtype)), f"l{spec.num_layers - 1}"
    for name, view in v2.named_weights(spec, w).items():
        if name.startswith("bias_ih"):
            view[...] = below if top in name else 1
        elif name.startswith(f"weight_ih_{top}"):
            view[...] = np.eye(*view.shape, k=spec.hidden_size * name.endswith("reverse"))
    return w


def masks_of(gpu: Engine, spec: v2.RNNSpec, batch: Batch, seed: Any, layer: int = 0) -> list[Any]:
    """What dropout multiplies a layer's output with: y, by sequence, of a network that shows it."""
    sizes = {"input_size": 1, "hidden_size": spec.state_size, "proj_size": None}
    probe = spec.replace(cell="relu", num_layers=layer + 2, math="full", **sizes)
    given = arguments(probe, batch) | {"w": see_through(probe)}
    return train(gpu, probe, batch, given, seed)[1]


@each_dtype
@each_batch
@each_way
def test_gradients_under_dropout_are_right_under_the_masks_that_the_output_shows(
    both: bool, batch: Batch, dtype: str, gpu: Engine
) -> None:
    gpu.needs(dtype)
    spec = v2.RNNSpec(
        "relu", 3, 6, num_layers=2, bidirectional=both, dropout=0.5, dtype=dtype, math="full"
    )
    given = {n: a if n.startswith("d") else abs(a) for n, a in arguments(spec, batch).items()}
    # Below, a recurrence whose outputs lie between 0.5 and 2; above, twice that and 1, or 1.
    rng, given["w"] = np.random.default_rng(5), see_through(spec, below=1)
    for name, view in v2.named_weights(spec, given["w"]).items():
        if "l0" in name:
            view[...] = rng.uniform(0.05, 0.1, view.shape) if "weight" in name else 0.25
    got, ys = train(gpu, spec, batch, given, seed=8)
    masks = [np.where(y > 1.5, 2.0, 0.0) for y in ys]
    assert 0.25 < np.mean(np.concatenate(masks) > 0) < 0.75
    check(spec, got, expected(spec, batch, given, [masks]), EVERYTHING)


@pytest.mark.parametrize(("cell", "proj_size"), [("tanh", None), ("gru", None), ("lstm", 3)])
@each_batch
def test_every_cell_is_right_under_the_masks_of_its_seed(
    batch: Batch, cell: str, proj_size: int | None, gpu: Engine
) -> None:
    more = {"num_layers": 3, "bidirectional": True, "dropout": 0.4, "proj_size": proj_size}
    spec = v2.RNNSpec(cell, 3, 5, dtype="float64", **more)
    given = arguments(spec, batch)
    masks = [masks_of(gpu, spec, batch, 8, layer) for layer in (0, 1)]
    got, _ = train(gpu, spec, batch, given, seed=8)
    check(spec, got, expected(spec, batch, given, masks), EVERYTHING)


@each_batch
def test_one_way_every_part_is_right_under_masks_that_can_be_found(
    batch: Batch, gpu: Engine
) -> None:
    # Of two layers: with three, what the first dropped is hidden where the second dropped all.
    spec = v2.RNNSpec("lstm", 3, 5, num_layers=2, dropout=0.5, dtype="float64")
    given = arguments(spec, batch)
    got, ys = train(gpu, spec, batch, given, seed=8)
    xs = reference.split_rows(given["x"], batch.lengths, batch.layout)
    masks = find_masks(spec, given["w"], xs, given["hx"], given["cx"], ys, within=1e-12)
    check(spec, got, expected(spec, batch, given, masks), EVERYTHING)


@each_dtype
@each_way
def test_dropout_of_one_drops_everything_between_the_layers(
    both: bool, dtype: str, gpu: Engine
) -> None:
    gpu.needs(dtype)
    more = {"num_layers": 2, "bidirectional": both, "dropout": 1.0}
    spec = v2.RNNSpec("lstm", 3, 5, dtype=dtype, math="full", **more)
    for batch in BATCHES.values():
        given = arguments(spec, batch)
        nothing = [np.zeros((length, spec.output_size)) for length in batch.lengths]
        got, _ = train(gpu, spec, batch, given, seed=8)
        check(spec, got, expected(spec, batch, given, [nothing]), EVERYTHING)


@pytest.mark.parametrize("dropout", [0.1, 0.9])
@each_dtype
@each_way
def test_an_element_is_dropped_with_the_given_probability_and_else_scaled_up(
    both: bool, dtype: str, dropout: float, gpu: Engine
) -> None:
    gpu.needs(dtype)
    spec = v2.RNNSpec("relu", 1, 50, num_layers=2, bidirectional=both, dropout=dropout, dtype=dtype)
    batch = Batch("time_major", (11,) * 10, 0, frozenset(), False, "tuple", 1)
    shown, wanted = np.stack(masks_of(gpu, spec, batch, 8)), 1 / (1 - dropout)
    error = wanted * (1e-6 + {"float16": 2**-11, "bfloat16": 2**-8}.get(dtype, 0))
    assert np.all((shown == 0) | (abs(shown - wanted) <= error))
    # 5,500 elements: six standard deviations of a binomial are 0.024.
    assert abs(np.mean(shown == 0) - dropout) < 0.03


@each_way
def test_every_part_and_every_call_draws_masks_of_its_own_and_a_seed_repeats_them(
    both: bool, gpu: Engine
) -> None:
    more = {"num_layers": 2, "bidirectional": both, "dropout": 0.5}
    spec = v2.RNNSpec("relu", 1, 20, **more)
    batch, state = BATCHES["whole parts"], v2.DropoutState(8)
    calls = [np.stack(masks_of(gpu, spec, batch, seed)) for seed in (state, state, 8, None, 9)]
    parts = [mask[:, start : start + MOST] for mask in calls[:2] for start in (0, 3, 6)]
    assert len({part.tobytes() for part in parts}) == 6
    assert np.array_equal(calls[0], calls[2])
    assert np.array_equal(calls[1], calls[3])
    assert not np.array_equal(calls[0], calls[4])
