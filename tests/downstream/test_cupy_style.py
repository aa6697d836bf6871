"""The frozen program for cupy.cudnn, unchanged: on NumPy arrays here, on CuPy arrays on a GPU.

Where there is no CuPy, ``stand_in/`` gives the program one whose arrays are NumPy's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.downstream.plain_equations import Array, derivatives, sigmoid

HERE = Path(__file__).parent
PROGRAM = HERE / "cupy_style" / "train.py"

TOLERANCE = {"f": 2e-5, "d": 1e-12}
"""Largest absolute difference, as in test_numbers.py."""

BATCH_SIZES = (3, 3, 2, 2, 1)
ROWS = [  # of each sequence in the packed arrays: steps of 5, 4 and 2
    [0, 3, 6, 8, 10],
    [1, 4, 7, 9],
    [2, 5],
]
LAYERS, UNITS, N_IN, RATE = 2, 3, 2, 0.5


def run_program(
    folder: Path, environment: dict[str, str], dtype: str, *options: str, stand_in: bool = True
) -> subprocess.CompletedProcess[str]:
    """``cudnn-compat run OPTIONS train.py OUT.npz dtype``."""
    paths = [environment["PYTHONPATH"]]
    if stand_in:
        paths.insert(0, str(HERE / "stand_in"))
    return subprocess.run(
        [sys.executable, "-m", "cudnn_compat", "run", *options, str(PROGRAM), "out.npz", dtype],
        env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


class Run:
    """What one run of the program printed, saved and reported."""

    def __init__(self, folder: Path, environment: dict[str, str], dtype: str, **how: Any) -> None:
        done = run_program(folder, environment, dtype, "-q", "--report", "calls.json", **how)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        words = [line.split() for line in done.stdout.splitlines()]
        self.losses = [float(each[2]) for each in words if each[0] == "lstm"]
        (self.bigru,) = (float(each[1]) for each in words if each[0] == "bigru")
        with np.load(folder / "out.npz") as saved:
            self.dtypes = {saved[name].dtype.char for name in saved}
            self.saved = {name: saved[name].astype(np.float64) for name in saved}
        self.report = json.loads((folder / "calls.json").read_text(encoding="utf-8"))
        self.tolerance = TOLERANCE[dtype]

    def check(self, name: str, expected: Array) -> None:
        """A saved array is what the equations say."""
        found = self.saved[name]
        np.testing.assert_allclose(
            found, expected.reshape(found.shape), rtol=0, atol=self.tolerance, err_msg=name
        )


def on_host(dtype: str) -> Any:
    return pytest.param((dtype, True), id=f"numpy-{dtype}")


def on_gpu(dtype: str) -> Any:
    return pytest.param((dtype, False), id=f"cupy-{dtype}", marks=pytest.mark.gpu)


@pytest.fixture(scope="module", params=[on_host("f"), on_host("d"), on_gpu("f"), on_gpu("d")])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    dtype, stand_in = request.param
    folder = tmp_path_factory.mktemp("cupy_style")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CUDNN_COMPAT"))}
    found = os.environ.get("PYTHONPATH")
    paths = [str(HERE.parents[1]), *([found] if found else [])]
    environment = kept | {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    return Run(folder, environment, dtype, stand_in=stand_in)


def lstm_parts(w: Array) -> list[list[Array]]:
    """[W, R, b_W, b_R] of each layer, gates i f g o one above the other, from the flat weights."""
    flat = w.reshape(*w.shape[:-3], -1)
    sizes = [4 * UNITS * n for n in (N_IN, UNITS, UNITS, UNITS, 1, 1, 1, 1)]
    ends = np.cumsum(sizes)
    assert flat.shape[-1] == ends[-1]
    parts = [
        flat[..., end - size : end].reshape(*flat.shape[:-1], 4 * UNITS, -1)
        for end, size in zip(ends, sizes, strict=True)
    ]
    return [[*parts[2 * k : 2 * k + 2], *parts[4 + 2 * k : 6 + 2 * k]] for k in range(LAYERS)]


def plain_lstm(arrays: list[Array]) -> tuple[list[list[Array]], list[Array], list[Array]]:
    """ys by sequence and step, hy and cy by layer and sequence, as columns; of w, xs, hx, cx."""
    w, xs, hx, cx = arrays
    layers = lstm_parts(w)
    ys, hy, cy = [], [], []
    for number, rows in enumerate(ROWS):
        inputs = [xs[..., row, :, None] for row in rows]
        for layer, (W, R, b_W, b_R) in enumerate(layers):
            h, c = (state[..., layer, number, :, None] for state in (hx, cx))
            outputs = []
            for x in inputs:
                i, f, g, o = np.split(W @ x + b_W + R @ h + b_R, 4, axis=-2)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
                outputs.append(h)
            inputs = outputs
            hy.append((layer, number, h))
            cy.append((layer, number, c))
        ys.append(inputs)
    return ys, hy, cy


def lstm_loss(arrays: list[Array], target: Array) -> Any:
    ys, _, _ = plain_lstm(arrays)
    total = 0.0
    for rows, outputs in zip(ROWS, ys, strict=True):
        for row, y in zip(rows, outputs, strict=True):
            total = total + ((y[..., 0] - target[row]) ** 2).sum(axis=-1)
    return total / target.size


def test_the_lstm_learns_as_the_plain_equations_learn(run: Run) -> None:
    """Loss by loss: each depends on all gradients of the weights before it."""
    saved = run.saved
    w, rest = saved["lstm_w"].copy(), [saved[f"lstm_{name}"] for name in ("xs", "hx", "cx")]
    expected = []
    for _ in run.losses[:-1]:
        arrays = [w, *rest]
        expected.append(lstm_loss(arrays, saved["lstm_target"]))
        (gradient,) = derivatives(
            lambda moved: lstm_loss([*moved, *rest], saved["lstm_target"]), [w]
        )
        w = w - RATE * gradient
    expected.append(lstm_loss([w, *rest], saved["lstm_target"]))
    np.testing.assert_allclose(run.losses, expected, rtol=0, atol=run.tolerance)
    run.check("lstm_w_after", w)
    assert run.losses[-1] < 0.8 * run.losses[0]


def test_every_gradient_of_the_lstm_is_the_plain_equations_own(run: Run) -> None:
    names = ("w", "xs", "hx", "cx")
    arrays = [run.saved[f"lstm_{name}"] for name in names]
    target = run.saved["lstm_target"]
    for name, d in zip(names, derivatives(lambda a: lstm_loss(a, target), arrays), strict=True):
        run.check(f"lstm_d{name}", d)
        assert np.abs(d).max() > 1e-4


def test_the_outputs_of_the_trained_lstm_are_the_plain_equations_own(run: Run) -> None:
    arrays = [run.saved[f"lstm_{name}"] for name in ("w_after", "xs", "hx", "cx")]
    ys, hy, cy = plain_lstm(arrays)
    packed = np.empty((sum(BATCH_SIZES), UNITS))
    for rows, outputs in zip(ROWS, ys, strict=True):
        packed[rows] = [y[:, 0] for y in outputs]
    run.check("lstm_ys", packed)
    for name, states in (("lstm_hy", hy), ("lstm_cy", cy)):
        expected = np.empty((LAYERS, len(ROWS), UNITS))
        for layer, number, state in states:
            expected[layer, number] = state[:, 0]
        run.check(name, expected)


GRU_PARTS = [f"{kind}{direction}{lin}" for direction in (0, 1) for lin in range(6) for kind in "Wb"]


def plain_bigru(arrays: list[Array]) -> tuple[dict[tuple[int, int], Array], dict[Any, Array]]:
    """y by (row, direction), hy by (direction, sequence), of GRU_PARTS, xs and hx."""
    *parts, xs, hx = arrays
    named = dict(zip(GRU_PARTS, parts, strict=True))
    ys, hy = {}, {}
    for direction in (0, 1):
        W = [named[f"W{direction}{lin}"] for lin in range(6)]
        b = [named[f"b{direction}{lin}"][..., None] for lin in range(6)]
        for number, rows in enumerate(ROWS):
            h = hx[..., direction, number, :, None]
            for row in rows if direction == 0 else rows[::-1]:
                x = xs[..., row, :, None]
                a_r, a_z, a_n = (W[k] @ x + b[k] for k in range(3))
                r_r, r_z, r_n = (W[k] @ h + b[k] for k in range(3, 6))
                reset, update = sigmoid(a_r + r_r), sigmoid(a_z + r_z)
                h = (1 - update) * np.tanh(a_n + reset * r_n) + update * h
                ys[row, direction] = h
            hy[direction, number] = h
    return ys, hy


def bigru_value(arrays: list[Array], dys: Array, dhy: Array) -> Any:
    ys, hy = plain_bigru(arrays)
    total: Any = 0.0
    for (row, direction), y in ys.items():
        half = dys[row, UNITS * direction : UNITS * (direction + 1)]
        total = total + (y[..., 0] * half).sum(axis=-1)
    for (direction, number), h in hy.items():
        total = total + (h[..., 0] * dhy[direction, number]).sum(axis=-1)
    return total


def test_the_outputs_of_the_bigru_are_the_plain_equations_own(run: Run) -> None:
    arrays = [run.saved[f"bigru_{name}"] for name in (*GRU_PARTS, "xs", "hx")]
    ys, hy = plain_bigru(arrays)
    packed = np.empty((sum(BATCH_SIZES), 2 * UNITS))
    for (row, direction), y in ys.items():
        packed[row, UNITS * direction : UNITS * (direction + 1)] = y[:, 0]
    run.check("bigru_ys", packed)
    expected = np.empty((2, len(ROWS), UNITS))
    for at, h in hy.items():
        expected[at] = h[:, 0]
    run.check("bigru_hy", expected)


def test_every_gradient_of_the_bigru_is_the_plain_equations_own(run: Run) -> None:
    names = (*GRU_PARTS, "xs", "hx")
    arrays = [run.saved[f"bigru_{name}"] for name in names]
    dys, dhy = run.saved["bigru_dys"], run.saved["bigru_dhy"]
    right = derivatives(lambda a: bigru_value(a, dys, dhy), arrays)
    assert abs(run.bigru - bigru_value(arrays, dys, dhy)) < 10 * run.tolerance  # a sum of many
    for name, d in zip(names, right, strict=True):
        run.check(f"bigru_d{name}", d)
        assert np.abs(d).max() > 1e-4


def test_everything_is_computed_in_the_program_s_own_dtype(run: Run) -> None:
    (dtype,) = run.dtypes
    assert TOLERANCE[dtype] == run.tolerance


def test_the_report_counts_both_levels_at_the_program_s_own_lines(run: Run) -> None:
    counts = {each["old"].rpartition(".")[2]: each["count"] for each in run.report["calls"]}
    steps = len(run.losses) - 1
    assert counts["rnn_forward_training"] == counts["rnn_backward_data"] == steps
    assert counts["rnn_backward_weights"] == steps
    assert counts["rnn_forward_inference"] == 1
    assert counts["RNNForwardTraining"] == counts["RNNBackwardData"] == 1
    assert counts["getRNNLinLayerMatrixParams"] == counts["getRNNLinLayerBiasParams"] == 12
    files = {site["file"] for each in run.report["calls"] for site in each["sites"]}
    assert {Path(file).parent for file in files} == {PROGRAM.parent}


def test_without_the_dialect_the_program_does_not_get_past_its_imports(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = run_program(tmp_path, environment, "f", "--no-install")
    assert done.returncode == 1
    assert "cannot import name 'cudnn' from 'cupy" in done.stderr
    assert done.stdout == ""
