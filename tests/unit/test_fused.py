"""What the package's own kernels are compiled for, which networks they serve, what they keep."""

from __future__ import annotations

import importlib.resources
import itertools
import re

import pytest

from cudnn_compat import v2
from cudnn_compat.engines.cudnn.fused import kernels
from cudnn_compat.engines.cudnn.fused.blocks import Blocks, Chip, Problem, choose
from cudnn_compat.engines.cudnn.fused.memory import kept
from cudnn_compat.engines.cudnn.fused.network import serves

H200 = Chip(90, 132)
A100 = Chip(80, 108)
RTX5090 = Chip(120, 170)
REGISTERS = 65_536


def spec_of(cell: str = "lstm", hidden: int = 64, **options: object) -> v2.RNNSpec:
    return v2.RNNSpec(cell, 8, hidden, **options)  # type: ignore[arg-type]


def cuts(chip: Chip) -> dict[Problem, Blocks]:
    problems = itertools.starmap(
        Problem,
        itertools.product(
            ("relu", "tanh", "lstm", "gru"),
            ("float32", "float16"),
            (1, 17, 64, 100, 128, 200, 256, 320, 384, 512),
            (1, 8, 33, 128),
            (1, 2),
            (False, True),
        ),
    )
    found = {problem: choose(problem, chip) for problem in problems}
    return {problem: cut for problem, cut in found.items() if cut is not None}


@pytest.mark.parametrize("chip", [H200, A100, RTX5090], ids=["H200", "A100", "RTX 5090"])
def test_every_cut_covers_all_units_and_fits_the_registers(chip: Chip) -> None:
    found = cuts(chip)
    assert len(found) > 100
    for problem, cut in found.items():
        assert cut.hidden >= problem.hidden
        assert cut.hidden % cut.blocks == 0
        assert cut.threads % 32 == 0
        weights = problem.gates * cut.hidden * cut.hidden / cut.blocks
        words = weights / 2 if cut.tiles else weights
        assert (words - cut.room / 4) / cut.threads <= min(REGISTERS / cut.threads, 255) - 40
        assert cut.room <= chip.shared - (2 << 10)
        assert cut.held % 4 == 0
        assert cut.blocks <= chip.most_blocks


def test_gpus_without_clusters_use_one_block() -> None:
    assert {cut.blocks for cut in cuts(A100).values()} == {1}


def test_clusters_of_sixteen_are_for_gpus_that_have_them() -> None:
    assert max(cut.blocks for cut in cuts(H200).values()) == 16
    assert max(cut.blocks for cut in cuts(RTX5090).values()) == 8


def test_tensor_cores_are_for_short_dtypes_with_gates() -> None:
    for problem, cut in cuts(H200).items():
        if cut.tiles:
            assert problem.dtype == "float16"
            assert problem.cell in ("lstm", "gru")
            assert cut.hidden == problem.hidden


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (spec_of(dtype="float64"), "float64"),
        (spec_of(proj_size=8), "projection"),
        (v2.RNNSpec("lstm", 8, 8, input_mode="skip"), "input_mode='skip'"),
        (spec_of(dtype="float16", math="half"), "math='half'"),
        (spec_of(num_layers=2, dropout=0.5), "dropout"),
        (spec_of(hidden=4096), "hidden_size=4096"),
    ],
)
def test_what_is_not_served_is_told_in_words(spec: v2.RNNSpec, words: str) -> None:
    reason = serves(spec, 10, 4, H200, training=True)
    assert reason is not None
    assert words in reason


def test_dropout_matters_in_training_alone() -> None:
    assert serves(spec_of(num_layers=2, dropout=0.5), 10, 4, H200, training=False) is None


def test_old_gpus_are_not_served() -> None:
    assert "8.0" in str(serves(spec_of(), 10, 4, Chip(75, 40), training=False))


@pytest.mark.parametrize("hidden", [1, 64, 200, 256])
@pytest.mark.parametrize("cell", ["relu", "tanh", "lstm", "gru"])
def test_networks_up_to_256_units_are_served_on_an_h200(cell: str, hidden: int) -> None:
    for dtype in ("float32", "float16", "bfloat16"):
        assert serves(spec_of(cell, hidden, dtype=dtype), 10, 4, H200, training=True) is None


def test_pieces_of_the_reserve_are_in_order_aligned_and_apart() -> None:
    spec = spec_of("lstm", 20, num_layers=3, bidirectional=True, dtype="float16")
    pieces = kept(spec, 7)
    assert [len(part) for part in pieces[:4]] == [3, 3, 3, 2]
    places = [piece for part in pieces[:4] for piece in part]
    for piece, following in itertools.pairwise(places):
        assert piece.offset % 256 == 0
        assert piece.offset + piece.nbytes <= following.offset
    assert places[-1].offset + places[-1].nbytes <= pieces.nbytes
    rows_of_gates, rows_of_outputs = 2 * 7 * 4 * 20 * 4, 7 * 2 * 20 * 2
    assert pieces.gates[0].nbytes == rows_of_gates
    assert pieces.outputs[0].nbytes == rows_of_outputs


@pytest.mark.parametrize(
    ("name", "file", "struct"),
    [
        ("ForwardArgs", "forward_args.cu", kernels.FORWARD),
        ("BackwardArgs", "backward_cell.cu", kernels.BACKWARD),
    ],
)
def test_arguments_are_declared_alike_on_both_sides(name: str, file: str, struct: object) -> None:
    text = importlib.resources.files("cudnn_compat.engines.cudnn.fused").joinpath(file).read_text()
    body = text[text.index(f"struct {name}") :]
    body = re.sub(r"//.*", "", body[body.index("{") + 1 : body.index("};")])
    declared = []
    for line in filter(str.strip, body.split(";")):
        kind, _, names = line.strip().removeprefix("const ").partition(" ")
        size = {"int": 4, "float": 4}.get(kind, 8)
        if kind.endswith("*") or "*" in names:
            size = 8
        declared += [(each.strip(" *"), size) for each in names.split(",")]
    fields = struct.fields  # type: ignore[attr-defined]
    assert [(field, fields[field][0].itemsize) for field in struct.names] == declared  # type: ignore[attr-defined]
