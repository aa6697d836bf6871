"""`ngates`, `hBatch`, `hDesc`, `xDesc`."""

from __future__ import annotations

import numpy as np
import pytest

from cudnn_compat.errors import ArgumentError, CompatError, DTypeError
from cudnn_compat.legacy import RNNDesc, hBatch, hDesc, ngates, xDesc
from tests.engine import Engine
from tests.legacy.steps import GATES, HIDDEN, INPUT, MODES

X, VECTOR_X = np.ones((INPUT, 5), "float32"), np.ones(INPUT, "float32")


@pytest.mark.parametrize("cell", GATES)
def test_ngates_takes_a_descriptor_or_a_mode(cell: str) -> None:
    assert ngates(MODES[cell]) == GATES[cell]
    assert ngates(RNNDesc(MODES[cell], INPUT, HIDDEN)) == GATES[cell]


@pytest.mark.parametrize("wrong", [4, -1, "lstm", None])
def test_ngates_of_anything_else_is_refused(wrong: object) -> None:
    with pytest.raises(CompatError, match="mode is"):
        ngates(wrong)


@pytest.mark.parametrize("shape", [(HIDDEN,), (HIDDEN, 1), (HIDDEN, 5)])
def test_hbatch_gives_a_state_the_batch_of_x_in_memory_of_its_own(
    shape: tuple[int, ...], engine: Engine
) -> None:
    h = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    given = engine.put(h)
    found = hBatch(engine.put(X), given)
    assert type(found) is engine.xp.ndarray
    assert found.shape == (HIDDEN, 5)
    assert found.dtype == "float32"
    assert found.flags.f_contiguous
    for column in range(5):
        np.testing.assert_array_equal(
            engine.get(found)[:, column], h.reshape(HIDDEN, -1)[:, column % h[0].size]
        )
    found[...] = -1
    assert engine.get(given).max() > 0


@pytest.mark.parametrize("shape", [(HIDDEN,), (HIDDEN, 1)])
def test_hbatch_of_a_vector_x_is_h_itself(shape: tuple[int, ...], engine: Engine) -> None:
    h = engine.xp.zeros(shape)
    assert hBatch(engine.put(VECTOR_X), h) is h


@pytest.mark.parametrize(
    ("x", "h", "error", "words"),
    [
        (X, np.zeros((HIDDEN, 4)), ArgumentError, r"h has shape \(4, 4\).*x \(3, 5\)"),
        (VECTOR_X, np.zeros((HIDDEN, 2)), ArgumentError, r"h has shape \(4, 2\)"),
        (X, np.zeros((HIDDEN, 5, 1)), ArgumentError, r"h has shape .*\(hidden,\) or"),
        (X[None], np.zeros(HIDDEN), ArgumentError, r"x has shape .*\(input,\) or"),
        (X, None, DTypeError, "h is a"),
        ([1.0], np.zeros(HIDDEN), DTypeError, "x is a"),
    ],
)
def test_hbatch_refuses_what_does_not_go_together(x, h, error, words: str) -> None:
    with pytest.raises(error, match=words):
        hBatch(x, h)


@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((HIDDEN,), (1, 1, HIDDEN)),
        ((HIDDEN, 5), (1, 5, HIDDEN)),
        ((HIDDEN, 5, 2), (2, 5, HIDDEN)),
    ],
)
def test_hdesc_gives_a_descriptor_and_the_state_itself(shape, dims, engine: Engine) -> None:
    h = engine.xp.zeros(shape, "float64")
    descriptor, same = hDesc(h)
    assert same is h
    assert (descriptor.dtype, descriptor.dims) == ("float64", dims)


@pytest.mark.parametrize("nothing", [None, 0, np.int32(0)])
def test_hdesc_of_none_or_0_is_no_state(nothing: object) -> None:
    assert hDesc(nothing) == (None, None)


def test_hdesc_refuses_other_integers_shapes_and_objects() -> None:
    with pytest.raises(ArgumentError, match="h is 7"):
        hDesc(7)
    with pytest.raises(ArgumentError, match="h has shape"):
        hDesc(np.zeros((1, 2, 3, 4)))
    with pytest.raises(DTypeError, match="h is a"):
        hDesc([0.0])


def test_xdesc_gives_one_descriptor_of_the_step(engine: Engine) -> None:
    (descriptor,) = xDesc(engine.put(X))
    assert (descriptor.dtype, descriptor.dims) == ("float32", (5, INPUT, 1))
    (descriptor,) = xDesc(engine.put(VECTOR_X))
    assert descriptor.dims == (1, INPUT, 1)


def test_xdesc_refuses_other_shapes_and_objects() -> None:
    with pytest.raises(ArgumentError, match="x has shape"):
        xDesc(np.zeros((1, 2, 3)))
    with pytest.raises(DTypeError, match="x is a"):
        xDesc(None)
