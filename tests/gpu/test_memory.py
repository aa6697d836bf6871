"""Device memory, host memory and handles stay where they are. Runs alone on the GPU.

``scripts/gpu_record.py`` runs this file by itself: what the driver says is taken on the GPU says
something about this process only while there is no other.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from tests.gpu.work import ROOT, on_device, problem, train

pytestmark = pytest.mark.gpu

MEGABYTE = 1 << 20
SPEC = v2.RNNSpec("lstm", 8, 16, num_layers=2, bidirectional=True)


def taken(cupy: Any) -> int:
    """Bytes taken on the GPU, beside what CuPy's pool keeps for later."""
    gc.collect()
    cupy.cuda.Device().synchronize()
    cupy.get_default_memory_pool().free_all_blocks()
    free, total = cupy.cuda.runtime.memGetInfo()
    return int(total - free)


@pytest.mark.parametrize("shapes", [0, 8], ids=["new shapes", "graphs of 8 shapes"])
def test_memory_is_flat_over_many_training_steps(tmp_path: Path, shapes: int) -> None:
    # The same with 10,000 steps is a part of `make gpu`.
    result = tmp_path / "soak.json"
    command = [sys.executable, "scripts/gpu_soak.py", "--steps", "800", "--slack", "4"]
    command += ["--shapes", str(shapes)]
    command += ["--json", str(result)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.exists(), done.stderr
    found = json.loads(result.read_text())
    assert found["steps"] == 800
    assert [name for name, curve in found["curves"].items() if not curve["flat"]] == [], done.stdout
    assert done.returncode == 0, done.stderr


def test_threads_that_come_and_go_hand_their_handles_on(cupy: Any) -> None:
    from cudnn_compat.cudnn.handles import handle_count

    spec, host, how = problem(SPEC, (4, 9, 1))
    data = on_device(host)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            train(spec, data, how)
        except BaseException as error:
            failed.append(error)

    def one_after_the_other(count: int) -> None:
        for _ in range(count):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

    one_after_the_other(20)
    handles, before = handle_count(), taken(cupy)
    one_after_the_other(200)
    assert not failed
    assert handle_count() - handles <= 1
    assert taken(cupy) - before <= 16 * MEGABYTE


def test_many_threads_at_once_take_no_more_handles_than_there_are_threads(cupy: Any) -> None:
    from cudnn_compat.cudnn.handles import handle_count

    spec, host, how = problem(SPEC, (4, 9, 1))
    data = on_device(host)

    def crowd() -> None:
        threads = [threading.Thread(target=train, args=(spec, data, how)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    crowd()
    handles = handle_count()
    for _ in range(10):
        crowd()
    assert handle_count() - handles <= 8


def test_a_spent_tape_gives_its_memory_back_at_once(cupy: Any) -> None:
    data = on_device(problem(SPEC.replace(input_size=64, hidden_size=64), (100,) * 32)[1])
    spec, pool = SPEC.replace(input_size=64, hidden_size=64), cupy.get_default_memory_pool()
    train(spec, data, {})
    gc.collect()
    before = pool.used_bytes()
    out = v2.rnn_forward(spec, data.w, data.x, training=True)
    held = pool.used_bytes() - before
    gradients = v2.rnn_backward(out, data.dy)
    results = sum(a.nbytes for a in (*out, *gradients) if a is not None)
    assert held > MEGABYTE  # the reserve is worth looking at
    assert pool.used_bytes() - before <= results + MEGABYTE / 4


def test_forwards_whose_backward_never_comes_leave_nothing(cupy: Any) -> None:
    spec, host, how = problem(SPEC, (4, 9, 1))
    data, pool = on_device(host), cupy.get_default_memory_pool()
    gc.disable()  # nothing may depend on the collector of cycles
    try:
        for count in (5, 200):
            for _ in range(count):
                v2.rnn_forward(spec, data.w, data.x, training=True, **how)
            if count == 5:
                before = pool.used_bytes()
        assert pool.used_bytes() == before
    finally:
        gc.enable()


def test_refused_calls_leave_nothing(cupy: Any) -> None:
    spec = v2.RNNSpec("lstm", 8, 16, proj_size=4, algo="persist_static")
    w, x = v2.init_weights(spec, seed=0, xp=cupy), cupy.ones((5, 3, 8), "float32")

    def refuse(count: int) -> int:
        for _ in range(count):
            with pytest.raises(v2.UnsupportedError):
                v2.rnn_forward(spec, w, x, training=True)
        gc.collect()
        return int(cupy.get_default_memory_pool().used_bytes())

    before = refuse(5)
    assert refuse(200) == before


def test_plans_are_bounded_can_be_counted_and_cleared(cupy: Any) -> None:
    rng = np.random.default_rng(0)

    def new_shapes(count: int) -> int:
        for _ in range(count):
            hidden, steps, batch = (int(n) for n in rng.integers(1, 40, 3))
            spec = v2.RNNSpec("gru", 3, hidden, bias="none")
            w = v2.init_weights(spec, seed=0, xp=cupy)
            v2.rnn_forward(spec, w, cupy.ones((steps, batch, 3), "float32"))
        return len(v2.plans())

    v2.clear_plans()
    assert v2.plans() == ()
    assert 0 < new_shapes(1) <= 2
    held = new_shapes(400)
    assert 100 < held < 400
    before = taken(cupy)
    assert new_shapes(200) == held
    assert taken(cupy) - before <= 32 * MEGABYTE
    v2.clear_plans()
    assert v2.plans() == ()
    assert new_shapes(1) >= 1


def test_lengths_are_not_what_plans_are_kept_by(cupy: Any) -> None:
    w = v2.init_weights(SPEC, seed=0, xp=cupy)
    x, rng = cupy.ones((30, 8, 8), "float32"), np.random.default_rng(0)

    def batches(count: int) -> int:
        for _ in range(count):
            lengths = rng.integers(0, 30, 8)
            v2.rnn_backward(v2.rnn_forward(SPEC, w, x, lengths=lengths, training=True), None)
        return len(v2.plans())

    v2.clear_plans()
    assert batches(1) == batches(100)
