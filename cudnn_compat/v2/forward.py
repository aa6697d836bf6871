"""The functional call forward: check, allocate, and let an engine compute."""

from __future__ import annotations

from typing import Any

from cudnn_compat.arrays import (
    Array,
    check_array,
    device_of,
    plain,
)
from cudnn_compat.checking import check_flag, check_name
from cudnn_compat.dropout import DropoutState, check_seed, resolve_seed
from cudnn_compat.engines.choose import choose_engine
from cudnn_compat.errors import ArgumentError
from cudnn_compat.packed import Packed
from cudnn_compat.sequences import LAYOUTS
from cudnn_compat.spec import RNNSpec, check_spec
from cudnn_compat.v2.checks import (
    check_kinds,
)
from cudnn_compat.v2.forms import arrange, data_in_form, state_in_form
from cudnn_compat.v2.prepared import Prepared, recall, remember, signature
from cudnn_compat.v2.results import RNNOutput, Tape
from cudnn_compat.weights import check_weights, weight_layout

__all__ = ["rnn_forward"]


def rnn_forward(
    spec: RNNSpec,
    w: Array,
    x: Array | Packed,
    hx: Array | None = None,
    cx: Array | None = None,
    *,
    lengths: Any = None,
    batch_sizes: Any = None,
    layout: str = "time_major",
    training: bool = False,
    seed: int | DropoutState | None = None,
    engine: str | None = None,
) -> RNNOutput:
    """Run a network over a batch of sequences (``cudnnRNNForward``).

    Args:
        spec: the description of the network.
        w: flat weight space ``(weight_size(spec),)``. All arrays have the spec's dtype.
        x: ``(T, B, I)`` (time_major), ``(B, T, I)`` (batch_major), ``(sum, I)`` (packed), a
            :class:`Packed`, ``(T, I)`` for one unbatched sequence or ``(I,)`` for one step of it.
            The results have the same form.
        hx: initial hidden states ``(L·D, B, P)`` (unbatched: ``(L·D, P)``); None is zeros.
        cx: initial cell states ``(L·D, B, H)`` of an LSTM; None is zeros.
        lengths: steps of each sequence, in any order, zeros allowed: a sequence of integers or an
            integer array. An empty sequence hands its state on.
        batch_sizes: packed layout, instead of ``lengths``: sequences that have step t, for each t.
        layout: ``"time_major"``, ``"batch_major"`` or ``"packed"``.
        training: keep what :func:`rnn_backward` needs, and apply dropout.
        seed: dropout's generator: None goes on with that of this thread, an integer restarts it, a
            :class:`DropoutState` is used and advances. Looked at only where dropout acts.
        engine: None (decided by where the arrays are), ``"numpy"`` or ``"cudnn"``.

    Returns:
        :class:`RNNOutput`, which unpacks as ``y, hy, cy``. In training it refers to w, x, hx, cx
        and y: do not change them in place before backward.

    Raises:
        ArgumentError: a shape, length, layout or state is wrong; names the argument.
        DTypeError: an argument is not an array, or dtypes are mixed; lists them.
        UnsupportedError: the engine cannot do what the spec says.
        LibraryNotFound: CuPy arrays, and no cuDNN that loads; lists where it was sought.
        LibraryError: cuDNN refused the call or failed; the class tells what can be done. Memory
            that CuPy cannot get is its ``OutOfMemoryError``, a ``MemoryError`` like
            ``LibraryOutOfMemory``.
    """
    if training is not False and training is not True:
        training = check_flag("training", training)
    if seed is not None:
        check_seed(seed)
    key = ready = None
    if lengths is None and batch_sizes is None:
        key = signature(spec, layout, engine, w, x, hx, cx)
        ready = recall(key)
    if ready is None:
        ready, form, x, hx, cx = _checked(spec, w, x, hx, cx, lengths, batch_sizes, layout, engine)
        if key is not None and form == "batched" and ready.kind is not None:
            remember(key, ready)
    else:
        form = "batched"
    runner, sequences, shapes = ready.engine, ready.sequences, ready.shapes
    plan = ready.plan(spec, training)
    dropout = resolve_seed(seed) if training and spec.drops else None
    y, hy, cy, reserve, stream = runner.outputs(
        plan, sequences, shapes, w, x, hx, cx, dropout=dropout
    )
    tape = None
    if training:
        what = (runner, plan, sequences, shapes, ready.gradient_shapes, ready.kind)
        tape = Tape(*what, w, x, hx, cx, y, reserve, stream, form)
    if form != "batched":
        y = data_in_form(y, form, sequences)
        hy, cy = state_in_form(hy, form), state_in_form(cy, form)
    return RNNOutput(y, hy, cy, runner.name, plan.algo, spec, tape)


def _checked(
    spec: RNNSpec,
    w: Array,
    x: Array | Packed,
    hx: Array | None,
    cx: Array | None,
    lengths: Any,
    batch_sizes: Any,
    layout: str,
    engine: str | None,
) -> tuple[Prepared, str, Array, Array | None, Array | None]:
    """All checks of a forward: how it runs, the form of x, and x, hx, cx in batched form."""
    check_spec(spec)
    check_name("layout", layout, LAYOUTS)
    packed = isinstance(x, Packed)
    if packed:
        if lengths is not None or batch_sizes is not None or layout == "batch_major":
            raise ArgumentError(
                "x is a Packed, which has its own lengths and layout; "
                "lengths, batch_sizes and layout are for arrays"
            )
        layout, lengths, x = "packed", x.lengths, x.data
    if w is None or x is None:
        check_array("x" if w is not None else "w", None)
    check_kinds(spec, w=w, x=x, hx=hx, cx=cx)
    if w.shape != (weight_layout(spec).size,):
        check_weights(spec, w)
    if cx is not None and not spec.has_cell:
        raise ArgumentError(f"cx was given, but a {spec.cell} has no cell state; pass hx alone")
    x, hx, cx = plain(x), plain(hx), plain(cx)
    given = arrange(spec, x, hx, cx, lengths=lengths, batch_sizes=batch_sizes, layout=layout)
    runner, device = choose_engine(engine, w), device_of(w)
    ready = Prepared(runner, device, given.sequences, spec, w, given.x)
    return ready, "packed" if packed else given.form, given.x, given.hx, given.cx
