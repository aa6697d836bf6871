"""Networks and batches that Hypothesis draws, against the slow float64 reference."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cudnn_compat import v2
from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.matrix import reference
from cudnn_compat.matrix.tolerances import tolerance
from tests.dropout_masks import find_masks
from tests.golden import GRADIENTS, OUTPUTS, largest

FORMS = ("time_major", "batch_major", "packed", "batch_sizes", "Packed", "sequence", "step")

NEAR_A_KINK = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-4, "bfloat16": 1e-4}
"""Where a relu or a clip bends, rounding decides which gradient is right. The short dtypes are
computed in float32."""


@dataclasses.dataclass(frozen=True)
class Batch:
    """How a batch looks; its numbers come from ``seed``."""

    form: str
    lengths: tuple[int, ...]
    padding: int
    """Steps of the padded layouts beyond the longest sequence."""
    absent: frozenset[str]
    """Arguments that are not given."""
    fortran: bool
    """Whether arrays are in Fortran order."""
    lengths_as: str
    seed: int

    @property
    def layout(self) -> str:
        if self.form in ("packed", "batch_sizes", "Packed"):
            return "packed"
        return "batch_major" if self.form == "batch_major" else "time_major"

    @property
    def steps(self) -> int:
        return max(self.lengths, default=0) + self.padding


@st.composite
def specs(draw: st.DrawFn) -> v2.RNNSpec:
    sizes = st.integers(1, 5)
    cell = draw(st.sampled_from(["relu", "tanh", "lstm", "gru"]))
    input_size, hidden = draw(sizes), draw(sizes)
    more: dict[str, Any] = {}
    if draw(st.booleans()):
        more["input_mode"], input_size = "skip", hidden
    if cell == "lstm" and hidden > 1 and draw(st.booleans()):
        more["proj_size"] = draw(st.integers(1, hidden - 1))
    if cell == "lstm" and draw(st.booleans()):
        more["clip"] = draw(st.sampled_from([(-0.3, 0.2), (-1.0, 1.0), (0.1, np.inf)]))
    return v2.RNNSpec(
        cell,
        input_size,
        hidden,
        num_layers=draw(st.integers(1, 3)),
        bidirectional=draw(st.booleans()),
        bias=draw(st.sampled_from(["double", "none", "input", "recurrent"])),
        dtype=draw(st.sampled_from(["float64", "float32", "float16", "bfloat16"])),
        math=draw(st.sampled_from(["default", "full"])),
        **more,
    )


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    form = draw(st.sampled_from(FORMS))
    lengths = draw(st.lists(st.integers(0, 5), max_size=4))
    absent = draw(st.sets(st.sampled_from(["hx", "cx", "dy", "dhy", "dcy", "lengths"])))
    padding = draw(st.integers(0, 2))
    if form in ("sequence", "step"):
        lengths = [1 if form == "step" else draw(st.integers(0, 5))]
        absent.add("lengths")
    if form == "batch_sizes":
        lengths.sort(reverse=True)
        if "hx" in absent:  # a state tells of sequences that never occur
            lengths = [length for length in lengths if length]
    if "lengths" in absent:
        padding = 0
        if form in ("time_major", "batch_major"):
            lengths = [max(lengths, default=0)] * len(lengths)
    return Batch(
        form,
        tuple(lengths),
        padding,
        frozenset(absent),
        draw(st.booleans()),
        draw(st.sampled_from(["list", "tuple", "int32", "uint8"])),
        draw(st.integers(0, 2**32 - 1)),
    )


def arguments(spec: v2.RNNSpec, batch: Batch) -> dict[str, Any]:
    """Batched arrays of the spec's dtype by name; NaN in the padding; absent ones are None."""
    rng, dtype, count = (
        np.random.default_rng(batch.seed),
        numpy_dtype(spec.dtype),
        len(batch.lengths),
    )
    bound = spec.hidden_size**-0.5
    shapes = {"hx": spec.state_shape(count), "dhy": spec.state_shape(count)}
    if spec.has_cell:
        shapes |= {"cx": spec.cell_shape(count), "dcy": spec.cell_shape(count)}
    made = {"w": rng.uniform(-bound, bound, v2.weight_size(spec))}
    made |= {name: rng.uniform(-1, 1, shape) for name, shape in shapes.items()}
    for name, features in (("x", spec.input_size), ("dy", spec.output_size)):
        rows = [rng.uniform(-1, 1, (length, features)) for length in batch.lengths]
        made[name] = reference.join_rows(rows, batch.layout, steps=batch.steps, features=features)
        if batch.layout != "packed":
            padding = np.arange(batch.steps) >= np.array(batch.lengths, int)[:, None]
            padding = padding if batch.layout == "batch_major" else padding.T
            made[name][padding] = np.nan
    given = {name: None if name in batch.absent else made.get(name) for name in made}
    order = "F" if batch.fortran else "C"
    return {
        name: None if array is None else array.astype(dtype, order=order)
        for name, array in given.items()
    }


