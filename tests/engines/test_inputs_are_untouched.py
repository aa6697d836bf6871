"""No argument is changed in place, whatever its strides; and results share no memory with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from tests.engines.networks import (
    GRADIENTS,
    LAYOUTS,
    NETWORKS,
    OUTPUTS,
    draw,
    each_network,
    forward,
    largest,
    run,
)

ARGUMENTS = ("w", "x", "hx", "cx", "dy", "dhy", "dcy")


def unaligned(a: Any) -> Any:
    """A copy that starts one byte behind an aligned address."""
    buffer = np.empty(a.nbytes + 16, "uint8")
    view = buffer[1 : 1 + a.nbytes].view(a.dtype).reshape(a.shape)
    view[...] = a
    assert not view.flags.aligned
    return view


def read_only(a: Any) -> Any:
    a = a.copy()
    a.flags.writeable = False
    return a


def transposed(a: Any) -> Any:
    """The same values; the last axis in memory is the first."""
    return np.ascontiguousarray(a.T).T


def with_gaps(a: Any) -> Any:
    """A view of every second element along every axis."""
    wide = np.full([2 * n for n in a.shape], np.nan, a.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in a.shape)]
    view[...] = a
    return view


def part(a: Any) -> Any:
    """A window into a larger array: rows are contiguous, the whole is not."""
    wide = np.full([n + 3 for n in a.shape], np.nan, a.dtype)
    view = wide[tuple(slice(1, 1 + n) for n in a.shape)]
    view[...] = a
    return view


STRIDES: dict[str, Callable[[Any], Any]] = {
    "contiguous": np.copy,
    "read-only": read_only,
    "Fortran order": np.asfortranarray,
    "transposed": transposed,
    "gaps": with_gaps,
    "a part of a larger array": part,
    "reversed along all axes": lambda a: np.ascontiguousarray(np.flip(a))[
        (slice(None, None, -1),) * a.ndim
    ],
    "reversed along the first axis": lambda a: a[::-1].copy()[::-1],
    "unaligned": unaligned,
}


def changed(data: Any, how: Callable[[Any], Any], names: Any = ARGUMENTS) -> Any:
    given = {name: getattr(data, name) for name in names}
    return data.replace(**{name: None if a is None else how(a) for name, a in given.items()})


def same(data: Any, original: Any) -> bool:
    """Whether all arguments are what they were, to the bit."""
    pairs = ((getattr(data, n), getattr(original, n)) for n in ARGUMENTS)
    return all(b is None or a.tobytes() == b.tobytes() for a, b in pairs)


# These are about views of memory, which NumPy has; what the cuDNN engine does with CuPy's strides
# goes through the same arguments.
@each_network
@pytest.mark.parametrize("how", STRIDES.values(), ids=STRIDES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_strides_give_the_same_results_and_leave_the_arguments_alone(
    spec: v2.RNNSpec, how: Callable[[Any], Any], layout: str, engine: Any
) -> None:
    for lengths in ((4, 4), (2, 4, 0)):
        original = draw(spec, lengths, steps=4, layout=layout)
        wanted = run(engine, spec, original, layout=layout, lengths=lengths)
        data = changed(original, how)
        results = run(engine, spec, data, layout=layout, lengths=lengths)
        assert same(data, original)
        for name, value in wanted.items():
            assert value is None or largest(results[name], value) <= 1e-12, name


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("how", STRIDES.values(), ids=STRIDES)
def test_the_same_holds_for_shorter_dtypes(
    how: Callable[[Any], Any], dtype: str, engine: Any
) -> None:
    spec = NETWORKS["lstm 2 layers bi"].replace(dtype=dtype)
    original = draw(spec, (2, 4, 0))
    data = changed(original, how)
    results = run(engine, spec, data, lengths=(2, 4, 0))
    assert same(data, original)
    wanted = run(engine, spec, original, lengths=(2, 4, 0))
    for name, value in wanted.items():
        assert largest(results[name], value) <= (1e-5 if dtype == "float32" else 1e-2), name


@pytest.mark.parametrize("form", ["sequence", "step"])
@pytest.mark.parametrize("how", STRIDES.values(), ids=STRIDES)
def test_the_same_holds_for_unbatched_arguments(
    how: Callable[[Any], Any], form: str, engine: Any
) -> None:
    spec = NETWORKS["lstm projected bi"]
    data = draw(spec, (4,))
    at: Any = (slice(None), 0) if form == "sequence" else (0, 0)
    states = {name: getattr(data, name)[:, 0] for name in ("hx", "cx", "dhy", "dcy")}
    original = data.replace(x=data.x[at], dy=data.dy[at], **states)
    data = changed(original, how)
    results, wanted = run(engine, spec, data), run(engine, spec, original)
    assert same(data, original)
    for name, value in wanted.items():
        assert largest(results[name], value) <= 1e-12, name


@each_network
def test_broadcast_arguments_with_strides_of_zero_give_what_their_copies_give(
    spec: v2.RNNSpec, engine: Any
) -> None:
    data = draw(spec, (4, 4, 4))
    names = ("x", "hx", "cx", "dy", "dhy", "dcy")
    for axes in ((1,), (0, 1), (0, 1, 2)):

        def spread(a: Any, axes: Any = axes) -> Any:
            first = a[tuple(slice(1) if axis in axes else slice(None) for axis in range(3))]
            return np.broadcast_to(first, a.shape)

        broadcast = changed(data, spread, names)
        copied = changed(broadcast, np.copy, names)
        results, wanted = run(engine, spec, broadcast), run(engine, spec, copied)
        for name, value in wanted.items():
            assert value is None or largest(results[name], value) <= 1e-12, name


def test_the_gradient_of_a_sum_may_be_one_number_seen_everywhere(engine: Any) -> None:
    spec = NETWORKS["gru"]
    data = draw(spec, (4, 2))
    ones = data.replace(dy=np.ones_like(data.dy))
    scalar = data.replace(dy=np.broadcast_to(1.0, data.dy.shape))
    wanted = run(engine, spec, ones, lengths=(4, 2))
    for name, value in run(engine, spec, scalar, lengths=(4, 2)).items():
        assert value is None or np.array_equal(value, wanted[name]), name


# --- one array for several arguments, and results as arguments ------------------------------


def test_one_array_may_be_several_arguments(engine: Any) -> None:
    spec = v2.RNNSpec("lstm", 4, 4, dtype="float64")
    data = draw(spec, (1, 1, 1))
    shared = data.hx
    once = data.replace(x=shared, hx=shared, cx=shared, dy=shared, dhy=shared, dcy=shared)
    before = shared.copy()
    results = run(engine, spec, once)
    assert np.array_equal(shared, before)
    apart = changed(once, np.copy)
    for name, value in run(engine, spec, apart).items():
        assert np.array_equal(results[name], value), name


@each_network
@pytest.mark.parametrize("lengths", [(4, 4), (2, 4, 0)], ids=str)
def test_results_may_be_their_own_gradients(spec: v2.RNNSpec, lengths: Any, engine: Any) -> None:
    # The loss is half the sum of squares: its gradients are the results themselves.
    data = draw(spec, lengths, steps=4)
    out = forward(engine, spec, data, lengths=lengths)
    before = [None if a is None else engine.get(a).copy() for a in out]
    gradients = v2.rnn_backward(out, out.y, out.hy, out.cy)
    for a, b in zip(out, before, strict=True):
        assert b is None or np.array_equal(engine.get(a), b)
    copies = data.replace(dy=before[0], dhy=before[1], dcy=before[2])
    wanted = run(engine, spec, copies, lengths=lengths)
    for name, value in zip(GRADIENTS, gradients, strict=True):
        assert value is None or np.array_equal(engine.get(value), wanted[name]), name


@each_network
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_results_share_no_memory_with_arguments_or_each_other(
    spec: v2.RNNSpec, layout: str, training: bool
) -> None:
    for lengths in ((4, 4), (2, 4, 0), (0, 0), (1,)):
        data = draw(spec, lengths, layout=layout)
        out = v2.rnn_forward(
            spec,
            data.w,
            data.x,
            data.hx,
            data.cx,
            lengths=lengths,
            layout=layout,
            training=training,
        )
        arrays = [a for a in out if a is not None]
        if training:
            gradients = v2.rnn_backward(out, data.dy, data.dhy, data.dcy)
            arrays += [a for a in gradients if a is not None]
        given = [getattr(data, name) for name in ARGUMENTS if getattr(data, name) is not None]
        for k, array in enumerate(arrays):
            for other in (*given, *arrays[k + 1 :]):
                assert not np.shares_memory(array, other)


def test_later_calls_do_not_change_earlier_results(engine: Any) -> None:
    spec = NETWORKS["lstm 2 layers bi"]
    data = draw(spec, (4, 2))
    first = run(engine, spec, data, lengths=(4, 2))
    before = {name: value.copy() for name, value in first.items()}
    for seed in range(3):
        run(engine, spec, draw(spec, (4, 2), seed=seed + 1), lengths=(4, 2))
    for name in OUTPUTS + GRADIENTS:
        assert np.array_equal(first[name], before[name]), name


def test_a_tape_does_not_care_what_happens_to_its_lengths(engine: Any) -> None:
    spec = NETWORKS["gru"]
    data, lengths = draw(spec, (4, 2)), np.array([4, 2])
    wanted = run(engine, spec, data, lengths=lengths)["dx"]
    out = forward(engine, spec, data, lengths=lengths)
    lengths[...] = 0
    given = (engine.put(a) for a in (data.dy, data.dhy))
    assert np.array_equal(engine.get(v2.rnn_backward(out, *given).dx), wanted)


def test_other_outputs_of_a_forward_may_be_changed_before_backward(engine: Any) -> None:
    # Only w, x, hx, cx and y belong to the tape.
    spec = NETWORKS["lstm"]
    data = draw(spec, (4, 2))
    wanted = run(engine, spec, data)["dw"]
    out = forward(engine, spec, data)
    out.hy[...] = 9
    out.cy[...] = 9
    given = (engine.put(a) for a in (data.dy, data.dhy, data.dcy))
    assert np.array_equal(engine.get(v2.rnn_backward(out, *given).dw), wanted)
