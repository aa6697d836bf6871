"""The example on top of the frozen library learns, and says so."""

from __future__ import annotations

import math
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "char_model.py"

SMALL = ("--steps", "120", "--hidden", "32", "--batch", "16", "--rate", "0.02")


@pytest.fixture
def run_example(environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the example with the given options, from a folder that is not the project's."""

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(EXAMPLE), *options]
        return subprocess.run(
            command, env=environment, cwd="/", capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """The example's own functions; what loading it does to this process is undone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        patch.syspath_prepend(EXAMPLE.parent)
        return runpy.run_path(str(EXAMPLE))


def bits(report: str) -> dict[str, float]:
    found = re.findall(r"^  (uniform|unigram|model) +(\d+\.\d+)$", report, re.MULTILINE)
    assert len(found) == 3
    return {name: float(value) for name, value in found}


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_a_few_steps_beat_what_knows_nothing_of_order(
    cell: str, run_example: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = run_example(*SMALL, "--cell", cell)
    assert done.returncode == 0, done.stderr
    report = bits(done.stdout)
    assert report["model"] < report["unigram"] - 0.3 < report["uniform"] - 0.3
    sample = done.stdout.partition("a sample of what it writes:\n")[2]
    assert sample.startswith("The ")
    assert len(sample) > 100
    assert done.stderr.count("120  ") == 10  # a log gets ten lines of progress
    assert done.stderr.splitlines()[-1].startswith("[" + "#" * 30 + "] 120/120")


def test_the_same_seed_gives_the_same_report_and_another_seed_another(
    run_example: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    def report(seed: str) -> str:
        done = run_example("--steps", "2", "--hidden", "8", "--seed", seed)
        assert done.returncode == 0, done.stderr
        return re.sub(r"in \d+\.\d+ s", "", done.stdout)  # the one thing that is of the clock

    assert report("1") == report("1") != report("2")


@pytest.mark.parametrize(
    ("option", "value"), [("--steps", "0"), ("--hidden", "-1"), ("--batch", "999999")]
)
def test_an_impossible_size_is_refused_in_words(
    option: str, value: str, run_example: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = run_example(option, value)
    assert done.returncode == 2
    assert f"error: {option} must be at" in done.stderr


def test_no_paragraph_is_both_learnt_and_held_out(example: dict[str, Any]) -> None:
    text, held_out = example["read_text"]()
    learnt = set(text.splitlines())
    assert len(text) > 8 * len(held_out) > 80_000
    assert not learnt & set(held_out.splitlines())


def test_a_unigram_model_of_equally_frequent_characters_needs_log2_of_their_number(
    example: dict[str, Any],
) -> None:
    numbers = np.arange(8).repeat(10)
    assert math.isclose(example["unigram_bits"](numbers, np.array([0, 7, 3]), 8), 3.0)


def test_streams_are_consecutive_parts_of_the_text(example: dict[str, Any]) -> None:
    streams = example["as_streams"](np.arange(10), 3)
    assert streams.T.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
