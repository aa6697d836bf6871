"""Networks and batches that Hypothesis draws, against the slow float64 reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings

from cudnn_compat import v2
from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.matrix import reference
from cudnn_compat.matrix.tolerances import kink_distance, tolerance
from tests.dropout_masks import find_masks
from tests.engine import Engine
from tests.engines.drawn import Batch, arguments, batches, call, exact, in_form, specs
from tests.engines.networks import GRADIENTS, OUTPUTS, largest, scale


@settings(max_examples=500)
@given(spec=specs(), batch=batches())
def test_outputs_and_gradients_are_those_of_the_reference(
    spec: v2.RNNSpec, batch: Batch, engine: Engine
) -> None:
    assume(engine.holds(spec.dtype))
    given = arguments(spec, batch)
    out, wanted = exact(spec, batch, given)
    how = {"engine": engine.name, "clip": spec.clip is not None}
    smooth = reference.distance_to_kink(out) > kink_distance(spec.dtype, spec.math, **how)
    _, got = call(engine, spec, batch, given)
    for name, value in got.items():
        right = in_form(wanted[name], name, batch)
        assert (value is None) == (right is None), name
        if value is None:
            continue
        assert value.dtype == numpy_dtype(spec.dtype), name
        assert value.shape == right.shape, name
        # Where a value is too near to a kink, rounding decides which gradient is right.
        if name in OUTPUTS or smooth:
            what = "output" if name in OUTPUTS else "gradient"
            allowed = tolerance(spec.dtype, spec.math, what=what, **how)
            allowed *= 1.0 if engine.on_host else scale(right)
            assert largest(value, right) <= allowed, name


@pytest.mark.parametrize("lengths", [(4, 4, 4), (2, 0, 4)], ids=["equal", "ragged"])
def test_training_with_dropout_is_the_reference_under_some_masks(
    lengths: tuple[int, ...], engine: Engine
) -> None:
    spec = v2.RNNSpec("lstm", 3, 5, num_layers=3, dropout=0.5, dtype="float64")
    batch = Batch("time_major", lengths, 0, frozenset(), False, "tuple", 3)
    given = arguments(spec, batch)
    w, x, hx, cx, dy, dhy, dcy = (
        engine.put(given[name]) for name in ("w", "x", "hx", "cx", "dy", "dhy", "dcy")
    )
    result = v2.rnn_forward(
        spec, w, x, hx, cx, lengths=lengths, training=True, seed=5, engine=engine.name
    )
    y = engine.get(result.y)
    gradients = v2.rnn_backward(result, dy, dhy, dcy)
    xs, ys, dys = (reference.split_rows(a, lengths) for a in (given["x"], y, given["dy"]))
    masks = find_masks(spec, given["w"], xs, given["hx"], given["cx"], ys, within=1e-12)
    kept = np.concatenate([mask.ravel() for layer in masks for mask in layer])
    assert set(kept) == {0.0, 2.0}
    assert 0.25 < np.mean(kept > 0) < 0.75
    out = reference.reference_forward(spec, given["w"], xs, given["hx"], given["cx"], masks)
    exact = reference.reference_backward(out, dys, given["dhy"], given["dcy"])
    wanted = (reference.join_rows(exact.dxs), *exact[1:])
    for name, value, right in zip(GRADIENTS, gradients, wanted, strict=True):
        assert largest(engine.get(value), right) <= 1e-12, name
    assert largest(engine.get(result.cy), out.cy) <= 1e-12
