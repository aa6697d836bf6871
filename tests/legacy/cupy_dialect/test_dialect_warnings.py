"""Each entry point warns once per call site, at the caller's own line."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudnn_compat.legacy import LegacyAPIWarning, RemovedIn3Warning
from cudnn_compat.legacy.cupy import CuDNNError, cudnn, libcudnn
from cudnn_compat.legacy.deprecations import record_calls
from cudnn_compat.legacy.table import TABLE, LegacyName

ROWS = [row for row in TABLE if ".cupy." in row.old and row.kind in ("function", "class")]
X = np.ones((2, 3), "float32")


def quietly(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LegacyAPIWarning)
        return call()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_a_call_warns_with_its_row_at_the_callers_line(row: LegacyName) -> None:
    module = cudnn if ".cudnn." in row.old else libcudnn
    entry = getattr(module, row.name)
    count = sum(each.default is each.empty for each in inspect.signature(entry).parameters.values())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
            entry(*[None] * count)
        except (CuDNNError, TypeError, ValueError, AttributeError):
            pass  # the arguments are nonsense: it warns before it looks at them
    (warning,) = caught
    assert str(warning.message) == row.message
    assert warning.category is RemovedIn3Warning
    assert (warning.filename, warning.lineno) == (__file__, line)


def test_methods_warn_by_their_own_names() -> None:
    states = quietly(lambda: cudnn.DropoutStates(None, 0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        states.set_dropout_ratio(0.5)
        reserve, y = states.forward(None, X, 0.5)
        states.backward(None, y, 0.5, reserve)
    assert [str(each.message)[:7] for each in caught] == ["[CC113]", "[CC114]", "[CC115]"]
    assert len({each.lineno for each in caught}) == 3


def test_a_line_warns_once_however_often_it_runs_and_whatever_the_shapes() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for size in range(1, 6):
            cudnn.softmax_forward(np.ones((size, 3)), 1, 1)
    (warning,) = caught
    assert str(warning.message).startswith("[CC130]")


def test_calls_of_our_own_do_not_count() -> None:
    with record_calls() as recorder:
        quietly(lambda: cudnn.create_rnn_descriptor(4, 1, None, 0, 0, 2, 0))
        quietly(lambda: cudnn.DropoutStates(None, 0))
    assert [code for code, _, _ in recorder.calls] == ["CC109", "CC112"]


def test_a_descriptor_that_dies_does_not_warn() -> None:
    owner = quietly(
        lambda: cudnn.Descriptor(
            libcudnn.createTensorDescriptor(), libcudnn.destroyTensorDescriptor
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del owner


def test_a_warning_can_be_an_error_and_then_nothing_is_done() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", LegacyAPIWarning)
        with pytest.raises(RemovedIn3Warning, match=r"\[CC141\]"):
            cudnn.set_max_workspace_size(3)
    assert quietly(cudnn.get_max_workspace_size) != 3
