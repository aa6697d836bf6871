"""Which of the library's algorithms runs.

An algorithm that the caller names runs or is refused. For ``algo="auto"`` a first guess is made
from what is known to be fast, tried once on a network of one step, and STANDARD, which does
everything, runs where the guess is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, NamedTuple

from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cache import BoundedCache
from cudnn_compat.engines.cudnn import backward, forward
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.network import Network
from cudnn_compat.engines.cudnn.plan import CudnnPlan, Shape, geometry_cache
from cudnn_compat.errors import LibraryMismatch, LibraryNotSupported, UnsupportedError
from cudnn_compat.sequences import make_sequences
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import weight_size

__all__ = ["Networks", "candidates", "check_named"]

_SMALL_H: Final = {"relu": 384, "tanh": 384, "lstm": 192, "gru": 192}
"""The largest hidden size that persist_small_h takes forward; in training it may be less."""


def _refusal(spec: RNNSpec, algo: str, *, ragged: bool) -> str | None:
    """What an algorithm lacks for a network, in words that the library does not give."""
    if algo == "standard":
        return None
    if spec.proj_size is not None:
        return "has no projection"
    if spec.bias != "double":
        return f"needs bias='double', the spec says bias='{spec.bias}'"
    if ragged:
        return "needs sequences that all have T steps"
    if spec.dtype == "float64" and algo != "persist_dynamic":
        return "has no float64"
    if spec.dtype == "float16" and spec.math == "half":
        return "has no float16 arithmetic (math='half')"
    return None


def check_named(spec: RNNSpec, *, ragged: bool) -> None:
    """Refuse an algorithm that the spec names and the library is known to refuse.

    Raises:
        UnsupportedError: what the algorithm lacks, and what to do.
    """
    if spec.algo != "auto" and (reason := _refusal(spec, spec.algo, ragged=ragged)):
        raise UnsupportedError(
            f"algo='{spec.algo}' {reason} (cuDNN's rule); use algo='standard' or algo='auto'"
        )


def candidates(spec: RNNSpec, *, batch: int, ragged: bool) -> Iterator[str]:
    """Algorithms for ``algo="auto"``, best guess first; ``"standard"`` comes last.

    ``math="full"`` is STANDARD's alone: the persistent kernels approximate tanh, and are 5e-4 off.
    """
    if spec.math != "full":
        small = spec.hidden_size <= _SMALL_H[spec.cell]
        guess = "persist_small_h" if small else "persist_static"
        good = small or _static_is_good(spec, batch)
        if good and not _refusal(spec, guess, ragged=ragged):
            yield guess
    yield "standard"


def _static_is_good(spec: RNNSpec, batch: int) -> bool:
    """Where the persistent kernels are known to win: large float16 networks of one layer."""
    return (
        spec.dtype == "float16"
        and spec.cell != "gru"
        and spec.num_layers == 1
        and not spec.bidirectional
        and spec.hidden_size <= 1024
        and spec.hidden_size % 128 == 0
        and spec.input_size % 128 == 0
        and batch % 8 == 0
        and batch <= 128
    )


class Networks:
    """Networks by spec and algorithm; it remembers which of them the library refuses."""

    def __init__(self) -> None:
        self._networks: BoundedCache[Network] = BoundedCache(64)
        self._verdicts: BoundedCache[Verdict] = BoundedCache(1024)

    def clear(self) -> None:
        """Let go of everything."""
        self._networks.clear()
        self._verdicts.clear()

    def choose(
        self,
        session: Session,
        spec: RNNSpec,
        *,
        padded: bool,
        batch: int,
        ragged: bool,
        training: bool,
    ) -> Network:
        """The network with the algorithm that runs.

        Raises:
            UnsupportedError: the library refuses the algorithm that the spec names.
        """
        named = spec.algo != "auto"
        algos: Iterable[str] = (spec.algo,)
        if not named:
            algos = candidates(spec, batch=batch, ragged=ragged)
        drops = training and spec.drops
        for algo in algos:
            only_for = batch if algo == "persist_dynamic" else 0
            described = functools.partial(
                Network, session, spec, algo, padded=padded, batch=only_for, drops=drops
            )
            key = (spec, algo, padded, only_for, drops, session.device)
            find = functools.partial(self._networks.get, key, described)
            if algo == "standard":
                return find()
            trying = functools.partial(_try, session, find, batch, training)
            verdict = self._verdicts.get(_question(session, spec, algo, batch, training), trying)
            if verdict.reason is None:
                return find()
            if named:
                raise UnsupportedError(
                    f"cuDNN {session.library.version} refuses algo='{algo}' for this network on "
                    f"this GPU; use algo='auto' or algo='standard'. It says: {verdict.reason}"
                )
        raise AssertionError("standard comes last")

    def refuse(self, session: Session, plan: CudnnPlan, reason: str) -> None:
        """Remember that the library refused a call although the trial had shown that it runs."""
        question = _question(session, plan.spec, plan.algo, plan.batch, plan.training)
        self._verdicts.discard(question)
        self._verdicts.get(question, lambda: Verdict(reason))


def _question(
    session: Session, spec: RNNSpec, algo: str, batch: int, training: bool
) -> tuple[Hashable, ...]:
    """What a verdict is about; whether x is padded does not matter to it."""
    return spec, algo, batch, training, session.device


def _try(session: Session, find: Callable[[], Network], batch: int, training: bool) -> Verdict:
    try:
        _run_one_step(session, find(), batch, training)
    except LibraryNotSupported as error:
        return Verdict(str(error))
    except LibraryMismatch as error:
        # persist_dynamic without a run-time compiler; all else is a fault of the installation.
        if "RUNTIME_PREREQUISITE_MISSING" not in error.name:
            raise
        return Verdict(str(error))
    return Verdict(None)


class Verdict(NamedTuple):
    """Why the library refuses an algorithm; None where it runs it."""

    reason: str | None


def _run_one_step(session: Session, network: Network, batch: int, training: bool) -> None:
    """Everything that a call of this kind would ask of the library, for one step."""
    spec, xp = network.spec, session.xp
    layout = "time_major" if network.padded else "packed"
    rows = (1, batch) if network.padded else (batch,)
    lengths = None if network.padded else (1,) * batch
    sequences = make_sequences(layout, (*rows, spec.input_size), lengths=lengths)
    device = f"cuda:{session.device}"
    shape = Shape(spec, layout, 1, batch, False, training, device)
    plan = CudnnPlan(shape, network, geometry_cache())
    dtype = numpy_dtype(spec.dtype)
    w = xp.zeros(weight_size(spec), dtype)
    x, y = (xp.zeros((*rows, size), dtype) for size in (spec.input_size, spec.output_size))
    reserve = session.bytes(plan.geometry(session, sequences).reserve) if training else None
    dropout = DropoutState(0) if plan.drops else None
    forward.run(session, plan, sequences, w, x, None, None, y, None, None, reserve, dropout)
    if reserve is not None:
        dhx = xp.empty(spec.state_shape(batch), dtype)
        dcx = xp.empty(spec.cell_shape(batch), dtype) if spec.has_cell else None
        backward.run_data(
            session, plan, sequences, w, None, None, y, reserve, y, None, None, x, dhx, dcx
        )
        backward.run_weights(session, plan, sequences, x, None, y, reserve, w)
