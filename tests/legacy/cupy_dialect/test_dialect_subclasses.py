"""Old calls take NumPy's subclasses for what plain arrays of the same values are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cudnn_compat.legacy.cupy import cudnn, libcudnn
from tests.subclasses import Subclass, each_subclass, normal


@each_subclass
@pytest.mark.parametrize("mode", ["SIGMOID", "TANH", "ELU"])
def test_activations_of_old_calls_are_those_of_plain_arrays(
    mode: str, subclass: Subclass, tmp_path: Path
) -> None:
    number = getattr(libcudnn, f"CUDNN_ACTIVATION_{mode}")
    x, gy = normal(4, 4), normal(4, 4) + 1
    y = cudnn.activation_forward(x, number, 1.0)
    gx = cudnn.activation_backward(x, y, gy, number, 1.0)
    kinds = [subclass(each, tmp_path) for each in (x, y, gy)]
    np.testing.assert_array_equal(cudnn.activation_forward(kinds[0], number, 1.0), y)
    np.testing.assert_array_equal(cudnn.activation_backward(*kinds, number, 1.0), gx)


@each_subclass
def test_softmax_of_old_calls_is_that_of_plain_arrays(subclass: Subclass, tmp_path: Path) -> None:
    how = 1, libcudnn.CUDNN_SOFTMAX_ACCURATE
    x, gy = normal(4, 5), normal(4, 5) + 1
    y = cudnn.softmax_forward(x, *how)
    gx = cudnn.softmax_backward(y, gy, *how)
    kinds = [subclass(each, tmp_path) for each in (x, y, gy)]
    np.testing.assert_array_equal(cudnn.softmax_forward(kinds[0], *how), y)
    np.testing.assert_array_equal(cudnn.softmax_backward(*kinds[1:], *how), gx)
