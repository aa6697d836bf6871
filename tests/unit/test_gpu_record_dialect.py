"""The parts of a GPU record that run the CuPy dialect: when they run, and what the page says."""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"

NEW, KNOWN = "tests/test_a.py::TestA_{n=1}::test_it", "tests/test_a.py::test_forward_dropout_count"

CHAINER = {
    "chainer": "7.8.1",
    "cupy": "14.0.1",
    "cudnn": "9.10.2",
    "mark": "cudnn or gpu",
    "cudnn_enabled": True,
    "pytest_exit_status": 1,
    "result": {"passed": 510, "failed": 1, "skipped": 330},
    "real_old_stack": {"passed": 504, "failed": 3, "skipped": 334},
    "failed": {KNOWN: "AssertionError:\n1 != 0"},
    "skipped_because": {
        "Skipped: unconditional skip": 120,
        "Skipped: 2 GPUs required": 180,
        "2 GPUs required": 30,
    },
    "old_calls": {"cudnn.rnn_forward_training": 40, "libcudnn.getVersion": 2},
    "library_calls": {"cudnnRNNForward": 1234, "cudnnRNNBackwardData_v8": 567},
    "verdict": [],
}
WORSE = {**CHAINER, "failed": {**CHAINER["failed"], NEW: "E"}, "verdict": ["1 tests failed"]}

TRAINED = {
    "network": "NStepLSTM, 2 layers",
    "steps": 200,
    "cudnn_enabled": True,
    "largest_difference_of_losses": 2.5e-6,
    "wanted_difference": 1e-4,
    "step_time_ratio": 7.25,
    "wanted_ratio": 3.0,
    "runs": {
        "dialect": {
            "losses": [3.0, 1.5],
            "step_ms_median": 8.0,
            "library_calls": {"cudnnRNNForward": 200},
        },
        "never": {"losses": [3.0, 1.5], "step_ms_median": 58.0, "library_calls": {}},
    },
}


def row(name: str, inference: float, training: float) -> dict[str, Any]:
    """Times against 100 and 400 µs of the old stack."""
    return {
        "name": name,
        "old_inference": 100,
        "old_training": 400,
        "inference": inference,
        "training": training,
        "inference_speed_up": 100 / inference,
        "training_speed_up": 400 / training,
    }


TIMED = {
    "gpu": "NVIDIA H200",
    "cudnn": 91002,
    "cupy": "14.0.1",
    "geometric_mean_speed_up": 1.5,
    "slower_than_the_old_stack": [],
    "rows": [row("gru 1×32×256", 50, 200), row("lstm 9×9×9, 2 layers bi", 80, 320)],
}
SLOWER = {
    **TIMED,
    "slower_than_the_old_stack": ["gru 1×32×256"],
    "rows": [row("gru 1×32×256", 50, 500)],
}


@pytest.fixture(scope="module")
def scripts() -> Any:
    """Imports a script by its name, as the scripts import each other."""
    sys.path.insert(0, str(SCRIPTS))
    yield importlib.import_module
    sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="module")
def parts(scripts: Any) -> ModuleType:
    module: ModuleType = scripts("gpu_parts")
    return module


def checkout(folder: Path, version: str) -> Path:
    (folder / "chainer").mkdir(parents=True)
    (folder / "chainer" / "_version.py").write_text(f"__version__ = '{version}'\n")
    return folder


def program(folder: Path, result: Any, status: int) -> str:
    """A script that writes a result, where it is not None, and ends with a status."""
    script = folder / "program.py"
    script.write_text(
        "import os, pathlib, sys\n"
        f"text, status = {None if result is None else json.dumps(result)!r}, {status}\n"
        "if text is not None: pathlib.Path(sys.argv[sys.argv.index('--json') + 1])"
        ".write_text(text)\n"
        "if status < 0: os.kill(os.getpid(), -status)\n"
        "sys.exit(status)\n"
    )
    return str(script)


def ran(parts: ModuleType, folder: Path, name: str, result: Any, status: int) -> Any:
    """What becomes of a part whose script gives this result and this status."""
    part = parts.Part(name, "something", 60, script=program(folder, result, status))
    return parts.run_part(part, parts.Setting(folder))


def page(scripts: Any, name: str, result: Any) -> str:
    return "\n".join(getattr(scripts("gpu_page_dialect"), name)(result))


def part_named(parts: ModuleType, name: str) -> Any:
    return next(part for part in parts.PARTS if part.name == name)


@pytest.mark.parametrize(
    ("name", "bad", "words"),
    [
        ("chainer", WORSE, "1 tests failed"),
        ("chainer_train", {**TRAINED, "step_time_ratio": 2.0}, "2.00 times as fast, not 3"),
        ("dialect", SLOWER, "gru 1×32×256 training is slower than there (0.80)"),
    ],
)
def test_a_missed_aim_is_told_from_a_crash(
    parts: ModuleType, tmp_path: Path, name: str, bad: Any, words: str
) -> None:
    missed = ran(parts, tmp_path, name, bad, 1)
    assert words in missed["missed"][0]
    assert missed["note"] == f"its aim was missed: {missed['missed'][0]}"
    for result, status in ((None, 1), (bad, -11), (bad, 2)):
        crashed = ran(parts, tmp_path, name, result, status)
        assert crashed["note"] == f"it crashed, with exit status {status}"
        assert "missed" not in crashed
        assert crashed["result"] == (result or {})


