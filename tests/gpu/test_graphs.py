"""Calls replayed as CUDA graphs: the same numbers as plain calls, whatever else happens."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.engines.choose import cudnn_engine
from cudnn_compat.engines.cudnn import dispatch
from cudnn_compat.engines.cudnn.graphs.slots import Slot
from tests.engine import Engine
from tests.engines.networks import Data
from tests.gpu.work import all_at_once, as_bytes, assert_same_bytes, on_device, problem, train

pytestmark = pytest.mark.gpu

COMES_BACK = 5
"""Calls of one shape after which it has been recorded and replayed."""

SPECS = {
    "lstm float32": v2.RNNSpec("lstm", 24, 32, math="full"),
    "lstm TF32": v2.RNNSpec("lstm", 64, 256),
    "lstm float16": v2.RNNSpec("lstm", 128, 256, dtype="float16"),
    "lstm projected": v2.RNNSpec("lstm", 24, 40, proj_size=16, dtype="float64"),
    "lstm 2 layers bi": v2.RNNSpec("lstm", 24, 32, num_layers=2, bidirectional=True, math="full"),
    "gru bfloat16": v2.RNNSpec("gru", 32, 256, dtype="bfloat16"),
    "gru float64": v2.RNNSpec("gru", 24, 32, dtype="float64", clip=None),
    "tanh small": v2.RNNSpec("tanh", 64, 64),
    "relu skip": v2.RNNSpec("relu", 32, 32, input_mode="skip", bias="none", math="full"),
    "lstm clipped": v2.RNNSpec("lstm", 24, 32, clip=(-0.2, 0.3), math="full"),
    "fused lstm": v2.RNNSpec("lstm", 24, 32, math="full", algo="fused"),
    "fused lstm TF32": v2.RNNSpec("lstm", 64, 256, algo="fused"),
    "fused gru float16": v2.RNNSpec(
        "gru", 32, 64, num_layers=2, bidirectional=True, dtype="float16", algo="fused"
    ),
    "fused tanh bfloat16": v2.RNNSpec("tanh", 32, 128, dtype="bfloat16", algo="fused"),
    "fused relu": v2.RNNSpec("relu", 24, 48, num_layers=2, bias="none", algo="fused"),
}
LENGTHS = (7,) * 6

each_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


@pytest.fixture(autouse=True)
def nothing_kept(request: pytest.FixtureRequest) -> Iterator[None]:
    import cupy

    given = getattr(request.node, "callspec", None)
    if given is not None and "spec" in given.params:
        Engine("cudnn", cupy).needs(given.params["spec"].dtype)
    v2.clear_plans()
    yield
    v2.clear_plans()


def store() -> Any:
    return cudnn_engine()._selection.store


def replays() -> list[Any]:
    """What was recorded, of all plans."""
    return [slot for slot in store()._slots if slot._recordings]


def plainly(monkeypatch: pytest.MonkeyPatch, work: Any) -> Any:
    with monkeypatch.context() as patch:
        patch.setenv("CUDNN_COMPAT_GRAPHS", "off")
        v2.clear_plans()
        done = work()
        assert not replays()
    v2.clear_plans()
    return done


@each_spec
@pytest.mark.parametrize("layout", ["time_major", "batch_major", "packed"])
def test_a_replay_gives_every_bit_of_the_plain_call(
    spec: v2.RNNSpec, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, data, how = problem(spec, LENGTHS, layout=layout)
    data = on_device(data)
    wanted = plainly(monkeypatch, lambda: as_bytes(train(spec, data, how)))
    for _ in range(COMES_BACK):
        got = as_bytes(train(spec, data, how))
        assert_same_bytes(got, wanted)
    (slot,) = replays()
    assert len(slot._recordings) == 2  # forward, and both passes backward


@each_spec
def test_inference_replayed_gives_every_bit_of_the_plain_call(
    spec: v2.RNNSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, data, how = problem(spec, LENGTHS)
    data = on_device(data)

    def infer(states: bool) -> dict[str, bytes]:
        given = (data.hx, data.cx) if states else ()
        y, hy, cy = v2.rnn_forward(spec, data.w, data.x, *given, **how)
        return as_bytes({"y": y, "hy": hy, "cy": cy})

    wanted = plainly(monkeypatch, lambda: [infer(True), infer(False)])
    for _ in range(COMES_BACK):
        for states in (True, False):
            assert_same_bytes(infer(states), wanted[not states])
    (slot,) = replays()
    assert len(slot._recordings) == 2


def changed(data: Data, k: int) -> Data:
    factors = {"x": 1 + k / 8, "w": 1 - k / 16, "dy": 1.0 + k}
    scaled = {n: (getattr(data, n) * f).astype(data.x.dtype) for n, f in factors.items()}
    return data.replace(**scaled)


@each_spec
def test_outputs_belong_to_the_caller_and_inputs_may_be_anywhere(
    spec: v2.RNNSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, data, how = problem(spec, LENGTHS)
    data = on_device(data)
    given = [changed(data, k) for k in range(8)]
    wanted = plainly(monkeypatch, lambda: [as_bytes(train(spec, one, how)) for one in given])
    for one in given[:COMES_BACK]:
        train(spec, one, how)
    results = [train(spec, one, how) for one in given]
    assert replays()
    for k, result in enumerate(results):
        assert_same_bytes(as_bytes(result), wanted[k])


@pytest.mark.parametrize("many", [2, 20])
@pytest.mark.parametrize("name", ["lstm 2 layers bi", "fused gru float16"])
def test_many_forwards_may_wait_for_their_backwards(
    name: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, data, how = problem(SPECS[name], LENGTHS)
    data = on_device(data)
    given = [changed(data, k) for k in range(many)]
    wanted = plainly(monkeypatch, lambda: [as_bytes(train(spec, one, how)) for one in given])
    for _ in range(COMES_BACK):
        train(spec, data, how)
    outs = [
        v2.rnn_forward(spec, one.w, one.x, one.hx, one.cx, training=True, **how) for one in given
    ]
    for k in reversed(range(many)):
        one, out = given[k], outs[k]
        gradients = v2.rnn_backward(out, one.dy, one.dhy, one.dcy)
        names = ("y", "hy", "cy", "dx", "dhx", "dcx", "dw")
        assert_same_bytes(as_bytes(dict(zip(names, (*out, *gradients), strict=True))), wanted[k])


@pytest.mark.parametrize("name", ["lstm float32", "fused lstm", "fused gru float16"])
def test_gradients_are_added_to_what_is_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, data, how = problem(SPECS[name], LENGTHS)
    data = on_device(data)

    def add() -> dict[str, bytes]:
        dw = data.w.copy()
        out = v2.rnn_forward(spec, data.w, data.x, training=True, **how)
        v2.rnn_backward_data(out, data.dy)
        v2.rnn_backward_weights(out, dw=dw, accumulate=True)
        return as_bytes({"dw": dw})

    wanted = plainly(monkeypatch, add)
    for _ in range(COMES_BACK):
        assert_same_bytes(add(), wanted)
    assert replays()


@pytest.mark.parametrize("name", ["lstm float32", "fused lstm"])
def test_views_and_odd_addresses_are_replayed_too(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cupy

    spec, data, how = problem(SPECS[name], LENGTHS)
    data = on_device(data)
    room = cupy.empty(data.x.size + 1, data.x.dtype)
    odd = room[1:].reshape(data.x.shape)
    odd[...] = data.x
    wide = cupy.zeros((*data.x.shape[:-1], 2 * data.x.shape[-1]), data.x.dtype)[..., ::2]
    wide[...] = data.x
    wanted = plainly(monkeypatch, lambda: as_bytes(train(spec, data, how)))
    for _ in range(COMES_BACK):
        for x in (odd, wide):
            assert_same_bytes(as_bytes(train(spec, data.replace(x=x), how)), wanted)
    assert replays()


@pytest.mark.parametrize("name", ["gru float64", "fused lstm TF32", "fused gru float16"])
def test_streams_and_threads_have_graphs_of_their_own(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cupy

    spec, data, how = problem(SPECS[name], LENGTHS)
    data = on_device(data)
    given = [changed(data, k) for k in range(4)]
    wanted = plainly(monkeypatch, lambda: [as_bytes(train(spec, one, how)) for one in given])
    cupy.cuda.Device().synchronize()

    def work(k: int) -> list[dict[str, bytes]]:
        with cupy.cuda.Stream(non_blocking=True):
            return [as_bytes(train(spec, given[k], how)) for _ in range(2 * COMES_BACK)]

    for k, results in enumerate(all_at_once(work, 4)):
        for result in results:
            assert_same_bytes(result, wanted[k])
    assert len({slot.stream for slot in replays()}) == 4


@pytest.mark.parametrize("name", ["lstm float32", "fused lstm"])
def test_threads_may_meet_on_one_stream(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, data, how = problem(SPECS[name], LENGTHS)
    data = on_device(data)
    given = [changed(data, k) for k in range(6)]
    wanted = plainly(monkeypatch, lambda: [as_bytes(train(spec, one, how)) for one in given])

    def work(k: int) -> list[dict[str, bytes]]:
        return [as_bytes(train(spec, given[k], how)) for _ in range(2 * COMES_BACK)]

    for k, results in enumerate(all_at_once(work, 6)):
        for result in results:
            assert_same_bytes(result, wanted[k])
    assert replays()


def test_backward_may_run_on_another_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    spec, data, how = problem(SPECS["lstm float32"], LENGTHS)
    data = on_device(data)
    wanted = plainly(monkeypatch, lambda: as_bytes(train(spec, data, how)))
    for _ in range(COMES_BACK):
        train(spec, data, how)
    other = cupy.cuda.Stream(non_blocking=True)
    for _ in range(COMES_BACK):
        out = v2.rnn_forward(spec, data.w, data.x, data.hx, data.cx, training=True, **how)
        other.wait_event(cupy.cuda.get_current_stream().record())
        with other:
            gradients = v2.rnn_backward(out, data.dy, data.dhy, data.dcy)
            got = as_bytes(dict(zip(("dx", "dhx", "dcx", "dw"), gradients, strict=True)))
        assert_same_bytes(got, {name: wanted[name] for name in got})
    assert replays()


def test_each_replay_draws_fresh_masks_and_the_plain_calls_draw_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = v2.RNNSpec("lstm", 24, 32, num_layers=2, dropout=0.4, math="full")
    spec, data, how = problem(spec, LENGTHS)
    data = on_device(data)

    def steps() -> list[dict[str, bytes]]:
        state = v2.DropoutState(5)
        done = []
        for _ in range(3 * COMES_BACK):
            out = v2.rnn_forward(spec, data.w, data.x, training=True, seed=state, **how)
            dx, _, _, dw = v2.rnn_backward(out, data.dy)
            done.append(as_bytes({"y": out.y, "dx": dx, "dw": dw}))
        return done

    wanted = plainly(monkeypatch, steps)
    got = steps()
    assert replays()
    for one, other in zip(got, wanted, strict=True):
        assert_same_bytes(one, other)
    assert len({one["y"] for one in got}) == len(got)


def test_inside_a_capture_of_the_callers_the_plain_call_is_captured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import cupy

    spec, data, how = problem(SPECS["lstm float32"], LENGTHS)
    data = on_device(data)
    for _ in range(COMES_BACK):
        v2.rnn_forward(spec, data.w, data.x, **how)
    recorded = [len(slot._recordings) for slot in replays()]
    assert recorded == [1]
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        v2.rnn_forward(spec, data.w, data.x, **how)  # its memory is in the pool now
        stream.begin_capture()
        y = v2.rnn_forward(spec, data.w, data.x, **how).y
        graph = stream.end_capture()
        x = data.x.copy()
        data.x *= 2
        graph.launch(stream)
        stream.synchronize()
    wanted = plainly(
        monkeypatch, lambda: as_bytes({"y": v2.rnn_forward(spec, data.w, data.x, **how).y})
    )
    assert_same_bytes(as_bytes({"y": y}), wanted)
    data.x = x


@pytest.mark.parametrize("algo", ["standard", "fused"])
def test_new_lengths_are_refused_in_a_capture_and_known_ones_captured(
    algo: str,
) -> None:
    import cupy

    spec, data, how = problem(
        SPECS["lstm float32"].replace(algo=algo), (3, 7, 0, 5), layout="packed"
    )
    data = on_device(data)
    stream = cupy.cuda.Stream(non_blocking=True)
    if algo == "fused":
        with cupy.cuda.Stream(non_blocking=True):  # compiled, but its lengths are of that stream
            v2.rnn_forward(spec, data.w, data.x, **how)
    cupy.cuda.Device().synchronize()
    with stream, cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc):
        stream.begin_capture()
        with pytest.raises(v2.UnsupportedError, match="once before the capture begins"):
            v2.rnn_forward(spec, data.w, data.x, **how)
        stream.end_capture()
        wanted = v2.rnn_forward(spec, data.w, data.x, **how).y
        stream.begin_capture()
        y = v2.rnn_forward(spec, data.w, data.x, **how).y
        graph = stream.end_capture()
        v2.clear_plans()
        gc.collect()
        cupy.full(4096, 77, "int32")  # where freed lengths would have been
        graph.launch(stream)
        stream.synchronize()
        assert_same_bytes(as_bytes({"y": y}), as_bytes({"y": wanted}))


def test_memory_is_bounded_and_released(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    pool = cupy.get_default_memory_pool()
    spec = SPECS["lstm float32"]
    cases = []
    for steps in range(3, 43):
        _, data, how = problem(spec, (steps,) * 4)
        cases.append((on_device(data), how))
    v2.clear_plans()
    before = pool.used_bytes()
    for data, how in cases:
        for _ in range(COMES_BACK):
            train(spec, data, how)
    kept = store().bytes
    assert kept > 0
    assert pool.used_bytes() - before >= kept
    v2.clear_plans()
    assert store().bytes == 0
    assert pool.used_bytes() - before < kept / 10


def test_a_shape_that_is_too_large_for_what_may_be_kept_runs_plainly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import cupy

    spec, data, how = problem(SPECS["lstm float32"], LENGTHS)
    data = on_device(data)
    wanted = plainly(monkeypatch, lambda: as_bytes(train(spec, data, how)))
    monkeypatch.setitem(store()._limits, cupy.cuda.Device().id, 1000)
    for _ in range(COMES_BACK):
        assert_same_bytes(as_bytes(train(spec, data, how)), wanted)
    assert not replays()
    monkeypatch.undo()


def test_lengths_that_change_from_call_to_call_are_neither_recorded_nor_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("CUDNN_COMPAT_TUNING", str(tmp_path / "tuning.json"))
    v2.clear_plans()
    spec = SPECS["lstm float32"]
    rng = np.random.default_rng(0)
    _, data, _ = problem(spec, (9,) * 5)
    data = on_device(data)
    for _ in range(30):
        lengths = [9, *rng.integers(1, 9, 4).tolist()]
        out = v2.rnn_forward(spec, data.w, data.x, lengths=lengths, training=True)
        v2.rnn_backward(out, data.dy)
    assert len(v2.plans()) == 1
    assert not replays()
    assert not (tmp_path / "tuning.json").exists()


@each_spec
def test_arrays_that_stay_in_place_are_not_copied_and_may_change_and_move(
    spec: v2.RNNSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, data, how = problem(spec, LENGTHS)
    data = on_device(data)
    given = [changed(data, k) for k in range(6)]
    wanted = plainly(monkeypatch, lambda: [as_bytes(train(spec, one, how)) for one in given])
    here = data.replace(x=data.x.copy(), w=data.w.copy(), dy=data.dy.copy())
    for k in range(60):
        one = given[k % 6]
        for name in ("x", "w", "dy"):
            getattr(here, name)[...] = getattr(one, name)
        assert_same_bytes(as_bytes(train(spec, here, how)), wanted[k % 6])
    recorded = [one for slot in replays() for one in slot._recordings.values()]
    assert any(one.places.bound for one in recorded)
    moved = [train(spec, one, how) for one in given]
    for k, result in enumerate(moved):
        assert_same_bytes(as_bytes(result), wanted[k])


# --- the short way of what is recorded ----------------------------------------------------------


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages of all calls that did not go the short way."""
    seen: list[str] = []
    original = dispatch._compute

    def compute(session: Any, replays: Any, stage: Any, *rest: Any) -> None:
        seen.append(stage.name)
        original(session, replays, stage, *rest)

    monkeypatch.setattr(dispatch, "_compute", compute)
    return seen


