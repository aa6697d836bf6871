"""The generated files against the headers they were made from."""

from __future__ import annotations

import ctypes
import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.prototypes import MADE_FROM, PROTOTYPES
from tests.cudnn_8 import cudnn_8_home

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "generate_prototypes.py"
NEEDED = ("libclang", "nvidia-cuda-crt", "nvidia-cuda-runtime", "nvidia-cudnn-cu12")


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    missing = []
    for name in NEEDED:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        pytest.skip(f"needs the group cudnn, of which {', '.join(missing)} is not installed")
    wheel = importlib.metadata.version("nvidia-cudnn-cu12")
    if not wheel.startswith(MADE_FROM[9] + "."):
        pytest.skip(f"made from cuDNN {MADE_FROM[9]}, and {wheel} is installed")
    command = [sys.executable, str(SCRIPT), "--check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_committed_files_are_what_the_headers_of_9_give() -> None:
    done = check()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_committed_files_are_what_the_headers_of_8_give() -> None:
    done = check("--headers-8", str(cudnn_8_home() / "include"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_changed_headers_are_shown_as_a_difference(tmp_path: Path) -> None:
    check()
    from_wheel = importlib.metadata.files("nvidia-cudnn-cu12") or []
    for file in from_wheel:
        if file.suffix == ".h":
            text = Path(str(file.locate())).read_text(encoding="utf-8")
            changed = text.replace("CUDNN_LSTM     = 2", "CUDNN_LSTM     = 7")
            (tmp_path / file.name).write_text(changed, encoding="utf-8")
    done = check("--headers-9", str(tmp_path))
    assert done.returncode == 1
    # A value that differs between the majors is not written down as if it were one.
    assert "CUDNN_LSTM is 2 in major 8 and 7 in major 9" in done.stderr


def test_headers_that_do_not_parse_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "cudnn.h").write_text("cudnnUnknown_t x;\n")
    done = check("--headers-9", str(tmp_path))
    assert done.returncode == 1
    assert "unknown type name 'cudnnUnknown_t'" in done.stderr


@pytest.mark.parametrize("major", [8, 9])
def test_a_prototype_has_as_many_types_as_parameters(major: int) -> None:
    for name, prototype in PROTOTYPES[major].items():
        assert len(prototype.parameters) == len(prototype.argtypes), name
        assert name.startswith("cudnn")


def test_the_descriptors_parameters_have_the_order_of_the_manual() -> None:
    # docs.nvidia.com, cudnnSetRNNDescriptor_v8
    assert PROTOTYPES[9]["cudnnSetRNNDescriptor_v8"].parameters == (
        *("rnnDesc", "algo", "cellMode", "biasMode", "dirMode", "inputMode", "dataType"),
        *("mathPrec", "mathType", "inputSize", "hiddenSize", "projSize", "numLayers"),
        *("dropoutDesc", "auxFlags"),
    )


def test_lengths_are_a_device_address_here_and_a_host_array_there() -> None:
    forward = PROTOTYPES[9]["cudnnRNNForward"]
    assert forward.argtypes[forward.parameters.index("devSeqLengths")] is ctypes.c_void_p
    data = PROTOTYPES[9]["cudnnSetRNNDataDescriptor"]
    assert data.argtypes[data.parameters.index("seqLengthArray")] is ctypes.POINTER(ctypes.c_int)


def test_constants_are_those_that_cupy_and_everyone_wrote_down() -> None:
    assert (c.CUDNN_RNN_RELU, c.CUDNN_RNN_TANH, c.CUDNN_LSTM, c.CUDNN_GRU) == (0, 1, 2, 3)
    assert (c.CUDNN_DATA_FLOAT, c.CUDNN_DATA_DOUBLE, c.CUDNN_DATA_HALF) == (0, 1, 2)
    assert (c.CUDNN_DATA_BFLOAT16, c.CUDNN_FMA_MATH) == (9, 3)
    assert c.STATUS_8["CUDNN_STATUS_NOT_SUPPORTED"] == 9
    assert c.STATUS_9["CUDNN_STATUS_NOT_SUPPORTED"] == 3000


def test_what_the_group_cudnn_installs_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = {each.split(">")[0] for each in project["dependency-groups"]["cudnn"]}
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert names <= {line.split("==")[0] for line in pins}
    assert f"nvidia-cudnn-cu12=={MADE_FROM[9]}" in "\n".join(pins)
