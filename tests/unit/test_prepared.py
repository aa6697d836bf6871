"""Calls that come back: what tells them apart, and the plan that serves them."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.engines.choose import numpy_engine
from cudnn_compat.engines.cudnn.graphs.stages import BACKWARD, DATA, FORWARD, WEIGHTS, key_of
from cudnn_compat.v2 import prepared
from cudnn_compat.v2.prepared import signature

SPEC = v2.RNNSpec("lstm", 3, 4)
W = v2.init_weights(SPEC, seed=0)
X = np.zeros((2, 5, 3), "float32")
H = np.zeros((1, 5, 4), "float32")


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "_calls", {})
    v2.clear_plans()


def test_calls_that_differ_in_anything_that_is_checked_have_different_signatures() -> None:
    other = v2.RNNSpec("lstm", 3, 4, math="full")
    calls = [
        (SPEC, "time_major", None, W, X, None, None),
        (other, "time_major", None, W, X, None, None),
        (SPEC, "batch_major", None, W, X, None, None),
        (SPEC, "time_major", "numpy", W, X, None, None),
        (SPEC, "time_major", None, W[:-1], X, None, None),
        (SPEC, "time_major", None, W.astype("float64"), X, None, None),
        (SPEC, "time_major", None, W, X[:1], None, None),
        (SPEC, "time_major", None, W, X.astype("float16"), None, None),
        (SPEC, "time_major", None, W, X, H, None),
        (SPEC, "time_major", None, W, X, None, H),
        (SPEC, "time_major", None, W, X, H, H),
        (SPEC, "time_major", None, W, X, H[:, :1], H),
        (SPEC, "time_major", None, W, X, H, H.astype("float64")),
    ]
    seen = [signature(*call) for call in calls]
    assert None not in seen
    assert len(set(seen)) == len(calls)
    assert [signature(*call) for call in calls] == seen


@pytest.mark.parametrize(
    "call",
    [
        ("lstm", "time_major", None, W, X, None, None),
        (SPEC, ["time_major"], None, W, X, None, None),
        (SPEC, "time_major", numpy_engine, W, X, None, None),
        (SPEC, "time_major", None, list(W), X, None, None),
        (SPEC, "time_major", None, W, W.view(np.matrix), None, None),
        (SPEC, "time_major", None, W, X, [H], None),
        (SPEC, "time_major", None, W, X, H, np.ma.masked_array(H)),
    ],
    ids=["spec", "layout", "engine", "w", "x", "hx", "cx"],
)
def test_what_has_to_be_looked_at_closer_has_no_signature(call: Any) -> None:
    assert signature(*call) is None


def test_a_call_that_comes_back_is_served_by_the_plan_that_is_kept() -> None:
    for _ in range(3):
        v2.rnn_forward(SPEC, W, X)
        v2.rnn_backward(v2.rnn_forward(SPEC, W, X, training=True))
    assert sorted(plan.training for plan in v2.plans()) == [False, True]


def test_plans_that_were_cleared_are_made_anew_and_not_kept_by_what_is_remembered() -> None:
    v2.rnn_forward(SPEC, W, X)
    gone = weakref.ref(numpy_engine().plans.entries()[0])
    v2.clear_plans()
    gc.collect()
    assert gone() is None
    assert v2.plans() == ()
    wanted = v2.rnn_forward(SPEC, W, X).y
    assert len(v2.plans()) == 1
    assert np.array_equal(v2.rnn_forward(SPEC, W, X).y, wanted)


def test_a_plan_that_serves_calls_that_come_back_counts_as_used() -> None:
    cache = numpy_engine().plans
    v2.rnn_forward(SPEC, W, X)
    for steps in range(3, cache.maxsize + 50):
        v2.rnn_forward(SPEC, W, np.zeros((steps, 1, 3), "float32"))
        v2.rnn_forward(SPEC, W, X)
    assert (2, 5) in [(plan.steps, plan.batch) for plan in v2.plans()]


@pytest.mark.parametrize("stage", [FORWARD, DATA, WEIGHTS, BACKWARD], ids=lambda stage: stage.name)
def test_recordings_of_one_stage_are_told_apart_by_which_arrays_there_are(stage: Any) -> None:
    places = len(stage.reads) + len(stage.writes)
    seen = set()
    for there in itertools.product((0, 512), repeat=places):
        given, wanted = there[: len(stage.reads)], there[len(stage.reads) :]
        key = key_of(stage, "network", given, wanted)
        assert key == key_of(stage, "network", tuple(map(bool, given)), tuple(map(bool, wanted)))
        seen.add(key)
    assert len(seen) == 2**places
    assert key_of(stage, "another", given, wanted) not in seen
