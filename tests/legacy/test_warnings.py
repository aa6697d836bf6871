"""Every old call warns once per call site, at the caller's own line."""

from __future__ import annotations

import _thread
import copy
import inspect
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudnn_compat import legacy
from cudnn_compat.legacy import LegacyAPIWarning, RemovedIn3Warning
from cudnn_compat.legacy.deprecations import record_calls
from cudnn_compat.legacy.table import TABLE, find

X, H = np.ones((3, 2), "float32"), np.ones((4, 2), "float32")


def quietly(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LegacyAPIWarning)
        return call()


def descriptor() -> legacy.RNNDesc:
    return quietly(lambda: legacy.RNNDesc(legacy.CUDNN_GRU, 3, 4))


def trained(desc: legacy.RNNDesc) -> Any:
    return quietly(lambda: legacy.forwardTrain(desc, X, H)[0])


def with_data(desc: legacy.RNNDesc) -> Any:
    reserve = trained(desc)
    quietly(lambda: legacy.backwardData(desc, H, H, None, H, reserve))
    return reserve


WEIGHTS = np.ones((12, 3), "float32"), np.ones((12, 4), "float32"), np.ones(12, "float32")
CALLS: dict[str, Callable[[legacy.RNNDesc], Callable[[], Any]]] = {
    "RNNDesc": lambda d: lambda: legacy.RNNDesc(legacy.CUDNN_GRU, 3, 4),
    "setweights": lambda d: lambda: legacy.setweights(d, *WEIGHTS),
    "forward": lambda d: lambda: legacy.forward(d, X, H),
    "forwardTrain": lambda d: lambda: legacy.forwardTrain(d, X, H),
    "backwardData": lambda d: (
        lambda r=trained(d): legacy.backwardData(d, H, H, None, H, r)  # noqa: B008
    ),
    "backwardWeights": lambda d: (
        lambda r=with_data(d): legacy.backwardWeights(d, X, H, H, r)  # noqa: B008
    ),
    "pullback": lambda d: lambda: legacy.pullback(d, X, H),
    "ngates": lambda d: lambda: legacy.ngates(d),
    "params": lambda d: lambda: legacy.params(d.params, 3, 4, 3),
    "hBatch": lambda d: lambda: legacy.hBatch(X, H),
    "hDesc": lambda d: lambda: legacy.hDesc(H),
    "xDesc": lambda d: lambda: legacy.xDesc(X),
}
"""One call of every callable old name, on one line of this file."""

each_call = pytest.mark.parametrize("name", CALLS)


def line_of(call: Callable[[], Any]) -> int:
    return inspect.unwrap(call).__code__.co_firstlineno


def test_every_callable_old_name_is_called_here() -> None:
    here = [row for row in TABLE if row.module == "cudnn_compat.legacy"]
    assert set(CALLS) == {row.name for row in here if row.kind != "constant"}


@each_call
def test_a_call_warns_with_its_row_at_the_callers_line(name: str) -> None:
    call = CALLS[name](descriptor())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    (warning,) = caught
    row = find(name)
    assert row is not None
    assert str(warning.message) == row.message
    assert warning.category is RemovedIn3Warning
    assert warning.filename == __file__
    assert warning.lineno == line_of(call)


def test_the_classes_are_deprecation_warnings_by_removal_version() -> None:
    assert issubclass(RemovedIn3Warning, LegacyAPIWarning)
    assert issubclass(LegacyAPIWarning, DeprecationWarning)


