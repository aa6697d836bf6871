"""Descriptors as objects, on the real library; none of it needs a GPU."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
from typing import Any

import pytest

from cudnn_compat import v2
from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.descriptors import (
    Descriptor,
    rnn_data_descriptor,
    tensor_descriptor,
)
from cudnn_compat.cudnn.library import Library
from cudnn_compat.engines.cudnn import settings
from cudnn_compat.errors import LibraryBadParameter

SPECS = [
    v2.RNNSpec("relu", 3, 4),
    v2.RNNSpec("tanh", 3, 4, bias="none", num_layers=2),
    v2.RNNSpec("gru", 4, 4, bias="input", input_mode="skip", dtype="float64"),
    v2.RNNSpec("gru", 3, 4, bias="recurrent", dtype="float16", math="half"),
    v2.RNNSpec("lstm", 3, 8, proj_size=5, bidirectional=True, dtype="float16", math="full"),
    v2.RNNSpec("lstm", 3, 8, clip=(-0.5, 2.0), math="full"),
    v2.RNNSpec("lstm", 3, 8, math="half"),
]


def read_back(library: Library, rnn: Descriptor) -> tuple[int, ...]:
    """What ``cudnnSetRNNDescriptor_v8`` was given, without the dropout descriptor."""
    fields = [ctypes.c_int() for _ in range(12)]
    dropout, flags = ctypes.c_void_p(), ctypes.c_uint32()
    library.cudnnGetRNNDescriptor_v8(
        rnn, *map(ctypes.byref, fields), ctypes.byref(dropout), ctypes.byref(flags)
    )
    assert dropout.value is None
    return (*(field.value for field in fields), flags.value)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.cell} {spec.dtype} {spec.math}")
@pytest.mark.parametrize("padded", [True, False])
def test_the_library_has_every_field_of_a_spec(
    library: Library, spec: v2.RNNSpec, padded: bool
) -> None:
    rnn = settings.describe(library, spec, "standard", padded=padded, dropout=None)
    found = read_back(library, rnn)
    cells = [c.CUDNN_RNN_RELU, c.CUDNN_RNN_TANH, c.CUDNN_LSTM, c.CUDNN_GRU]
    biases = [
        c.CUDNN_RNN_NO_BIAS,
        c.CUDNN_RNN_SINGLE_INP_BIAS,
        c.CUDNN_RNN_DOUBLE_BIAS,
        c.CUDNN_RNN_SINGLE_REC_BIAS,
    ]
    assert found[0] == c.CUDNN_RNN_ALGO_STANDARD
    assert cells.index(found[1]) == ["relu", "tanh", "lstm", "gru"].index(spec.cell)
    assert biases.index(found[2]) == ["none", "input", "double", "recurrent"].index(spec.bias)
    assert found[3] == int(spec.bidirectional)
    assert found[4] == int(spec.input_mode == "skip")
    types = {"float32": c.CUDNN_DATA_FLOAT, "float64": c.CUDNN_DATA_DOUBLE}
    types["float16"] = c.CUDNN_DATA_HALF
    assert found[5] == types[spec.dtype]
    half = spec.dtype == "float16" and spec.math == "half"
    inside = types["float32"] if spec.dtype == "float16" and not half else found[5]
    assert found[6] == inside
    if spec.math == "full" and spec.dtype != "float64":
        assert found[7] == c.CUDNN_FMA_MATH
    if spec.math == "half" and spec.dtype == "float32":
        assert found[7] == c.CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION
    assert found[8:12] == (
        spec.input_size,
        spec.hidden_size,
        spec.proj_size or spec.hidden_size,
        spec.num_layers,
    )
    assert found[12] == (
        c.CUDNN_RNN_PADDED_IO_ENABLED if padded else c.CUDNN_RNN_PADDED_IO_DISABLED
    )


def test_the_clip_is_set(library: Library) -> None:
    spec = v2.RNNSpec("lstm", 3, 8, clip=(-0.5, 2.0))
    rnn = settings.describe(library, spec, "standard", padded=True, dropout=None)
    mode, low, high = ctypes.c_int(), ctypes.c_double(), ctypes.c_double()
    if library.major >= 9:
        library.cudnnRNNGetClip_v9(rnn, *map(ctypes.byref, (mode, low, high)))
    else:
        nan = ctypes.c_int()
        library.cudnnRNNGetClip_v8(rnn, *map(ctypes.byref, (mode, nan, low, high)))
    assert (mode.value, low.value, high.value) == (c.CUDNN_RNN_CLIP_MINMAX, -0.5, 2.0)


def test_a_tensor_is_fully_packed(library: Library) -> None:
    tensor = tensor_descriptor(library, c.CUDNN_DATA_FLOAT, (2, 3, 4))
    dtype, dims = ctypes.c_int(), ctypes.c_int()
    shape, strides = (ctypes.c_int * 8)(), (ctypes.c_int * 8)()
    library.cudnnGetTensorNdDescriptor(
        tensor, 8, ctypes.byref(dtype), ctypes.byref(dims), shape, strides
    )
    assert (list(shape[:3]), list(strides[:3])) == ([2, 3, 4], [12, 4, 1])


def test_a_batch_of_sequences_fills_its_padding_with_zeros(library: Library) -> None:
    data = rnn_data_descriptor(
        library,
        dtype=c.CUDNN_DATA_DOUBLE,
        layout=c.CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
        steps=5,
        features=7,
        lengths=(2, 0, 5),
    )
    numbers = [ctypes.c_int() for _ in range(5)]
    lengths, fill = (ctypes.c_int * 3)(), ctypes.c_double(1.0)
    library.cudnnGetRNNDataDescriptor(
        data, *map(ctypes.byref, numbers), 3, lengths, ctypes.byref(fill)
    )
    assert [number.value for number in numbers[2:]] == [5, 3, 7]
    assert (list(lengths), fill.value) == ([2, 0, 5], 0.0)


def test_what_the_library_refuses_leaves_nothing_behind(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    destroyed: list[Any] = []
    real = library.cudnnDestroyTensorDescriptor
    monkeypatch.setattr(
        library,
        "cudnnDestroyTensorDescriptor",
        lambda value: (destroyed.append(value), real(value)),
    )
    with pytest.raises(LibraryBadParameter):
        tensor_descriptor(library, c.CUDNN_DATA_FLOAT, (2, -3, 4))
    gc.collect()
    assert len(destroyed) == 1


def test_a_descriptor_lives_through_the_call_it_was_made_for(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    real = library.cudnnDestroyTensorDescriptor
    monkeypatch.setattr(
        library,
        "cudnnDestroyTensorDescriptor",
        lambda value: (order.append("destroyed"), real(value)),
    )
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda address: order.append("called"))
    call(tensor_descriptor(library, c.CUDNN_DATA_FLOAT, (1, 1, 1, 800)))
    gc.collect()
    assert order == ["called", "destroyed"]


def test_descriptors_may_be_dropped_in_any_thread(library: Library) -> None:
    made = [[tensor_descriptor(library, c.CUDNN_DATA_FLOAT, (1, 2, 3))] for _ in range(64)]
    threads = [threading.Thread(target=each.clear) for each in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


PROGRAM = """
from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.descriptors import tensor_descriptor
from cudnn_compat.cudnn.library import load

kept = tensor_descriptor(load(), c.CUDNN_DATA_FLOAT, (1, 2, 3))
cycle = [tensor_descriptor(load(), c.CUDNN_DATA_FLOAT, (1, 2, 3))]
cycle.append(cycle)
class Late:
    descriptor = kept
    def __del__(self):
        assert self.descriptor is not None
late = Late()
"""


def test_the_interpreter_ends_without_noise(library: Library) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
