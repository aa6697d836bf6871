"""The frozen program on CuPy arrays, unmodified: ``asarray=cupy.asarray`` is its own way there."""

from __future__ import annotations

from typing import Any

import fluxlike
import numpy as np
import pytest
import train

from tests.downstream.test_numbers import EPOCHS, TOLERANCE

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore::cudnn_compat.legacy.LegacyAPIWarning"),
]

each_model = pytest.mark.parametrize("name", train.MODELS)
each_shape = pytest.mark.parametrize("shape", train.SHAPES)
each_dtype = pytest.mark.parametrize("dtype", TOLERANCE)


@each_dtype
@each_shape
@each_model
def test_the_losses_on_the_gpu_are_those_on_the_host(name: str, shape: str, dtype: str) -> None:
    import cupy

    losses, after, steps = train.run(name, shape, dtype, EPOCHS, asarray=cupy.asarray)
    wanted, wanted_after, wanted_steps = train.run(name, shape, dtype, EPOCHS)
    np.testing.assert_allclose(losses, wanted, rtol=0, atol=TOLERANCE[dtype])
    assert abs(after - wanted_after) <= TOLERANCE[dtype]
    assert steps == wanted_steps


@each_shape
@each_model
def test_every_gradient_on_the_gpu_is_that_on_the_host(name: str, shape: str) -> None:
    """Right after a reset, and one chunk later."""
    import cupy

    host, gpu = (train.make_model(name, "float64") for _ in range(2))
    gpu.convert(cupy.asarray)
    for xs, targets in train.make_data(train.SHAPES[shape], "float64")[:2]:
        loss, grads = fluxlike.gradient(host, fluxlike.mse, xs, targets)
        on_gpu = ([cupy.asarray(a) for a in arrays] for arrays in (xs, targets))
        same_loss, found = fluxlike.gradient(gpu, fluxlike.mse, *on_gpu)
        assert abs(loss - same_loss) <= TOLERANCE["float64"]
        for p, q in zip(host.params(), gpu.params(), strict=True):
            assert (p in grads) == (q in found)
            if p in grads:
                check_on_gpu(found[q], grads[p])


def check_on_gpu(found: Any, right: np.ndarray) -> None:
    import cupy

    assert type(found) is cupy.ndarray
    np.testing.assert_allclose(found.get(), right, rtol=0, atol=TOLERANCE["float64"])


@each_model
def test_training_on_the_gpu_lowers_the_loss(name: str) -> None:
    import cupy

    losses, after, _ = train.run(name, "batch5", "float32", epochs=6, asarray=cupy.asarray)
    assert after < 0.8 * losses[0]


def test_a_descriptor_is_made_where_the_cell_has_its_weights() -> None:
    import cupy

    model = train.make_model("lstm")
    model.convert(cupy.asarray)
    model(cupy.ones((train.N_IN, 5), "float32"))
    assert type(fluxlike.desc(model.layers[0].cell).params) is cupy.ndarray
