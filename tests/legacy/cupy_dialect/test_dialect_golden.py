"""What the real old stack computed, through the functions that computed it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from cudnn_compat.legacy.cupy import cudnn, libcudnn
from tests import golden
from tests.engine import Engine
from tests.golden import Case, largest
from tests.legacy.cupy_dialect.dialect import CASES, MODES, TYPES, High, Low, at, filter_of, tensor

BOUNDS = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-2}
"""Largest absolute difference from a recorded value."""

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_table = pytest.mark.parametrize(
    "case", [case for case in CASES if case.params], ids=lambda case: case.name
)
each_level = pytest.mark.parametrize("level", [High, Low], ids=["arrays", "addresses"])


def bit_for_bit(engine: Engine) -> bool:
    """Whether every bit is to come back: on the GPU generation of the recordings."""
    return not engine.on_host and str(engine.xp.cuda.Device().compute_capability) == "90"


def check(engine: Engine, case: Case, computed: dict[str, Any], prefix: str = "") -> None:
    for name, value in computed.items():
        recorded = case.get(prefix + name)
        if recorded is None:
            assert value is None or value.shape == (0,), name
            continue
        assert value.dtype == case.spec.dtype
        assert largest(value, recorded) <= BOUNDS[case.spec.dtype], name
        if bit_for_bit(engine):
            assert np.array_equal(value, recorded), name


def test_there_are_the_cases_that_were_recorded() -> None:
    assert len(CASES) == 64
    assert {case.spec.dtype for case in CASES} == set(BOUNDS)
    assert {case.spec.cell for case in CASES} == set(MODES)
    assert {case.batch_sizes is None for case in CASES} == {True, False}


@each_level
@each_case
def test_inference_gives_what_the_old_library_gave(
    case: Case, level: type[High] | type[Low], engine: Engine
) -> None:
    check(engine, case, level(engine, case).inference(), "inf_")


@each_level
@each_case
def test_training_and_backward_give_what_the_old_library_gave(
    case: Case, level: type[High] | type[Low], engine: Engine
) -> None:
    network = level(engine, case)
    check(engine, case, network.training() | network.backward())


@pytest.mark.gpu
@each_level
def test_seed_1234_reproduces_the_recorded_dropout(level: type[High] | type[Low]) -> None:
    import cupy

    engine, case = Engine("cudnn", cupy), golden.dropout_case()
    network = level(engine, case)
    check(engine, case, network.training() | network.backward())


@each_table
def test_the_getters_give_views_at_the_recorded_offsets(case: Case, engine: Engine) -> None:
    spec, dtype = case.spec, case.spec.dtype
    none = cudnn.create_dropout_descriptor(cudnn.get_handle(), 0.0, 0, 0, 0)
    rnn = cudnn.create_rnn_descriptor(
        spec.hidden_size,
        spec.num_layers,
        none,
        0,
        int(spec.bidirectional),
        MODES[spec.cell],
        TYPES[dtype],
    )
    w = engine.xp.arange(case.get("w").size).reshape(-1, 1, 1)
    w = w.astype("float64").astype(dtype)
    x_desc = cudnn.create_tensor_nd_descriptor(engine.xp.zeros((1, spec.input_size, 1), dtype))
    w_desc = cudnn.create_filter_descriptor(w)
    for row in case.params:
        given = (None, rnn, row.pseudo_layer, x_desc, w_desc, w, row.linear_id)
        matrix = cudnn.get_rnn_lin_layer_matrix_params(*given)
        bias = cudnn.get_rnn_lin_layer_bias_params(*given)
        for view, offset, size in (
            (matrix, row.matrix_offset, row.matrix_shape[0]),  # type: ignore[index]
            (bias, row.bias_offset, row.bias_size),
        ):
            assert view.shape == (size, 1, 1)
            assert at(view) - at(w) == offset * w.dtype.itemsize
            view[...] = -1
            assert (engine.get(w).ravel()[offset : offset + size] == -1).all()


@each_table
def test_the_low_level_getters_give_the_recorded_addresses(case: Case, engine: Engine) -> None:
    network, w_size = Low(engine, case), case.get("w").size
    dtype, itemsize = case.spec.dtype, np.dtype(case.spec.dtype).itemsize
    x_desc, desc = tensor(dtype, 1, case.spec.input_size, 1), libcudnn.createFilterDescriptor()
    size = libcudnn.getRNNParamsSize(network.handle, network.rnn, x_desc, TYPES[dtype])
    assert size == w_size * itemsize
    found = ctypes.c_size_t()
    for row in case.params:
        for name, offset, elements in (
            ("getRNNLinLayerMatrixParams", row.matrix_offset, row.matrix_shape[0]),  # type: ignore[index]
            ("getRNNLinLayerBiasParams", row.bias_offset, row.bias_size),
        ):
            getattr(libcudnn, name)(
                network.handle,
                network.rnn,
                row.pseudo_layer,
                x_desc,
                filter_of(dtype, w_size),
                at(network.w),
                row.linear_id,
                desc,
                ctypes.addressof(found),
            )
            assert found.value - at(network.w) == offset * itemsize
            data_type, _, count, dims = libcudnn.getFilterNdDescriptor(desc, 3)
            assert (data_type, count) == (TYPES[dtype], 3)
            assert np.prod(dims) == elements