def test_an_aim_that_was_met_needs_no_words(parts: ModuleType, tmp_path: Path) -> None:
    for name, result in (("chainer", CHAINER), ("chainer_train", TRAINED), ("dialect", TIMED)):
        found = ran(parts, tmp_path, name, result, 0)
        assert found["exit_status"] == 0
        assert not {"note", "missed"} & found.keys()
        assert not parts.MISSED[name](result)


def test_losses_that_are_no_numbers_and_a_cudnn_that_never_ran_are_missed_aims(
    parts: ModuleType,
) -> None:
    missed = parts.MISSED["chainer_train"]
    nan = {**TRAINED, "largest_difference_of_losses": float("nan")}
    assert missed(nan) == ["losses differ by nan"]
    idle = {**TRAINED, "runs": {"dialect": {"library_calls": {}}}}
    assert missed(idle) == ["cuDNN's RNNs were never called"]


def test_a_pytest_that_broke_is_a_crash(parts: ModuleType, scripts: Any, tmp_path: Path) -> None:
    broken = {**WORSE, "pytest_exit_status": 3}
    found = ran(parts, tmp_path, "chainer", broken, 1)
    assert found["note"] == "it crashed, with exit status 1"
    assert "pytest itself broke: it ended with 3." in page(scripts, "chainer", broken)


def test_without_chainer_the_record_says_how_to_get_it_and_nothing_fails(
    parts: ModuleType, scripts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CHAINER_SRC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for end in (float("inf"), time.monotonic()):  # for want of Chainer, and not of time
        setting = parts.Setting(tmp_path, end=end)
        for name in ("chainer", "chainer_train"):
            found = parts.run_part(part_named(parts, name), setting)
            assert found["exit_status"] == 0
            assert found["note"].startswith("CHAINER_SRC names no sources of Chainer 7.8.1. ")
            assert "git clone --depth 1 --branch v7.8.1 https://github.com/" in found["note"]
            assert "command" not in found
    said = "\n".join(scripts("gpu_page")._part_line(found))
    assert said.startswith("Not run. CHAINER_SRC names no sources")


def test_chainer_s_own_tests_need_sources_but_training_only_a_chainer_to_import(
    scripts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dialect = scripts("gpu_dialect")
    monkeypatch.delenv("CHAINER_SRC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name == "chainer")
    assert dialect.no_sources()
    assert dialect.no_chainer() is None
    bundle = tmp_path / "chainer.tar.xz"
    bundle.touch()
    for good in (checkout(tmp_path / "good", "7.8.1"), bundle):
        monkeypatch.setenv("CHAINER_SRC", str(good))
        assert dialect.no_sources() is None
        assert dialect.no_chainer() is None
    for bad in (checkout(tmp_path / "old", "6.0.0"), tmp_path / "nothing"):
        monkeypatch.setenv("CHAINER_SRC", str(bad))
        for why in (dialect.no_sources(), dialect.no_chainer()):  # the script refuses them too
            assert "does not hold the sources of Chainer 7.8.1" in why
            assert str(bad) not in why  # where things lie here means nothing elsewhere


def test_chainer_s_counts_stand_beside_the_old_stack_s(scripts: Any) -> None:
    text = page(scripts, "chainer", WORSE)
    assert "| here | 510 | 1 | 330 |\n| old stack | 504 | 3 | 334 |" in text
    assert "- 210 × 2 GPUs required\n- 120 × unconditional skip" in text
    known = f"- `{KNOWN}` (fails on the old stack too): AssertionError: 1 != 0"
    assert f"- `{NEW}`: E\n{known}" in text
    assert "| `cudnnRNNForward` | 1234 |" in text
    assert "`chainer.backends.cuda.cudnn_enabled` is True" in text
    assert "Old names called: 2, together 42 times" in text
    idle = page(scripts, "chainer", {**CHAINER, "library_calls": {}, "cudnn_enabled": False})
    assert "The C library was never called." in idle
    assert "cudnn_enabled` is False" in idle


def test_training_shows_losses_step_times_and_their_ratio(scripts: Any) -> None:
    text = page(scripts, "chainer_train", TRAINED)
    assert "| 'always', the dialect | 3.0000 | 1.5000 | 8.00 | 200 |" in text
    assert "| 'never' | 3.0000 | 1.5000 | 58.00 | 0 |" in text
    assert "2.5e-06 (wanted: at most 1e-04)" in text
    assert "7.25 times as fast (wanted: at least 3)" in text


def test_each_shape_shows_the_old_time_ours_and_the_ratio(scripts: Any) -> None:
    text = page(scripts, "dialect", TIMED)
    assert "| gru 1×32×256 | 100 | 50 | 2.00 | 400 | 200 | 2.00 |" in text
    assert "| lstm 9×9×9, 2 layers bi | 100 | 80 | 1.25 | 400 | 320 | 1.25 |" in text
    assert "- slower than the old stack: none" in text
    slower = page(scripts, "dialect", SLOWER)
    assert "- slower than the old stack: gru 1×32×256" in slower


def test_the_pages_show_nothing_of_a_part_without_a_result(scripts: Any) -> None:
    for show in ("chainer", "chainer_train", "dialect"):
        assert list(getattr(scripts("gpu_page_dialect"), show)({})) == []


def test_a_part_that_the_end_of_the_run_cuts_off_says_so(
    parts: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        parts, "run_limited", lambda *_, output, **__: output.write_text("") or None
    )
    part = parts.Part("soak", "something", 60, script="x.py")
    cut = parts.run_part(part, parts.Setting(tmp_path, end=time.monotonic() + 30))
    assert "as the time of the whole run was over, before it was done" in cut["note"]
    late = parts.run_part(part, parts.Setting(tmp_path))
    assert late["note"] == "ended after 60 s, before it was done"
