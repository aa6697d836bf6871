"""The names of the dialect, what is not offered, and what importing costs."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cudnn_compat
from cudnn_compat.cudnn import constants as headers
from cudnn_compat.legacy import cupy as package
from cudnn_compat.legacy.cupy import constants, cudnn, libcudnn
from cudnn_compat.legacy.cupy.absent import ABSENT
from cudnn_compat.legacy.table import TABLE

SIGNATURES = """
get_handle()
Descriptor(descriptor, destroyer)
get_data_type(dtype)
create_tensor_descriptor(arr, format=0)
create_tensor_nd_descriptor(arr)
create_filter_descriptor(arr, format=0)
create_dropout_descriptor(handle, dropout, states, state_size_in_bytes, seed)
set_dropout_descriptor(desc, handle, dropout)
create_dropout_states(handle)
create_rnn_descriptor(hidden_size, num_layers, dropout_desc, input_mode, direction, mode, data_type, algo=None)
get_rnn_lin_layer_matrix_params(handle, rnn_desc, layer, x_desc, w_desc, w, lin_layer_id)
get_rnn_lin_layer_bias_params(handle, rnn_desc, layer, x_desc, w_desc, w, lin_layer_id)
DropoutStates(handle, seed)
rnn_forward_inference(states, direction_mode, rnn_mode, hx, cx, w, xs, lengths)
rnn_forward_training(states, direction_mode, rnn_mode, hx, cx, w, xs, lengths)
rnn_backward_data(states, direction_mode, rnn_mode, hx, cx, w, xs, ys, reserve_space, dhy, dcy, dys, lengths)
rnn_backward_weights(states, direction_mode, rnn_mode, xs, hx, ys, w, reserve_space, lengths)
rnn_forward_inference_ex(states, direction_mode, rnn_mode, hx, cx, w, xs, lengths)
rnn_forward_training_ex(states, direction_mode, rnn_mode, hx, cx, w, xs, lengths)
rnn_backward_data_ex(states, direction_mode, rnn_mode, hx, cx, w, xs, ys, reserve_space, dhy, dcy, dys, lengths)
rnn_backward_weights_ex(states, direction_mode, rnn_mode, xs, hx, ys, w, reserve_space, lengths)
softmax_forward(x, axis, algorithm)
softmax_backward(y, gy, axis, algorithm)
activation_forward(x, mode, coef=0.0)
activation_backward(x, y, gy, mode, coef=0.0)
get_max_workspace_size()
set_max_workspace_size(size)
is_tensor_core_available(dtype)
getVersion()
create()
destroy(handle)
setStream(handle, stream)
getStream(handle)
createRNNDescriptor()
destroyRNNDescriptor(rnnDesc)
setRNNDescriptor_v5(rnnDesc, hiddenSize, numLayers, dropoutDesc, inputMode, direction, mode, dataType)
setRNNDescriptor_v6(handle, rnnDesc, hiddenSize, numLayers, dropoutDesc, inputMode, direction, mode, algo, dataType)
setRNNPaddingMode(rnnDesc, paddingMode)
getRNNPaddingMode(rnnDesc)
getRNNParamsSize(handle, rnnDesc, xDesc, dataType)
getRNNWorkspaceSize(handle, rnnDesc, seqLength, xDesc)
getRNNTrainingReserveSize(handle, rnnDesc, seqLength, xDesc)
getRNNLinLayerMatrixParams(handle, rnnDesc, layer, xDesc, wDesc, w, linLayerID, linLayerMatDesc, linLayerMat)
getRNNLinLayerBiasParams(handle, rnnDesc, layer, xDesc, wDesc, w, linLayerID, linLayerBiasDesc, linLayerBias)
RNNForwardInference(handle, rnnDesc, seqLength, xDesc, x, hxDesc, hx, cxDesc, cx, wDesc, w, yDesc, y, hyDesc, hy, cyDesc, cy, workspace, workSpaceSizeInBytes)
RNNForwardTraining(handle, rnnDesc, seqLength, xDesc, x, hxDesc, hx, cxDesc, cx, wDesc, w, yDesc, y, hyDesc, hy, cyDesc, cy, workspace, workSpaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes)
RNNBackwardData(handle, rnnDesc, seqLength, yDesc, y, dyDesc, dy, dhyDesc, dhy, dcyDesc, dcy, wDesc, w, hxDesc, hx, cxDesc, cx, dxDesc, dx, dhxDesc, dhx, dcxDesc, dcx, workspace, workSpaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes)
RNNBackwardWeights(handle, rnnDesc, seqLength, xDesc, x, hxDesc, hx, yDesc, y, workspace, workSpaceSizeInBytes, dwDesc, dw, reserveSpace, reserveSpaceSizeInBytes)
RNNForwardInferenceEx(handle, rnnDesc, xDesc, x, hxDesc, hx, cxDesc, cx, wDesc, w, yDesc, y, hyDesc, hy, cyDesc, cy, kDesc, keys, cDesc, cAttn, iDesc, iAttn, qDesc, queries, workSpace, workSpaceSizeInBytes)
RNNForwardTrainingEx(handle, rnnDesc, xDesc, x, hxDesc, hx, cxDesc, cx, wDesc, w, yDesc, y, hyDesc, hy, cyDesc, cy, kDesc, keys, cDesc, cAttn, iDesc, iAttn, qDesc, queries, workSpace, workSpaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes)
RNNBackwardDataEx(handle, rnnDesc, yDesc, y, dyDesc, dy, dcDesc, dcAttn, dhyDesc, dhy, dcyDesc, dcy, wDesc, w, hxDesc, hx, cxDesc, cx, dxDesc, dx, dhxDesc, dhx, dcxDesc, dcx, dkDesc, dkeys, workSpace, workSpaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes)
RNNBackwardWeightsEx(handle, rnnDesc, xDesc, x, hxDesc, hx, yDesc, y, workSpace, workSpaceSizeInBytes, dwDesc, dw, reserveSpace, reserveSpaceSizeInBytes)
createRNNDataDescriptor()
setRNNDataDescriptor(RNNDataDesc, dataType, layout, maxSeqLength, batchSize, vectorSize, seqLengthArray, paddingFill)
destroyRNNDataDescriptor(RNNDataDesc)
dropoutGetStatesSize(handle)
getDropoutReserveSpaceSize(xDesc)
createPersistentRNNPlan(rnnDesc, minibatch, dataType)
setPersistentRNNPlan(rnnDesc, plan)
destroyPersistentRNNPlan(plan)
"""  # noqa: E501
"""The contract's, and for the rest what CuPy 13 declared."""


