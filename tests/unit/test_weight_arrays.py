"""Which arrays are weight spaces, and how new ones are drawn."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import ArgumentError, DTypeError, RNNSpec

TANH = RNNSpec("tanh", 3, 2)
"""14 weights."""


@pytest.mark.parametrize("shape", [(13,), (15,), (14, 1), (1, 14), (2, 7), (0,), ()])
def test_a_weight_space_of_another_shape_is_refused_with_both(shape: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError) as refusal:
        v2.named_weights(TANH, np.zeros(shape, "float32"))
    assert f"w has shape {shape}" in str(refusal.value)
    assert "(14,)" in str(refusal.value)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "complex64", ml_dtypes.bfloat16])
def test_a_weight_space_of_another_dtype_is_refused_with_both(dtype: Any) -> None:
    with pytest.raises(DTypeError) as refusal:
        v2.named_weights(TANH, np.zeros(14, dtype))
    assert np.dtype(dtype).name in str(refusal.value)
    assert "float32" in str(refusal.value)


def test_views_of_a_weight_space_with_gaps_are_refused_because_they_would_be_copies() -> None:
    with pytest.raises(ArgumentError, match=r"w is not contiguous.*copy"):
        v2.named_weights(TANH, np.zeros(28, "float32")[::2])


def test_a_read_only_weight_space_has_read_only_views() -> None:
    w = v2.init_weights(TANH, 0)
    w.flags.writeable = False
    assert not v2.named_weights(TANH, w)["bias_ih_l0"].flags.writeable


@pytest.mark.parametrize("not_a_spec", [None, "lstm", 3, [], {}, RNNSpec], ids=repr)
def test_what_is_no_spec_is_refused_by_every_function_of_the_weight_space(not_a_spec: Any) -> None:
    calls = (
        lambda: v2.weight_size(not_a_spec),
        lambda: v2.init_weights(not_a_spec),
        lambda: v2.named_weights(not_a_spec, np.zeros(3, "float32")),
    )
    for call in calls:
        with pytest.raises(DTypeError, match=r"spec is .*; wanted a v2.RNNSpec"):
            call()


def test_initial_weights_fill_plus_minus_one_over_the_root_of_the_hidden_size() -> None:
    spec = RNNSpec("lstm", 30, 25)
    w = v2.init_weights(spec, seed=0)
    assert w.shape == (v2.weight_size(spec),)
    assert w.dtype == np.float32
    bound = 1 / 5
    assert np.abs(w).max() <= bound
    # 5700 uniform draws: mean 0 ± 0.0015, standard deviation bound / √3 = 0.1155 ± 0.001.
    assert abs(w.mean()) < 0.01
    assert abs(w.std() - bound / 3**0.5) < 0.005
    assert w.min() < -0.99 * bound
    assert w.max() > 0.99 * bound


def test_one_seed_gives_the_same_weights_and_another_gives_others() -> None:
    spec = RNNSpec("gru", 3, 4)
    assert np.array_equal(v2.init_weights(spec, seed=5), v2.init_weights(spec, 5))
    assert not np.array_equal(v2.init_weights(spec, seed=5), v2.init_weights(spec, seed=6))


def test_without_a_seed_every_draw_is_fresh() -> None:
    spec = RNNSpec("gru", 3, 4)
    assert not np.array_equal(v2.init_weights(spec), v2.init_weights(spec))


def test_drawing_weights_leaves_numpys_global_generator_alone() -> None:
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    v2.init_weights(RNNSpec("gru", 3, 4))
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_one_seed_gives_the_same_numbers_in_every_dtype_but_for_rounding(dtype: str) -> None:
    spec = RNNSpec("gru", 3, 4, dtype="float64")
    exact, rounded = v2.init_weights(spec, 1), v2.init_weights(spec.replace(dtype=dtype), 1)
    assert np.array_equal(rounded, exact.astype(rounded.dtype))
    assert rounded.dtype.name == dtype


def test_the_array_module_that_is_asked_for_holds_the_weights() -> None:
    other = np.zeros(3)

    class OtherModule:
        asked: Any = None

        @classmethod
        def asarray(cls, array: Any) -> Any:
            cls.asked = array
            return other

    spec = RNNSpec("gru", 3, 4)
    assert v2.init_weights(spec, 1, xp=OtherModule) is other  # type: ignore[arg-type]
    assert np.array_equal(OtherModule.asked, v2.init_weights(spec, 1))


@pytest.mark.parametrize("seed", [-1, "a", 1.5, True, [1, 2], {}, v2.DropoutState(1)], ids=repr)
def test_a_seed_of_the_weights_that_is_no_natural_number_is_refused(seed: Any) -> None:
    with pytest.raises(v2.CompatError, match="seed"):
        v2.init_weights(RNNSpec("gru", 3, 4), seed)


@pytest.mark.parametrize("xp", [None, "numpy", 3, list], ids=repr)
def test_an_array_module_that_makes_no_arrays_is_refused(xp: Any) -> None:
    with pytest.raises(DTypeError, match="xp"):
        v2.init_weights(RNNSpec("gru", 3, 4), 0, xp=xp)
