"""The table of old names: complete, stable, and true."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.version import Version

import cudnn_compat
from cudnn_compat import legacy
from cudnn_compat.legacy.deprecations import CATEGORIES
from cudnn_compat.legacy.table import PRELUDE, TABLE, LegacyName, find

CODES = {
    "CC001": "CUDNN_RNN_RELU",
    "CC002": "CUDNN_RNN_TANH",
    "CC003": "CUDNN_LSTM",
    "CC004": "CUDNN_GRU",
    "CC010": "RNNDesc",
    "CC011": "setweights",
    "CC012": "forward",
    "CC013": "forwardTrain",
    "CC014": "backwardData",
    "CC015": "backwardWeights",
    "CC016": "pullback",
    "CC020": "ngates",
    "CC021": "params",
    "CC022": "hBatch",
    "CC023": "hDesc",
    "CC024": "xDesc",
}
"""What people have written into their filters: add to it, change nothing."""

each_row = pytest.mark.parametrize("row", TABLE, ids=lambda row: row.code)


CUPY_CODES = {
    "CC100": "get_handle",
    "CC101": "Descriptor",
    "CC102": "get_data_type",
    "CC103": "create_tensor_descriptor",
    "CC104": "create_tensor_nd_descriptor",
    "CC105": "create_filter_descriptor",
    "CC106": "create_dropout_descriptor",
    "CC107": "set_dropout_descriptor",
    "CC108": "create_dropout_states",
    "CC109": "create_rnn_descriptor",
    "CC110": "get_rnn_lin_layer_matrix_params",
    "CC111": "get_rnn_lin_layer_bias_params",
    "CC112": "DropoutStates",
    "CC113": "DropoutStates.set_dropout_ratio",
    "CC114": "DropoutStates.forward",
    "CC115": "DropoutStates.backward",
    "CC120": "rnn_forward_inference",
    "CC121": "rnn_forward_training",
    "CC122": "rnn_backward_data",
    "CC123": "rnn_backward_weights",
    "CC124": "rnn_forward_inference_ex",
    "CC125": "rnn_forward_training_ex",
    "CC126": "rnn_backward_data_ex",
    "CC127": "rnn_backward_weights_ex",
    "CC130": "softmax_forward",
    "CC131": "softmax_backward",
    "CC132": "activation_forward",
    "CC133": "activation_backward",
    "CC140": "get_max_workspace_size",
    "CC141": "set_max_workspace_size",
    "CC142": "is_tensor_core_available",
    "CC200": "getVersion",
    "CC201": "create",
    "CC202": "destroy",
    "CC203": "setStream",
    "CC204": "getStream",
    "CC210": "createTensorDescriptor",
    "CC211": "setTensorNdDescriptor",
    "CC212": "destroyTensorDescriptor",
    "CC213": "setTensor4dDescriptor",
    "CC214": "getTensor4dDescriptor",
    "CC215": "setTensor4dDescriptorEx",
    "CC216": "createFilterDescriptor",
    "CC217": "setFilter4dDescriptor_v4",
    "CC218": "getFilterNdDescriptor",
    "CC219": "destroyFilterDescriptor",
    "CC220": "setFilterNdDescriptor_v4",
    "CC221": "createRNNDescriptor",
    "CC222": "setRNNDescriptor_v6",
    "CC223": "destroyRNNDescriptor",
    "CC224": "setRNNDescriptor_v5",
    "CC225": "setRNNPaddingMode",
    "CC226": "getRNNPaddingMode",
    "CC227": "getRNNParamsSize",
    "CC228": "getRNNWorkspaceSize",
    "CC229": "getRNNTrainingReserveSize",
    "CC230": "getRNNLinLayerMatrixParams",
    "CC231": "getRNNLinLayerBiasParams",
    "CC232": "createRNNDataDescriptor",
    "CC233": "setRNNDataDescriptor",
    "CC234": "getRNNDataDescriptor",
    "CC235": "destroyRNNDataDescriptor",
    "CC236": "createPersistentRNNPlan",
    "CC237": "setPersistentRNNPlan",
    "CC238": "destroyPersistentRNNPlan",
    "CC240": "RNNForwardInference",
    "CC241": "RNNForwardTraining",
    "CC242": "RNNBackwardData",
    "CC243": "RNNBackwardWeights",
    "CC244": "RNNForwardInferenceEx",
    "CC245": "RNNForwardTrainingEx",
    "CC246": "RNNBackwardDataEx",
    "CC247": "RNNBackwardWeightsEx",
    "CC250": "createDropoutDescriptor",
    "CC251": "setDropoutDescriptor",
    "CC252": "dropoutGetStatesSize",
    "CC253": "destroyDropoutDescriptor",
    "CC254": "getDropoutReserveSpaceSize",
    "CC255": "dropoutForward",
    "CC256": "dropoutBackward",
    "CC260": "createActivationDescriptor",
    "CC261": "setActivationDescriptor",
    "CC262": "activationForward_v4",
    "CC263": "destroyActivationDescriptor",
    "CC264": "activationBackward_v4",
    "CC265": "softmaxForward",
    "CC266": "softmaxBackward",
    "CC300": "CUDNN_RNN_RELU",
    "CC301": "CUDNN_RNN_TANH",
    "CC302": "CUDNN_LSTM",
    "CC303": "CUDNN_GRU",
    "CC304": "CUDNN_UNIDIRECTIONAL",
    "CC305": "CUDNN_BIDIRECTIONAL",
    "CC306": "CUDNN_LINEAR_INPUT",
    "CC307": "CUDNN_SKIP_INPUT",
    "CC310": "CUDNN_RNN_ALGO_STANDARD",
    "CC311": "CUDNN_RNN_ALGO_PERSIST_STATIC",
    "CC312": "CUDNN_RNN_ALGO_PERSIST_DYNAMIC",
    "CC313": "CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H",
    "CC320": "CUDNN_DATA_FLOAT",
    "CC321": "CUDNN_DATA_DOUBLE",
    "CC322": "CUDNN_DATA_HALF",
    "CC330": "CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED",
    "CC331": "CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED",
    "CC332": "CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED",
    "CC333": "CUDNN_RNN_PADDED_IO_DISABLED",
    "CC334": "CUDNN_RNN_PADDED_IO_ENABLED",
}
"""The same for the CuPy dialect: add to it, change nothing."""


def resolve(qualified: str) -> Any:
    """The object of a qualified name: a module's, or a class's."""
    parts = qualified.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"no module of {qualified}")


def test_codes_are_given_once_and_keep_their_meaning() -> None:
    assert {row.code: row.name for row in TABLE} == CODES | CUPY_CODES
    assert len(TABLE) == len(CODES) + len(CUPY_CODES)


def test_every_public_old_name_has_a_row_and_every_row_is_public() -> None:
    old = {
        name
        for name in legacy.__all__
        if not (
            inspect.isclass(getattr(legacy, name)) and issubclass(getattr(legacy, name), Warning)
        )
    }
    mine = {row.old for row in TABLE if row.module == "cudnn_compat.legacy"}
    assert mine == {f"cudnn_compat.legacy.{name}" for name in old}


def test_every_public_name_can_be_imported_and_listed() -> None:
    everything: dict[str, Any] = {}
    exec("from cudnn_compat.legacy import *", everything)
    assert set(legacy.__all__) <= set(everything)
    assert set(legacy.__all__) <= set(dir(legacy))
    with pytest.raises(AttributeError, match="cudnn_compat.legacy.*forwards"):
        _ = legacy.forwards


@each_row
def test_the_kind_is_what_the_old_name_is(row: LegacyName) -> None:
    found = resolve(row.old)
    function = inspect.isfunction
    kinds = {"class": inspect.isclass, "function": function, "method": function}
    assert kinds.get(row.kind, lambda value: type(value) is int)(found)
    assert (row.value is not None) == (row.kind == "constant")


@each_row
def test_what_to_use_instead_exists(row: LegacyName) -> None:
    assert resolve(row.new) is not None


@each_row
def test_renamed_parameters_exist_on_both_sides(row: LegacyName) -> None:
    old, new = (
        set(inspect.signature(resolve(name)).parameters) if row.renamed else set()
        for name in (row.old, row.new)
    )
    if row.name == "backwardData":
        old |= {"dco", "h", "c", "reserve"}  # its two forms
    for before, after in row.renamed:
        assert before in old
        assert after in new
        # Of old, lengths was two things; in the basic calls it was what is batch_sizes now.
        assert before not in new or (before, after) == ("lengths", "batch_sizes")


@each_row
def test_the_message_names_code_old_new_and_both_versions_and_no_numbers_of_a_call(
    row: LegacyName,
) -> None:
    assert row.message == (
        f"[{row.code}] {row.old} is deprecated: use {row.new}. "
        f"Deprecated since {row.since}, to be removed in {row.removal}."
    )
    assert re.fullmatch(r"CC\d{3}", row.code)


def test_the_message_of_forward_is_the_one_that_is_documented() -> None:
    row = find("CC012")
    assert row is not None
    assert row.message == (
        "[CC012] cudnn_compat.legacy.forward is deprecated: use cudnn_compat.v2.rnn_forward. "
        "Deprecated since 2.0, to be removed in 3.0."
    )


@each_row
def test_no_name_is_overdue_and_each_has_its_warning_class(row: LegacyName) -> None:
    here = Version(cudnn_compat.__version__)
    assert Version(row.since).release <= here.release
    assert here.release < Version(row.removal).release
    assert issubclass(CATEGORIES[row.removal], legacy.LegacyAPIWarning)


@each_row
def test_the_summary_is_one_line_that_ends_like_a_sentence(row: LegacyName) -> None:
    assert "\n" not in row.summary
    assert row.summary.endswith((".", f"cell={row.value}."))
    assert len(row.summary) <= 100


@each_row
def test_before_and_after_compute_the_same(row: LegacyName) -> None:
    before, after = changes_by(row, row.before), changes_by(row, row.after)
    both = before.keys() & after.keys()
    assert both
    for name in both:
        np.testing.assert_array_equal(before[name], after[name])
    assert row.name.rpartition(".")[2] in row.before
    assert "legacy" not in row.after
    assert row.new.rpartition(".")[2] in row.after


def changes_by(row: LegacyName, program: str) -> dict[str, Any]:
    """The names that a program binds, or whose array it writes to, with their values."""
    names: dict[str, Any] = {}
    exec(row.prelude, names)
    start = names | {"w": names["w"].copy()}
    exec(program, names)
    return {
        name: value
        for name, value in names.items()
        if name not in start
        or (value is not start[name] and not (name == "w" and np.array_equal(value, start[name])))
    }


def test_the_examples_show_weights_that_are_not_zero() -> None:
    """Two wrong answers of zeros would agree."""
    names: dict[str, Any] = {}
    exec(PRELUDE, names)
    assert np.count_nonzero(names["w"]) == 16 * (3 + 4 + 1)
    assert names["spec"] == names["desc"].spec.replace(algo="auto")


@pytest.mark.parametrize(
    "key", ["CC012", "cc012", " CC012 ", "cudnn_compat.legacy.forward", "forward"]
)
def test_a_row_is_found_by_code_and_by_name(key: str) -> None:
    assert find(key) is find("CC012")
    assert find(key) is not None


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("cupy.cudnn.rnn_forward_training", "CC121"),
        ("cupyx.cudnn.DropoutStates.forward", "CC114"),
        ("DropoutStates", "CC112"),
        ("cupy.cuda.cudnn.RNNForwardTraining", "CC241"),
        ("cupy_backends.cuda.libs.cudnn.CUDNN_GRU", "CC303"),
        ("CUDNN_GRU", "CC004"),
    ],
)
def test_a_row_is_found_by_what_the_name_was_called_where_it_comes_from(
    key: str, code: str
) -> None:
    row = find(key)
    assert row is not None
    assert row.code == code


@pytest.mark.parametrize("key", ["CC999", "forwards", "", "legacy.forward", "cupy.cudnn.forward"])
def test_what_is_not_in_the_table_is_not_found(key: str) -> None:
    assert find(key) is None


def test_the_table_is_importable_without_numpy() -> None:
    program = (
        "import sys\n"
        "from cudnn_compat.legacy.table import TABLE\n"
        "from cudnn_compat.legacy.deprecations import record_calls\n"
        "from cudnn_compat.legacy import LegacyAPIWarning\n"
        "print(len(TABLE), 'numpy' in sys.modules)"
    )
    root = Path(cudnn_compat.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(len(TABLE)), "False"]