@pytest.mark.parametrize("line", SIGNATURES.split("\n")[1:-1], ids=lambda line: line.split("(")[0])
def test_signatures_are_the_old_ones(line: str) -> None:
    name = line.partition("(")[0]
    found = getattr(cudnn, name, None) if name in cudnn.__all__ else getattr(libcudnn, name)
    plain = ", ".join(
        each.name if each.default is each.empty else f"{each.name}={each.default}"
        for each in inspect.signature(found).parameters.values()
    )
    assert f"{name}({plain})" == line


def test_the_methods_of_dropout_states_have_the_old_parameters() -> None:
    for name, wanted in (
        ("set_dropout_ratio", "self dropout_ratio"),
        ("forward", "self handle x dropout_ratio"),
        ("backward", "self handle dy dropout_ratio reserve_space"),
    ):
        found = inspect.signature(getattr(cudnn.DropoutStates, name))
        assert list(found.parameters) == wanted.split()


def test_every_function_has_a_row_in_the_table_and_every_row_a_name() -> None:
    for module in (cudnn, libcudnn):
        functions = {
            f"{module.__name__}.{name}"
            for name in module.__all__
            if callable(getattr(module, name)) and name != "CuDNNError"
        }
        rows = {row.old for row in TABLE if row.module == module.__name__}
        methods = {row.old for row in TABLE if row.kind == "method"}
        assert functions == {
            old for old in rows - methods if not old.rpartition(".")[2].startswith("CUDNN_")
        }


def test_constants_have_the_values_of_the_headers_of_9_and_old_status_numbers() -> None:
    assert len(constants.__all__) == 226
    for name in constants.__all__:
        value = getattr(constants, name)
        assert type(value) is (float if name == "CUDNN_BN_MIN_EPSILON" else int)
        assert getattr(libcudnn, name) is value
        if name in headers.STATUS_8:
            assert value == headers.STATUS_8[name]
        elif hasattr(headers, name):
            assert value == getattr(headers, name), name


