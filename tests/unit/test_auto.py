"""How ``algo="auto"`` finds its way, without a GPU: stand-ins for plans, times and memory."""

from __future__ import annotations

import contextlib
import gc
import types
from collections.abc import Iterator
from typing import Any

import pytest

from cudnn_compat import v2
from cudnn_compat.engines.cudnn import choice
from cudnn_compat.engines.cudnn.algorithms import Way, ways
from cudnn_compat.engines.cudnn.choice import Choice
from cudnn_compat.engines.cudnn.graphs import slots
from cudnn_compat.engines.cudnn.graphs.recording import Places
from cudnn_compat.engines.cudnn.graphs.slots import Slot, Store
from cudnn_compat.engines.cudnn.plan import Shape
from cudnn_compat.engines.cudnn.selection import _name
from cudnn_compat.errors import UnsupportedError

STANDARD, GRAPH, STATIC = Way("standard", False), Way("standard", True), Way("persist_static", True)
FUSED = Way("fused", False)


def shape(spec: v2.RNNSpec | None = None, **changes: Any) -> Shape:
    fields = {
        "layout": "time_major",
        "steps": 100,
        "batch": 64,
        "ragged": False,
        "training": False,
        "device": "cuda:0",
    }
    return Shape(spec or v2.RNNSpec("lstm", 512, 512), **{**fields, **changes})


class Plan:
    """A way that takes a given time."""

    def __init__(self, way: Way, ready: bool = True) -> None:
        self.way = way
        self.algo = way.algo
        self.ready = ready
        self.trial: Any = None
        self.calls = 0

    def release(self) -> None:
        pass


class Clock:
    """Times that calls take, by the name of their way; stands in for events."""

    def __init__(self, **times: float) -> None:
        self.times = {name.replace("_graph", "+graph"): time for name, time in times.items()}
        self.done = True
        self.session: Any = None

    def trial(self) -> Any:
        clock = self

        class Trial:
            def __init__(self) -> None:
                self.seen: dict[str, list[float]] = {}

            @property
            def forwards(self) -> int:
                return len(self.seen.get("forward", ()))

            @property
            def done(self) -> bool:
                return clock.done

            def times(self, session: Any) -> dict[str, float]:
                return {stage: min(times) for stage, times in self.seen.items()}

        return Trial()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock(standard=10.0, standard_graph=5.0, fused=2.0)
    monkeypatch.setattr(choice, "Trial", made.trial)
    session = types.SimpleNamespace(capturing=False)
    monkeypatch.setattr(choice, "Session", lambda device: contextlib.nullcontext(session))
    made.session = session
    return made


class Auto:
    """A choice between ways, and what came of it."""

    def __init__(
        self,
        clock: Clock,
        *names: Way,
        refused: tuple[Way, ...] = (),
        training: bool = False,
    ) -> None:
        self.clock = clock
        self.plans: dict[Way, Plan] = {}
        self.refused = refused
        self.learnt: list[tuple[Way, dict[str, float]]] = []
        self.choice = Choice(
            shape(training=training),
            names,
            self.make,  # type: ignore[arg-type]
            self.learn,
        )

    def make(self, way: Way) -> Plan:
        if way in self.refused:
            raise UnsupportedError("not here")
        return self.plans.setdefault(way, Plan(way, ready=way != FUSED))

    def learn(self, best: Way, times: dict[str, float]) -> None:
        self.learnt.append((best, times))

    def call(self) -> str:
        return str(self.begin().way.name)

    def begin(self) -> Any:
        """One forward; the plan that served it."""
        plan: Any = self.choice.current()
        self.time(plan, "forward")
        plan.calls += 1
        return plan

    def time(self, plan: Any, stage: str) -> None:
        if plan.trial is not None:
            plan.trial.seen.setdefault(stage, []).append(self.clock.times[plan.way.name])