def without_lengths(how: Any) -> dict[str, Any]:
    return {"layout": how["layout"]}


def come_back(
    spec: v2.RNNSpec, monkeypatch: pytest.MonkeyPatch
) -> tuple[v2.RNNSpec, Data, dict[str, Any], dict[str, bytes]]:
    """A problem that has come back until it was recorded, and what plain calls give for it."""
    spec, data, how = problem(spec, LENGTHS)
    data, how = on_device(data), without_lengths(how)
    wanted = plainly(monkeypatch, lambda: as_bytes(train(spec, data, how)))
    for _ in range(COMES_BACK):
        train(spec, data, how)
    return spec, data, how, wanted


@each_spec
@pytest.mark.parametrize("states", ["all", "none"])
def test_the_short_way_gives_every_bit_of_the_plain_call(
    spec: v2.RNNSpec, states: str, long_ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, data, how = problem(spec, LENGTHS)
    data, how = on_device(data), without_lengths(how)
    if states == "none":
        data = data.without("hx", "cx", "dhy", "dcy")
    given = [changed(data, k) for k in range(6)]
    wanted = plainly(monkeypatch, lambda: [as_bytes(train(spec, one, how)) for one in given])
    for _ in range(COMES_BACK):
        train(spec, data, how)
    long_ways.clear()
    for k, one in enumerate(given):
        assert_same_bytes(as_bytes(train(spec, one, how)), wanted[k])
    for _ in range(30):  # the arrays stay in place
        assert_same_bytes(as_bytes(train(spec, given[1], how)), wanted[1])
    assert not long_ways


@pytest.mark.parametrize("name", ["lstm float32", "fused lstm", "fused gru float16"])
def test_both_passes_one_by_one_give_every_bit_of_both_at_once(
    name: str, long_ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, data, how = problem(SPECS[name], LENGTHS)
    data, how = on_device(data), without_lengths(how)

    def one_by_one() -> dict[str, bytes]:
        out = v2.rnn_forward(spec, data.w, data.x, data.hx, data.cx, training=True, **how)
        dx, dhx, dcx, _ = v2.rnn_backward_data(out, data.dy, data.dhy, data.dcy)
        dw = v2.rnn_backward_weights(out)
        return as_bytes({"dx": dx, "dhx": dhx, "dcx": dcx, "dw": dw})

    wanted = plainly(monkeypatch, one_by_one)
    for _ in range(COMES_BACK):
        results = as_bytes(train(spec, data, how))
        assert_same_bytes({name: results[name] for name in wanted}, wanted)
        assert_same_bytes(one_by_one(), wanted)
    assert {"forward", "data", "weights", "backward"} == set(long_ways)
    long_ways.clear()
    assert_same_bytes(one_by_one(), wanted)
    assert not long_ways


@pytest.mark.parametrize("name", ["lstm float32", "fused lstm"])
def test_whatever_the_short_way_cannot_do_goes_the_long_way(
    name: str, long_ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import cupy

    spec, data, how = problem(SPECS[name], LENGTHS)
    data, how = on_device(data), without_lengths(how)
    wide = cupy.zeros((*data.x.shape[:-1], 2 * data.x.shape[-1]), data.x.dtype)[..., ::2]
    wide[...] = data.x
    odd = cupy.empty(data.dy.size + 1, data.dy.dtype)[1:].reshape(data.dy.shape)
    odd[...] = data.dy
    cases = {
        "nothing": data,
        "x with strides": data.replace(x=wide),
        "no dy": data.without("dy"),
        "dy that begins oddly": data.replace(dy=odd),
        "states with strides": data.replace(hx=cupy.asfortranarray(data.hx)),
        "no dhy": data.without("dhy"),
    }

    def all_cases() -> dict[str, dict[str, bytes]]:
        return {name: as_bytes(train(spec, one, how)) for name, one in cases.items()}

    wanted = plainly(monkeypatch, all_cases)
    for _ in range(COMES_BACK):
        train(spec, data, how)
    long_ways.clear()
    for name, got in all_cases().items():
        assert_same_bytes(got, wanted[name])
    assert long_ways == [
        *("forward", "backward"),  # x with strides
        "backward",  # no dy
        "backward",  # dy that begins oddly
        *("forward", "backward"),  # states with strides
        "backward",  # no dhy
    ]


def test_weights_that_were_copied_for_backward_are_those_of_the_forward(
    long_ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, data, how, wanted = come_back(SPECS["lstm float32"], monkeypatch)
    long_ways.clear()
    w = data.w.copy()
    out = v2.rnn_forward(spec, w, data.x, data.hx, data.cx, training=True, **how)
    out.own_weights()
    w[...] = 0
    gradients = v2.rnn_backward(out, data.dy, data.dhy, data.dcy)
    got = as_bytes(dict(zip(("dx", "dhx", "dcx", "dw"), gradients, strict=True)))
    assert_same_bytes(got, {name: wanted[name] for name in got})
    assert not long_ways


def test_without_memory_for_results_the_short_way_leaves_all_as_it_was(
    long_ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, data, how, wanted = come_back(SPECS["lstm float32"], monkeypatch)

    def no_memory(*_: Any) -> None:
        raise MemoryError("planted")

    long_ways.clear()
    for _ in range(20):  # more than there are slots
        with monkeypatch.context() as patch:
            patch.setattr(Slot, "results", no_memory)
            with pytest.raises(MemoryError, match="planted"):
                train(spec, data, how)
    assert_same_bytes(as_bytes(train(spec, data, how)), wanted)
    assert not long_ways
    assert not any(slot.busy or slot.leased for slot in replays())


def test_after_the_plans_are_cleared_the_short_way_is_found_anew(
    long_ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, data, how, wanted = come_back(SPECS["lstm float32"], monkeypatch)
    out = v2.rnn_forward(spec, data.w, data.x, data.hx, data.cx, training=True, **how)
    v2.clear_plans()
    long_ways.clear()
    for _ in range(COMES_BACK):
        assert_same_bytes(as_bytes(train(spec, data, how)), wanted)
    assert "forward" in long_ways
    gradients = v2.rnn_backward(out, data.dy, data.dhy, data.dcy)  # what was lent lives on
    got = as_bytes(dict(zip(("dx", "dhx", "dcx", "dw"), gradients, strict=True)))
    assert_same_bytes(got, {name: wanted[name] for name in got})


def test_the_short_way_waits_for_no_other_stream_and_is_not_taken_in_a_capture(
    long_ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import cupy

    spec, data, how = problem(SPECS["lstm float32"], LENGTHS)
    data, how = on_device(data), without_lengths(how)
    stream, pool = cupy.cuda.Stream(non_blocking=True), cupy.cuda.MemoryPool()
    with stream:
        wanted = plainly(monkeypatch, lambda: as_bytes(train(spec, data, how)))
        for _ in range(COMES_BACK):
            train(spec, data, how)
        long_ways.clear()
        with cupy.cuda.using_allocator(pool.malloc):
            train(spec, data, how)
            assert not long_ways
            cupy.empty(64 << 20, "uint8")  # what the plain calls take is in the pool now
            stream.begin_capture()
            results = train(spec, data, how)
            graph = stream.end_capture()
        assert long_ways == ["forward", "backward"]
        graph.launch(stream)
        assert_same_bytes(as_bytes(results), wanted)


# --- own kernels as graphs ----------------------------------------------------------------------


def test_a_graph_of_own_kernels_keeps_none_of_the_arrays_that_it_was_recorded_with() -> None:
    spec, data, how = problem(SPECS["fused lstm"], LENGTHS)
    data = on_device(data)
    x, dy = data.x.copy(), data.dy.copy()
    for _ in range(COMES_BACK):
        train(spec, data.replace(x=x, dy=dy), how)
    assert replays()
    gone = [weakref.ref(array) for array in (x, dy)]
    del x, dy
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_own_kernels_that_want_more_scratch_than_they_took_run_plainly_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec, data, how = problem(SPECS["fused gru float16"], LENGTHS)
    data = on_device(data)
    wanted = plainly(monkeypatch, lambda: as_bytes(train(spec, data, how)))
    train(spec, data, how)
    (plan,) = cudnn_engine().plans.entries()
    for pattern in plan.scratch:
        plan.scratch[pattern] = 512
    for _ in range(COMES_BACK):
        assert_same_bytes(as_bytes(train(spec, data, how)), wanted)
    assert plan.replays.refused is None
    (slot,) = replays()  # as it is known now how much they take
    assert len(slot._recordings) == 2


def test_replays_of_own_kernels_and_products_of_others_do_not_disturb_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import cupy

    spec, data, how = problem(SPECS["fused lstm TF32"], (64,) * 16)
    data = on_device(data)
    wanted = plainly(monkeypatch, lambda: as_bytes(train(spec, data, how)))
    a = cupy.random.default_rng(1).standard_normal((512, 512)).astype("float32")
    product = cupy.asnumpy(a @ a)
    other = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    for _ in range(20):
        with other:
            products = [a @ a for _ in range(20)]
        results = train(spec, data, how)
        with other:
            products += [a @ a for _ in range(20)]
        assert_same_bytes(as_bytes(results), wanted)
        other.synchronize()
        assert all(
            np.allclose(cupy.asnumpy(one), product, rtol=1e-4, atol=1e-3) for one in products
        )
    assert replays()


@pytest.mark.parametrize("name", ["lstm float32", "fused lstm"])
def test_graphs_do_not_keep_their_plan(name: str) -> None:
    spec, data, how = problem(SPECS[name], LENGTHS)
    data = on_device(data)
    for _ in range(COMES_BACK):
        train(spec, data, how)
    (slot,) = replays()
    cudnn_engine().plans.clear()
    gc.collect()
    assert slot.owner() is None


@pytest.mark.parametrize("name", ["lstm float32", "fused lstm"])
def test_the_first_call_of_a_thread_may_be_a_replay(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, data, how = problem(SPECS[name], LENGTHS)
    data, how = on_device(data), without_lengths(how)
    given = [changed(data, k) for k in range(2)]
    wanted = plainly(monkeypatch, lambda: [as_bytes(train(spec, one, how)) for one in given])
    for _ in range(COMES_BACK):
        train(spec, data, how)
    one = given[1]
    out = v2.rnn_forward(spec, one.w, one.x, one.hx, one.cx, training=True, **how)
    with ThreadPoolExecutor(1) as pool:  # of which CUDA knows nothing
        gradients = pool.submit(v2.rnn_backward, out, one.dy, one.dhy, one.dcy).result()
    got = as_bytes(dict(zip(("dx", "dhx", "dcx", "dw"), gradients, strict=True)))
    assert_same_bytes(got, {name: wanted[1][name] for name in got})
    with ThreadPoolExecutor(1) as pool:
        assert_same_bytes(as_bytes(pool.submit(train, spec, given[0], how).result()), wanted[0])


def test_memory_of_cublas_is_counted_and_goes_with_the_last_graph_that_has_it() -> None:
    import cupy

    pool = cupy.get_default_memory_pool()
    spec, data, how = problem(SPECS["fused lstm"], LENGTHS)
    data = on_device(data)
    before = pool.used_bytes()
    for _ in range(COMES_BACK):
        train(spec, data, how)
    (plan,) = cudnn_engine().plans.entries()
    blas = plan.network.blas_bytes
    assert store().bytes >= blas
    assert pool.used_bytes() - before >= blas
    plan.release()
    gc.collect()
    assert store().bytes == 0
    assert pool.used_bytes() - before < blas


def test_own_kernels_are_not_recorded_where_the_memory_of_cublas_was_chosen_by_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    spec, data, how = problem(SPECS["fused lstm"], LENGTHS)
    data = on_device(data)
    for _ in range(COMES_BACK):
        train(spec, data, how)
    assert not replays()
