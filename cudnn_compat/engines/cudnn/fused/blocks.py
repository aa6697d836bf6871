"""How a recurrence is cut into thread blocks: what the kernels are compiled for.

A cluster of C blocks keeps the recurrent weights of one direction in its registers, and in its
shared memory what has no room there, and serves a few sequences; more clusters serve more. More
blocks in a cluster have less to multiply each and wait longer for each other. The choice is by a
model of the time of one step, whose numbers were fitted to what some sixty cuts took on an H200.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["Blocks", "Chip", "Problem", "choose"]

_REGISTERS: Final = 65_536
_SHARED: Final = 48 << 10
"""Bytes of shared memory that a program may name, …"""
_ALL_SHARED: Final = {80: 163 << 10, 90: 227 << 10, 100: 227 << 10, 103: 227 << 10}
"""… and that a block may have, by the compute capability, …"""
_LEAST_SHARED: Final = 99 << 10
"""… at least."""
_MOST_THREADS: Final = 512
_AHEAD: Final = 4
"""Steps that the kernels fetch ahead; ``DEPTH`` there."""


class _Costs(NamedTuple):
    """Nanoseconds of a step: for the blocks of a cluster, and of each of what else takes time.

    ``warps`` is for each warp of a scheduler and value of a lane, ``multiply``, ``load`` and
    ``shuffle`` for each cycle that a multiprocessor needs for it at least; ``spare`` are registers
    of a thread that are neither weights nor sums.
    """

    latency: dict[int, int]
    warps: float
    multiply: float
    load: float
    shuffle: float
    spare: int


_FORWARD: Final = _Costs({1: 120, 2: 260, 4: 310, 8: 340, 16: 400}, 76, 0.44, 0.19, 0.57, 51)
_BACKWARD: Final = _Costs({1: 370, 2: 500, 4: 530, 8: 560, 16: 650}, 20, 0.10, 0.35, 0.97, 48)
_FOUR_TOGETHER: Final = 150
"""More for chunks of four sequences."""

_MORE_THAN_TWO: Final = 150
"""More for each value beyond two that a lane sends backward."""

_HELD_SPARE: Final = 8
"""Registers more where weights are in shared memory, beside the values that these multiply."""
_HELD: Final = 0.57
"""For each cycle that weights in shared memory take to be loaded."""

_GATES: Final = {"relu": 1, "tanh": 1, "lstm": 4, "gru": 3}
_CLUSTERS_FROM: Final = 90
_SIXTEEN_FROM: Final = (90, 100, 103)


class Chip(NamedTuple):
    """What matters of a GPU: its compute capability times ten, and its multiprocessors."""

    capability: int
    multiprocessors: int

    @property
    def most_blocks(self) -> int:
        """Blocks of the largest cluster: 8 on all GPUs that have them, 16 on some."""
        if self.capability < _CLUSTERS_FROM:
            return 1
        return 16 if self.capability in _SIXTEEN_FROM else 8

    @property
    def shared(self) -> int:
        """Bytes of shared memory that a block may have."""
        return _ALL_SHARED.get(self.capability, _LEAST_SHARED)

    def clusters(self, blocks: int) -> int:
        """How many clusters of one block a multiprocessor run at the same time.

        A cluster of more than two stays within one part of the chip, of which some are smaller than
        others: on an H200 there is room for 66, 30, 15 and 7 of 2, 4, 8 and 16.
        """
        if blocks <= 2:
            return self.multiprocessors // blocks
        return max((self.multiprocessors - 12) // blocks, 1)


class Problem(NamedTuple):
    """What is to be cut."""

    cell: str
    dtype: str
    hidden: int
    batch: int
    directions: int
    backward: bool

    @property
    def gates(self) -> int:
        """G."""
        return _GATES[self.cell]

    @property
    def places(self) -> int:
        """Places for gates in the kernels: a power of two."""
        return 1 if self.gates == 1 else 4


@dataclasses.dataclass(frozen=True)
class Blocks:
    """What one kernel is compiled for; see ``common.cu``.

    Attributes:
        blocks: C, blocks of a cluster.
        lanes: KL, lanes that share a dot product.
        per_thread: UT, units of a thread.
        chunk: SC, sequences of a chunk.
        chunks: NC, chunks of a cluster.
        hidden: HP, the hidden size with what is added.
        threads: threads of a block.
        tiles: MT, tiles of a warp; 0 where no tensor cores are used.
        held: KS, values of a dot product whose weights a thread has in shared memory.
        room: bytes of shared memory for these.
        time: the modelled time of a step of everything, in ns.
    """

    blocks: int
    lanes: int
    per_thread: int
    chunk: int
    chunks: int
    hidden: int
    threads: int
    tiles: int = 0
    held: int = 0
    room: int = 0
    time: float = dataclasses.field(default=0.0, compare=False)

    @property
    def sequences(self) -> int:
        """Sequences of a cluster."""
        return self.chunk * self.chunks

    def sizes(self) -> dict[str, int]:
        """The definitions that the kernels take from here."""
        names = ("C", "KL", "UT", "SC", "NC", "HP", "THREADS", "MT", "KS")
        return dict(zip(names, dataclasses.astuple(self), strict=False))


@functools.lru_cache(maxsize=512)
def choose(problem: Problem, chip: Chip) -> Blocks | None:
    """The cut with the shortest modelled time; None where the weights do not fit.

    Weights are held in shared memory only where registers alone have no room.
    """
    for held in (False, True):
        found = itertools.chain(_plain(problem, chip, held=held), _tensor(problem, chip))
        best = min(found, key=lambda cut: cut.time, default=None)
        if best is not None:
            return best
    return None


def _plain(problem: Problem, chip: Chip, *, held: bool) -> Iterator[Blocks]:
    """Cuts for products by ordinary arithmetic, full float32."""
    costs = _BACKWARD if problem.backward else _FORWARD
    for blocks, lanes, per_thread in itertools.product(
        (1, 2, 4, 8, 16), (4, 8, 16, 32), (1, 2, 4, 8)
    ):
        if blocks > chip.most_blocks:
            return
        # Whole warps, and as many units for each block. Forward a warp's units are all of one
        # block, and lanes load four values of h at once.
        of_warp = max(32 // lanes, 1) * per_thread
        if problem.backward:
            padded = _up(problem.hidden, max(blocks, of_warp))
        else:
            padded = _up(_up(problem.hidden, lanes * 4), blocks * of_warp)
        own = padded // blocks
        gate_rows = _up(problem.gates * own, lanes * 4)
        if problem.backward:
            threads, inner = padded // per_thread * lanes, gate_rows // lanes
            rows = places = per_thread
        else:
            threads, inner = own // per_thread * lanes, padded // lanes
            rows, places = per_thread * problem.gates, per_thread * problem.places
        if (
            (padded % (lanes * 4) and not problem.backward)
            or places > lanes
            or threads > _MOST_THREADS
            or threads % 32
        ):
            continue
        for chunk in (1, 2, 4):
            left = max(places * chunk // lanes, 1)
            if problem.backward:
                shared = 8 * chunk * (gate_rows + padded) + 4 * _AHEAD * 6 * chunk * own
                fits = chunk * own <= threads
            else:
                shared = 8 * chunk * padded + 4 * _AHEAD * left * threads
                fits = True
            others = rows * chunk + costs.spare
            most = min(_REGISTERS // threads // 8 * 8, 255)
            beside = 0
            if held:
                others += 4 * chunk + _HELD_SPARE
                beside = inner - max(most - others, 0) // rows // 4 * 4
            room = 4 * rows * beside * threads
            if (
                not fits
                or left > chunk
                or shared + 256 > _SHARED
                or beside >= inner
                or (held and shared + room + 1024 > chip.shared)
                or rows * (inner - beside) + others > most
            ):
                continue
            # A multiprocessor multiplies 128 pairs in a cycle, and loads four values for each of 8
            # lanes.
            each = (
                costs.latency[blocks]
                + costs.warps * threads / 128 * left
                + costs.multiply * chunk * inner * rows * threads / 128
                + costs.load * chunk * inner * threads / 32
                + _HELD * rows * beside * threads / 32
                + costs.shuffle * threads / 32 * _shuffles(places * chunk, lanes)
                + (_FOUR_TOGETHER if chunk == 4 else 0)
                + (_MORE_THAN_TWO * max(left - 2, 0) if problem.backward else 0)
            )
            time = _waves(problem, chip, blocks, chunk) * each
            cut = Blocks(blocks, lanes, per_thread, chunk, 1, padded, threads, 0, beside, room)
            yield dataclasses.replace(cut, time=time)


def _tensor(problem: Problem, chip: Chip) -> Iterator[Blocks]:
    """Cuts for products by tensor cores: short dtypes, eight sequences at a time."""
    hidden, gates = problem.hidden, problem.gates
    if gates == 1 or problem.dtype == "float32" or hidden % 32:
        return
    for blocks, tiles, chunks in itertools.product((2, 4, 8, 16), (1, 2, 4), (1, 2)):
        own = hidden // blocks
        if blocks > chip.most_blocks or hidden % (16 * blocks) or gates * own % 32:
            continue
        if problem.backward:
            threads, inner = hidden // 16 // tiles * 32, gates * own // 16
            shared = 64 * hidden + 32 * (gates * own + 8)
            fits = hidden % (16 * tiles) == 0 and 8 * own <= threads and chunks == 1
            each = 500 + 2.5 * hidden
        else:
            threads, inner = own // 4 // tiles * 32, hidden // 16
            shared = 32 * chunks * hidden
            fits = own % (4 * tiles) == 0
            each = 150 + 150 * tiles + hidden / 2 + threads / 32 * (30 + 1.2 * inner * tiles)
        registers = 4 * tiles * inner + 16 * tiles + 8 * chunks + 48
        if (
            not fits
            or threads > _MOST_THREADS
            or shared + 256 > _SHARED
            or registers > min(_REGISTERS // threads // 8 * 8, 255)
        ):
            continue
        time = _waves(problem, chip, blocks, 8 * chunks) * each * (1 + chunks) / 2
        yield Blocks(blocks, 4, 1, 8, chunks, hidden, threads, tiles, time=time)


def _shuffles(values: int, lanes: int) -> int:
    """Exchanges of a lane until the sums of ``values`` over ``lanes`` are with their lanes."""
    count = 0
    while lanes > 1:
        values, lanes = max(values // 2, 1), lanes // 2
        count += values
    return count


def _waves(problem: Problem, chip: Chip, blocks: int, sequences: int) -> int:
    """How often all clusters that run at the same time have to run."""
    clusters = -(-problem.batch // sequences) * problem.directions
    return -(-clusters // chip.clusters(blocks))


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
