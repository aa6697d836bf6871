"""Floors, against the arithmetic done by hand."""

from __future__ import annotations

import dataclasses

import pytest

from cudnn_compat.bench.floors import MACHINES, floor_of, floors_of, machine
from cudnn_compat.bench.grid import GRID, MODES, Workload

H200 = MACHINES["H200"]


def test_arithmetic_counts_each_weight_once_for_every_row_and_thrice_in_training() -> None:
    workload = Workload("lstm", 100, 64, 512, 256)
    products = 2 * 100 * 64 * 4 * 256 * (512 + 256)
    for mode, times in (("inference", 1), ("training", 3)):
        found = floors_of(workload, mode, H200)["arithmetic"]
        assert found == pytest.approx(times * products / 395e12 * 1e6)


def test_arithmetic_counts_layers_directions_and_projections() -> None:
    deep = Workload("gru", 10, 4, 8, 16, layers=2, bidirectional=True, dtype="float16")
    weights = 2 * 3 * 16 * (8 + 16) + 2 * 3 * 16 * (32 + 16)
    found = floors_of(deep, "inference", H200)["arithmetic"]
    assert found == pytest.approx(2 * 40 * weights / 790e12 * 1e6)
    projected = Workload("lstm", 10, 4, 8, 16, proj=4)
    weights = 4 * 16 * (8 + 4) + 4 * 16
    found = floors_of(projected, "inference", H200)["arithmetic"]
    assert found == pytest.approx(2 * 40 * weights / 395e12 * 1e6)


def test_memory_moves_data_and_weights_once_and_their_gradients_once() -> None:
    workload = Workload("tanh", 10, 4, 8, 16, dtype="float16")
    elements = 40 * (8 + 16) + 16 * 8 + 16 * 16 + 2 * 16
    for mode, times in (("inference", 1), ("training", 2)):
        found = floors_of(workload, mode, H200)["memory"]
        assert found == pytest.approx(times * 2 * elements / 4.3e12 * 1e6)


@pytest.mark.parametrize(
    ("hidden", "dtype", "us"),
    [
        (64, "float32", 0.40),  # 64 KiB: one multiprocessor
        (256, "float32", 0.52),  # 1 MiB: three, of 483 KiB each
        (512, "float32", 1.15),  # 4 MiB: nine
        (512, "float16", 0.73),  # 2 MiB: five
        (1024, "float32", 1.37),  # 16 MiB: thirty-four
        (8192, "float32", 1.37),  # more than there is room for
    ],
)
def test_a_step_waits_for_the_multiprocessors_that_hold_the_recurrent_weights(
    hidden: int, dtype: str, us: float
) -> None:
    workload = Workload("lstm", 100, 8, hidden, hidden, dtype=dtype)
    assert floors_of(workload, "inference", H200)["exchange"] == pytest.approx(100 * us)


def test_steps_wait_for_each_other_and_layers_run_one_step_behind() -> None:
    one = Workload("lstm", 100, 8, 64, 64)
    four = dataclasses.replace(one, layers=4, bidirectional=True)
    for workload, chain in ((one, 100), (four, 103)):
        assert floors_of(workload, "inference", H200)["exchange"] == pytest.approx(chain * 0.40)
        assert floors_of(workload, "training", H200)["exchange"] == pytest.approx(2 * chain * 0.40)


def test_drawn_lengths_count_with_their_mean_and_the_longest_of_them() -> None:
    drawn = Workload("tanh", 200, 32, 64, 64, lengths=(20, 200))
    assert drawn.rows == 32 * 110
    longest = 20 + 180 * 32 / 33
    assert floors_of(drawn, "inference", H200)["exchange"] == pytest.approx(longest * 0.40)


def test_the_floor_is_the_largest_of_the_bounds_and_names_it() -> None:
    for workload in GRID:
        for mode in MODES:
            floors = floors_of(workload, mode, H200)
            floor = floor_of(workload, mode, H200)
            assert floor.us == max(floors.values()) == floors[floor.by]


def test_a_gpu_that_nothing_was_measured_on_has_no_floors() -> None:
    assert machine("NVIDIA H200") is H200
    assert machine("NVIDIA T4") is None
    assert machine(None) is None
