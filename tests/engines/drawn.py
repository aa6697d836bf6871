"""Networks and batches that Hypothesis draws: the whole space of specs, forms of x and lengths."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cudnn_compat import v2
from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.matrix import reference
from tests.engines.networks import GRADIENTS, OUTPUTS, Arrays

__all__ = ["Batch", "arguments", "batches", "call", "exact", "in_form", "specs"]

FORMS = ("time_major", "batch_major", "packed", "batch_sizes", "Packed", "sequence", "step")
SMALL = st.integers(1, 5)
ALL_DTYPES = ("float64", "float32", "float16", "bfloat16")


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
def specs(
    draw: st.DrawFn,
    sizes: st.SearchStrategy[int] = SMALL,
    dtypes: tuple[str, ...] = ALL_DTYPES,
    maths: tuple[str, ...] = ("default", "full"),
    algos: tuple[str, ...] = ("auto",),
) -> v2.RNNSpec:
    """Networks of these sizes, without dropout. Of the maths those that a dtype has."""
    cell = draw(st.sampled_from(["relu", "tanh", "lstm", "gru"]))
    input_size, hidden = draw(sizes), draw(sizes)
    more: dict[str, Any] = {}
    if draw(st.booleans()):
        more["input_mode"], input_size = "skip", hidden
    if cell == "lstm" and hidden > 1 and draw(st.booleans()):
        more["proj_size"] = draw(st.integers(1, hidden - 1))
    if cell == "lstm" and draw(st.booleans()):
        more["clip"] = draw(st.sampled_from([(-0.3, 0.2), (-1.0, 1.0), (0.1, np.inf)]))
    dtype = draw(st.sampled_from(dtypes))
    if dtype not in ("float16", "float32"):
        maths = tuple(math for math in maths if math != "half")
    return v2.RNNSpec(
        cell,
        input_size,
        hidden,
        num_layers=draw(st.integers(1, 3)),
        bidirectional=draw(st.booleans()),
        bias=draw(st.sampled_from(["double", "none", "input", "recurrent"])),
        dtype=dtype,
        math=draw(st.sampled_from(maths)),
        algo=draw(st.sampled_from(algos)),
        **more,
    )


@st.composite
def batches(draw: st.DrawFn, steps: int = 5, batch: int = 4) -> Batch:
    """Up to so many steps and sequences."""
    form = draw(st.sampled_from(FORMS))
    lengths = draw(st.lists(st.integers(0, steps), max_size=batch))
    absent = draw(st.sets(st.sampled_from(["hx", "cx", "dy", "dhy", "dcy", "lengths"])))
    padding = draw(st.integers(0, 2))
    if form in ("sequence", "step"):
        lengths = [1 if form == "step" else draw(st.integers(0, steps))]
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


def call(engine: Any, spec: v2.RNNSpec, batch: Batch, given: dict[str, Any]) -> tuple[Any, Arrays]:
    """Forward in training and backward: the output, and all results as NumPy arrays by name.

    Args:
        given: batched arguments by name, on the host; they go to the engine in the batch's form.
    """
    put = {name: engine.put(in_form(array, name, batch)) for name, array in given.items()}
    before = {name: None if a is None else engine.get(a).copy() for name, a in put.items()}
    w, x, hx, cx = (put.get(name) for name in ("w", "x", "hx", "cx"))
    if batch.form == "Packed":
        x = v2.Packed(x, batch.lengths)
    out = v2.rnn_forward(spec, w, x, hx, cx, training=True, engine=engine.name, **how_long(batch))
    gradients = v2.rnn_backward(out, *(put.get(name) for name in ("dy", "dhy", "dcy")))
    packed = batch.form == "Packed"
    assert isinstance(out.y, v2.Packed) == isinstance(gradients.dx, v2.Packed) == packed
    for name, array in put.items():
        assert array is None or np.array_equal(engine.get(array), before[name], equal_nan=True)
    values = [engine.get(value) for value in (*out, *gradients)]
    return out, dict(zip(OUTPUTS + GRADIENTS, values, strict=True))
