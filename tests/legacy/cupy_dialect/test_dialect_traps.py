"""The traps of the contract, in its order."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.legacy.cupy import CuDNNError, cudnn, libcudnn
from tests.engine import Engine
from tests.golden import Case, largest
from tests.legacy.cupy_dialect.dialect import (
    CASES,
    MODES,
    Low,
    handle_of,
    step_tensors,
    tensor,
)

L, B, H, I = 2, 3, 4, 5  # noqa: E741
SIZES = [3, 2, 2, 1]


def network(engine: Engine, cell: str = "lstm", dtype: str = "float32") -> dict[str, Any]:
    """Arguments of two layers of a cell, by their old names."""
    spec = v2.RNNSpec(cell, I, H, num_layers=L, dtype=dtype, math="full")
    rng = np.random.default_rng(5)

    def draw(*shape: int) -> Any:
        return engine.put(rng.standard_normal(shape).astype(dtype))

    return {
        "direction_mode": 0,
        "rnn_mode": MODES[cell],
        "hx": draw(L, B, H),
        "cx": draw(L, B, H) if cell == "lstm" else None,
        "w": engine.put(v2.init_weights(spec, seed=1)[:, None, None]),
        "xs": draw(sum(SIZES), I),
        "lengths": SIZES,
    }


def backward(states: Any, given: dict[str, Any], reserve: Any, ys: Any) -> tuple[Any, ...]:
    ones = np.ones((L, B, H), "float32") if isinstance(ys, np.ndarray) else None
    dhy = given["hx"] * 0 + 1 if ones is None else ones
    return cudnn.rnn_backward_data(
        states, **given, ys=ys, reserve_space=reserve, dhy=dhy, dcy=None, dys=ys
    )


def test_1_the_input_size_is_learnt_from_the_first_tensor(engine: Engine) -> None:
    handle, rnn = handle_of(engine), libcudnn.createRNNDescriptor()
    libcudnn.setRNNDescriptor_v6(handle, rnn, H, 1, 0, 0, 0, 3, 0, 0)
    sizes = [
        libcudnn.getRNNParamsSize(handle, rnn, tensor("float32", 2, size, 1), 0)
        for size in (1, 5, 9)
    ]
    assert sizes == [4 * 3 * H * (size + H + 2) for size in (1, 5, 9)]


def test_2_backward_uses_the_ratio_of_its_own_forward(engine: Engine) -> None:
    """Although other calls with the same states have rewritten it in between."""
    results = []
    for disturbed in (False, True):
        states, given = cudnn.DropoutStates(None, 11), network(engine)
        states.set_dropout_ratio(0.5)
        reserve, _, _, ys = cudnn.rnn_forward_training(states, **given)
        if disturbed:
            states.set_dropout_ratio(0.9)
            states.forward(None, given["xs"], 0.25)
            cudnn.set_dropout_descriptor(states._desc, None, 0.0)
        dhx, _, dxs = backward(states, given, reserve, ys)
        dw = cudnn.rnn_backward_weights(
            states, 0, 2, given["xs"], given["hx"], ys, given["w"], reserve, SIZES
        )
        results.append([engine.get(each) for each in (dhx, dxs, dw)])
    for before, after in zip(*results, strict=True):
        np.testing.assert_array_equal(before, after)


def test_2_each_training_forward_of_any_network_advances_the_generator(engine: Engine) -> None:
    states, given = cudnn.DropoutStates(None, 11), network(engine)
    states.set_dropout_ratio(0.5)
    first, second = (engine.get(cudnn.rnn_forward_training(states, **given)[3]) for _ in range(2))
    assert not np.array_equal(first, second)
    again = cudnn.DropoutStates(None, 11)
    again.set_dropout_ratio(0.5)
    np.testing.assert_array_equal(first, engine.get(cudnn.rnn_forward_training(again, **given)[3]))
    cudnn.rnn_forward_inference(again, **given)  # which draws nothing
    np.testing.assert_array_equal(second, engine.get(cudnn.rnn_forward_training(again, **given)[3]))


def test_3_setting_a_ratio_keeps_the_generator(engine: Engine) -> None:
    given, outs = network(engine), []
    for change in (False, True):
        states = cudnn.DropoutStates(None, 3)
        states.set_dropout_ratio(0.5)
        cudnn.rnn_forward_training(states, **given)
        if change:
            cudnn.set_dropout_descriptor(states._desc, cudnn.get_handle(), 0.5)
        outs.append(engine.get(cudnn.rnn_forward_training(states, **given)[3]))
    np.testing.assert_array_equal(*outs)


def test_4_backward_data_takes_odd_strides_of_axes_of_length_1(engine: Engine) -> None:
    results = []
    for odd in (False, True):
        states, given = cudnn.DropoutStates(None, 0), network(engine, "gru")
        given["xs"], given["lengths"] = given["xs"][:1], [1]
        given["hx"] = given["hx"][:, :1]
        reserve, _, _, ys = cudnn.rnn_forward_training(states, **given)
        dys = ys + 1
        if odd:
            ys, dys = (
                engine.xp.lib.stride_tricks.as_strided(each, strides=(4096, each.itemsize))
                for each in (ys, dys)
            )
            assert ys.strides[0] == 4096
        results.append(
            cudnn.rnn_backward_data(
                states, **given, ys=ys, reserve_space=reserve, dhy=None, dcy=None, dys=dys
            )
        )
    for before, after in zip(*results, strict=True):
        np.testing.assert_array_equal(engine.get(before), engine.get(after))


def test_5_the_reserve_is_a_pointer_that_serves_both_backward_calls(engine: Engine) -> None:
    states, given = cudnn.DropoutStates(None, 0), network(engine)
    reserve, _, _, ys = cudnn.rnn_forward_training(states, **given)
    assert reserve.ptr > 0
    assert reserve.mem.size > 0
    if not engine.on_host:
        assert isinstance(reserve, engine.xp.cuda.MemoryPointer)
    gc.collect()
    backward(states, given, reserve, ys)
    gc.collect()
    cudnn.rnn_backward_weights(
        states, 0, 2, given["xs"], given["hx"], ys, given["w"], reserve, SIZES
    )
    if engine.on_host:
        memory = weakref.ref(reserve.mem.array)
        del reserve
        gc.collect()
        assert memory() is None


def test_5_a_reserve_serves_one_backward(engine: Engine) -> None:
    states, given = cudnn.DropoutStates(None, 0), network(engine)
    reserve, _, _, ys = cudnn.rnn_forward_training(states, **given)
    weights = (states, 0, 2, given["xs"], given["hx"], ys, given["w"], reserve, SIZES)
    with pytest.raises(CuDNNError, match="weights come after data"):
        cudnn.rnn_backward_weights(*weights)
    backward(states, given, reserve, ys)
    with pytest.raises(CuDNNError, match="has had it"):
        backward(states, given, reserve, ys)
    cudnn.rnn_backward_weights(*weights)


def test_6_float32_is_full_float32(engine: Engine) -> None:
    """TF32 would be wrong in the fourth digit."""
    given = network(engine)
    wide = {
        name: value.astype("float64") if hasattr(value, "astype") else value
        for name, value in given.items()
    }
    _, _, ys = cudnn.rnn_forward_inference(cudnn.DropoutStates(None, 0), **given)
    _, _, exact = cudnn.rnn_forward_inference(cudnn.DropoutStates(None, 0), **wide)
    assert ys.dtype == "float32"
    assert largest(engine.get(ys), engine.get(exact)) < 2e-6


@pytest.mark.parametrize("cell", ["gru", "tanh", "relu"])
def test_7_a_cell_without_a_cell_state_takes_null(cell: str, engine: Engine) -> None:
    case: Case = next(
        each for each in CASES if each.spec.cell == cell and each.spec.dtype == "float32"
    )
    Low(engine, case).inference()  # with 0 for cxDesc, cx, cyDesc and cy
    network = Low(engine, case)
    network.c_desc = libcudnn.createTensorDescriptor()  # never set
    with pytest.raises(CuDNNError, match="created but not set") as caught:
        network.inference()
    assert caught.value.status == libcudnn.CUDNN_STATUS_BAD_PARAM == 3


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_7_without_cx_cy_and_dcx_are_empty(cell: str, engine: Engine) -> None:
    states, given = cudnn.DropoutStates(None, 0), network(engine, cell)
    given["cx"] = None
    reserve, hy, cy, ys = cudnn.rnn_forward_training(states, **given)
    _, dcx, _ = backward(states, given, reserve, ys)
    assert cy.shape == dcx.shape == (0,)
    assert cy.dtype == dcx.dtype == "float32"
    if cell == "lstm":
        zeros = given | {"cx": given["hx"] * 0}
        _, hy_of_zeros, cy, _ = cudnn.rnn_forward_training(states, **zeros)
        np.testing.assert_array_equal(engine.get(hy), engine.get(hy_of_zeros))
        assert cy.shape == (L, B, H)


def test_8_descriptors_of_steps_come_in_a_host_array(engine: Engine) -> None:
    """And nothing is read behind it: the array is exactly as long as it must be."""
    case = next(each for each in CASES if each.batch_sizes and len(each.batch_sizes) > 2)
    network = Low(engine, case)
    network.training()
    sizes = case.batch_sizes
    assert sizes is not None
    for wrong, message in (
        (step_tensors(case.spec.dtype, sizes[::-1], case.spec.input_size), "non-increasing"),
        (step_tensors("float64", sizes, case.spec.input_size), "is float64"),
    ):
        if case.spec.dtype == "float64" or (message == "non-increasing" and len(set(sizes)) == 1):
            continue
        network.x_desc = ctypes.addressof(wrong)
        with pytest.raises(CuDNNError, match=message):
            network.inference()


def test_lengths_mean_two_things(engine: Engine) -> None:
    """Batch sizes of steps in the basic calls, lengths of sequences with _ex."""
    states, given = cudnn.DropoutStates(None, 0), network(engine)
    lengths = [4, 3, 1]  # the three sequences that SIZES describe
    hy, cy, _ = cudnn.rnn_forward_inference(states, **given)
    padded = engine.xp.full((4, B, I), np.nan, "float32")
    start = 0
    for step, size in enumerate(SIZES):
        padded[step, :size] = given["xs"][start : start + size]
        start += size
    for container in (lengths, tuple(lengths), np.array(lengths, "int32"), np.array(lengths)):
        ex = given | {"xs": padded, "lengths": container}
        hy_ex, cy_ex, ys_ex = cudnn.rnn_forward_inference_ex(states, **ex)
        np.testing.assert_allclose(engine.get(hy), engine.get(hy_ex), atol=1e-6)
        np.testing.assert_allclose(engine.get(cy), engine.get(cy_ex), atol=1e-6)
        assert not engine.get(ys_ex)[1, 2].any()
    with pytest.raises(CuDNNError):
        cudnn.rnn_forward_inference(states, **(given | {"lengths": [4, 3, 1]}))
    with pytest.raises(CuDNNError):
        cudnn.rnn_forward_inference_ex(states, **(given | {"xs": padded, "lengths": SIZES}))


def test_get_rnn_lin_layer_params_of_a_gradient_are_views_of_it(engine: Engine) -> None:
    states, given = cudnn.DropoutStates(None, 0), network(engine)
    reserve, _, _, ys = cudnn.rnn_forward_training(states, **given)
    backward(states, given, reserve, ys)
    dw = cudnn.rnn_backward_weights(
        states, 0, 2, given["xs"], given["hx"], ys, given["w"], reserve, SIZES
    )
    rnn = cudnn.create_rnn_descriptor(
        hidden_size=H,
        num_layers=L,
        dropout_desc=states._desc,
        input_mode=0,
        direction=0,
        mode=2,
        data_type=0,
    )
    x_desc = cudnn.create_tensor_nd_descriptor(given["xs"][:, :, None])
    view = cudnn.get_rnn_lin_layer_bias_params(
        None, rnn, 1, x_desc, cudnn.create_filter_descriptor(dw), dw, 7
    )
    assert engine.get(view).any()
    view[...] = 0
    assert not engine.get(dw)[-H:].any()
