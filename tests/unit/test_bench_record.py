"""What a record says: aims, tables, notes, the file, the picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cudnn_compat import environment
from cudnn_compat.bench import record as records
from cudnn_compat.bench.aims import aims_of
from cudnn_compat.bench.grid import GRID
from cudnn_compat.bench.grid_rows import geometric_means
from cudnn_compat.bench.table import heading, markdown, notes, tables
from cudnn_compat.bench.timing import Pace
from cudnn_compat.errors import ArgumentError, UnsupportedError
from tests.bench_records import changed, full_record


def verdict(record: dict[str, Any], words: str) -> dict[str, Any]:
    (aim,) = (aim for aim in aims_of(record["parts"]) if words in aim["aim"])
    return aim


def test_the_mean_of_speed_ups_is_the_geometric_one() -> None:
    rows = [{"mode": "inference", "speed_up": ratio} for ratio in (1.0, 4.0)]
    rows += [{"mode": "training", "error": "no memory"}]
    assert geometric_means(rows) == {"inference": pytest.approx(2.0)}


def test_a_record_that_meets_every_aim_says_so() -> None:
    aims = aims_of(full_record()["parts"])
    assert all(aim["met"] for aim in aims), aims
    assert len(aims) == 8


def test_a_mean_below_2_is_a_missed_aim() -> None:
    record = full_record()
    record["parts"]["grid"]["geometric_mean"]["training"] = 1.99
    assert verdict(record, "PyTorch, training")["met"] is False
    assert verdict(record, "PyTorch, inference")["met"] is True


def test_one_workload_slower_than_pytorch_is_a_missed_aim_that_is_named() -> None:
    aim = verdict(changed(full_record(), "grid", 2, speed_up=0.96), "on every workload")
    assert aim["met"] is False
    assert aim["found"] == "0.96 (lstm 100×64×512×512 float16 inference)"


def test_above_100_us_it_is_the_ratio_to_the_best_raw_call_that_counts() -> None:
    slow = {"ours_us": 1060.0, "best_raw_us": 1000.0, "ours_over_best_raw": 1.06}
    assert verdict(changed(full_record(), "grid", 0, **slow), "above 100 µs")["met"] is False


def test_up_to_100_us_it_is_the_difference_that_counts() -> None:
    short = {
        "ours_us": 40.0,  # behind PyTorch's turns
        "ours_beside_raw_us": 29.0,
        "best_raw_us": 20.0,
        "ours_over_best_raw": 1.45,
    }
    record = changed(full_record(), "grid", 0, **short)
    assert verdict(record, "up to 100 µs")["met"] is True
    assert verdict(record, "above 100 µs")["met"] is True
    record = changed(record, "grid", 0, ours_beside_raw_us=31.0)
    assert verdict(record, "up to 100 µs") == {
        "aim": "time more than that of the best raw call, up to 100 µs",
        "wanted": "at most 10 µs",
        "found": "11 µs (lstm 100×64×512×512 float32 inference)",
        "met": False,
    }


def test_a_slow_first_call_a_slow_old_call_and_a_cliff_are_missed_aims() -> None:
    late = changed(full_record(), "first", 1, slowest_following_us=57_000.0, met=False)
    aim = verdict(late, "first calls")
    assert not aim["met"]
    assert aim["found"].startswith("57.0 ms where 56.0 ms are allowed")
    slow = changed(full_record(), "host", 0, more_us=31.0, met=False)
    assert not verdict(slow, "host time of legacy.forward")["met"]
    assert verdict(slow, "host time of cupy.cudnn")["met"]
    steep = full_record()
    steep["parts"]["scaling"]["cliffs"] = ["training, T from 50 to 100: …"]
    assert not verdict(steep, "cliffs")["met"]


def test_parts_that_were_not_run_have_no_aims() -> None:
    assert aims_of({}) == []


def test_the_table_has_a_line_for_each_row_the_means_and_the_asked_for_columns() -> None:
    grid = tables(full_record())[0]
    assert [head.strip() for head in grid.heads] == [
        "workload",
        "mode",
        "ours",
        "torch",
        "speed-up",
        "raw",
        "best raw",
        "ours/raw",
        "floor",
        "choice",
    ]
    assert len(grid.rows) == 2 * len(GRID) + 2
    assert grid.rows[0] == (
        "lstm 100×64×512×512 float32",
        "inference",
        "1000",
        "1500",
        "1.50",
        "980",
        "standard graph",
        "1.02",
        "250.0",
        "standard graph",
    )
    assert grid.rows[-1][:5] == ("geometric mean", "training", "", "", "2.12")


def test_columns_that_nothing_was_measured_for_are_left_out() -> None:
    record = full_record()
    keys = ("torch_us", "speed_up", "best_raw_us", "best_raw", "ours_over_best_raw", "floor_us")
    for row in record["parts"]["grid"]["rows"]:
        for key in keys:
            del row[key]
    record["parts"]["grid"]["geometric_mean"] = {}
    assert tables(record)[0].heads == ("workload", "mode", " ours", "choice")


def test_a_row_that_failed_tells_why_and_has_as_many_cells() -> None:
    record = full_record()
    row = record["parts"]["grid"]["rows"][0]
    record["parts"]["grid"]["rows"][0] = {
        "workload": row["workload"],
        "mode": row["mode"],
        "error": "LibraryError: out\nof memory",
    }
    table = tables(record)[0]
    assert table.rows[0][2] == "LibraryError: out of memory"
    assert {len(row) for row in table.rows} == {len(table.heads)}
    assert records.errors(record) == [
        "grid: lstm 100×64×512×512 float32 inference: LibraryError: out\nof memory"
    ]


def test_every_table_is_square_and_is_markdown() -> None:
    record = full_record()
    record["aims"] = aims_of(record["parts"])
    found = tables(record)
    assert len(found) == 5
    for table in found:
        lines = markdown(table)
        assert {line.count("|") for line in lines} == {len(table.heads) + 1}
        assert len(lines) == len(table.rows) + 2


def test_the_heading_says_where_with_what_and_how() -> None:
    words = heading(full_record())
    for part in ("NVIDIA H200", "cuDNN 9.19.0", "PyTorch 2.11.0", "5 rounds", "TF32"):
        assert part in words
    numpy = full_record() | {"engine": "numpy"}
    numpy["settings"]["threads"] = 2
    assert heading(numpy).startswith("16 CPUs, 2 threads; PyTorch 2.11.0, NumPy 2.4.6;")


def test_notes_tell_what_was_not_measured() -> None:
    record = full_record()
    assert notes(record) == []
    record["torch"] = "PyTorch is not installed"
    record["not_run"] = {"raw": "it needs a GPU"}
    record["left_out"] = ["first: lstm", "scaling: T = 1"]
    assert notes(record) == [
        "PyTorch was not measured: PyTorch is not installed",
        "raw was not run: it needs a GPU",
        "no time was left for first: lstm, scaling: T = 1",
    ]


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    record = full_record()
    records.write(record, tmp_path / "bench.json")
    assert records.read(tmp_path / "bench.json") == record
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_it_is_found_in_a_record_of_a_gpu_run(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    whole = {"date": "2026-11-30", "parts": {"bench": {"result": full_record()}}}
    file.write_text(json.dumps(whole), encoding="utf-8")
    assert records.read(file) == full_record()


@pytest.mark.parametrize(
    "content",
    ['{"schema": 99}', "[]", "3", '{"parts": {}}', "no JSON", '{"schema": 1, "rows": []}'],
)
def test_what_is_no_record_of_this_schema_is_refused_by_name(tmp_path: Path, content: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"other\.json"):
        records.read(file)


def test_a_new_record_tells_the_machine_and_no_places_on_it() -> None:
    facts = environment.collect()
    record = records.new_record("numpy", facts, Pace(), parts=["grid"])
    assert list(record) == list(full_record())
    assert list(record["about"]) == list(full_record()["about"])
    assert list(record["settings"]) == list(full_record()["settings"])
    assert record["about"]["python"] == facts["python"]["version"]
    assert "/" not in json.dumps(record["about"])


class TestPlots:
    """The picture needs matplotlib."""

    @pytest.fixture(autouse=True)
    def matplotlib(self) -> None:
        pytest.importorskip("matplotlib", reason="needs matplotlib (extra plots)")

    def draw(self, record: dict[str, Any], path: Path) -> None:
        from cudnn_compat.bench.plots import draw

        draw(record, path)

    def test_it_is_a_picture_of_bars_and_of_lines(self, tmp_path: Path) -> None:
        from matplotlib import image

        file = tmp_path / "bench.png"
        self.draw(full_record(), file)
        height, width, colours = image.imread(file).shape
        assert width > 1000
        assert height > 1000
        assert colours in (3, 4)

    def test_it_names_every_workload_and_every_axis(self, tmp_path: Path) -> None:
        file = tmp_path / "bench.svg"
        self.draw(full_record(), file)
        text = file.read_text(encoding="utf-8")
        for words in (*(w.name for w in GRID), "steps T", "batch B", "hidden size H", "layers"):
            assert f"<!-- {words} -->" in text
        assert "geometric mean 2.12" in text

    @pytest.mark.parametrize("part", ["grid", "scaling"])
    def test_either_half_may_be_missing(self, tmp_path: Path, part: str) -> None:
        record = full_record()
        del record["parts"][part]
        self.draw(record, tmp_path / "half.svg")
        assert ("steps T" in (tmp_path / "half.svg").read_text()) == (part == "grid")

    def test_a_record_with_nothing_to_draw_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UnsupportedError, match="nothing to draw"):
            self.draw(full_record() | {"parts": {}}, tmp_path / "none.png")

    def test_an_unknown_format_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UnsupportedError, match=r"bench\.xyz cannot be drawn"):
            self.draw(full_record(), tmp_path / "bench.xyz")


def test_without_matplotlib_a_plot_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cudnn_compat.bench.plots import check_plots

    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'cudnn-compat\[plots\]'"):
        check_plots()