def test_each_way_serves_five_calls_of_which_four_are_timed_then_the_best_stays(
    clock: Clock,
) -> None:
    auto = Auto(clock, STANDARD, GRAPH)
    assert [auto.call() for _ in range(13)] == ["standard"] * 5 + ["standard+graph"] * 8
    assert auto.learnt == [(GRAPH, {"standard": 10.0, "standard+graph": 5.0})]
    assert auto.choice.settled
    assert auto.choice.algo == "standard"


def test_what_is_hardly_better_than_the_guess_does_not_replace_it(clock: Clock) -> None:
    clock.times["persist_static+graph"] = 9.8
    auto = Auto(clock, STANDARD, STATIC)
    assert [auto.call() for _ in range(13)][-3:] == ["standard"] * 3


@pytest.mark.parametrize(("time", "stays"), [(9.8, GRAPH), (10.0, GRAPH), (10.1, STANDARD)])
def test_the_graph_of_the_guess_replaces_it_where_it_is_no_slower(
    time: float, stays: Way, clock: Clock
) -> None:
    clock.times |= {"standard+graph": time, "persist_static+graph": 9.9}
    auto = Auto(clock, STANDARD, STATIC, GRAPH)
    assert [auto.call() for _ in range(18)][-3:] == [stays.name] * 3
    assert auto.learnt[0][0] == stays


def test_what_is_refused_is_left_out(clock: Clock) -> None:
    auto = Auto(clock, STANDARD, STATIC, GRAPH, refused=(STATIC,))
    assert {auto.call() for _ in range(15)} == {"standard", "standard+graph"}
    assert auto.learnt[0][1] == {"standard": 10, "standard+graph": 5, "persist_static+graph": None}


def test_what_could_never_be_timed_is_not_remembered(clock: Clock) -> None:
    auto = Auto(clock, STANDARD, GRAPH)
    for _ in range(60):
        auto.choice.current()
    assert auto.learnt == []


def test_nobody_waits_for_kernels_that_are_being_compiled(clock: Clock) -> None:
    auto = Auto(clock, STANDARD, FUSED, GRAPH)
    names = [auto.call() for _ in range(16)]
    assert names == ["standard"] * 5 + ["standard+graph"] * 11  # the best that there is
    assert not auto.choice.settled
    auto.plans[FUSED].ready = True
    assert [auto.call() for _ in range(8)] == ["fused"] * 8
    assert auto.learnt[0][0] == FUSED


def test_a_way_to_train_serves_meanwhile_only_once_it_has_gone_back(clock: Clock) -> None:
    auto = Auto(clock, STANDARD, FUSED, GRAPH, training=True)
    plans = [auto.begin() for _ in range(12)]
    assert [plan.way.name for plan in plans[10:]] == ["standard"] * 2
    for plan in plans:
        auto.time(plan, "backward")
    assert [auto.call() for _ in range(3)] == ["standard+graph"] * 3
    assert not auto.choice.settled
    auto.plans[FUSED].ready = True  # and while it is not known how long its backward takes
    assert [auto.call() for _ in range(8)] == ["fused"] * 5 + ["standard+graph"] * 3


def test_nobody_waits_for_the_device_to_come_to_the_last_event(clock: Clock) -> None:
    auto = Auto(clock, STANDARD, GRAPH)
    clock.done = False
    assert [auto.call() for _ in range(13)][-3:] == ["standard"] * 3
    clock.done = True
    assert auto.call() == "standard+graph"


def test_a_way_that_is_known_to_be_best_is_taken_once_it_is_ready(clock: Clock) -> None:
    plans = {way: Plan(way, ready=way != FUSED) for way in (STANDARD, FUSED)}
    made = Choice(shape(), (STANDARD, FUSED), plans.__getitem__, None)  # type: ignore[arg-type]
    assert made.current() is plans[STANDARD]
    assert not made.settled
    plans[FUSED].ready = True
    assert made.current() is plans[FUSED]
    assert made.settled
    assert made.algo == "fused"


