"""Chainer's own code as a client of the dialect, without a GPU: see ``chainer_on_numpy.py``."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.chainer_python import chainer_python

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).parent / "chainer_on_numpy.py"

TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
"""Largest absolute difference of gradients that are of the order of ten."""


@pytest.fixture(scope="module")
def found() -> Any:
    """What the program prints."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    settings = {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "CUDNN_COMPAT_DEPRECATIONS": "ignore",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [chainer_python(), str(PROGRAM)]
    done = subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_chainer_s_networks_have_the_outputs_and_gradients_of_its_plain_operations(
    dtype: str, found: Any
) -> None:
    differences = {
        name: value for name, value in found["differences"].items() if name.endswith(dtype)
    }
    assert len(differences) == 8
    assert {name: value for name, value in differences.items() if value > TOLERANCE[dtype]} == {}


def test_chainer_s_dropout_keeps_its_mask_for_backward(found: Any) -> None:
    assert found["differences"]["dropout"] == 0
    assert abs(found["differences"]["dropout kept"] - 0.75) < 0.02


def test_the_networks_were_the_dialect_s(found: Any) -> None:
    calls, networks = found["calls"], 16
    for name in ("rnn_forward_training", "rnn_backward_data", "rnn_backward_weights"):
        assert calls[name] == networks
    assert calls["getRNNParamsSize"] == networks
    assert calls["DropoutStates.forward"] == calls["DropoutStates.backward"] == 1
    # Two layers, one or two directions; 8, 6 or 2 matrices; forward to write, backward to read.
    matrices = 2 * 2 * 2 * (1 + 2) * (8 + 6 + 2 + 2)
    assert calls["get_rnn_lin_layer_matrix_params"] == matrices
    assert calls["get_rnn_lin_layer_bias_params"] == matrices
