"""Every kind of cut that is ever chosen, on the emulation of CUDA: compiled together, run in turn.

What a cut does in a kernel depends on the cell's gates and on five numbers; the hidden size only
says how often. So each kind is run on the smallest network that it can cut, whatever it is chosen
for. ``test_fused_emulated.py`` has what runs here.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cudnn_compat import v2
from cudnn_compat.engines.cudnn.fused import kernels, products
from cudnn_compat.engines.cudnn.fused.blocks import Blocks, Chip, Problem, choose
from tests.engines.networks import expected, largest, scale
from tests.unit.test_fused_emulated import COMPILER, Blas, Cupy, Run, compiled, launch, prepared


class Plain(NamedTuple):
    """C, KL, UT and SC; whether some weights are in shared memory."""

    blocks: int
    lanes: int
    per_thread: int
    chunk: int
    held: bool = False


class Tensor(NamedTuple):
    """C, MT and NC."""

    blocks: int
    tiles: int
    chunks: int


def plain(*words: str) -> tuple[Plain, ...]:
    """C-KL-UT-SC, with a plus where weights are in shared memory."""
    return tuple(
        Plain(*map(int, word.rstrip("+").split("-")), held=word.endswith("+"))
        for word in " ".join(words).split()
    )


# By the cells with one gate, with three and with four: forward and backward.
PLAIN: dict[tuple[str, ...], Any] = {
    ("tanh", "relu"): (
        plain(
            "1-4-2-1 1-4-2-2 1-4-4-1 1-4-4-1+ 1-4-4-2 1-4-4-2+ 1-4-4-4+ 1-8-8-1 1-8-8-2 2-8-4-1",
            "2-8-4-2 2-8-4-4 2-8-8-1 2-16-8-1 2-16-8-2 2-16-8-4 4-8-2-4 4-8-4-2 4-16-4-4",
            "4-16-8-1 4-16-8-2 4-16-8-4 8-4-1-1+ 8-8-2-4+ 8-8-4-2 8-16-4-1 8-16-4-2 8-16-4-2+",
            "8-16-4-4 8-16-8-1 8-16-8-2 8-32-8-1 8-32-8-1+ 8-32-8-2 8-32-8-4 16-16-2-4",
            "16-16-4-1+ 16-16-4-2 16-16-4-2+ 16-16-4-4+ 16-32-4-4 16-32-8-1 16-32-8-2 16-32-8-4",
        ),
        plain(
            "1-4-1-1 1-4-1-2 1-4-1-4 1-4-2-1 1-4-2-2 1-4-4-1 1-4-4-1+ 1-8-2-4 1-8-4-2 1-8-4-2+",
            "1-8-8-1 1-16-4-4 1-16-8-2 2-4-4-1 2-4-4-2 2-8-8-1 2-8-8-2 4-4-4-1 4-4-4-2 4-4-4-4",
            "4-8-8-1 4-8-8-2 4-8-8-4 8-4-4-1 8-4-4-2 8-4-4-4",
        ),
    ),
    ("gru",): (
        plain(
            "1-4-1-1 1-4-1-1+ 1-4-1-2 1-4-1-4+ 1-8-2-2+ 2-4-1-1 2-4-1-2 2-4-1-4 2-8-2-1 2-8-2-2",
            "2-8-2-4 4-4-1-4 4-8-2-1 4-8-2-2 4-8-2-4 8-4-1-1+ 8-4-1-2+ 8-8-1-1 8-8-1-1+ 8-8-1-2",
            "8-8-1-2+ 8-8-1-4 8-8-1-4+ 8-8-2-1 8-16-2-1 8-16-2-2 8-16-2-4 16-8-1-1+ 16-8-1-4",
            "16-8-2-1 16-16-2-1 16-16-2-2 16-16-2-2+ 16-16-2-4 16-16-2-4+",
        ),
        plain(
            "1-4-2-1 1-4-2-2 1-8-2-1 1-8-2-2 1-8-2-4 1-8-4-1+ 1-8-4-2 1-8-8-1 1-16-4-4 1-16-8-1",
            "1-16-8-2 1-16-8-2+ 2-8-4-1 2-8-4-2 2-8-4-4 2-16-8-1 2-16-8-2 4-4-4-2 4-4-4-4",
            "4-8-4-2 4-8-4-4 4-8-8-1 4-8-8-2 8-4-4-1 8-4-4-1+ 8-4-4-2 8-4-4-2+ 8-4-4-4 8-4-4-4+",
            "8-8-8-1 8-8-8-2 16-4-4-1 16-4-4-1+ 16-4-4-2 16-4-4-2+ 16-4-4-4 16-4-4-4+ 16-8-8-1+",
            "16-8-8-2+",
        ),
    ),
    ("lstm",): (
        plain(
            "1-4-1-1 1-4-1-1+ 1-4-1-2 1-4-1-2+ 1-4-1-4+ 2-4-1-1 2-4-1-2 2-4-1-4 2-8-2-1 2-8-2-2",
            "2-8-2-4 4-4-1-1 4-4-1-2 4-8-1-4 4-8-2-1 4-8-2-2 4-8-2-4 8-8-1-1 8-8-1-1+ 8-8-1-2",
            "8-8-1-2+ 8-8-1-4 8-8-2-1 8-16-2-1 8-16-2-1+ 8-16-2-2 8-16-2-4 16-8-1-1+ 16-8-1-2",
            "16-8-1-2+ 16-8-1-4+ 16-16-1-4 16-16-2-1 16-16-2-2 16-16-2-4",
        ),
        plain(
            "1-8-2-1 1-8-2-2 1-8-2-4 1-8-4-1 1-8-4-1+ 1-8-4-2 1-8-8-1 1-16-4-4 1-16-8-1",
            "1-16-8-2 1-16-8-2+ 1-32-8-4 2-8-4-1 2-8-4-2 2-8-4-4 2-16-8-1 2-16-8-2 2-16-8-4",
            "4-4-4-2 4-8-4-4 4-8-8-1 4-8-8-2 4-16-8-4 8-4-4-1 8-4-4-1+ 8-4-4-2 8-4-4-2+ 8-4-4-4",
            "8-4-4-4+ 8-8-4-4 8-8-8-1 8-8-8-1+ 8-8-8-2 16-4-4-1 16-4-4-1+ 16-4-4-2 16-4-4-2+",
            "16-4-4-4 16-4-4-4+ 16-8-8-1 16-8-8-1+ 16-8-8-2 16-8-8-4",
        ),
    ),
}
_FORWARD: tuple[tuple[int, int, int], ...] = (
    (2, 1, 1),
    (2, 2, 1),
    (2, 1, 2),
    (2, 2, 2),
    (4, 1, 1),
    (4, 2, 1),
    (4, 2, 2),
)
_FORWARD += ((8, 1, 1), (16, 1, 1), (16, 1, 2))
TENSOR: dict[tuple[str, ...], Any] = {
    ("gru",): (tuple(Tensor(*t) for t in _FORWARD), (Tensor(4, 1, 1), Tensor(16, 4, 1))),
    ("lstm",): (
        tuple(Tensor(*t) for t in _FORWARD),
        (Tensor(4, 1, 1), Tensor(8, 1, 1), Tensor(16, 4, 1)),
    ),
}
CHIPS = (Chip(80, 108), Chip(89, 128), Chip(90, 132), Chip(100, 148), Chip(120, 170))
EXACT = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
"""A tenth of what is allowed in the short dtypes: here only results are rounded, and h."""


def kind(cut: Blocks) -> Plain | Tensor:
    if cut.tiles:
        return Tensor(cut.blocks, cut.tiles, cut.chunks)
    return Plain(cut.blocks, cut.lanes, cut.per_thread, cut.chunk, cut.held > 0)


def of_cell(cell: str, table: dict[tuple[str, ...], Any]) -> tuple[tuple[Any, ...], ...]:
    return next((kinds for cells, kinds in table.items() if cell in cells), ((), ()))


def least(cell: str, kind: Plain | Tensor, *, backward: bool) -> int:
    """The smallest hidden size that is cut so without rest; others are its multiples."""
    if isinstance(kind, Tensor):
        return max((32 if cell == "gru" else 16) * kind.blocks, 32 * kind.tiles)
    rows = max(32 // kind.lanes, 1) * kind.per_thread
    if not backward:
        return math.lcm(kind.lanes * 4, kind.blocks * rows) * (1 + kind.held)
    size = max(kind.blocks, rows)
    if not kind.held:
        return size
    # A lane has more than four gate gradients, of which registers keep four.
    return size * (kind.lanes * 4 * kind.blocks // (gates_of(cell) * size) + 1)


def gates_of(cell: str) -> int:
    return Problem(cell, "float32", 1, 1, 1, False).gates


def cut(cell: str, kind: Plain | Tensor, hidden: int, *, backward: bool) -> Blocks:
    own = hidden if backward else hidden // kind.blocks
    if isinstance(kind, Tensor):
        threads = own // (16 if backward else 4) // kind.tiles * 32
        return Blocks(kind.blocks, 4, 1, 8, kind.chunks, hidden, threads, kind.tiles)
    threads = own // kind.per_thread * kind.lanes
    held = 4 * kind.held
    rows = kind.per_thread * (1 if backward else gates_of(cell))
    return Blocks(*kind[:4], 1, hidden, threads, 0, held, 4 * rows * held * threads)


class Case(NamedTuple):
    cell: str
    hidden: int
    forward: Blocks
    backward: Blocks


def cases(table: dict[tuple[str, ...], Any], missing: tuple[int, ...]) -> list[Case]:
    """Each kind once; ``missing``: units that blocks have room for and the network has not."""
    found = []
    for cells, both in table.items():
        cell = cells[0]
        first, second = (
            sorted(kinds, key=lambda kind: least(cell, kind, backward=backward))
            for backward, kinds in enumerate(both)
        )
        count = max(len(first), len(second))
        for index in range(count):
            kind, other = (kinds[max(index - (count - len(kinds)), 0)] for kinds in (first, second))
            sizes = [least(cell, kind, backward=False), least(cell, other, backward=True)]
            rooms = [-(-max(sizes) // size) * size for size in sizes]
            hidden = min(rooms) - missing[index % len(missing)]
            cuts = (
                cut(cell, kind, rooms[0], backward=False),
                cut(cell, other, rooms[1], backward=True),
            )
            found.append(Case(cells[index % len(cells)], hidden, *cuts))
    return found


class Together(Cupy):
    """``cupy`` whose programs are compiled all at once, when the first one runs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._texts: list[str] = []
        self._programs: list[Any] = []

    def RawModule(self, code: str, options: tuple[str, ...]) -> Any:
        defined = dict(option[2:].split("=") for option in options if option.startswith("-D"))
        scalar, index = defined.pop("SCALAR"), len(self._texts)
        self._options = (f"-DSCALAR={scalar}",)
        code, functions = prepared(code, f"_{index}")
        before = "".join(f"#define {name} {value}\n" for name, value in defined.items())
        after = "".join(f"#undef {name}\n" for name in defined)
        self._texts.append(f"{before}namespace program_{index} {{\n{code}}}\n{after}")
        return Later(self, index, functions)

    def function(self, index: int, name: str) -> Any:
        if not self._programs:
            halves = ("".join(self._texts[half::2]) for half in (0, 1))
            self._programs = compiled(self._folder, *halves, options=self._options)
        return getattr(self._programs[index % 2], name)


