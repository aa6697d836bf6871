"""What the converters refuse, in which of this package's errors, and whether the words say why."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import convert

RESET_AFTER = re.escape("n = tanh(W x + b_W + r * (R h + b_R))")


def keras_gru(*, reset_after: bool, bias: bool = True) -> list[np.ndarray]:
    arrays = [np.ones((3, 12)), np.ones((4, 12))]
    return [*arrays, np.ones((2, 12) if reset_after else 12)] if bias else arrays


def onnx_arrays(op_type: str, directions: int = 1) -> dict[str, np.ndarray]:
    rows = {"RNN": 4, "LSTM": 16, "GRU": 12}[op_type]
    return {
        "W": np.ones((directions, rows, 3)),
        "R": np.ones((directions, rows, 4)),
        "B": np.ones((directions, 2 * rows)),
    }


@pytest.mark.parametrize(
    ("weights", "reset_after"),
    [
        (keras_gru(reset_after=False), None),
        (keras_gru(reset_after=False), True),
        (keras_gru(reset_after=True), False),
        (keras_gru(reset_after=False, bias=False), False),
        ([keras_gru(reset_after=True), [np.ones((4, 12)), np.ones((4, 12)), np.ones(12)]], None),
    ],
)
def test_a_reset_before_gru_of_keras_is_refused_with_both_formulas(
    weights: Any, reset_after: bool | None
) -> None:
    with pytest.raises(v2.UnsupportedError, match=RESET_AFTER) as refusal:
        convert.from_keras(weights, cell="gru", reset_after=reset_after)
    assert "tanh(W x + R (r * h) + b)" in str(refusal.value)


def test_a_gru_is_not_written_for_a_reset_before_layer_of_keras() -> None:
    spec = v2.RNNSpec("gru", 3, 4)
    with pytest.raises(v2.UnsupportedError, match=RESET_AFTER):
        convert.to_keras(spec, v2.init_weights(spec), reset_after=False)


def test_a_keras_gru_without_biases_must_say_its_form() -> None:
    weights = keras_gru(reset_after=True, bias=False)
    with pytest.raises(v2.ArgumentError, match="reset_after=True"):
        convert.from_keras(weights, cell="gru")
    assert convert.from_keras(weights, cell="gru", reset_after=True)[0].bias == "none"


def test_an_onnx_gru_is_refused_unless_its_reset_comes_after() -> None:
    arrays = onnx_arrays("GRU")
    with pytest.raises(v2.UnsupportedError, match=RESET_AFTER):
        convert.from_onnx("GRU", **arrays)
    with pytest.raises(v2.UnsupportedError, match="linear_before_reset=0"):
        convert.from_onnx("GRU", **arrays, linear_before_reset=0)
    assert convert.from_onnx("GRU", **arrays, linear_before_reset=1)[0].cell == "gru"


@pytest.mark.parametrize(
    ("op_type", "attributes", "words"),
    [
        ("LSTM", {"P": np.ones((1, 12))}, "peepholes"),
        ("LSTM", {"input_forget": 1}, "f = 1 - i"),
        ("LSTM", {"clip": 3.0}, "what enters each activation"),
        ("RNN", {"clip": 3.0}, "what enters each activation"),
        ("LSTM", {"direction": "reverse"}, "beside a forward one"),
        ("LSTM", {"direction": b"reverse"}, "beside a forward one"),
        ("LSTM", {"activations": ["Sigmoid", "Tanh", "Relu"]}, "'Sigmoid', 'Tanh', 'Relu'"),
        ("RNN", {"activations": ["Affine"]}, "'Affine'"),
        ("RNN", {"activations": [b"Sigmoid"]}, r"\['Relu'\] or \['Tanh'\]"),
        ("GRU", {"activations": ["HardSigmoid", "Tanh"], "linear_before_reset": 1}, "sigmoid"),
    ],
)
def test_what_cudnn_cannot_say_of_an_onnx_node_is_refused(
    op_type: str, attributes: dict[str, Any], words: str
) -> None:
    with pytest.raises(v2.UnsupportedError, match=words):
        convert.from_onnx(op_type, **onnx_arrays(op_type), **attributes)


def test_peepholes_of_zero_are_no_peepholes() -> None:
    arrays = onnx_arrays("LSTM")
    spec, w = convert.from_onnx("LSTM", **arrays)
    with_zeros = convert.from_onnx("LSTM", **arrays, P=np.zeros((1, 12)))
    assert with_zeros[0] == spec
    np.testing.assert_array_equal(with_zeros[1], w)


@pytest.mark.parametrize("activation", ["relu", "Relu", b"Relu"])
def test_the_activation_of_an_onnx_rnn_decides_the_cell(activation: Any) -> None:
    spec, _ = convert.from_onnx("RNN", **onnx_arrays("RNN"), activations=[activation])
    assert spec.cell == "relu"
    assert convert.from_onnx("RNN", **onnx_arrays("RNN"))[0].cell == "tanh"


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"op_type": "Lstm"}, v2.ArgumentError, "'LSTM'"),
        ({"direction": "backward"}, v2.ArgumentError, "bidirectional"),
        ({"layout": 2}, v2.ArgumentError, "layout is 2"),
        ({"hidden_size": 5}, v2.ArgumentError, "hidden_size is 5"),
        ({"direction": "bidirectional"}, v2.ArgumentError, r"W\[0\].*\(2, 16, 3\)"),
        ({"W": np.ones((16, 3))}, v2.ArgumentError, "W has shape"),
        ({"R": np.ones((1, 15, 4))}, v2.ArgumentError, r"R\[0\].*\(1, 16, 4\)"),
        ({"B": np.ones((1, 16))}, v2.ArgumentError, r"B\[0\].*\(1, 32\)"),
        ({"R": np.ones((1, 16, 4), "float32")}, v2.DTypeError, r"W\[0\] float64, R\[0\] float32"),
        ({"W": np.ones((1, 16, 3), int)}, v2.DTypeError, r"W\[0\] int64"),
        ({"W": [np.ones((1, 16, 3))] * 2}, v2.ArgumentError, "'W': 2, 'R': 1"),
        ({"W": []}, v2.ArgumentError, "'R': 1"),
        ({"R": None}, v2.ArgumentError, "'W': 1"),
        ({"W": "W"}, v2.DTypeError, "W is a str"),
        ({"activations": "Tanh"}, v2.DTypeError, "list of names"),
    ],
)
def test_a_wrong_onnx_input_or_attribute_is_named(
    changes: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        convert.from_onnx(**{"op_type": "LSTM", **onnx_arrays("LSTM"), **changes})


@pytest.mark.parametrize(
    ("weights", "options", "error", "words"),
    [
        (
            [np.ones((3, 16)), np.ones((4, 15))],
            {},
            v2.ArgumentError,
            r"recurrent_kernel.*\(4, 16\)",
        ),
        ([np.ones(16), np.ones((4, 16))], {}, v2.ArgumentError, "kernel has shape"),
        ([np.ones((3, 16)), np.ones((4, 16)), np.ones(15)], {}, v2.ArgumentError, r"bias.*\(16,\)"),
        ([np.ones((3, 16))], {}, v2.ArgumentError, r"\[1\] arrays"),
        ([np.ones((3, 16)), np.ones((4, 16), "f4")], {}, v2.DTypeError, "float64.*float32"),
        ([[np.ones((3, 16))], np.ones(3)], {}, v2.DTypeError, "mixes"),
        ([], {}, v2.DTypeError, "get_weights"),
        (np.ones((3, 16)), {}, v2.DTypeError, "ndarray"),
        ([np.ones((3, 16)), np.ones((4, 16))], {"cell": "LSTM"}, v2.ArgumentError, "'LSTM'"),
        ([np.ones((3, 16)), np.ones((4, 16))], {"reset_after": True}, v2.ArgumentError, "GRU"),
        (
            [np.ones((3, 16)), np.ones((4, 16))],
            {"activation": "relu"},
            v2.UnsupportedError,
            "'tanh' only",
        ),
        (
            [np.ones((3, 16)), np.ones((4, 16))],
            {"recurrent_activation": "hard_sigmoid"},
            v2.UnsupportedError,
            "'sigmoid' only",
        ),
        (
            [np.ones((3, 4)), np.ones((4, 4))],
            {"cell": "tanh", "recurrent_activation": "sigmoid"},
            v2.ArgumentError,
            "LSTM and GRU",
        ),
        (
            [[np.ones((3, 16)), np.ones((4, 16))], [np.ones((3, 16)), np.ones((4, 16))]],
            {},
            v2.ArgumentError,
            r"layer 1, forward: kernel.*\(4, 16\)",
        ),
        (
            [
                [np.ones((3, 16)), np.ones((4, 16))],
                [np.ones((4, 16)), np.ones((4, 16)), np.ones(16)],
            ],
            {},
            v2.ArgumentError,
            r"\[2, 3\] arrays",
        ),
    ],
)
def test_wrong_keras_weights_are_named(
    weights: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        convert.from_keras(weights, **{"cell": "lstm", **options})


@pytest.mark.parametrize(
    ("changes", "spec_changes", "error", "words"),
    [
        ({"weight_ih_l0": None}, None, v2.ArgumentError, "no weight_ih_l0"),
        ({"bias_hh_l1": None}, None, v2.ArgumentError, "no bias_hh_l1"),
        ({"weight_hh_l0": np.ones((13, 4))}, None, v2.ArgumentError, "number of gates"),
        ({"weight_hh_l1": np.ones((16, 5))}, None, v2.ArgumentError, r"weight_hh_l1.*\(16, 4\)"),
        ({"bias_ih_l0": np.ones((16, 1))}, None, v2.ArgumentError, "bias_ih_l0 has shape"),
        ({"weight_hh_l0": np.ones(16)}, None, v2.ArgumentError, "two axes"),
        ({"scale": np.ones(3)}, None, v2.ArgumentError, "'scale' is not the name"),
        ({"rnn.weight_ih_l0": np.ones((16, 3))}, None, v2.ArgumentError, "without its prefix"),
        ({"weight_hr_l1": np.ones((2, 4))}, None, v2.ArgumentError, "weight_hr_l1 do not belong"),
        ({"bias_ih_l0": np.ones(16, "f4")}, None, v2.DTypeError, "bias_ih_l0 float32"),
        ({"bias_ih_l0": [1.0] * 16}, None, v2.DTypeError, "bias_ih_l0 is a list"),
        ({}, {"cell": "gru"}, v2.ArgumentError, "cell='lstm'.*cell='gru'"),
        ({}, {"input_size": 5}, v2.ArgumentError, "input_size=3.*input_size=5"),
        ({}, {"hidden_size": 3}, v2.ArgumentError, "hidden_size=4.*hidden_size=3"),
        ({}, {"num_layers": 1}, v2.ArgumentError, "num_layers=2"),
        ({}, {"bidirectional": True}, v2.ArgumentError, "bidirectional=False"),
        ({}, {"proj_size": 2}, v2.ArgumentError, "proj_size=None"),
        ({}, {"input_size": 4, "input_mode": "skip"}, v2.ArgumentError, "input_size=3"),
        ({}, {"dtype": "float32"}, v2.DTypeError, "replace"),
        ({}, {"bias": "none"}, v2.UnsupportedError, "drop"),
    ],
)
def test_a_wrong_state_dict_or_spec_is_named(
    changes: dict[str, Any],
    spec_changes: dict[str, Any] | None,
    error: type[Exception],
    words: str,
) -> None:
    spec = v2.RNNSpec("lstm", 3, 4, num_layers=2, dtype="float64")
    state_dict = convert.to_torch(spec, v2.init_weights(spec)) | changes
    state_dict = {name: array for name, array in state_dict.items() if array is not None}
    wanted = None if spec_changes is None else spec.replace(**spec_changes)
    with pytest.raises(error, match=words):
        convert.from_torch(state_dict, wanted)


def test_a_state_dict_of_an_rnn_does_not_tell_its_cell() -> None:
    spec = v2.RNNSpec("relu", 3, 4)
    w = v2.init_weights(spec, seed=0)
    with pytest.raises(v2.ArgumentError, match="tanh or relu"):
        convert.from_torch(convert.to_torch(spec, w))
    found, back = convert.from_torch(convert.to_torch(spec, w), spec)
    assert found is spec
    np.testing.assert_array_equal(back, w)


def test_biases_that_the_spec_wants_must_be_in_the_state_dict() -> None:
    spec = v2.RNNSpec("lstm", 3, 4, bias="none")
    state_dict = convert.to_torch(spec, v2.init_weights(spec))
    with pytest.raises(v2.ArgumentError, match="no biases"):
        convert.from_torch(state_dict, spec.replace(bias="double"))


@pytest.mark.parametrize("source", [None, "lstm", object(), [np.ones(3)], np.ones(3)])
def test_what_is_neither_module_nor_state_dict_is_refused_by_its_type(source: Any) -> None:
    with pytest.raises(v2.DTypeError, match=type(source).__name__):
        convert.from_torch(source)


@pytest.mark.parametrize("export", [convert.to_torch, convert.to_keras, convert.to_onnx])
def test_clip_has_no_counterpart_anywhere(export: Any) -> None:
    spec = v2.RNNSpec("lstm", 3, 4, clip=(-1, 1))
    with pytest.raises(v2.UnsupportedError, match="clip="):
        export(spec, v2.init_weights(spec))


@pytest.mark.parametrize("export", [convert.to_keras, convert.to_onnx])
def test_projection_has_no_counterpart_in_keras_and_onnx(export: Any) -> None:
    spec = v2.RNNSpec("lstm", 3, 4, proj_size=2)
    with pytest.raises(v2.UnsupportedError, match="projection"):
        export(spec, v2.init_weights(spec))


@pytest.mark.parametrize("export", [convert.to_torch, convert.to_keras, convert.to_onnx])
def test_weights_that_are_not_of_the_spec_are_refused(export: Any) -> None:
    spec = v2.RNNSpec("lstm", 3, 4)
    with pytest.raises(v2.ArgumentError, match="w has shape"):
        export(spec, np.zeros(7, "float32"))
    with pytest.raises(v2.DTypeError, match="float64"):
        export(spec, np.zeros(v2.weight_size(spec)))
    with pytest.raises(v2.DTypeError, match=r"wanted a v2\.RNNSpec"):
        export("lstm", np.zeros(7))


def test_no_framework_is_imported() -> None:
    program = (
        "import sys; from cudnn_compat.v2 import convert; "
        "print(sorted({'torch', 'onnx', 'keras', 'tensorflow', 'cupy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