@each_call
def test_a_call_warns_once_per_site(name: str) -> None:
    desc = descriptor()
    calls = [CALLS[name](desc) for _ in range(5)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for call in calls:
            call()
    assert len(caught) == 1


def test_two_lines_are_two_sites_and_new_shapes_are_not() -> None:
    desc = descriptor()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for batch in (1, 2, 3):
            x, h = np.ones((3, batch), "float32"), np.ones((4, batch), "float32")
            legacy.forward(desc, x, h)
            legacy.forward(desc, x, h)
    first, second = caught
    assert second.lineno == first.lineno + 1


def test_a_call_through_a_helper_is_reported_in_the_helper() -> None:
    desc = descriptor()

    def outer() -> None:
        inner()

    def inner() -> None:
        legacy.forward(desc, X, H)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        outer()
        outer()
        inner()
    (warning,) = caught
    assert warning.lineno == inner.__code__.co_firstlineno + 1


def test_a_subclass_is_reported_where_it_calls_the_old_constructor() -> None:
    class Mine(legacy.RNNDesc):
        def __init__(self) -> None:
            super().__init__(legacy.CUDNN_GRU, 3, 4)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        Mine()
        Mine()
    (warning,) = caught
    assert warning.lineno == Mine.__init__.__code__.co_firstlineno + 1


def test_an_old_call_that_uses_another_warns_for_the_name_that_was_called() -> None:
    desc = descriptor()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        legacy.forward(desc, X, H, None, True)
        (y, _), back = legacy.pullback(desc, X, H)
        back(y, None)
        legacy.forwardTrain(desc, X, H)
    named = [str(warning.message).split()[1].rpartition(".")[2] for warning in caught]
    assert named == ["forward", "pullback", "forwardTrain"]


def test_importing_copying_and_reading_attributes_do_not_warn() -> None:
    desc = descriptor()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from cudnn_compat.legacy import CUDNN_LSTM, RNNDesc, forward

        assert CUDNN_LSTM == 2
        assert callable(forward)
        assert RNNDesc["float64"].__name__
        _ = desc.weights, desc.bias, desc.params, desc.mode
        for twin in (copy.copy(desc), copy.deepcopy(desc), pickle.loads(pickle.dumps(desc))):
            assert twin.mode == desc.mode


@each_call
def test_a_warning_can_be_an_error(name: str) -> None:
    call = CALLS[name](descriptor())
    with warnings.catch_warnings():
        warnings.simplefilter("error", LegacyAPIWarning)
        for _ in range(2):
            with pytest.raises(RemovedIn3Warning, match=rf"legacy\.{name} is deprecated"):
                call()


def test_a_code_silences_its_own_name_alone() -> None:
    desc = descriptor()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message=r"\[CC012\]")
        legacy.forward(desc, X, H)
        legacy.ngates(desc)
    assert [str(warning.message)[:7] for warning in caught] == ["[CC020]"]


@pytest.mark.parametrize("category", [LegacyAPIWarning, RemovedIn3Warning, DeprecationWarning])
def test_a_class_silences_all(category: type[Warning]) -> None:
    desc = descriptor()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", category)
        legacy.forward(desc, X, H)
        legacy.ngates(desc)
    assert not caught


@pytest.mark.parametrize("first", ["ignore", "default", "always", "once", "module"])
def test_a_site_that_has_been_silent_obeys_filters_that_are_set_later(first: str) -> None:
    desc = descriptor()

    def call() -> None:
        legacy.forward(desc, X, H)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(first)
        for _ in range(3):
            call()
        seen = len(caught)
        assert seen == {"ignore": 0, "always": 3}.get(first, 1)
        warnings.simplefilter("error", LegacyAPIWarning)
        with pytest.raises(LegacyAPIWarning):
            call()
        warnings.filterwarnings("always", message=r"\[CC012\]")
        call()
        call()
        assert len(caught) == seen + 2
        warnings.resetwarnings()
        warnings.filterwarnings("error", category=LegacyAPIWarning, append=True)
        with pytest.raises(LegacyAPIWarning):
            call()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
        with pytest.raises(LegacyAPIWarning):
            call()
    assert len(caught) == seen + 2


def test_filters_by_module_and_line_decide_for_their_sites_only() -> None:
    desc = descriptor()

    def one() -> None:
        legacy.forward(desc, X, H)

    def other() -> None:
        legacy.forward(desc, X, H)

    line = one.__code__.co_firstlineno + 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", module=r"numpy")
        warnings.filterwarnings("always", module=__name__.replace(".", r"\."), lineno=line)
        warnings.filterwarnings("ignore", module=__name__.replace(".", r"\."), append=True)
        for _ in range(3):
            one()
            other()
    assert [warning.lineno for warning in caught] == [line] * 3


def test_a_file_of_our_own_between_caller_and_old_call_is_passed_over() -> None:
    """As for a dialect that uses another one's public names."""
    ours = str(Path(legacy.__file__).with_name("dialect.py"))
    names: dict[str, Any] = {"legacy": legacy}
    exec(compile("def ask(desc):\n    legacy.ngates(desc)\n", ours, "exec"), names)
    ask, desc = names["ask"], descriptor()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            ask(desc)
            ask(desc)
    first, second = caught
    assert (first.filename, second.filename) == (__file__, __file__)
    assert second.lineno == first.lineno + 1


def test_many_threads_at_one_line_are_one_site() -> None:
    desc = descriptor()
    count = 8
    start = threading.Barrier(count)
    interval = sys.getswitchinterval()

    def work() -> None:
        start.wait()
        for _ in range(20):
            legacy.forward(desc, X, H)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=work) for _ in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
    (warning,) = caught
    assert warning.lineno == work.__code__.co_firstlineno + 3


def test_a_call_without_a_python_caller_warns_and_counts_too() -> None:
    desc = descriptor()
    with warnings.catch_warnings(record=True) as caught, record_calls() as recorder:
        warnings.simplefilter("always")
        _thread.start_new_thread(legacy.ngates, (desc,))
        for _ in range(500):
            if caught:
                break
            time.sleep(0.01)
    (warning,) = caught
    assert str(warning.message).startswith("[CC020]")
    assert recorder.calls == {("CC020", "sys", 1): 1}