def test_kernels_that_do_not_compile_are_forgotten(clock: Clock) -> None:
    class Broken(Plan):
        @property  # type: ignore[override]
        def ready(self) -> bool:
            raise UnsupportedError("no compiler")

        @ready.setter
        def ready(self, value: bool) -> None:
            pass

    plans = {STANDARD: Plan(STANDARD), FUSED: Broken(FUSED)}
    made = Choice(shape(), (STANDARD, FUSED), plans.__getitem__, None)  # type: ignore[arg-type]
    assert made.current() is plans[STANDARD]
    assert made.settled


def test_inside_a_capture_the_guess_serves_and_nothing_is_counted(clock: Clock) -> None:
    auto = Auto(clock, STANDARD, GRAPH)
    clock.session.capturing = True
    assert {auto.call() for _ in range(30)} == {"standard"}
    assert not auto.choice.settled
    clock.session.capturing = False
    assert [auto.call() for _ in range(13)] == ["standard"] * 5 + ["standard+graph"] * 8


def test_backwards_that_come_late_are_timed_with_their_forwards(clock: Clock) -> None:
    auto = Auto(clock, STANDARD, GRAPH, training=True)
    for _ in range(3):
        plans = [auto.begin() for _ in range(6)]
        for plan in plans:
            auto.time(plan, "data")
            auto.time(plan, "weights")
    assert auto.learnt == [(GRAPH, {"standard": 30.0, "standard+graph": 15.0})]


@pytest.mark.parametrize(
    "passes", [("backward",), ("data", "weights"), ("data", "weights", "backward")]
)
def test_both_passes_backward_count_at_once_or_one_by_one(
    passes: tuple[str, ...], clock: Clock
) -> None:
    auto = Auto(clock, STANDARD, GRAPH, training=True)
    for _ in range(12):
        plan = auto.begin()
        for stage in passes:
            auto.time(plan, stage)
    assert [way for way, _ in auto.learnt] == [GRAPH]


def test_a_way_to_train_is_not_remembered_before_it_has_gone_back(clock: Clock) -> None:
    auto = Auto(clock, STANDARD, GRAPH, training=True)
    assert [auto.call() for _ in range(10)] == ["standard"] * 5 + ["standard+graph"] * 5
    assert [auto.call() for _ in range(16)] == ["standard"] * 16
    assert auto.call() == "standard+graph"
    assert auto.learnt == []


def test_who_asks_about_the_last_call_begins_no_other(clock: Clock) -> None:
    auto = Auto(clock, STANDARD, GRAPH)
    assert auto.choice.latest() is auto.plans[STANDARD]
    for _ in range(5):
        plan = auto.begin()
        assert auto.choice.latest() is plan
        assert auto.choice.latest() is plan
    assert auto.call() == "standard+graph"


def test_full_precision_is_standard_s_plainly_or_as_a_graph() -> None:
    guesses, others = ways(shape(v2.RNNSpec("lstm", 64, 64, math="full")))
    assert guesses == (STANDARD,)
    assert others == (GRAPH,)


def test_unequal_lengths_are_never_recorded() -> None:
    guesses, others = ways(shape(ragged=True))
    assert guesses == (STANDARD,)
    assert others == ()


def test_a_named_algorithm_is_the_only_one_plainly_or_as_a_graph() -> None:
    guesses, others = ways(shape(v2.RNNSpec("tanh", 64, 64, algo="persist_dynamic")))
    assert {way.algo for way in guesses + others} == {"persist_dynamic"}


def test_graphs_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDNN_COMPAT_GRAPHS", "off")
    _, others = ways(shape())
    assert not any(way.graph for way in others)


@pytest.mark.parametrize("steps", [9, 100, 5000])
def test_standard_is_not_tried_where_a_small_persistent_kernel_is_known_to_win(steps: int) -> None:
    guesses, others = ways(shape(v2.RNNSpec("lstm", 64, 64), steps=steps, batch=8))
    assert guesses[0].algo == "persist_small_h"
    assert GRAPH not in others


