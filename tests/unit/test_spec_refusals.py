"""Values and combinations that an `RNNSpec` refuses, and the one that it warns of."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import ArgumentError, DTypeError, IneffectiveOptionWarning, RNNSpec


def make(**changes: Any) -> RNNSpec:
    """An LSTM of three layers and four features, so that every field may be changed alone."""
    return RNNSpec(
        **{"cell": "lstm", "input_size": 4, "hidden_size": 4, "num_layers": 3, **changes}
    )


REFUSED: list[tuple[str, Any, type[Exception]]] = [
    ("cell", "LSTM", ArgumentError),
    ("cell", None, ArgumentError),
    ("cell", ["lstm"], ArgumentError),
    ("cell", 2, ArgumentError),
    ("cell", b"lstm", ArgumentError),
    ("input_size", 0, ArgumentError),
    ("input_size", -3, ArgumentError),
    ("input_size", 3.0, DTypeError),
    ("input_size", "3", DTypeError),
    ("input_size", None, DTypeError),
    ("hidden_size", 0, ArgumentError),
    ("hidden_size", True, DTypeError),
    ("hidden_size", np.True_, DTypeError),
    ("hidden_size", np.array([4]), DTypeError),
    ("num_layers", 0, ArgumentError),
    ("num_layers", 2.0, DTypeError),
    ("num_layers", None, DTypeError),
    ("bidirectional", 1, DTypeError),
    ("bidirectional", "no", DTypeError),
    ("bidirectional", None, DTypeError),
    ("bias", True, ArgumentError),
    ("bias", "both", ArgumentError),
    ("bias", None, ArgumentError),
    ("bias", np.array([1.0, 2.0]), ArgumentError),
    ("input_mode", "identity", ArgumentError),
    ("input_mode", None, ArgumentError),
    ("proj_size", 0, ArgumentError),
    ("proj_size", -1, ArgumentError),
    ("proj_size", 4, ArgumentError),
    ("proj_size", 5, ArgumentError),
    ("proj_size", 2.0, DTypeError),
    ("proj_size", True, DTypeError),
    ("dropout", -0.1, ArgumentError),
    ("dropout", 1.1, ArgumentError),
    ("dropout", float("nan"), ArgumentError),
    ("dropout", float("inf"), ArgumentError),
    ("dropout", 10**400, ArgumentError),
    ("dropout", "0.5", DTypeError),
    ("dropout", None, DTypeError),
    ("dropout", True, DTypeError),
    ("dropout", 0.5j, DTypeError),
    ("dropout", [0.5], DTypeError),
    ("dtype", "int32", ArgumentError),
    ("dtype", "complex64", ArgumentError),
    ("dtype", "single precision", DTypeError),
    ("dtype", object, ArgumentError),
    ("dtype", 32, DTypeError),
    ("dtype", None, DTypeError),
    ("dtype", "i4,,f4", DTypeError),
    ("dtype", "(2,", DTypeError),
    ("math", "fast", ArgumentError),
    ("math", None, ArgumentError),
    ("algo", "persistent", ArgumentError),
    ("algo", 0, ArgumentError),
    ("clip", 1.0, ArgumentError),
    ("clip", (1.0,), ArgumentError),
    ("clip", (0, 1, 2), ArgumentError),
    ("clip", (2.0, 1.0), ArgumentError),
    ("clip", (float("nan"), 1.0), ArgumentError),
    ("clip", (0.0, float("nan")), ArgumentError),
    ("clip", (None, 1.0), v2.CompatError),
    ("clip", ("-1", "1"), v2.CompatError),
    ("clip", "12", ArgumentError),
    ("clip", {1.0, 2.0}, ArgumentError),
    ("clip", (10**400, 1), ArgumentError),
]


@pytest.mark.parametrize(
    ("field", "value", "error"), REFUSED, ids=[f"{f}={str(v)[:20]}" for f, v, _ in REFUSED]
)
def test_a_value_that_a_field_cannot_have_is_refused_by_name(
    field: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error) as refusal:
        make(**{field: value})
    message = str(refusal.value)
    assert field in message
    assert "wanted" in message or "must be" in message


@pytest.mark.parametrize("cell", ["relu", "tanh", "gru"])
@pytest.mark.parametrize(("field", "value"), [("proj_size", 2), ("clip", (-1, 1))])
def test_projection_and_clip_are_for_lstm_only(cell: str, field: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=f"{field} is for cell='lstm'; got cell='{cell}'"):
        make(cell=cell, **{field: value})


def test_skip_needs_as_many_inputs_as_hidden_features() -> None:
    with pytest.raises(ArgumentError, match="input_size=3, hidden_size=4"):
        RNNSpec("gru", 3, 4, input_mode="skip")


def test_skip_compares_with_the_hidden_size_where_there_is_a_projection() -> None:
    assert make(input_mode="skip", proj_size=2).input_mode == "skip"
    with pytest.raises(ArgumentError, match="input_size=2, hidden_size=4"):
        make(input_size=2, input_mode="skip", proj_size=2)


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_half_math_is_for_float16_and_float32(dtype: str) -> None:
    with pytest.raises(ArgumentError, match=f"math='half' .*float16 and float32.*{dtype}"):
        make(math="half", dtype=dtype)
    assert make(math="half", dtype="float16").math == "half"
    assert make(math="half", dtype="float32").math == "half"


def test_dropout_with_one_layer_warns_once_and_says_that_it_does_nothing() -> None:
    with pytest.warns(IneffectiveOptionWarning, match="num_layers=1 it does nothing") as caught:
        spec = RNNSpec("gru", 3, 4, dropout=0.5)
    assert len(caught) == 1
    assert not spec.drops
    assert spec.dropout == 0.5


def construct(**options: Any) -> Any:
    return RNNSpec("gru", 3, 4, **options)


def replace(**options: Any) -> Any:
    return RNNSpec("gru", 3, 4, num_layers=2).replace(num_layers=1, **options)


def layer(**options: Any) -> Any:
    return v2.GRU(3, 4, **options)


@pytest.mark.parametrize("call", [construct, replace, layer])
def test_the_warning_about_dropout_points_at_the_line_that_asked_for_it(call: Any) -> None:
    with pytest.warns(IneffectiveOptionWarning) as caught:
        call(dropout=0.5)
    assert [warning.filename for warning in caught] == [__file__]


def test_dropout_that_acts_or_is_zero_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RNNSpec("gru", 3, 4, num_layers=2, dropout=0.5).drops
        assert not RNNSpec("gru", 3, 4, num_layers=1, dropout=0.0).drops


def test_reading_a_pickle_and_copying_do_not_repeat_the_warning() -> None:
    with pytest.warns(IneffectiveOptionWarning):
        spec = RNNSpec("gru", 3, 4, dropout=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec
