"""``algo="auto"``: what was fastest while it served, kept in a file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.engines.tuning import read_tuning, tuning_file
from cudnn_compat.matrix.tolerances import tolerance
from tests.engines.networks import GRADIENTS
from tests.gpu.work import as_bytes, assert_same_bytes, on_device, problem, train

pytestmark = pytest.mark.gpu

CALLS = 30
"""More than it takes to try every way whose kernels are ready."""
PATIENCE = 60.0
"""Seconds for kernels that are compiled meanwhile."""


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "folder" / "tuning.json"
    monkeypatch.setenv("CUDNN_COMPAT_TUNING", str(path))
    v2.clear_plans()
    yield path
    v2.clear_plans()


def settle(spec: v2.RNNSpec, lengths: Any, **options: Any) -> list[str]:
    """Train until the choice is made; the algorithms that served."""
    import cupy

    _, data, how = problem(spec, lengths, **options)
    data = on_device(data)
    algos: list[str] = []
    end = time.monotonic() + PATIENCE
    while len(algos) < CALLS or not all(plan.settled for plan in v2.plans()):
        assert time.monotonic() < end
        out = v2.rnn_forward(spec, data.w, data.x, training=True, **how)
        algos.append(out.algo)
        v2.rnn_backward(out, data.dy)
        cupy.cuda.get_current_stream().synchronize()
    return algos


def test_what_was_learnt_is_in_the_file_with_the_times_of_all_ways(own_file: Path) -> None:
    settle(v2.RNNSpec("lstm", 64, 256), (30,) * 4)
    (where,) = read_tuning(own_file)
    assert "cuDNN" in where
    ((shape, entry),) = read_tuning(own_file)[where].items()
    assert shape.startswith("lstm ≤32×4×64×256")
    assert {"standard", "standard+graph"} <= set(entry["us"])
    best = min((n for n, time in entry["us"].items() if time is not None), key=entry["us"].get)
    chosen = entry["algo"] + ("+graph" if entry["graph"] else "")
    assert entry["us"][chosen] <= entry["us"][best] / 0.97


def test_what_the_file_says_is_done_without_measuring(own_file: Path) -> None:
    spec = v2.RNNSpec("lstm", 64, 64)
    settle(spec, (20,) * 8)
    told = json.loads(own_file.read_text())
    for shapes in told["best"].values():
        for entry in shapes.values():
            entry.update(algo="persist_small_h", graph=True)
    own_file.write_text(json.dumps(told))
    v2.clear_plans()
    before = own_file.read_text()
    assert set(settle(spec, (20,) * 8)) == {"persist_small_h"}
    assert own_file.read_text() == before


def test_what_was_learnt_before_own_kernels_were_tried_is_learnt_anew(own_file: Path) -> None:
    spec = v2.RNNSpec("lstm", 64, 64)
    settle(spec, (20,) * 8)
    told = json.loads(own_file.read_text())
    (shapes,) = told["best"].values()
    for entry in shapes.values():
        entry.update(algo="standard", graph=True)
        del entry["us"]["fused+graph"]
    own_file.write_text(json.dumps(told))
    v2.clear_plans()
    settle(spec, (20,) * 8)
    ((_, shapes),) = read_tuning(own_file).items()
    (entry,) = shapes.values()
    assert "fused+graph" in entry["us"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}'])
def test_a_damaged_file_is_measured_anew(own_file: Path, text: str) -> None:
    own_file.parent.mkdir(parents=True)
    own_file.write_text(text)
    settle(v2.RNNSpec("gru", 32, 300), (12,) * 4)
    assert read_tuning(own_file)


def test_a_file_that_cannot_be_written_is_no_error(
    own_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_file.parent.mkdir(parents=True)
    own_file.mkdir()
    assert settle(v2.RNNSpec("gru", 32, 300), (12,) * 4)
    assert tuning_file() == own_file


def test_a_deterministic_spec_goes_by_rule_and_gives_the_same_bits(own_file: Path) -> None:
    spec = v2.RNNSpec("lstm", 64, 64, deterministic=True)
    spec, data, how = problem(spec, (20,) * 8)
    data = on_device(data)
    results = [as_bytes(train(spec, data, how)) for _ in range(CALLS)]
    for result in results:
        assert_same_bytes(result, results[0])
    assert not own_file.exists()


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("cell", ["lstm", "gru", "tanh"])
def test_every_call_on_the_way_stays_within_the_tolerance(cell: str, dtype: str) -> None:
    spec = v2.RNNSpec(cell, 128, 128, dtype=dtype)
    plain = v2.RNNSpec(cell, 128, 128, dtype=dtype, algo="standard")
    _, data, how = problem(spec, (12,) * 8)
    # Weights of a size at which a network of so many units is no amplifier of rounding.
    data = on_device(data.replace(w=v2.init_weights(spec, seed=0)))
    wanted = train(plain, data, how)
    for _ in range(CALLS):
        got = train(spec, data, how)
        for name, array in got.items():
            if array is not None:
                difference = float(abs(array - wanted[name]).astype(np.float64).max())
                what = "gradient" if name in GRADIENTS else "output"
                assert difference <= 2 * tolerance(dtype, engine="cudnn", what=what), name
