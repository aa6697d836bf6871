"""Arrays of NumPy's subclasses are what plain arrays of the same values are; results are plain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from tests.subclasses import Subclass, each_subclass, normal

STEPS, SIZE, HIDDEN = 3, 4, 5


@each_subclass
@pytest.mark.parametrize("layout", ["time_major", "batch_major", "packed"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_network_computes_what_it_computes_on_plain_arrays(
    cell: str, layout: str, subclass: Subclass, tmp_path: Path
) -> None:
    spec = v2.RNNSpec(cell, SIZE, HIDDEN, dtype="float64")
    w = 0.5 * normal(v2.weight_size(spec))
    batched = layout == "packed"  # x of two axes is unbatched in the other layouts
    states = [normal(1, 1, HIDDEN)[slice(None) if batched else 0] for _ in range(1 + spec.has_cell)]
    given = [normal(STEPS, SIZE), *states]
    gradients = [normal(STEPS, HIDDEN), *states]
    lengths = [STEPS] if batched else None

    def results(kind: Callable[[np.ndarray], Any]) -> list[Any]:
        if batched:
            arrays = [kind(given[0]), *given[1:]], [kind(gradients[0]), *gradients[1:]]
        else:
            arrays = [kind(a) for a in given], [kind(a) for a in gradients]
        out = v2.rnn_forward(spec, w, *arrays[0], lengths=lengths, layout=layout, training=True)
        return [*out, *v2.rnn_backward(out, *arrays[1])]

    wanted = results(lambda array: array)
    for got, right in zip(results(lambda array: subclass(array, tmp_path)), wanted, strict=True):
        assert type(got) is type(right)
        np.testing.assert_array_equal(got, right)
