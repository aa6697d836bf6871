"""No argument is changed in place, whatever its strides; and results share no memory with it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from tests.engines.networks import (
    GRADIENTS,
    LAYOUTS,
    NETWORKS,
    OUTPUTS,
    Data,
    draw,
    each_network,
    forward,
    largest,
    run,
)

ARGUMENTS = ("w", "x", "hx", "cx", "dy", "dhy", "dcy")

# Each takes the array module and an array, and gives the same values in other memory.


def plain(xp: ModuleType, a: Any) -> Any:
    return a.copy()


def unaligned(xp: ModuleType, a: Any) -> Any:
    """A copy that starts one byte behind an aligned address."""
    buffer = np.empty(a.nbytes + 16, "uint8")
    view = buffer[1 : 1 + a.nbytes].view(a.dtype).reshape(a.shape)
    view[...] = a
    assert not view.flags.aligned
    return view


def read_only(xp: ModuleType, a: Any) -> Any:
    a = a.copy()
    a.flags.writeable = False
    return a


def offset(xp: ModuleType, a: Any) -> Any:
    """A copy that starts one element behind the address that the allocator gave."""
    buffer = xp.full(a.size + 1, xp.nan, a.dtype)
    view = buffer[1:].reshape(a.shape)
    view[...] = a
    return view


def fortran(xp: ModuleType, a: Any) -> Any:
    return xp.asfortranarray(a)


def transposed(xp: ModuleType, a: Any) -> Any:
    """The same values; the last axis in memory is the first."""
    return xp.ascontiguousarray(a.T).T


def with_gaps(xp: ModuleType, a: Any) -> Any:
    """A view of every second element along every axis."""
    wide = xp.full(tuple(2 * n for n in a.shape), xp.nan, a.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in a.shape)]
    view[...] = a
    return view


def part(xp: ModuleType, a: Any) -> Any:
    """A window into a larger array: rows are contiguous, the whole is not."""
    wide = xp.full(tuple(n + 3 for n in a.shape), xp.nan, a.dtype)
    view = wide[tuple(slice(1, 1 + n) for n in a.shape)]
    view[...] = a
    return view


def reversed_along_all_axes(xp: ModuleType, a: Any) -> Any:
    back = (slice(None, None, -1),) * a.ndim
    return xp.ascontiguousarray(a[back])[back]


def reversed_along_the_first_axis(xp: ModuleType, a: Any) -> Any:
    return a[::-1].copy()[::-1]


STRIDES: dict[str, Callable[[ModuleType, Any], Any]] = {
    "contiguous": plain,
    "read-only": read_only,
    "Fortran order": fortran,
    "transposed": transposed,
    "gaps": with_gaps,
    "a part of a larger array": part,
    "reversed along all axes": reversed_along_all_axes,
    "reversed along the first axis": reversed_along_the_first_axis,
    "one element on": offset,
    "unaligned": unaligned,
}

ON_HOST = ("read-only", "unaligned")
"""CuPy's arrays have no flag that forbids writing. Unaligned ones are in
``test_unaligned_on_gpu.py``, in a process of its own."""

each_strides = pytest.mark.parametrize("how", STRIDES)


def strides(how: str, engine: Any) -> Callable[[Any], Any]:
    if how in ON_HOST and not engine.on_host:
        pytest.skip(f"{how} memory is tested on NumPy, see ON_HOST")
    return functools.partial(STRIDES[how], engine.xp)


def changed(data: Data, how: Callable[[Any], Any], names: Any = ARGUMENTS) -> Data:
    given = {name: getattr(data, name) for name in names}
    return data.replace(**{name: None if a is None else how(a) for name, a in given.items()})


def same_bytes(engine: Any, data: Data, original: Data) -> bool:
    """Whether all arguments are what they were, to the bit."""
    pairs = ((getattr(data, n), getattr(original, n)) for n in ARGUMENTS)
    return all(b is None or engine.get(a).tobytes() == engine.get(b).tobytes() for a, b in pairs)


@each_network
@each_strides
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_strides_give_the_same_results_and_leave_the_arguments_alone(
    spec: v2.RNNSpec, how: str, layout: str, engine: Any
) -> None:
    change = strides(how, engine)
    for lengths in ((4, 4), (2, 4, 0)):
        original = draw(spec, lengths, steps=4, layout=layout).on(engine)
        wanted = run(engine, spec, original, layout=layout, lengths=lengths)
        data = changed(original, change)
        results = run(engine, spec, data, layout=layout, lengths=lengths)
        assert same_bytes(engine, data, original)
        for name, value in wanted.items():
            assert value is None or largest(results[name], value) <= 1e-12, name


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@each_strides
def test_the_same_holds_for_shorter_dtypes(how: str, dtype: str, engine: Any) -> None:
    change = strides(how, engine)
    spec = NETWORKS["lstm 2 layers bi"].replace(dtype=dtype)
    original = draw(spec, (2, 4, 0)).on(engine)
    data = changed(original, change)
    results = run(engine, spec, data, lengths=(2, 4, 0))
    assert same_bytes(engine, data, original)
    wanted = run(engine, spec, original, lengths=(2, 4, 0))
    for name, value in wanted.items():
        assert largest(results[name], value) <= (1e-5 if dtype == "float32" else 1e-2), name


@pytest.mark.parametrize("form", ["sequence", "step"])
@each_strides
def test_the_same_holds_for_unbatched_arguments(how: str, form: str, engine: Any) -> None:
    change = strides(how, engine)
    spec = NETWORKS["lstm projected bi"]
    data = draw(spec, (4,)).on(engine)
    at: Any = (slice(None), 0) if form == "sequence" else (0, 0)
    states = {name: getattr(data, name)[:, 0] for name in ("hx", "cx", "dhy", "dcy")}
    original = data.replace(x=data.x[at], dy=data.dy[at], **states)
    data = changed(original, change)
    results, wanted = run(engine, spec, data), run(engine, spec, original)
    assert same_bytes(engine, data, original)
    for name, value in wanted.items():
        assert largest(results[name], value) <= 1e-12, name


@each_network
def test_broadcast_arguments_with_strides_of_zero_give_what_their_copies_give(
    spec: v2.RNNSpec, engine: Any
) -> None:
    data = draw(spec, (4, 4, 4)).on(engine)
    names = ("x", "hx", "cx", "dy", "dhy", "dcy")
    for axes in ((1,), (0, 1), (0, 1, 2)):

        def spread(a: Any, axes: Any = axes) -> Any:
            first = a[tuple(slice(1) if axis in axes else slice(None) for axis in range(3))]
            return engine.xp.broadcast_to(first, a.shape)

        broadcast = changed(data, spread, names)
        copied = changed(broadcast, lambda a: a.copy(), names)
        results, wanted = run(engine, spec, broadcast), run(engine, spec, copied)
        for name, value in wanted.items():
            assert value is None or largest(results[name], value) <= 1e-12, name


def test_the_gradient_of_a_sum_may_be_one_number_seen_everywhere(engine: Any) -> None:
    spec = NETWORKS["gru"]
    data = draw(spec, (4, 2)).on(engine)
    ones = data.replace(dy=engine.xp.ones_like(data.dy))
    one = engine.put(np.ones(()))
    scalar = data.replace(dy=engine.xp.broadcast_to(one, data.dy.shape))
    wanted = run(engine, spec, ones, lengths=(4, 2))
    for name, value in run(engine, spec, scalar, lengths=(4, 2)).items():
        assert value is None or np.array_equal(value, wanted[name]), name


# --- one array for several arguments, and results as arguments ------------------------------


def test_one_array_may_be_several_arguments(engine: Any) -> None:
    spec = v2.RNNSpec("lstm", 4, 4, dtype="float64")
    data = draw(spec, (1, 1, 1)).on(engine)
    shared = data.hx
    once = data.replace(x=shared, hx=shared, cx=shared, dy=shared, dhy=shared, dcy=shared)
    before = shared.copy()
    results = run(engine, spec, once)
    assert np.array_equal(engine.get(shared), engine.get(before))
    apart = changed(once, lambda a: a.copy())
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
    spec: v2.RNNSpec, layout: str, training: bool, engine: Any
) -> None:
    for lengths in ((4, 4), (2, 4, 0), (0, 0), (1,)):
        data = draw(spec, lengths, layout=layout).on(engine)
        how = {"lengths": lengths, "layout": layout}
        out = forward(engine, spec, data, training=training, **how)
        arrays = [a for a in out if a is not None]
        if training:
            gradients = v2.rnn_backward(out, data.dy, data.dhy, data.dcy)
            arrays += [a for a in gradients if a is not None]
        given = [getattr(data, name) for name in ARGUMENTS if getattr(data, name) is not None]
        for k, array in enumerate(arrays):
            for other in (*given, *arrays[k + 1 :]):
                assert not engine.shares(array, other)


def test_later_calls_do_not_change_earlier_results(engine: Any) -> None:
    spec = NETWORKS["lstm 2 layers bi"]
    data = draw(spec, (4, 2)).on(engine)
    out = forward(engine, spec, data, lengths=(4, 2))
    arrays = (*out, *v2.rnn_backward(out, data.dy, data.dhy, data.dcy))
    before = [engine.get(array).copy() for array in arrays]
    for seed in range(3):
        run(engine, spec, draw(spec, (4, 2), seed=seed + 1), lengths=(4, 2))
    for name, array, value in zip(OUTPUTS + GRADIENTS, arrays, before, strict=True):
        assert np.array_equal(engine.get(array), value), name


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
