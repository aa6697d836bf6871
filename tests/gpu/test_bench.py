"""The benchmark on a GPU, with tiny workloads: that it measures what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import environment, v2
from cudnn_compat.bench import first, host
from cudnn_compat.bench.grid import MODES, Workload
from cudnn_compat.bench.grid_rows import rows_of
from cudnn_compat.bench.raw import RawCalls, RawHandle, RawNetwork, Replay
from cudnn_compat.bench.run import Settings, measure, why_no_torch
from cudnn_compat.bench.sides import Inputs
from cudnn_compat.bench.stands import OnGpu
from cudnn_compat.bench.timing import Pace, cuda_timer

pytestmark = pytest.mark.gpu

HASTE = Pace(rounds=2, round_ms=1, warm_up=0, warm_up_calls=2)
TINY = Workload("lstm", 5, 3, 8, 16)
RAGGED = Workload("gru", 6, 3, 8, 16, bidirectional=True, lengths=(1, 6))


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    return environment.collect()


@pytest.mark.parametrize("replayed", [False, True])
@pytest.mark.parametrize("workload", [TINY, RAGGED], ids=lambda workload: workload.name)
def test_the_raw_calls_compute_what_v2_computes(workload: Workload, replayed: bool) -> None:
    import cupy

    inputs = Inputs(workload)
    w, x, dy = inputs.on(cupy)
    lengths = inputs.lengths[0]
    with RawHandle() as handle:
        network = RawNetwork(handle, inputs.spec, "standard", padded=True, batch=workload.batch)
        sizes = {"steps": workload.steps, "batch": workload.batch}
        raw = RawCalls(handle, network, **sizes, w=w, x=x, dy=dy, lengths=lengths)
        if replayed:
            replay = Replay(handle, raw)
            raw.y.fill(np.nan)
            raw.dw.fill(np.nan)
            cupy.cuda.Device().synchronize()
            replay()
        else:
            raw.step()
        handle.stream.synchronize()
        spec = workload.spec(algo="standard")
        out = v2.rnn_forward(spec, w, x, lengths=lengths, training=True)
        gradients = v2.rnn_backward(out, dy)
        pairs = {
            "y": (raw.y, out.y),
            "hy": (raw.hy, out.hy),
            "dx": (raw.dx, gradients.dx),
            "dw": (raw.dw, gradients.dw),
        }
        for name, (found, wanted) in pairs.items():
            np.testing.assert_allclose(
                found.get(), wanted.get(), atol=1e-5, rtol=1e-5, err_msg=name
            )


@pytest.mark.parametrize("workload", [TINY, RAGGED], ids=lambda workload: workload.name)
def test_rows_have_times_and_say_which_raw_way_is_the_best(workload: Workload) -> None:
    stand = OnGpu(torch=False)
    try:
        rows = rows_of(workload, stand, HASTE, raw=True)
    finally:
        stand.close()
    assert [row["mode"] for row in rows] == list(MODES)
    for row in rows:
        assert "error" not in row, row
        assert row["ours_us"] > 0
        assert row["choice"]
        ways = {way["way"]: way for way in row["raw"]}
        assert len(ways) == 8
        assert ways["standard"]["us"] > 0
        assert ways[row["best_raw"]]["us"] is not None
        assert all((way["us"] is None) == bool(way["refused"]) for way in row["raw"])
        ratio = row["ours_beside_raw_us"] / row["best_raw_us"]
        assert row["ours_over_best_raw"] == pytest.approx(ratio)


@pytest.mark.peers
def test_pytorch_on_the_same_gpu_gives_the_same_and_is_timed(facts: dict[str, Any]) -> None:
    if reason := why_no_torch("cudnn", facts):
        pytest.skip(reason)
    stand = OnGpu(torch=True)
    try:
        for workload in (TINY, RAGGED):
            for row in rows_of(workload, stand, HASTE):
                assert "error" not in row, row
                assert row["difference"] < 5e-3
                assert row["speed_up"] == pytest.approx(row["torch_us"] / row["ours_us"])
    finally:
        stand.close()


def test_the_device_s_clock_sees_what_the_host_does_not_wait_for() -> None:
    import cupy

    a = cupy.ones((2048, 2048), "float32")
    timing = cuda_timer(lambda: a @ a)(20)
    assert timing.device > 10  # 17 GFLOP
    assert timing.wall >= timing.device * 0.9


def test_first_calls_are_timed_one_by_one() -> None:
    rows = first.rows_of_shape(Workload("tanh", 4, 3, 7, 9))
    for row in rows:
        assert "error" not in row, row
        assert row["first_us"] > 0
        assert row["allowed_us"] == pytest.approx(3 * row["standard_us"] + 50_000)
        assert row["met"] == (
            max(row["first_us"], row["slowest_following_us"]) <= row["allowed_us"]
        )


@pytest.mark.parametrize("call", host.CALLS)
def test_an_old_call_is_timed_beside_the_bare_one(call: str) -> None:
    rows = host.rows_of_call(call, turns=3)
    assert len(rows) == 6
    for row in rows:
        assert "error" not in row, row
        assert row["call_us"] > 0
        assert row["bare_us"] > 0


def test_a_whole_run_makes_a_record(facts: dict[str, Any]) -> None:
    settings = Settings("cudnn", HASTE, ("grid", "raw", "first"), (TINY,), only="tiny")
    record = measure(settings, facts)
    assert [row["mode"] for row in record["parts"]["grid"]["rows"]] == list(MODES)
    assert len(record["parts"]["first"]["rows"]) == 2
    assert record["about"]["gpu"]
    assert record["left_out"] == []