def test_what_chainer_reads_at_import_is_there() -> None:
    for name in ["CLIPPED_RELU", "RELU", "SIGMOID", "TANH"]:
        assert isinstance(getattr(libcudnn, f"CUDNN_ACTIVATION_{name}"), int)
    assert libcudnn.CUDNN_SOFTMAX_LOG == 2
    assert libcudnn.CUDNN_SOFTMAX_ACCURATE == 1
    assert libcudnn.CUDNN_SAMPLER_BILINEAR == 0
    with pytest.warns(DeprecationWarning, match="CC200"):
        version = libcudnn.getVersion()
    assert version == 8907 or version >= 8900


@pytest.mark.parametrize("group", ABSENT, ids=lambda group: group.what)
def test_what_is_not_offered_says_what_it_was_and_what_to_use(group: object) -> None:
    assert isinstance(group, tuple)
    what, instead, high, low = group
    for module, names in ((cudnn, high), (libcudnn, low)):
        for name in names:
            with pytest.raises(AttributeError, match=re.escape(f"was {what}")) as caught:
                getattr(module, name)
            assert f"Use {instead}" in str(caught.value)
            assert not hasattr(module, name)


def test_other_names_are_no_attributes() -> None:
    for module in (cudnn, libcudnn, package):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            _ = module.nothing
    assert set(package.__all__) <= set(dir(package))


def run(program: str) -> str:
    root = Path(cudnn_compat.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_importing_the_package_loads_not_even_numpy() -> None:
    assert (
        run("import sys\nimport cudnn_compat.legacy.cupy\nprint('numpy' in sys.modules)") == "False"
    )


def test_importing_the_modules_loads_neither_cupy_nor_a_c_library() -> None:
    program = (
        "import sys\n"
        "from cudnn_compat.legacy.cupy import CuDNNError, cudnn, libcudnn\n"
        "maps = open('/proc/self/maps').read() if sys.platform == 'linux' else ''\n"
        "print('cupy' in sys.modules, 'libcudnn' in maps, 'libcuda' in maps)"
    )
    assert run(program) == "False False False"


@pytest.mark.filterwarnings("ignore::cudnn_compat.legacy.LegacyAPIWarning")
def test_data_types_and_descriptors_of_arrays() -> None:
    assert [cudnn.get_data_type(np.dtype(name)) for name in "fde"] == [0, 1, 2]
    with pytest.raises(TypeError):
        cudnn.get_data_type(np.dtype("int32"))
    empty = cudnn.create_tensor_nd_descriptor(np.empty((0, 3), "float32"))
    assert empty.value == 0
    with pytest.raises(ValueError, match="not C-contiguous"):
        cudnn.create_tensor_nd_descriptor(np.ones((3, 2), "float32").T)
    with pytest.raises(ValueError, match="not C-contiguous"):
        cudnn.create_tensor_descriptor(np.ones((3, 2), "float32").T)
    four = cudnn.create_tensor_descriptor(np.ones((2, 3, 4, 5), "float64"))
    assert libcudnn.getTensor4dDescriptor(four.value) == (1, 2, 3, 4, 5, 60, 20, 5, 1)


@pytest.mark.filterwarnings("ignore::cudnn_compat.legacy.LegacyAPIWarning")
def test_a_descriptor_is_destroyed_with_its_object() -> None:
    destroyed: list[int] = []
    owned = cudnn.Descriptor(5, destroyed.append)
    nothing = cudnn.Descriptor(0, destroyed.append)
    assert (owned.value, nothing.value) == (5, 0)
    del owned, nothing
    assert destroyed == [5]
    number = libcudnn.createRNNDescriptor()
    owner = cudnn.Descriptor(number, libcudnn.destroyRNNDescriptor)
    assert libcudnn.getRNNPaddingMode(owner.value) == 0
    del owner
    with pytest.raises(libcudnn.CuDNNError):
        libcudnn.getRNNPaddingMode(number)


@pytest.mark.filterwarnings("ignore::cudnn_compat.legacy.LegacyAPIWarning")
def test_settings_are_kept() -> None:
    before = cudnn.get_max_workspace_size()
    assert before == 8 * 1024 * 1024
    cudnn.set_max_workspace_size(5)
    assert cudnn.get_max_workspace_size() == 5
    cudnn.set_max_workspace_size(before)
    assert cudnn.is_tensor_core_available(np.dtype("float32")) is False
    assert cudnn.get_handle() == cudnn.get_handle()
    handle = libcudnn.create()
    libcudnn.setStream(handle, 7)
    assert libcudnn.getStream(handle) == 7
    libcudnn.destroy(handle)
