"""The frozen Chainer program, unchanged: it imports and learns on today's Python and NumPy.

On the CPU Chainer never calls the dialect; on a GPU its RNN, its dropout and its softmax are calls
of it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chainer_python import chainer_python

PROGRAM = Path(__file__).parent / "chainer_tagger" / "train.py"
SMALL = ("--epoch", "3", "--layer", "1", "--unit", "24")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Run:
    """``cudnn-compat run OPTIONS train.py ARGUMENTS``, in the environment that has Chainer."""
    python = chainer_python()

    def run(options: tuple[str, ...], arguments: tuple[str, ...]) -> Any:
        command = [python, "-m", "cudnn_compat", "run", *options, str(PROGRAM), *arguments]
        # From setuptools 67.5 to 81 pkg_resources announces its end: nobody's fault here.
        quiet = {"PYTHONWARNINGS": "ignore:pkg_resources is deprecated"}
        return subprocess.run(
            command,
            env=environment | quiet,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def losses(output: str) -> list[float]:
    return [float(each) for each in re.findall(r"^epoch \d+ loss (\d\.\d+)$", output, re.MULTILINE)]


def number(name: str, output: str) -> float:
    (found,) = re.findall(rf"^{name}: (\d\.\d+)$", output, re.MULTILINE)
    return float(found)


def test_the_tagger_imports_and_learns_on_the_cpu(run: Run) -> None:
    done = run(("--prepare-chainer",), SMALL)
    assert done.returncode == 0, done.stderr
    assert "cudnn: False\n" in done.stdout
    first, *_, last = losses(done.stdout)
    assert last < 0.8 * first
    # Where there is CuPy, Chainer asks the library for its version when it is imported.
    old = set(re.findall(r"^CC\d+  (\S+)", done.stderr, re.MULTILINE))
    assert old <= {"cudnn_compat.legacy.cupy.libcudnn.getVersion"}
    assert ("made no old calls" in done.stderr) == (not old)
    assert "cudnn-compat: numpy.sctypes: made anew" in done.stderr


def test_without_the_repairs_chainer_does_not_import(run: Run) -> None:
    done = run((), SMALL)
    assert done.returncode == 1
    assert re.search("np.sctypes|numpy.distutils|pkg_resources", done.stderr)
    assert done.stdout == ""


@pytest.mark.gpu
def test_the_tagger_learns_on_the_gpu_through_the_dialect(run: Run, tmp_path: Path) -> None:
    done = run(("--prepare-chainer", "--report", "calls.json"), ("--gpu", "0", "--epoch", "8"))
    assert done.returncode == 0, done.stderr
    assert "cudnn: True\n" in done.stdout
    first, *_, last = losses(done.stdout)
    assert last < 0.6 * first
    assert number("accuracy", done.stdout) > number("always inside a word", done.stdout) + 0.05
    report = json.loads((tmp_path / "calls.json").read_text(encoding="utf-8"))
    counts = {each["old"].rpartition(".")[2]: each["count"] for each in report["calls"]}
    steps = counts["rnn_forward_training"]
    assert steps == counts["rnn_backward_data"] == counts["rnn_backward_weights"] >= 8 * 6
    assert counts["rnn_forward_inference"] == 1
    assert counts["softmax_forward"] >= steps
    assert counts["activation_forward"] >= steps
    files = {
        os.path.basename(site["file"])
        for each in report["calls"]
        if each["old"].endswith(".rnn_forward_training")
        for site in each["sites"]
    }
    assert files == {"n_step_rnn.py"}
