"""Which of the library's algorithms runs.

An algorithm that the caller names runs or is refused. For ``algo="auto"`` a first guess is made
from what is known to be fast, tried once on a network of one step; where it is refused, STANDARD
runs, which does everything. What may be faster than the guess is for ``choice`` to find out.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Hashable, Iterator
from typing import Final, NamedTuple

from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cache import BoundedCache
from cudnn_compat.engines.cudnn import backward, forward
from cudnn_compat.engines.cudnn.choice import Way
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.fused import chip, serves
from cudnn_compat.engines.cudnn.graphs import graphs
from cudnn_compat.engines.cudnn.network import Network
from cudnn_compat.engines.cudnn.plan import CudnnPlan, Shape, geometry_cache
from cudnn_compat.errors import LibraryMismatch, LibraryNotSupported, UnsupportedError
from cudnn_compat.sequences import make_sequences
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import weight_size

__all__ = ["Networks", "Way", "check_named", "fused_may_win", "ways"]

_SMALL_H: Final = {"relu": 384, "tanh": 384, "lstm": 192, "gru": 192}
"""The largest hidden size that persist_small_h takes forward; in training it may be less."""
_FEW: Final = 4
"""Sequences up to which persist_static may be faster than all others in float32, …"""
_FEW_FROM: Final = 96
"""… with so many hidden units or more."""
_FUSED_FROM: Final = 32
"""Steps from which own kernels are tried: below, launching them is what takes the time, …"""
_RECORDED_FROM: Final = 8
"""… and from which they are where a graph launches them."""
_MOST_LAUNCHES: Final = 8192
"""Steps times pseudo-layers up to which STANDARD, with some kernels for each, is recorded."""
_SHORT: Final = ("float16", "bfloat16")
"""Dtypes of 16 bits."""


def _refusal(spec: RNNSpec, algo: str, *, ragged: bool) -> str | None:
    """What an algorithm lacks for a network, in words that the library does not give."""
    if algo in ("standard", "fused"):  # own kernels say themselves what they lack
        return None
    rule = None
    if spec.proj_size is not None:
        rule = "has no projection"
    elif spec.bias != "double":
        rule = f"needs bias='double', the spec says bias='{spec.bias}'"
    elif ragged:
        rule = "needs sequences that all have T steps"
    elif spec.dtype == "float64" and algo != "persist_dynamic":
        rule = "has no float64"
    elif spec.dtype == "float16" and spec.math == "half":
        rule = "has no float16 arithmetic (math='half')"
    elif spec.clip is not None and algo == "persist_static" and spec.dtype in _SHORT:
        # In one direction cy is clipped, and all gradients are others.
        return "computes another function with a clip in 16 bits (measured with cuDNN 9.19)"
    return None if rule is None else f"{rule} (cuDNN's rule)"


def check_named(spec: RNNSpec, *, ragged: bool) -> None:
    """Refuse an algorithm that the spec names and the library is known to refuse.

    Raises:
        UnsupportedError: what the algorithm lacks, and what to do.
    """
    if spec.algo != "auto" and (reason := _refusal(spec, spec.algo, ragged=ragged)):
        raise UnsupportedError(f"algo='{spec.algo}' {reason}; use algo='standard' or algo='auto'")


def ways(shape: Shape) -> tuple[tuple[Way, ...], tuple[Way, ...]]:
    """How ``shape`` may be computed: first guesses, best first, and what may be faster than they.

    STANDARD, which does everything, is the last guess. Of the library's algorithms ``math="full"``
    is STANDARD's alone: the persistent kernels approximate tanh, and are 5e-4 off. The rules are
    what one H200 showed (docs/performance.md); no way is named that could take much longer than the
    guess, because each is tried on a call of the caller's.
    """
    spec = shape.spec
    if spec.algo != "auto":
        guesses = [spec.algo]
    else:
        guesses = [*_guesses(shape), "standard"]
    plain = tuple(Way(algo, False) for algo in guesses)
    replayed = [Way(algo, True) for algo in guesses if may_be_recorded(shape, algo)]
    if spec.algo == "auto":
        others = _others(shape, guesses[0])
        replayed += [Way(algo, True) for algo in others if may_be_recorded(shape, algo)]
    # Of the guesses behind the first one, those that are close to it.
    close = [way for way in replayed if _is_close(shape, guesses[0], way.algo)]
    return plain, tuple(dict.fromkeys(close))


def fused_may_win(session: Session, shape: Shape) -> bool:
    """Whether this package's own kernels may be the fastest; they take 0.5 to 2 µs a step."""
    spec = shape.spec
    first = _RECORDED_FROM if may_be_recorded(shape, "fused") else _FUSED_FROM
    if spec.algo != "auto" or shape.steps < first:
        return False
    found = chip(session.xp, session.device)
    return serves(spec, shape.steps, shape.batch, found, training=shape.training) is None