@pytest.mark.parametrize(("batch", "tried"), [(1, False), (64, True)])
def test_standard_is_tried_beside_persist_static_only_where_it_is_close(
    batch: int, tried: bool
) -> None:
    size = 128 if batch == 1 else 512
    spec = v2.RNNSpec("lstm", size, size, dtype="float32" if batch == 1 else "float16")
    guesses, others = ways(shape(spec, batch=batch, steps=1000))
    assert guesses[0].algo == "persist_static"
    assert (GRAPH in others) == tried


def test_so_many_steps_that_a_graph_of_standard_were_huge_are_not_recorded() -> None:
    assert GRAPH not in ways(shape(steps=20_000))[1]


@pytest.mark.parametrize(("steps", "name"), [(1, "1"), (16, "16"), (17, "≤24"), (100, "≤128")])
def test_steps_are_remembered_in_classes(steps: int, name: str) -> None:
    assert _name(shape(steps=steps)).startswith(f"lstm {name}×64×512×512")


@pytest.mark.parametrize("steps", range(17, 2000, 37))
def test_a_class_reaches_no_further_than_half_as_many_steps_again(steps: int) -> None:
    top = int(_name(shape(steps=steps)).split("≤")[1].split("×")[0])
    assert steps <= top <= 1.5 * steps


def test_whatever_matters_to_speed_has_a_name_of_its_own() -> None:
    specs = [
        v2.RNNSpec("lstm", 512, 512),
        v2.RNNSpec("gru", 512, 512),
        v2.RNNSpec("lstm", 512, 512, num_layers=2),
        v2.RNNSpec("lstm", 512, 512, bidirectional=True),
        v2.RNNSpec("lstm", 512, 512, dtype="float16"),
        v2.RNNSpec("lstm", 512, 512, math="full"),
        v2.RNNSpec("lstm", 512, 512, bias="none"),
        v2.RNNSpec("lstm", 512, 512, input_mode="skip"),
        v2.RNNSpec("lstm", 512, 512, proj_size=128),
        v2.RNNSpec("lstm", 512, 512, clip=(-1, 1)),
        v2.RNNSpec("lstm", 512, 512, algo="standard"),
    ]
    shapes = [shape(spec) for spec in specs]
    shapes += [shape(training=True), shape(ragged=True), shape(layout="packed"), shape(batch=1)]
    dropping = v2.RNNSpec("lstm", 512, 512, num_layers=2, dropout=0.5)
    shapes += [shape(dropping, training=True)]
    assert len({_name(one) for one in shapes}) == len(shapes)


class Memory:
    """A session of which only the memory is asked."""

    device = 0
    stream = "stream"

    def __init__(self, total: int) -> None:
        runtime = types.SimpleNamespace(memGetInfo=lambda: (0, total))
        self.xp = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime))


def make_slot(store: Store, session: Any) -> Slot:
    home: list[Slot] = []
    owner = Owner()
    owner.store = store
    slot = Slot(None, session, home, owner)  # type: ignore[arg-type]
    owners.append(owner)
    home.append(slot)
    return slot


class Owner:
    """A plan's replays."""

    store: Store


owners: list[Owner] = []


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [1000.0]
    monkeypatch.setattr(slots.time, "monotonic", lambda: time[0])
    return time


def test_slots_take_no_more_than_their_part_of_the_memory(now: list[float]) -> None:
    store, session = Store(), Memory(8000)
    first, second = (make_slot(store, session) for _ in range(2))
    assert store.admit(first, 600)
    first.used = slots.time.monotonic()
    assert not store.admit(second, 600)
    assert store.bytes == 600


def test_a_slot_that_has_rested_gives_way(now: list[float]) -> None:
    store, session = Store(), Memory(8000)
    first, second = (make_slot(store, session) for _ in range(2))
    assert store.admit(first, 600)
    first.used = slots.time.monotonic()
    now[0] += 60
    assert store.admit(second, 600)
    assert store.bytes == 600
    assert first.home == []


