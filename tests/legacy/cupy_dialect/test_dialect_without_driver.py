"""CuPy is installed, and there is no GPU: NumPy arrays are computed on all the same."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from cudnn_compat.legacy.cupy import cudnn, handles, libcudnn
from tests.legacy.cupy_dialect.dialect import step_tensors


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What CuPy 13 does where the driver is missing: the first question raises."""

    def is_available() -> bool:
        raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    cupy = SimpleNamespace(cuda=SimpleNamespace(is_available=is_available))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    handles._gpu_is_usable.cache_clear()
    yield
    handles._gpu_is_usable.cache_clear()


@pytest.mark.usefixtures("no_driver")
def test_the_first_call_gives_a_host_handle_where_cupy_raises() -> None:
    assert handles.current_device() is None
    x = np.ones(1000, "float32")
    _, y = cudnn.DropoutStates(None, 1).forward(None, x, 0.5)
    assert set(y.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("cell", [0, 1, 2, 3])
def test_the_reserve_that_is_told_holds_sequences_in_any_order(cell: int) -> None:
    """It is asked for with full steps, as CuPy's own calls with Ex did."""
    batch, steps, size, hidden = 4, 5, 3, 4
    handle, rnn = handles.make_handle(None), libcudnn.createRNNDescriptor()
    libcudnn.setRNNDescriptor_v5(rnn, hidden, 1, 0, 0, 0, cell, 0)
    libcudnn.setRNNPaddingMode(rnn, libcudnn.CUDNN_RNN_PADDED_IO_ENABLED)
    each = step_tensors("float32", [batch] * steps, size)
    told = libcudnn.getRNNTrainingReserveSize(handle, rnn, steps, ctypes.addressof(each))
    states = cudnn.DropoutStates(None, 1)
    hx = np.zeros((1, batch, hidden), "float32")
    cx = hx if cell == libcudnn.CUDNN_LSTM else None
    gates = {2: 4, 3: 3}.get(cell, 1)
    w = np.zeros((gates * (hidden * (size + hidden) + 2 * hidden), 1, 1), "float32")
    xs = np.zeros((steps, batch, size), "float32")
    reserve, *_ = cudnn.rnn_forward_training_ex(states, 0, cell, hx, cx, w, xs, [3, 5, 1, 4])
    assert reserve.mem.size <= told