class Later:
    """A program of :class:`Together`."""

    def __init__(self, together: Together, index: int, functions: dict[str, str]) -> None:
        self._together, self._index, self._functions = together, index, functions

    def get_function(self, name: str) -> Any:
        return lambda *args, **options: launch(
            self._together.function(self._index, self._functions[name]), *args, **options
        )


LENGTHS = (3, 0, 5, 2, 1, 4, 3, 5)
"""Five steps: each of the two buffers of a block is filled twice, and then read."""


def run(cupy: Together, case: Case, dtype: str, index: int) -> list[str]:
    """What is wrong of one case, with the last cluster not full."""
    sequences = case.forward.sequences
    batch = sequences - 3 if case.forward.tiles else sequences + max(sequences - 1, 1)
    lengths = tuple(itertools.islice(itertools.cycle(LENGTHS), index % 3, index % 3 + batch - 1))
    clip = (-0.5, 0.5) if index % 2 and case.cell == "lstm" and not case.forward.tiles else None
    spec = v2.RNNSpec(
        case.cell, 3, case.hidden, dtype=dtype, bidirectional=index % 4 < 2, math="full", clip=clip
    )
    layout = ("packed", "batch_major", "time_major")[index % 3]
    one = Run(cupy._folder, spec, (*lengths, 5), layout)
    one.cupy = cupy
    got = one((case.forward, case.backward), training=True)
    wanted = expected(spec, one.data, one.lengths, layout=layout)
    return [
        f"{name} of {case}: {error:.2g}"
        for name, value in got.items()
        if value is not None
        and not (error := largest(value, wanted[name]) / scale(wanted[name])) <= EXACT[dtype]
    ]


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@pytest.mark.parametrize(
    ("dtype", "table", "missing"),
    [
        ("float32", PLAIN, (1, 4, 2, 8)),
        ("float16", TENSOR, (0,)),
        ("bfloat16", TENSOR, (0,)),
    ],
    ids=["float32", "float16 on tensor cores", "bfloat16 on tensor cores"],
)
def test_every_kind_of_cut_is_right_on_an_emulation_of_cuda(
    dtype: str,
    table: dict[tuple[str, ...], Any],
    missing: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernels, "_kernels", {})
    monkeypatch.setattr(kernels, "_PORTABLE", 16)  # the attribute is the driver's
    monkeypatch.setattr(products, "_cublas", lambda _: Blas())
    cupy, all_cases = Together(tmp_path), cases(table, missing)
    for case in all_cases:
        xp: Any = cupy
        kernels.recurrence(
            xp, 0, "forward", case.cell, dtype, case.hidden, case.forward, training=True
        )
        kernels.recurrence(
            xp, 0, "backward", case.cell, dtype, case.hidden, case.backward, training=True
        )
        for name in ("gather", "scatter", "sum_columns", "add_biases"):
            kernels.helpers(xp, 0, name, case.cell, dtype)
    wrong = [each for i, case in enumerate(all_cases) for each in run(cupy, case, dtype, i)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("chip", CHIPS, ids=str)
def test_only_kinds_of_cuts_that_run_on_the_emulation_are_chosen(chip: Chip) -> None:
    batches, hidden_sizes = (1, 3, 8, 16, 31, 48, 70, 128, 300, 1000), range(16, 1025, 48)
    unknown = set()
    for cell, dtype, hidden, batch, directions, backward in itertools.product(
        ("tanh", "lstm", "gru"),
        ("float32", "float16"),
        hidden_sizes,
        batches,
        (1, 2),
        (False, True),
    ):
        chosen = choose(Problem(cell, dtype, hidden, batch, directions, backward), chip)
        if chosen is not None:
            known = of_cell(cell, TENSOR if chosen.tiles else PLAIN)[backward]
            if kind(chosen) not in known:
                unknown.add((cell, backward, kind(chosen)))
    assert not unknown