def test_slots_whose_plan_is_gone_give_way_first(now: list[float]) -> None:
    store, session = Store(), Memory(8000)
    first = make_slot(store, session)
    assert store.admit(first, 600)
    first.used = slots.time.monotonic()
    owners.clear()
    gc.collect()
    assert store.admit(make_slot(store, session), 600)
    assert first.home == []


def test_memory_that_was_not_to_be_had_is_not_counted(now: list[float]) -> None:
    store, session = Store(), Memory(8000)
    slot = make_slot(store, session)
    for _ in range(5):
        assert store.admit(slot, 600)
        store.give_back(slot, 600)
    assert store.bytes == 0


@pytest.mark.parametrize("state", ["busy", "leased"])
def test_a_slot_in_use_never_gives_way(state: str, now: list[float]) -> None:
    store, session = Store(), Memory(8000)
    first, second = (make_slot(store, session) for _ in range(2))
    assert store.admit(first, 600)
    setattr(first, state, True)
    now[0] += 60
    assert not store.admit(second, 600)


def test_a_store_that_is_cleared_has_given_everything_back(now: list[float]) -> None:
    store, session = Store(), Memory(8000)
    slot = make_slot(store, session)
    assert store.admit(slot, 600)
    slot.leased = True
    store.clear()
    assert store.bytes == 0
    assert slot.home == []
    assert store.admit(slot, 10)
    store.clear()
    assert store.bytes == 0


def test_a_slot_that_was_let_go_keeps_no_results(now: list[float]) -> None:
    store = Store()
    slot, orphan = (make_slot(store, Memory(8000)) for _ in range(2))
    assert slot._admit(600)
    assert not slot._admit(600)
    assert store.bytes == 600
    slot.leased = True
    store.clear()
    assert not slot._admit(100)
    assert store.bytes == 0
    owners.clear()
    gc.collect()
    assert not orphan._admit(100)


def test_scratch_that_is_large_enough_serves_another_call_and_stays_where_it_is(
    now: list[float],
) -> None:
    slot = make_slot(Store(), Memory(8000))
    made: list[int] = []

    def take(size: int) -> object:
        made.append(size)
        return types.SimpleNamespace(data=types.SimpleNamespace(ptr=1000 * len(made)))

    session: Any = types.SimpleNamespace(bytes=take)
    for size, place in ((300, 1000), (200, 1000), (500, 2000), (300, 1000), (400, 2000)):
        name = slot.workspace(size)
        slot.grow(session, {name: size})
        assert slot.address(name) == place
    assert made == [300, 500]


HERE, THERE = ((1,), (2,)), ((3,), (4,))


def test_a_place_is_recorded_once_all_arrays_have_stayed_there() -> None:
    places = Places()
    assert [places.come_back(HERE) for _ in range(12)] == [False] * 8 + [True] * 4


def test_places_that_take_turns_are_both_recorded() -> None:
    places = Places()
    for _ in range(20):
        for where in (HERE, THERE):
            if where not in places.bound and places.come_back(where):
                places.bind(where, where)  # type: ignore[arg-type]
    assert places.bound == {HERE: HERE, THERE: THERE}


def test_a_place_that_is_left_for_good_is_followed_a_few_times() -> None:
    places, recorded = Places(), []
    for number in range(10):
        where = ((number,), ())
        for _ in range(20):
            if where not in places.bound and places.come_back(where):
                recorded.append(number)
                places.bind(where, where)  # type: ignore[arg-type]
    assert recorded == [0, 1, 2]
    assert list(places.bound) == [((1,), ()), ((2,), ())]


def test_arrays_that_are_elsewhere_each_time_are_never_recorded_in_place() -> None:
    places = Places()
    assert not any(places.come_back(((number % 7,), ())) for number in range(200))


def test_a_place_that_cannot_be_recorded_is_given_up() -> None:
    places = Places()
    places.give_up()
    assert not any(places.come_back(HERE) for _ in range(20))
