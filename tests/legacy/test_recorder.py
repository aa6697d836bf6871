"""`record_calls` counts every old call, shown or not, from every thread."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

from cudnn_compat import legacy
from cudnn_compat.legacy import LegacyAPIWarning
from cudnn_compat.legacy.deprecations import record_calls

X, H = np.ones((3, 2), "float32"), np.ones((4, 2), "float32")


@pytest.fixture
def desc() -> legacy.RNNDesc:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LegacyAPIWarning)
        return legacy.RNNDesc(legacy.CUDNN_GRU, 3, 4)


@pytest.mark.parametrize("action", ["ignore", "default", "always"])
def test_each_call_is_counted_by_code_file_and_line(desc: legacy.RNNDesc, action: str) -> None:
    def calls() -> None:
        legacy.forward(desc, X, H)
        legacy.ngates(desc)

    with warnings.catch_warnings(record=True):
        warnings.simplefilter(action)
        calls()
        with record_calls() as recorder:
            for _ in range(3):
                calls()
        calls()
    line = calls.__code__.co_firstlineno
    assert recorder.calls == {("CC012", __file__, line + 1): 3, ("CC020", __file__, line + 2): 3}


def test_a_call_that_raises_its_warning_is_counted(desc: legacy.RNNDesc) -> None:
    with warnings.catch_warnings(), record_calls() as recorder:
        warnings.simplefilter("error")
        with pytest.raises(LegacyAPIWarning):
            legacy.ngates(desc)
    assert list(recorder.calls.values()) == [1]


@pytest.mark.filterwarnings("ignore::cudnn_compat.legacy.LegacyAPIWarning")
def test_a_call_that_uses_another_counts_once(desc: legacy.RNNDesc) -> None:
    with record_calls() as recorder:
        (y, _), back = legacy.pullback(desc, X, H)
        back(y, None)
    ((code, _, _),) = recorder.calls
    assert code == "CC016"
    assert list(recorder.calls.values()) == [1]


@pytest.mark.filterwarnings("ignore::cudnn_compat.legacy.LegacyAPIWarning")
def test_calls_of_all_threads_are_counted(desc: legacy.RNNDesc) -> None:
    def work() -> None:
        for _ in range(200):
            legacy.ngates(desc)

    with record_calls() as recorder:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert recorder.calls == {("CC020", __file__, work.__code__.co_firstlineno + 2): 1600}


@pytest.mark.filterwarnings("ignore::cudnn_compat.legacy.LegacyAPIWarning")
def test_recorders_may_be_nested_and_end_with_an_exception(desc: legacy.RNNDesc) -> None:
    def fails() -> None:
        with record_calls() as inner:
            recorders.append(inner)
            legacy.ngates(desc)
            raise ZeroDivisionError

    recorders = []
    with record_calls() as outer:
        legacy.ngates(desc)
        with pytest.raises(ZeroDivisionError):
            fails()
        legacy.ngates(desc)
    legacy.ngates(desc)
    assert sum(outer.calls.values()) == 3
    assert sum(recorders[0].calls.values()) == 1
