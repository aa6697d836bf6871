"""The library's own calls: with which arguments, in which order. The library is a stand-in here."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.bench import host, raw, raw_scan
from cudnn_compat.bench.grid import Workload
from cudnn_compat.bench.raw import ALGORITHMS, RawCalls, RawHandle, RawNetwork, Replay
from cudnn_compat.bench.raw_scan import fastest, scan
from cudnn_compat.bench.sides import Inputs
from cudnn_compat.bench.timing import Timing
from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.prototypes import PROTOTYPES
from cudnn_compat.errors import LibraryNotSupported

WORKLOAD = Workload("lstm", 3, 2, 4, 5)
RUNS = ("cudnnRNNForward", "cudnnRNNBackwardData_v8", "cudnnRNNBackwardWeights_v8")


class DeviceArray(np.ndarray):
    """A NumPy array with what a CuPy array has."""

    log: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    @property
    def data(self) -> Any:
        def zero(value: int, size: int, stream: Any) -> None:
            self.log.append(("memset", {"ptr": self.ctypes.data, "value": value, "size": size}))

        return SimpleNamespace(ptr=self.ctypes.data, memset_async=zero)


class Stream:
    ptr = 77

    def __init__(self, non_blocking: bool = False) -> None:
        self.captures: list[str] = []

    def synchronize(self) -> None:
        pass

    def begin_capture(self) -> None:
        self.captures.append("begin")

    def end_capture(self) -> Any:
        self.captures.append("end")
        return SimpleNamespace(launch=lambda stream: self.captures.append("launch"))


CUPY = SimpleNamespace(
    zeros=lambda shape, dtype: np.zeros(shape, dtype).view(DeviceArray),
    empty=lambda shape, dtype: np.empty(shape, dtype).view(DeviceArray),
    asarray=lambda array: array.view(DeviceArray),
    cuda=SimpleNamespace(Stream=Stream, Device=lambda: SimpleNamespace(synchronize=lambda: None)),
)


class Library:
    """Notes each call with the names of its parameters; refuses the algorithms it is told to."""

    major = 9

    def __init__(self) -> None:
        self.log = DeviceArray.log
        self.refused: tuple[int, ...] = ()
        self.in_capture_refused = False
        self._numbers = itertools.count(1)

    def __getattr__(self, name: str) -> Any:
        parameters = PROTOTYPES[9][name].parameters

        def call(*given: Any) -> None:
            named = dict(zip(parameters, given, strict=True))
            self.log.append((name, named))
            if name.startswith("cudnnCreate"):
                given[0]._obj.value = next(self._numbers)
            if name == "cudnnSetRNNDescriptor_v8" and named["algo"] in self.refused:
                raise LibraryNotSupported("it cannot do that", 3000, call=name)
            if name == "cudnnGetRNNTempSpaceSizes":
                named["workSpaceSize"]._obj.value = 64
                named["reserveSpaceSize"]._obj.value = 32

        return call

    def runs(self) -> list[str]:
        return [name for name, _ in self.log if name in (*RUNS, "memset")]

    def last(self, name: str) -> dict[str, Any]:
        return next(named for called, named in reversed(self.log) if called == name)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    DeviceArray.log = []
    library = Library()
    monkeypatch.setattr(raw, "load", lambda: library)
    monkeypatch.setattr(raw, "load_cupy", lambda: CUPY)
    return library


def calls(handle: RawHandle, *, training: bool, **more: Any) -> RawCalls:
    inputs = Inputs(WORKLOAD)
    network = RawNetwork(handle, inputs.spec, "standard", padded=True, batch=2)
    w, x, dy = inputs.on(CUPY)
    return RawCalls(
        handle, network, steps=3, batch=2, w=w, x=x, dy=dy if training else None, **more
    )


def at(array: Any) -> int:
    return int(array.ctypes.data)


def test_inference_is_one_call_with_the_arrays_where_the_library_wants_them(
    library: Library,
) -> None:
    with RawHandle() as handle:
        made = calls(handle, training=False)
        made.step()
    assert library.runs() == ["cudnnRNNForward"]
    given = library.last("cudnnRNNForward")
    assert given["fwdMode"] == c.CUDNN_FWD_MODE_INFERENCE
    assert (given["x"], given["y"], given["weightSpace"]) == (at(made.x), at(made.y), at(made.w))
    assert (given["hx"], given["cx"]) == (None, None)
    assert (given["hy"], given["cy"]) == (at(made.hy), at(made.cy))
    assert given["weightSpaceSize"] == v2.weight_size(WORKLOAD.spec()) * 4
    assert (given["workSpaceSize"], given["workSpace"]) == (64, at(made.workspace))
    assert (given["reserveSpaceSize"], given["reserveSpace"]) == (0, None)
    assert given["xDesc"] is not given["yDesc"]


def test_a_training_step_is_forward_data_zeroing_and_weights_on_one_reserve(
    library: Library,
) -> None:
    with RawHandle() as handle:
        made = calls(handle, training=True)
        made.step()
    assert library.runs() == [*RUNS[:2], "memset", RUNS[2]]
    forward, data, weights = map(library.last, RUNS)
    assert forward["fwdMode"] == c.CUDNN_FWD_MODE_TRAINING
    reserves = {(g["reserveSpaceSize"], g["reserveSpace"]) for g in (forward, data, weights)}
    assert reserves == {(32, at(made.reserve))}
    assert (data["y"], data["dy"], data["dx"]) == (at(made.y), at(made.dy), at(made.dx))
    assert (data["dhx"], data["dcx"]) == (at(made.dhx), at(made.dcx))
    assert (data["dhy"], data["dcy"]) == (None, None)
    assert data["weightSpace"] == at(made.w)
    assert (weights["x"], weights["y"]) == (at(made.x), at(made.y))
    assert weights["addGrad"] == c.CUDNN_WGRAD_MODE_ADD
    assert weights["dweightSpace"] == library.last("memset")["ptr"] == at(made.dw)
    assert library.last("memset")["size"] == made.dw.nbytes


def test_lengths_are_described_anew_for_each_call_that_has_its_own(library: Library) -> None:
    with RawHandle() as handle:
        made = calls(handle, training=False)
        given = iter([[3, 1], [2, 2], None])
        call = made.following(lambda: next(given))
        described = []
        for _ in range(3):
            call()
            lengths = library.last("cudnnSetRNNDataDescriptor")["seqLengthArray"]
            described.append(list(lengths))
    assert described == [[3, 1], [2, 2], [2, 2]]


def test_the_handle_works_on_its_stream_and_is_destroyed(library: Library) -> None:
    with RawHandle() as handle:
        assert library.last("cudnnSetStream") == {"handle": handle.address, "streamId": Stream.ptr}
    assert library.last("cudnnDestroy") == {"handle": handle.address}


def test_a_replay_is_captured_once_after_warming_up_and_then_launched(library: Library) -> None:
    with RawHandle() as handle:
        replay = Replay(handle, calls(handle, training=False))
        assert library.runs() == ["cudnnRNNForward"] * 3
        replay()
        replay()
        assert handle.stream.captures == ["begin", "end", "launch", "launch"]
    assert library.runs() == ["cudnnRNNForward"] * 3


def test_a_capture_that_fails_ends_and_its_error_is_the_one_that_is_raised(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RawHandle() as handle:
        made = calls(handle, training=False)

        def step() -> None:
            if handle.stream.captures:
                raise RuntimeError("not while capturing")

        monkeypatch.setattr(made, "step", step)
        with pytest.raises(RuntimeError, match="not while capturing"):
            Replay(handle, made)
        assert handle.stream.captures == ["begin", "end"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """µs by name of the way, which timers then say; 10 where nothing is said."""
    times: dict[str, float] = {}
    names = iter([f"{a}{g}" for a in ALGORITHMS for g in ("", " graph")])
    monkeypatch.setattr(raw_scan, "cuda_timer", lambda call, stream: timer(next(names)))

    def timer(name: str) -> Any:
        return lambda count: Timing(times.get(name, 10.0), 0.0)

    return times


def scanned(library: Library, workload: Workload = WORKLOAD) -> dict[str, raw_scan.Way]:
    with RawHandle() as handle:
        return {way.name: way for way in scan(handle, Inputs(workload), "training")}


@pytest.mark.usefixtures("clock")
def test_every_algorithm_is_tried_plain_and_as_a_graph(library: Library) -> None:
    ways = scanned(library)
    assert list(ways) == [f"{a}{g}" for a in ALGORITHMS for g in ("", " graph")]
    assert all(way.us == 10.0 and way.refused is None for way in ways.values())
    built = [named for name, named in library.log if name == "cudnnBuildRNNDynamic"]
    assert [named["miniBatch"] for named in built] == [2]


@pytest.mark.usefixtures("clock")
def test_what_the_library_refuses_is_kept_with_its_words(library: Library) -> None:
    library.refused = (c.CUDNN_RNN_ALGO_PERSIST_STATIC,)
    ways = scanned(library)
    for name in ("persist_static", "persist_static graph"):
        assert "it cannot do that" in (ways[name].refused or "")
        assert ways[name].as_json()["us"] is None
    assert ways["standard"].refused is None


@pytest.mark.usefixtures("clock")
def test_new_lengths_in_every_call_have_no_graph(library: Library) -> None:
    ways = scanned(library, Workload("lstm", 3, 2, 4, 5, lengths=(1, 3)))
    for algo in ALGORITHMS:
        assert ways[algo].us is not None
        assert "each call has new ones" in (ways[f"{algo} graph"].refused or "")


def test_the_fastest_ways_are_measured_again_and_the_hopeless_are_let_go(
    library: Library, clock: dict[str, float]
) -> None:
    clock.update({"standard": 40.0, "standard graph": 12.0, "persist_dynamic": 200.0})
    ways = scanned(library)
    assert ways["persist_dynamic"].us == 200.0
    assert ways["persist_dynamic"].timer is None
    assert ways["standard"].timer is not None
    clock["persist_static graph"] = 3.0  # too late to matter
    assert [way.us for way in fastest(list(ways.values()))] == [10.0, 10.0]
    assert fastest([ways["standard"], ways["standard graph"]], 1) == [ways["standard graph"]]


@pytest.mark.parametrize("cell", ["tanh", "gru", "lstm"])
def test_the_old_calls_that_the_host_is_timed_with_compute_the_step(cell: str) -> None:
    spec = v2.RNNSpec(cell, 4, 5, math="full", algo="standard")
    arrays = host._Arrays(spec, 3, np)
    y, hy, _ = v2.rnn_forward(spec, arrays.w, arrays.x[None], arrays.hx, arrays.cx)
    with host._quietly():
        old_y, old_h, *_ = host._legacy(arrays)()
        dialect_h, _, dialect_y = host._dialect(arrays)()
    for found, wanted in ((old_y.T, y[0]), (old_h.T, hy[0]), (dialect_h, hy), (dialect_y, y[0])):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_the_host_s_time_is_taken_in_turns_with_an_idle_gpu_before_each() -> None:
    order = []
    stream = SimpleNamespace(synchronize=lambda: order.append("wait"))

    def old() -> None:
        order.append("old")
        time.sleep(0.002)

    times = list(host._in_turns(old, lambda: order.append("bare"), stream, 2))
    assert len(times) == 2
    assert all(call > 2000 > bare for call, bare in times)
    turn = {name: ["wait", *[name] * host.TURN] for name in ("old", "bare")}
    assert order[-4 * (host.TURN + 1) :] == [
        *turn["bare"], *turn["old"], *turn["old"], *turn["bare"],
    ]  # fmt: skip
