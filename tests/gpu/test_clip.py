"""A clip is the same function in every algorithm: what differs is refused."""

from __future__ import annotations

from typing import Any

import pytest

from cudnn_compat import v2
from cudnn_compat.matrix.tolerances import kink_distance, tolerance
from tests.engine import Engine
from tests.engines.networks import (
    GRADIENTS,
    OUTPUTS,
    draw_away_from_kinks,
    expected,
    largest,
    scale,
)
from tests.gpu.work import on_device, train

pytestmark = pytest.mark.gpu

LENGTHS = (3,)
CLIP = (-0.2, 0.15)
ALGOS = ("standard", "persist_static", "persist_dynamic", "persist_small_h", "fused", "auto")


@pytest.mark.parametrize("both", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize("algo", ALGOS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_outputs_and_gradients_with_a_clip_are_right_in_every_algorithm_that_takes_it(
    dtype: str, algo: str, both: bool, cupy: Any
) -> None:
    Engine("cudnn", cupy).needs(dtype)
    spec = v2.RNNSpec("lstm", 8, 8, bidirectional=both, dtype=dtype, clip=CLIP, algo=algo)
    distance = kink_distance(dtype, spec.math, engine="cudnn", clip=True)
    data = draw_away_from_kinks(spec, LENGTHS, distance)
    right = expected(spec, data, LENGTHS)
    assert abs(right["cy"]).max() > 0.25  # the clip is met
    if algo == "persist_static" and dtype != "float32":
        with pytest.raises(v2.UnsupportedError, match="another function with a clip"):
            train(spec, on_device(data), {})
        return
    try:
        found = train(spec, on_device(data), {})
    except v2.UnsupportedError as refusal:
        pytest.skip(f"refused by the library: {str(refusal)[:80]}")
    for name in OUTPUTS + GRADIENTS:
        what = "output" if name in OUTPUTS else "gradient"
        bound = tolerance(dtype, spec.math, engine="cudnn", algo=algo, clip=True, what=what)
        assert largest(found[name].get(), right[name]) <= bound * scale(right[name]), name


def test_auto_never_takes_what_computes_another_function(cupy: Any) -> None:
    spec = v2.RNNSpec("lstm", 512, 512, dtype="float16")  # for which persist_static is the guess
    w = v2.init_weights(spec, seed=0, xp=cupy)
    x = cupy.zeros((20, 64, 512), "float16")
    assert v2.rnn_forward(spec, w, x).algo == "persist_static"
    assert v2.rnn_forward(spec.replace(clip=CLIP), w, x).algo == "standard"
