"""Measuring: what runs, what becomes of failures, and what a short time leaves out. On NumPy."""

from __future__ import annotations

import importlib.util
import threading
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cudnn_compat import environment, v2
from cudnn_compat.bench import grid_rows, run, scaling, sides
from cudnn_compat.bench.grid import MODES, Workload
from cudnn_compat.bench.run import Settings, measure, pace_for
from cudnn_compat.bench.sides import Inputs, difference, ours, theirs
from cudnn_compat.bench.stands import OnCpu, SideError
from cudnn_compat.bench.timing import Pace, Timing

HASTE = Pace(rounds=2, round_ms=1, warm_up=0, warm_up_calls=1)
TINY = Workload("lstm", 3, 2, 4, 5)
RAGGED = Workload("gru", 6, 3, 4, 5, bidirectional=True, lengths=(1, 6))

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="needs PyTorch (extra peers)"
)


class Stand:
    """Sides that take a known time."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.closed = False

    def put(self, workload: Workload) -> float:
        if self.fails and self.fails in workload.name:
            raise MemoryError("no memory")
        return 1e-7

    def timers(self, mode: str) -> dict[str, Any]:
        times = {"ours": 10.0, "torch": 25.0 if mode == "inference" else 40.0}
        return {side: lambda count, us=us: Timing(us, us + 1) for side, us in times.items()}

    def choice(self, mode: str) -> str:
        return f"the way for {mode}"

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Stand:
    """In the place of the processes of a CPU."""
    made = Stand()
    monkeypatch.setattr(run, "OnCpu", lambda **options: made)
    return made


@pytest.fixture
def facts() -> dict[str, Any]:
    return environment.collect()


def settings(**changes: Any) -> Settings:
    given = {"parts": ("grid",), "workloads": (TINY, RAGGED), "threads": 1} | changes
    return Settings("numpy", HASTE, **given)


def test_a_row_for_each_workload_and_mode_says_times_and_speed_up(
    stand: Stand, facts: dict[str, Any]
) -> None:
    record = measure(settings(), facts)
    rows = record["parts"]["grid"]["rows"]
    assert [(r["workload"], r["mode"]) for r in rows] == [
        (workload.name, mode) for workload in (TINY, RAGGED) for mode in MODES
    ]
    assert rows[1] | {"workload": "", "lengths": None} == {
        "workload": "",
        "mode": "training",
        "cell": "lstm",
        "steps": 3,
        "batch": 2,
        "input": 4,
        "hidden": 5,
        "layers": 1,
        "bidirectional": False,
        "proj": None,
        "dtype": "float32",
        "lengths": None,
        "difference": 1e-7,
        "ours_us": 10.0,
        "ours_wall_us": 11.0,
        "choice": "the way for training",
        "torch_us": 40.0,
        "torch_wall_us": 41.0,
        "speed_up": 4.0,
        "speed_up_of_rounds": [4.0, 4.0],
    }
    assert rows[2]["lengths"] == [1, 6]
    means = record["parts"]["grid"]["geometric_mean"]
    assert means == {"inference": pytest.approx(2.5), "training": pytest.approx(4.0)}
    assert stand.closed


def test_a_workload_that_fails_is_a_row_that_says_so_and_the_others_are_measured(
    stand: Stand, facts: dict[str, Any]
) -> None:
    stand.fails = TINY.name
    rows = measure(settings(), facts)["parts"]["grid"]["rows"]
    assert [row.get("error") for row in rows] == ["MemoryError: no memory"] * 2 + [None] * 2


def test_a_mode_that_fails_leaves_the_other(
    stand: Stand, facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def choice(mode: str) -> str:
        if mode == "inference":
            raise MemoryError("no memory")
        return "standard"

    monkeypatch.setattr(stand, "choice", choice)
    rows = measure(settings(workloads=(TINY,)), facts)["parts"]["grid"]["rows"]
    assert [(row["mode"], "error" in row) for row in rows] == [
        ("inference", True),
        ("training", False),
    ]


@pytest.mark.usefixtures("stand")
def test_progress_and_the_record_so_far_are_told_after_each_workload(
    facts: dict[str, Any],
) -> None:
    begun, rows = [], []
    measure(
        settings(),
        facts,
        begun=lambda *what: begun.append(what),
        done=lambda record: rows.append(len(record["parts"]["grid"]["rows"])),
    )
    assert begun == [(f"grid: {TINY.name}", 0, 2), (f"grid: {RAGGED.name}", 1, 2)]
    assert rows == [2, 4, 4]


def test_when_the_time_is_over_nothing_more_is_begun_and_the_rest_is_named(
    stand: Stand, facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(run.time, "monotonic", lambda: next(clock))
    record = measure(settings(budget=15), facts)
    assert len(record["parts"]["grid"]["rows"]) == 2
    assert record["left_out"] == [f"grid: {RAGGED.name}"]
    assert stand.closed


@pytest.mark.usefixtures("stand")
def test_on_numpy_what_needs_a_gpu_is_not_run_and_says_why(facts: dict[str, Any]) -> None:
    record = measure(settings(parts=("grid", "raw", "first", "host")), facts)
    assert sorted(record["not_run"]) == ["first", "host", "raw"]
    assert list(record["parts"]) == ["grid"]
    assert record["aims"] == []


@pytest.mark.usefixtures("stand")
def test_scaling_has_a_row_for_each_point_and_mode(facts: dict[str, Any]) -> None:
    rows = measure(settings(parts=("scaling",)), facts)["parts"]["scaling"]["rows"]
    assert [(r["axis"], r["value"], r["mode"]) for r in rows] == [
        (point.axis, point.value, mode) for point in scaling.points() for mode in MODES
    ]


def test_a_pace_is_quick_or_has_the_wanted_rounds() -> None:
    for engine in ("cudnn", "numpy"):
        assert pace_for(engine, quick=True).round_ms < pace_for(engine).round_ms
        assert pace_for(engine, rounds=17).rounds == 17


def test_without_pytorch_this_package_alone_is_measured(
    facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {}
    monkeypatch.setattr(run, "OnCpu", lambda **options: asked.update(options) or Stand())
    facts["packages"]["torch"] = None
    record = measure(settings(), facts)
    assert asked["torch"] is False
    assert record["torch"] == "PyTorch is not installed (extra peers)"


@pytest.fixture(scope="module")
def processes() -> Iterator[OnCpu]:
    """This package and PyTorch, each in its process."""
    stand = OnCpu(torch=True, threads=1)
    yield stand
    stand.close()


@needs_torch
@pytest.mark.peers
class TestBothSides:
    """This package and PyTorch on the CPU."""

    @pytest.mark.parametrize(
        "workload",
        [
            TINY,
            RAGGED,
            Workload("lstm", 4, 2, 6, 8, proj=3),
            Workload("tanh", 4, 2, 3, 5, layers=2),
        ],
        ids=lambda workload: workload.name,
    )
    def test_they_compute_the_same_and_both_take_time(
        self, processes: OnCpu, workload: Workload
    ) -> None:
        rows = grid_rows.rows_of(workload, processes, HASTE)
        assert [row["mode"] for row in rows] == list(MODES)
        for row in rows:
            assert 0 < row["difference"] < 1e-5
            assert row["ours_us"] > 1
            assert row["torch_us"] > 1
            assert row["speed_up"] == pytest.approx(row["torch_us"] / row["ours_us"])
            assert row["choice"] == "numpy"

    def test_what_fails_in_a_process_is_told_in_its_words(self, processes: OnCpu) -> None:
        processes.put(TINY)
        with pytest.raises(SideError, match="KeyError: 'sideways'"):
            processes.timers("sideways")["ours"](1)
        assert processes.timers("inference")["ours"](1).wall > 0  # and it lives on

    def test_training_gives_pytorch_s_gradients(self) -> None:
        inputs = Inputs(TINY)
        mine, its = ours(inputs, "numpy"), theirs(inputs, "cpu")
        dx = mine.calls["training"]().dx
        np.testing.assert_allclose(dx, its.calls["training"]().numpy(), atol=1e-6)


def test_outputs_that_differ_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = np.zeros((3, 2, 5), "float32")
    assert difference(TINY, right, right + np.float32(1e-3)) == pytest.approx(1e-3)
    for wrong in (right + np.float32(0.1), right * np.nan):
        with pytest.raises(ArithmeticError, match="nothing is timed"):
            difference(TINY, right, wrong)


def test_each_call_has_the_next_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    forward = v2.rnn_forward

    def noted(*given: Any, lengths: Any = None, **options: Any) -> Any:
        seen.append(tuple(lengths))
        return forward(*given, lengths=lengths, **options)

    monkeypatch.setattr(v2, "rnn_forward", noted)
    side = ours(Inputs(RAGGED), "numpy")
    for _ in range(10):
        side.calls["inference"]()
    assert len(set(seen)) > 5


def test_processes_end_with_their_stand() -> None:
    stand = OnCpu(torch=False, threads=1)
    before = threading.active_count()
    assert stand.put(TINY) is None
    stand.close()
    assert not any(process.is_alive() for process in stand._processes)
    assert threading.active_count() <= before
    with pytest.raises(SideError, match="has ended"):
        stand.put(TINY)


def test_only_the_plans_of_a_workload_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    settled_at = 7

    def plans() -> list[Any]:
        own = {"spec": TINY.spec(), "steps": TINY.steps, "batch": TINY.batch}
        never = own | {"batch": TINY.batch + 1, "settled": False}
        return [
            types.SimpleNamespace(**own, settled=len(calls) >= settled_at),
            types.SimpleNamespace(**never),
        ]

    stream = types.SimpleNamespace(synchronize=lambda: None)
    cuda = types.SimpleNamespace(get_current_stream=lambda: stream)
    monkeypatch.setattr(sides, "load_cupy", lambda: types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(v2, "plans", plans)
    sides._settle(lambda: calls.append(1), TINY)
    assert len(calls) == settled_at
