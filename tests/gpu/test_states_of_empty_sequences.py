"""An empty sequence hands its states on, and nothing else ever sees them, whatever they are.

The library multiplies matrices that have a row for each sequence, and zero times NaN is NaN.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.engines import choose
from cudnn_compat.engines.cudnn import CudnnEngine
from cudnn_compat.spec import DTYPES
from tests.engine import Engine
from tests.engines.networks import GRADIENTS, LAYOUTS, OUTPUTS, Data, draw

pytestmark = pytest.mark.gpu

LENGTHS = (4, 0, 7, 0, 1)
EMPTY, OTHERS = [1, 3], [0, 2, 4]
POISONED = 1
"""The sequence whose states are not numbers; the other empty one's are."""
STATES = ("hx", "cx", "dhy", "dcy")
HANDED_ON = {"hy": "hx", "cy": "cx", "dhx": "dhy", "dcx": "dcy"}
"""A result, and what of an empty sequence it is."""
VALUES = {"NaN": np.nan, "infinity": np.inf}


def spec_of(cell: str, **options: Any) -> v2.RNNSpec:
    return v2.RNNSpec(cell, 5, 6, num_layers=2, **options)


CELLS = {
    "relu": spec_of("relu", math="full"),
    "tanh": spec_of("tanh"),
    "lstm": spec_of("lstm", math="full"),
    "gru": spec_of("gru", math="full"),
    "lstm projected": spec_of("lstm", proj_size=3),
    "lstm clipped": spec_of("lstm", clip=(-0.5, 0.5)),
}

each_cell = pytest.mark.parametrize("cell", CELLS)
each_way = pytest.mark.parametrize("both", [False, True], ids=["one way", "both ways"])
each_layout = pytest.mark.parametrize("layout", LAYOUTS)
each_value = pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)


@pytest.fixture
def gpu(cupy: Any) -> Engine:
    return Engine("cudnn", cupy)


def poisoned(data: Data, value: float, *names: str) -> Data:
    """Copies with ``value``, and some of the other sign, as states of one empty sequence."""
    changed = {}
    for name in names:
        array = getattr(data, name)
        if array is not None:
            array = array.copy()
            array[:, POISONED] = value
            array[:, POISONED, ::2] *= -1
            changed[name] = array
    return data.replace(**changed)


def run(gpu: Engine, spec: v2.RNNSpec, data: Data, how: Any, *, training: bool = True) -> Any:
    """All results by name, as NumPy arrays."""
    given = data.on(gpu)
    out = v2.rnn_forward(spec, given.w, given.x, given.hx, given.cx, training=training, **how)
    results = dict(zip(OUTPUTS, map(gpu.get, out), strict=True))
    if training:
        gradients = v2.rnn_backward(out, given.dy, given.dhy, given.dcy)
        results |= dict(zip(GRADIENTS, map(gpu.get, gradients), strict=True))
    return results


def check(
    gpu: Engine,
    spec: v2.RNNSpec,
    layout: str,
    value: float,
    names: tuple[str, ...] = STATES,
    *,
    training: bool = True,
) -> None:
    """With ``value`` in these states of an empty sequence, all else is what it is without."""
    data, how = draw(spec, LENGTHS, layout=layout), {"layout": layout, "lengths": LENGTHS}
    given = poisoned(data, value, *names)
    without = run(gpu, spec, data, how, training=training)
    got = run(gpu, spec, given, how, training=training)
    for name, right in without.items():
        if right is None:
            assert got[name] is None, name
        elif name in HANDED_ON:
            handed = getattr(given, HANDED_ON[name])
            assert np.array_equal(got[name][:, OTHERS], right[:, OTHERS]), name
            assert np.isfinite(right.astype("float64")).all(), name
            assert got[name][:, EMPTY].tobytes() == handed[:, EMPTY].tobytes(), name
        else:
            assert np.isfinite(right.astype("float64")).all(), name
            assert np.array_equal(got[name], right), name


@each_value
@each_layout
@each_way
@each_cell
def test_the_states_of_an_empty_sequence_are_seen_by_nobody_else(
    cell: str, both: bool, layout: str, value: float, gpu: Engine
) -> None:
    check(gpu, CELLS[cell].replace(bidirectional=both), layout, value)


@each_layout
@each_way
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_they_are_seen_by_nobody_else_in_parts_of_a_few_steps(
    cell: str, both: bool, layout: str, gpu: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = functools.cache(lambda: CudnnEngine(max_steps=3))
    monkeypatch.setattr(choose, "cudnn_engine", parts)
    check(gpu, CELLS[cell].replace(bidirectional=both), layout, np.nan)


@pytest.mark.parametrize("name", STATES)
@each_layout
@each_way
def test_one_of_them_by_itself_is_seen_by_nobody_else(
    both: bool, layout: str, name: str, gpu: Engine
) -> None:
    check(gpu, CELLS["lstm"].replace(bidirectional=both), layout, np.nan, (name,))


@each_layout
@each_cell
def test_they_are_seen_by_nobody_else_in_inference(cell: str, layout: str, gpu: Engine) -> None:
    check(gpu, CELLS[cell], layout, np.nan, training=False)


@pytest.mark.parametrize("dtype", DTYPES)
@each_layout
def test_they_are_seen_by_nobody_else_in_any_dtype(layout: str, dtype: str, gpu: Engine) -> None:
    gpu.needs(dtype)
    check(gpu, CELLS["lstm"].replace(bidirectional=True, dtype=dtype), layout, np.nan)


@each_layout
@each_cell
def test_where_all_sequences_are_empty_every_state_is_handed_on(
    cell: str, layout: str, gpu: Engine
) -> None:
    spec, lengths = CELLS[cell].replace(bidirectional=True), (0, 0)
    how = {"layout": layout, "lengths": lengths}
    data = poisoned(draw(spec, lengths, layout=layout, steps=3), np.nan, *STATES)
    results = run(gpu, spec, data, how)
    for name in ("y", "dx", "dw"):
        assert not results[name].any(), name
    for name, state in HANDED_ON.items():
        handed = getattr(data, state)
        assert handed is None or results[name].tobytes() == handed.tobytes(), name


@each_layout
@each_way
def test_states_that_are_not_given_are_zeros_beside_those_that_are_not_numbers(
    both: bool, layout: str, gpu: Engine
) -> None:
    spec = CELLS["lstm"].replace(bidirectional=both)
    how = {"layout": layout, "lengths": LENGTHS}
    data = draw(spec, LENGTHS, layout=layout).without("cx", "dcy")
    got = run(gpu, spec, poisoned(data, np.nan, "hx", "dhy"), how)
    without = run(gpu, spec, data, how)
    for name in ("y", "dx", "dw"):
        assert np.array_equal(got[name], without[name]), name
    for name in ("cy", "dcx"):
        assert np.array_equal(got[name], without[name]), name
        assert not got[name][:, EMPTY].any(), name


def test_a_sequence_that_is_not_empty_does_see_its_own_states(gpu: Engine) -> None:
    spec = CELLS["lstm"]
    data, how = draw(spec, LENGTHS), {"lengths": LENGTHS}
    hx = data.hx.copy()
    hx[:, 0] = np.nan
    got, without = (run(gpu, spec, each, how) for each in (data.replace(hx=hx), data))
    assert not np.array_equal(got["y"][:, 0], without["y"][:, 0])
    for j in OTHERS[1:]:
        assert np.array_equal(got["y"][:, j], without["y"][:, j])