def exact(spec: v2.RNNSpec, batch: Batch, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """What the reference says, in the batched form of the layout."""

    def split(array: Any) -> Any:
        return None if array is None else reference.split_rows(array, batch.lengths, batch.layout)

    def join(rows: list[np.ndarray], features: int) -> np.ndarray:
        return reference.join_rows(rows, batch.layout, steps=batch.steps, features=features)

    states = (given.get("hx"), given.get("cx"))
    out = reference.reference_forward(spec, given["w"], split(given["x"]), *states)
    dxs, *gradients = reference.reference_backward(
        out, split(given["dy"]), given.get("dhy"), given.get("dcy")
    )
    y, dx = join(out.ys, spec.output_size), join(dxs, spec.input_size)
    return out, dict(zip(OUTPUTS + GRADIENTS, (y, out.hy, out.cy, dx, *gradients), strict=True))


def in_form(array: Any, name: str, batch: Batch) -> Any:
    """A batched array as the form of the batch has it."""
    if array is None or batch.form not in ("sequence", "step"):
        return array
    if name in ("x", "dy", "y", "dx") and batch.form == "step":
        return array[0, 0]
    return array if name in ("w", "dw") else array[:, 0]


def how_long(batch: Batch) -> dict[str, Any]:
    if batch.form == "Packed":
        return {}
    if batch.form == "batch_sizes":
        steps = range(max(batch.lengths, default=0))
        sizes = [sum(length > t for length in batch.lengths) for t in steps]
        return {"layout": "packed", "batch_sizes": sizes}
    if "lengths" in batch.absent and batch.layout != "packed":
        return {"layout": batch.layout}
    kinds = {"list": list, "tuple": tuple}
    make = kinds.get(batch.lengths_as, lambda lengths: np.array(lengths, batch.lengths_as))
    return {"layout": batch.layout, "lengths": make(batch.lengths)}


@settings(max_examples=500)
@given(spec=specs(), batch=batches())
def test_outputs_and_gradients_are_those_of_the_reference(
    spec: v2.RNNSpec, batch: Batch, engine: Any
) -> None:
    given = arguments(spec, batch)
    out, wanted = exact(spec, batch, given)
    assume(reference.distance_to_kink(out) > NEAR_A_KINK[spec.dtype])
    call = {name: engine.put(in_form(array, name, batch)) for name, array in given.items()}
    before = {name: None if array is None else array.copy() for name, array in call.items()}
    w, x, hx, cx = (call.get(name) for name in ("w", "x", "hx", "cx"))
    if batch.form == "Packed":
        x = v2.Packed(x, batch.lengths)
    result = v2.rnn_forward(
        spec, w, x, hx, cx, training=True, engine=engine.name, **how_long(batch)
    )
    gradients = v2.rnn_backward(result, *(call.get(name) for name in ("dy", "dhy", "dcy")))
    got = dict(zip(OUTPUTS + GRADIENTS, (*result, *gradients), strict=True))
    assert (
        isinstance(got["y"], v2.Packed)
        == isinstance(got["dx"], v2.Packed)
        == (batch.form == "Packed")
    )
    for name, value in got.items():
        value, right = engine.get(value), in_form(wanted[name], name, batch)
        assert (value is None) == (right is None), name
        if value is not None:
            assert value.dtype == numpy_dtype(spec.dtype), name
            what = "output" if name in OUTPUTS else "gradient"
            allowed = tolerance(spec.dtype, spec.math, engine=engine.name, what=what)
            assert largest(value, right) <= allowed, name
    for name, array in call.items():
        assert array is None or np.array_equal(engine.get(array), before[name], equal_nan=True)


@pytest.mark.parametrize("lengths", [(4, 4, 4), (2, 0, 4)], ids=["equal", "ragged"])
def test_training_with_dropout_is_the_reference_under_some_masks(
    lengths: tuple[int, ...], engine: Any
) -> None:
    spec = v2.RNNSpec("lstm", 3, 5, num_layers=3, dropout=0.25, dtype="float64")
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
    assert set(kept) == {0.0, 1 / 0.75}
    assert 0.6 < np.mean(kept > 0) < 0.9
    out = reference.reference_forward(spec, given["w"], xs, given["hx"], given["cx"], masks)
    exact = reference.reference_backward(out, dys, given["dhy"], given["dcy"])
    wanted = (reference.join_rows(exact.dxs), *exact[1:])
    for name, value, right in zip(GRADIENTS, gradients, wanted, strict=True):
        assert largest(engine.get(value), right) <= 1e-12, name
    assert largest(engine.get(result.cy), out.cy) <= 1e-12