def _guesses(shape: Shape) -> Iterator[str]:
    """Persistent kernels where they are known to win, best first."""
    spec = shape.spec
    if spec.math == "full":
        return
    small = spec.hidden_size <= _SMALL_H[spec.cell]
    few = shape.batch <= _FEW and _FEW_FROM <= spec.hidden_size <= 256 and shape.steps > 1
    names = []
    if small and few:
        names = ["persist_static", "persist_small_h"]
    elif small:
        names = ["persist_small_h"]
    elif _static_is_good(spec, shape.batch):
        names = ["persist_static"]
    for name in names:
        if not _refusal(spec, name, ragged=shape.ragged):
            yield name


def _others(shape: Shape, guess: str) -> Iterator[str]:
    """What else may be the fastest."""
    spec = shape.spec
    if spec.math == "full" or _refusal(spec, "persist_static", ragged=shape.ragged):
        return
    if guess == "standard" and shape.batch <= _FEW and spec.hidden_size <= 512 and shape.steps > 8:
        yield "persist_static"


def _is_close(shape: Shape, guess: str, algo: str) -> bool:
    """Whether ``algo`` may be tried in place of ``guess`` without anybody noticing.

    A step of STANDARD takes 5 µs or more, one of the persistent kernels 0.5 to 2, where they are a
    guess at all; only in large float16 networks the two are close.
    """
    if algo != "standard" or guess == "standard" or shape.steps <= 8:
        return True
    return guess == "persist_static" and shape.batch > _FEW


def may_be_recorded(shape: Shape, algo: str) -> bool:
    """Whether the calls of an algorithm may be recorded."""
    if graphs() == "off" or shape.ragged:
        return False
    if algo == "standard":
        return shape.steps * shape.spec.num_pseudo_layers <= _MOST_LAUNCHES
    return algo != "fused" or not blas_is_configured()


def blas_is_configured() -> bool:
    """Whether the user has said how much memory cuBLAS has.

    Own kernels are not recorded then: in a graph they would have to have as much.
    """
    return "CUBLAS_WORKSPACE_CONFIG" in os.environ


def _static_is_good(spec: RNNSpec, batch: int) -> bool:
    """Large float16 networks of one layer."""
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

    def find(self, session: Session, shape: Shape, algo: str) -> Network:
        """The network with an algorithm.

        Raises:
            UnsupportedError: the library refuses it.
        """
        spec, padded = shape.spec, shape.layout != "packed"
        drops = shape.training and spec.drops
        only_for = shape.batch if algo == "persist_dynamic" else 0
        described = functools.partial(
            Network, session, spec, algo, padded=padded, batch=only_for, drops=drops
        )
        key = (spec, algo, padded, only_for, drops, session.device)
        find = functools.partial(self._networks.get, key, described)
        if algo == "standard":
            return find()
        trying = functools.partial(_try, session, find, shape.batch, shape.training)
        question = _question(session, spec, algo, shape.batch, shape.training)
        verdict = self._verdicts.get(question, trying)
        if verdict.reason is not None:
            raise UnsupportedError(
                f"cuDNN {session.library.version} refuses algo='{algo}' for this network on "
                f"this GPU; use algo='auto' or algo='standard'. It says: {verdict.reason}"
            )
        return find()

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
