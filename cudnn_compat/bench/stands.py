"""Where the sides are set up: on a GPU in this process, on a CPU each in a process of its own.

On a CPU one side's idle worker threads would spin while the other is measured. On a GPU it is the
GPU that is measured, and one process sees to it that both sides have the same one.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from cudnn_compat.arrays import load_cupy
from cudnn_compat.bench.grid import Workload
from cudnn_compat.bench.sides import Inputs, Side, difference, ours, theirs
from cudnn_compat.bench.timing import Timer, Timing, cuda_timer, host_timer

__all__ = ["OnCpu", "OnGpu", "SideError", "Stand"]


class SideError(RuntimeError):
    """What went wrong in a side's own process, in its words."""


class Stand(Protocol):
    """Both sides of one workload after another."""

    def put(self, workload: Workload) -> float | None:
        """Set both sides up.

        Returns:
            The largest difference of their outputs; None where PyTorch is not there.
        """

    def timers(self, mode: str) -> dict[str, Timer]:
        """By side, ``"ours"`` and ``"torch"``; the latter only where PyTorch is there."""

    def choice(self, mode: str) -> str:
        """Which way this package took in its last call."""

    def close(self) -> None:
        """Let go of everything."""


class OnGpu:
    """CuPy's current device, in this process."""

    def __init__(self, *, torch: bool) -> None:
        self._torch = torch
        self._sides: dict[str, Side] = {}

    def put(self, workload: Workload) -> float | None:
        """See :class:`Stand`."""
        self.close()
        inputs = Inputs(workload)
        self._sides["ours"] = ours(inputs, "cudnn")
        if not self._torch:
            return None
        self._sides["torch"] = theirs(inputs, "cuda")
        return difference(workload, *(side.output() for side in self._sides.values()))

    def timers(self, mode: str) -> dict[str, Timer]:
        """See :class:`Stand`."""
        return {name: cuda_timer(side.calls[mode]) for name, side in self._sides.items()}

    def choice(self, mode: str) -> str:
        """See :class:`Stand`."""
        return self._sides["ours"].choice(mode)

    def close(self) -> None:
        """See :class:`Stand`."""
        self._sides = {}
        load_cupy().get_default_memory_pool().free_all_blocks()


class OnCpu:
    """A process for each side, with so many threads each.

    Raises:
        SideError: from every method, where something failed in a process.
    """

    def __init__(self, *, torch: bool, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: dict[str, Connection] = {}
        self._processes = []
        with _thread_counts(threads):
            for side in ("ours", "torch") if torch else ("ours",):
                mine, its = context.Pipe()
                process = context.Process(target=_serve, args=(side, threads, its), daemon=True)
                process.start()
                its.close()
                self._pipes[side] = mine
                self._processes.append(process)

    def put(self, workload: Workload) -> float | None:
        """See :class:`Stand`."""
        outputs = [self._ask(side, "put", workload) for side in self._pipes]
        return difference(workload, *outputs) if len(outputs) == 2 else None

    def timers(self, mode: str) -> dict[str, Timer]:
        """See :class:`Stand`."""

        def timer(side: str) -> Timer:
            return lambda count: Timing(*self._ask(side, "time", mode, count))

        return {side: timer(side) for side in self._pipes}

    def choice(self, mode: str) -> str:
        """See :class:`Stand`."""
        chosen: str = self._ask("ours", "choice", mode)
        return chosen

    def close(self) -> None:
        """See :class:`Stand`. The processes end."""
        for pipe in self._pipes.values():
            pipe.close()
        for process in self._processes:
            process.join(5)
            process.kill()

    def _ask(self, side: str, *question: Any) -> Any:
        pipe = self._pipes[side]
        try:
            pipe.send(question)
            succeeded, answer = pipe.recv()
        except (EOFError, OSError):
            raise SideError(f"the process of the side {side!r} has ended") from None
        if not succeeded:
            raise SideError(answer)
        return answer


@contextlib.contextmanager
def _thread_counts(threads: int) -> Iterator[None]:
    """For processes that are started inside: BLAS reads these when it is loaded."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(name: str, threads: int, pipe: Connection) -> None:
    """Answer questions until nobody can ask any more."""
    side: Side | None = None

    def put(workload: Workload) -> np.ndarray:
        nonlocal side
        inputs = Inputs(workload)
        side = ours(inputs, "numpy") if name == "ours" else theirs(inputs, "cpu")
        return side.output()

    def timed(mode: str, count: int) -> tuple[float, float]:
        assert side is not None
        timing = host_timer(side.calls[mode])(count)
        return timing.device, timing.wall

    def choice(mode: str) -> str:
        assert side is not None
        return side.choice(mode)

    answers: dict[str, Callable[..., Any]] = {"put": put, "time": timed, "choice": choice}
    if name == "torch":
        import torch

        torch.set_num_threads(threads)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            what, *given = pipe.recv()
            try:
                answer = True, answers[what](*given)
            except Exception as error:  # told to the one who asked
                answer = False, f"{type(error).__name__}: {error}"
            pipe.send(answer)
