"""The grid, and what is taken from it."""

from __future__ import annotations

import numpy as np

from cudnn_compat import v2
from cudnn_compat.bench.first import allowed, new_shapes
from cudnn_compat.bench.grid import GRID, Workload, grid_of, named
from cudnn_compat.bench.scaling import AXES, BASE, cliffs, coarse_first, in_order, points


def test_names_tell_workloads_apart_and_are_found_with_either_cross() -> None:
    assert len({workload.name for workload in GRID}) == len(GRID) == 16
    assert [w.name for w in named("1x1x16")] == ["lstm 1×1×16×32 float32"]
    assert named("1×1×16") == named("1x1x16")
    assert named("1×1×16×32") == (GRID[11],)
    assert named("nonsense") == ()


def test_a_workload_says_its_network() -> None:
    spec = Workload("gru", 5, 3, 4, 6, layers=2, bidirectional=True, dtype="float16").spec(
        algo="standard"
    )
    assert spec == v2.RNNSpec(
        "gru", 4, 6, num_layers=2, bidirectional=True, dtype="float16", algo="standard"
    )


def test_numpy_is_measured_in_float32() -> None:
    assert {w.dtype for w in grid_of("numpy")} == {"float32"}
    assert grid_of("cudnn") == GRID


def test_drawn_lengths_lie_between_their_bounds_and_differ() -> None:
    workload = next(w for w in GRID if w.lengths)
    rng = np.random.default_rng(0)
    draws = [workload.draw_lengths(rng) for _ in range(20)]
    lengths = np.array(draws)
    assert lengths.shape == (20, workload.batch)
    assert lengths.min() >= 20
    assert lengths.max() <= 200
    assert len({tuple(draw) for draw in draws if draw}) == 20


def test_new_shapes_are_in_no_other_part() -> None:
    seen = {w.name for w in GRID} | {point.workload.name for point in points()}
    shapes = new_shapes()
    assert len(shapes) == len(GRID)
    assert not seen & {shape.name for shape in shapes}
    for shape in shapes:
        shape.spec()  # one that exists


def test_a_first_call_may_take_three_warm_ones_and_50_ms() -> None:
    assert allowed(2000) == 6000 + 50_000


def test_each_axis_changes_one_size_of_the_same_workload() -> None:
    found = {axis: [p.workload for p in points() if p.axis == axis] for axis in AXES}
    assert [w.steps for w in found["T"]] == list(AXES["T"])
    assert {w.batch for w in found["T"]} == {BASE.batch}
    assert [w.batch for w in found["B"]] == list(AXES["B"])
    assert [(w.input, w.hidden) for w in found["H"]] == [(h, h) for h in AXES["H"]]
    assert [w.layers for w in found["L"]] == list(AXES["L"])


def swept(axis: str, values: list[tuple[int, float, float]]) -> list[dict[str, object]]:
    return [
        {"axis": axis, "value": value, "mode": "inference", "ours_us": ours, "torch_us": torch}
        for value, ours, torch in values
    ]


def test_a_cliff_is_a_jump_that_neither_the_work_nor_pytorch_has() -> None:
    rows = swept("T", [(50, 100, 200), (100, 400, 420), (200, 780, 800)])
    (found,) = cliffs(rows)
    assert found == (
        "inference, T from 50 to 100: time grows 4.0 times, PyTorch's 2.1, the work 2.0"
    )


def test_what_pytorch_has_too_is_no_cliff() -> None:
    assert cliffs(swept("T", [(50, 100, 200), (100, 400, 700)])) == []


def test_time_that_grows_with_the_work_is_no_cliff() -> None:
    assert cliffs(swept("H", [(256, 100, 300), (512, 550, 310)])) == []  # the work grows 4 times


def test_points_that_failed_are_passed_over() -> None:
    rows = swept("T", [(50, 100, 200), (100, 190, 400)])
    rows.insert(1, {"axis": "T", "value": 70, "mode": "inference", "error": "no memory"})
    assert cliffs(rows) == []


def test_the_first_half_of_a_sweep_has_every_other_point_of_every_axis() -> None:
    order = coarse_first()
    assert sorted(order, key=str) == sorted(points(), key=str)
    half = order[: (len(order) + len(AXES)) // 2]
    for axis, values in AXES.items():
        seen = [point.value for point in half if point.axis == axis]
        assert set(values[::2]) <= set(seen)


def test_rows_of_a_sweep_are_shown_in_the_order_of_their_axis() -> None:
    rows = [
        {"axis": point.axis, "value": point.value, "mode": mode}
        for point in coarse_first()
        for mode in ("inference", "training")
    ]
    wanted = [(p.axis, p.value, mode) for p in points() for mode in ("inference", "training")]
    assert [(row["axis"], row["value"], row["mode"]) for row in in_order(rows)] == wanted
