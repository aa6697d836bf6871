"""Gradients of v2 against finite differences, in float64.

On NumPy every element is differenced; on cuDNN, where each of the calls costs the start of many
kernels, each argument along some random directions, in which every element has a part.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.matrix import reference

STEP = 1e-5
"""Half of a central difference: its own error is far below 1e-6, from truncation and rounding."""

CELLS = ("relu", "tanh", "lstm", "gru")
BIASES = ("none", "input", "recurrent", "double")
RAGGED = (2, 0, 3, 1)
"""Lengths in no order, with an empty sequence, below the number of steps."""
STEPS = 4
DIRECTIONS = 8
"""Random directions of each argument, on cuDNN."""


@dataclasses.dataclass
class Problem:
    """A network with data, and gradients of its results: the loss is their inner product."""

    spec: v2.RNNSpec
    how: dict[str, Any]
    """Layout, and lengths where they are given."""
    w: np.ndarray
    x: np.ndarray
    hx: np.ndarray
    cx: np.ndarray | None
    dy: np.ndarray
    dhy: np.ndarray
    dcy: np.ndarray | None
    seed: int | None = None

    @property
    def inputs(self) -> tuple[np.ndarray | None, ...]:
        return self.x, self.hx, self.cx, self.w

    def forward(self, engine: Any, training: bool) -> v2.RNNOutput:
        w, x, hx, cx = (engine.put(a) for a in (self.w, self.x, self.hx, self.cx))
        return v2.rnn_forward(
            self.spec,
            w,
            x,
            hx,
            cx,
            training=training,
            seed=self.seed,
            engine=engine.name,
            **self.how,
        )

    def loss(self, engine: Any) -> float:
        results = map(engine.get, self.forward(engine, training=self.seed is not None))
        pairs = zip(results, (self.dy, self.dhy, self.dcy), strict=True)
        return float(sum(np.vdot(a, b) for a, b in pairs if b is not None))

    def gradients(self, engine: Any) -> list[np.ndarray | None]:
        """dx, dhx, dcx, dw."""
        given = (engine.put(a) for a in (self.dy, self.dhy, self.dcy))
        out = v2.rnn_backward(self.forward(engine, training=True), *given)
        return [engine.get(gradient) for gradient in out]

    def differences(self, engine: Any) -> list[np.ndarray | None]:
        """The same, from differences of the loss."""
        return [None if a is None else self._slopes(engine, a) for a in self.inputs]

    def slopes_along(self, engine: Any, directions: list[Any]) -> list[np.ndarray | None]:
        """Slopes of the loss along directions ``(DIRECTIONS, *shape)`` of each input."""
        found = []
        for values, along in zip(self.inputs, directions, strict=True):
            if values is None:
                found.append(None)
                continue
            slopes, kept = np.zeros(len(along)), values.copy()
            for k, direction in enumerate(along):
                values[...] = kept + STEP * direction
                above = self.loss(engine)
                values[...] = kept - STEP * direction
                slopes[k] = (above - self.loss(engine)) / (2 * STEP)
            values[...] = kept
            found.append(slopes)
        return found

    def _slopes(self, engine: Any, values: np.ndarray) -> np.ndarray:
        slopes = np.zeros(values.shape)
        for index in np.ndindex(values.shape):
            kept = values[index]
            values[index] = kept + STEP
            above = self.loss(engine)
            values[index] = kept - STEP
            slopes[index] = (above - self.loss(engine)) / (2 * STEP)
            values[index] = kept
        return slopes


def draw(
    spec: v2.RNNSpec,
    seed: int,
    *,
    layout: str = "time_major",
    lengths: tuple[int, ...] | None = RAGGED,
    batch_sizes: tuple[int, ...] | None = None,
    steps: int = STEPS,
    batch: int = 2,
) -> Problem:
    """Data of unit scale; ``steps`` and ``batch`` matter where no lengths say them."""
    rng = np.random.default_rng(seed)
    batch = batch if lengths is None else len(lengths)
    rows: tuple[int, ...] = (steps, batch) if layout == "time_major" else (batch, steps)
    how: dict[str, Any] = {"layout": layout}
    if layout == "packed":
        assert lengths is not None
        rows = (sum(lengths),)
    if batch_sizes is not None:
        how["batch_sizes"] = batch_sizes
    elif lengths is not None:
        how["lengths"] = lengths
    state, cell = spec.state_shape(batch), spec.cell_shape(batch)
    return Problem(
        spec,
        how,
        w=rng.normal(0, 0.6, v2.weight_size(spec)),
        x=rng.normal(size=(*rows, spec.input_size)),
        hx=rng.normal(size=state),
        cx=rng.normal(size=cell) if spec.has_cell else None,
        dy=rng.normal(size=(*rows, spec.output_size)),
        dhy=rng.normal(size=state),
        dcy=rng.normal(size=cell) if spec.has_cell else None,
    )


def away_from_kinks(spec: v2.RNNSpec, **arguments: Any) -> Problem:
    """The first drawn problem in which no value comes near where a relu or a clip bends."""
    for seed in range(100):
        problem = draw(spec, seed, **arguments)
        if distance(problem) > 100 * STEP:
            return problem
    raise AssertionError("every draw has a value near a kink")


def distance(problem: Problem) -> float:
    spec, layout = problem.spec, problem.how["layout"]
    lengths = problem.how.get("lengths")
    if "batch_sizes" in problem.how:
        lengths = reference.lengths_from_batch_sizes(
            problem.how["batch_sizes"], problem.hx.shape[1]
        )
    rows = reference.split_rows(problem.x, lengths, layout)
    out = reference.reference_forward(spec, problem.w, rows, problem.hx, problem.cx)
    return reference.distance_to_kink(out)


def random_directions(problem: Problem) -> list[Any]:
    """For each input (or None) arrays of its shape, each of length 1."""
    rng, found = np.random.default_rng(0), []
    for values in problem.inputs:
        if values is None:
            found.append(None)
            continue
        along = rng.normal(size=(DIRECTIONS, *values.shape))
        lengths = np.sqrt((along**2).reshape(DIRECTIONS, -1).sum(axis=1))
        found.append(along / lengths.reshape(-1, *[1] * values.ndim))
    return found


def check(problem: Problem, engine: Any) -> None:
    computed = problem.gradients(engine)
    if engine.on_host:
        differences = problem.differences(engine)
    else:
        directions = random_directions(problem)
        differences = problem.slopes_along(engine, directions)
        computed = [
            None if a is None else np.tensordot(along, a, a.ndim)
            for a, along in zip(computed, directions, strict=True)
        ]
    for name, a, b in zip(("dx", "dhx", "dcx", "dw"), computed, differences, strict=True):
        assert (a is None) == (b is None), name
        if b is not None:
            size = np.linalg.norm(b)
            assert size > 1e-2, f"{name} has nothing to compare"
            assert np.linalg.norm(a - b) < 1e-6 * size, name


@pytest.mark.parametrize("bidirectional", [False, True], ids=["uni", "bi"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("cell", CELLS)
def test_gradients_of_every_cell_and_bias_agree_with_differences(
    cell: str, bias: str, layers: int, bidirectional: bool, engine: Any
) -> None:
    spec = v2.RNNSpec(
        cell,
        3,
        2,
        num_layers=layers,
        bidirectional=bidirectional,
        bias=bias,
        dtype="float64",
    )
    check(away_from_kinks(spec), engine)


@pytest.mark.parametrize("bidirectional", [False, True], ids=["uni", "bi"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("bias", ["none", "double"])
def test_gradients_through_a_projection_agree_with_differences(
    bias: str, layers: int, bidirectional: bool, engine: Any
) -> None:
    spec = v2.RNNSpec(
        "lstm",
        3,
        2,
        num_layers=layers,
        bidirectional=bidirectional,
        bias=bias,
        proj_size=1,
        dtype="float64",
    )
    check(away_from_kinks(spec), engine)


@pytest.mark.parametrize("proj_size", [None, 1], ids=["", "projected"])
@pytest.mark.parametrize("clip", [(-0.3, 0.2), (-np.inf, 0.1), (0.05, 0.4)], ids=str)
def test_gradients_through_a_clip_agree_with_differences(
    clip: tuple[float, float], proj_size: int | None, engine: Any
) -> None:
    spec = v2.RNNSpec(
        "lstm",
        3,
        2,
        num_layers=2,
        bidirectional=True,
        proj_size=proj_size,
        clip=clip,
        dtype="float64",
    )
    problem = away_from_kinks(spec)
    cells = engine.get(problem.forward(engine, training=False).cy)
    inside = (clip[0] < cells) & (cells < clip[1])
    assert inside.any()
    assert not inside.all()
    check(problem, engine)


@pytest.mark.parametrize("bias", ["none", "double"])
@pytest.mark.parametrize("cell", CELLS)
def test_gradients_with_skipped_input_agree_with_differences(
    cell: str, bias: str, engine: Any
) -> None:
    spec = v2.RNNSpec(
        cell,
        2,
        2,
        num_layers=2,
        bidirectional=True,
        bias=bias,
        input_mode="skip",
        dtype="float64",
    )
    check(away_from_kinks(spec), engine)


LAYOUTS = {
    "equal": {"lengths": None},
    "batch-major": {"layout": "batch_major"},
    "batch-major, equal": {"layout": "batch_major", "lengths": None},
    "packed": {"layout": "packed"},
    "packed, sorted": {"layout": "packed", "lengths": (3, 2, 2)},
    "batch sizes": {"layout": "packed", "lengths": (3, 1, 0), "batch_sizes": (2, 1, 1)},
    "one empty": {"lengths": (4, 0)},
}


@pytest.mark.parametrize("arguments", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("cell", CELLS)
def test_gradients_in_every_layout_agree_with_differences(
    cell: str, arguments: dict[str, Any], engine: Any
) -> None:
    spec = v2.RNNSpec(cell, 2, 2, num_layers=2, bidirectional=True, dtype="float64")
    check(away_from_kinks(spec, **arguments), engine)


@pytest.mark.parametrize("form", ["sequence", "step"])
@pytest.mark.parametrize("cell", CELLS)
def test_gradients_of_an_unbatched_x_agree_with_differences(
    cell: str, form: str, engine: Any
) -> None:
    spec = v2.RNNSpec(cell, 2, 2, num_layers=2, bidirectional=True, dtype="float64")
    steps = 1 if form == "step" else 3
    problem = away_from_kinks(spec, lengths=None, steps=steps, batch=1)
    for name in ("hx", "cx", "dhy", "dcy"):
        state = getattr(problem, name)
        setattr(problem, name, None if state is None else state[:, 0].copy())
    for name in ("x", "dy"):
        rows = getattr(problem, name)[:, 0]
        setattr(problem, name, rows[0].copy() if form == "step" else rows.copy())
    check(problem, engine)


@pytest.mark.parametrize("cell", ["tanh", "lstm", "gru"])
def test_gradients_through_dropout_agree_with_differences_under_the_same_masks(
    cell: str, engine: Any
) -> None:
    spec = v2.RNNSpec(cell, 2, 2, num_layers=3, bidirectional=True, dropout=0.4, dtype="float64")
    problem = draw(spec, 2)
    problem.seed = 7
    undropped, dropped = (problem.forward(engine, training) for training in (False, True))
    assert np.abs(engine.get(undropped.y) - engine.get(dropped.y)).max() > 0.01
    check(problem, engine)
