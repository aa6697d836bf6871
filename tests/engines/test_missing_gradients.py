"""Gradients of None are zeros, and no result is ever left from an untouched buffer."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.engines.numpy import NumpyEngine
from tests.engines.networks import (
    LAYOUTS,
    NETWORKS,
    check,
    check_same,
    draw,
    each_network,
    expected,
    forward,
    run,
)

MISSING = [
    names for count in range(1, 4) for names in itertools.combinations(("dy", "dhy", "dcy"), count)
]

each_missing = pytest.mark.parametrize("missing", MISSING, ids=" ".join)


@pytest.fixture
def poisoned(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every buffer that is not initialised holds NaN (as bytes: 0xFF, NaN in every float)."""
    poison_numpy(monkeypatch)
    if not engine.on_host:
        poison_cupy(engine.xp)


def poison_cupy(cupy: ModuleType) -> None:
    """Fill the blocks that CuPy's pool hands out next, whoever asks for them and how."""
    small = [size for size in range(512, 16_384, 512) for _ in range(8)]
    large = [size for size in range(16_384, 300_000, 16_384) for _ in range(2)]
    blocks = [cupy.full(size, 255, "uint8") for size in (*small, *large)]
    del blocks


def poison_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    empty, empty_like = np.empty, np.empty_like

    def poison(array: Any) -> Any:
        if array.size and array.dtype.kind in "fV":
            array[...] = np.nan
        elif array.size and array.dtype.kind in "ui":
            array[...] = -1 if array.dtype.kind == "i" else np.iinfo(array.dtype).max
        return array

    monkeypatch.setattr(np, "empty", lambda *a, **k: poison(empty(*a, **k)))
    monkeypatch.setattr(np, "empty_like", lambda *a, **k: poison(empty_like(*a, **k)))


def test_the_poison_reaches_the_buffers_that_the_numpy_engine_makes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poison_numpy(monkeypatch)
    assert np.isnan(NumpyEngine().empty((2, 3), "float64")).all()
    assert np.isnan(NumpyEngine().empty((16,), "uint8").view("float32")).all()


@each_network
@each_missing
@pytest.mark.parametrize("lengths", [(3, 3), (2, 0, 4)], ids=str)
@pytest.mark.usefixtures("poisoned")
def test_gradients_of_none_are_zeros_also_in_poisoned_memory(
    spec: v2.RNNSpec, missing: tuple[str, ...], lengths: Any, engine: Any
) -> None:
    data = draw(spec, lengths).without(*missing)
    results = run(engine, spec, data, lengths=lengths)
    check(spec, engine, results, expected(spec, data, lengths))


@each_network
@each_missing
def test_none_and_an_array_of_zeros_give_the_same(
    spec: v2.RNNSpec, missing: tuple[str, ...], engine: Any
) -> None:
    data, lengths = draw(spec, (2, 0, 4)), (2, 0, 4)
    given = {name: getattr(data, name) for name in missing}
    zeros = data.replace(**{n: None if a is None else np.zeros_like(a) for n, a in given.items()})
    absent = run(engine, spec, data.without(*missing), lengths=lengths)
    check_same(spec, engine, absent, run(engine, spec, zeros, lengths=lengths))


@each_network
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.usefixtures("poisoned")
def test_nothing_comes_from_uninitialised_memory(
    spec: v2.RNNSpec, layout: str, dtype: str, engine: Any
) -> None:
    spec = spec.replace(dtype=dtype)
    for lengths in ((3, 3), (2, 0, 4), (0, 0), (1,)):
        data = draw(spec, lengths, steps=4 if layout != "packed" else None, layout=layout)
        results = run(engine, spec, data, layout=layout, lengths=lengths)
        for name, value in results.items():
            assert value is None or np.isfinite(value).all(), (name, lengths)


@each_network
@pytest.mark.usefixtures("poisoned")
def test_batches_of_one_and_single_steps_are_written_completely(
    spec: v2.RNNSpec, engine: Any
) -> None:
    data = draw(spec, (1,)).without("hx", "cx", "dhy", "dcy")
    results = run(engine, spec, data.replace(x=data.x[0, 0], dy=data.dy[0, 0]))
    for name, value in results.items():
        assert value is None or np.isfinite(value).all(), name
    assert results["y"].any()
    assert results["dx"].any()


@pytest.mark.usefixtures("poisoned")
def test_dropout_and_memory_that_was_not_initialised_do_not_mix(engine: Any) -> None:
    for dropout in (0.5, 1.0):
        spec = NETWORKS["gru 2 layers bi"].replace(dropout=dropout)
        for name, value in run(engine, spec, draw(spec, (3, 2)), lengths=(3, 2), seed=1).items():
            assert value is None or np.isfinite(value).all(), name


@pytest.mark.parametrize("gradient", [7, 0, 1.0, True, "dy", [1.0]], ids=repr)
@pytest.mark.parametrize("place", ["dy", "dhy", "dcy"])
def test_a_number_is_no_gradient(place: str, gradient: Any, engine: Any) -> None:
    spec = NETWORKS["lstm"]
    data = draw(spec, (3, 3))
    out = forward(engine, spec, data)
    with pytest.raises(v2.DTypeError, match=f"{place} is a"):
        v2.rnn_backward(out, **{place: gradient})


@pytest.mark.parametrize("cell", ["relu", "tanh", "gru"])
def test_a_gradient_of_a_cell_state_that_is_not_there_is_refused(cell: str, engine: Any) -> None:
    spec = NETWORKS[cell]
    data = draw(spec, (3, 3))
    out = forward(engine, spec, data)
    with pytest.raises(v2.ArgumentError, match=f"dcy was given, but a {cell} has no cell state"):
        v2.rnn_backward(out, dcy=engine.put(data.hx))
