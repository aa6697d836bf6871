"""`RNNSpec`: every field, every refusal, equality, pickles, and what is derived from it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import ArgumentError, RNNSpec

ROOT = Path(__file__).parents[2]

DEFAULTS = {
    "num_layers": 1,
    "bidirectional": False,
    "bias": "double",
    "input_mode": "linear",
    "proj_size": None,
    "dropout": 0.0,
    "dtype": "float32",
    "math": "default",
    "algo": "auto",
    "clip": None,
    "deterministic": False,
}

OTHERS = {
    "num_layers": 3,
    "bidirectional": True,
    "bias": "recurrent",
    "input_mode": "skip",
    "proj_size": 2,
    "dropout": 0.25,
    "dtype": "float16",
    "math": "half",
    "algo": "standard",
    "clip": (-1.0, 2.0),
    "deterministic": True,
}
"""For each field a value that is not its default; all of them go together."""


def make(**changes: Any) -> RNNSpec:
    """An LSTM of three layers and four features, so that every field may be changed alone."""
    return RNNSpec(
        **{"cell": "lstm", "input_size": 4, "hidden_size": 4, "num_layers": 3, **changes}
    )


def full() -> RNNSpec:
    return RNNSpec("lstm", 4, 4, **OTHERS)  # type: ignore[arg-type]


def test_the_defaults_are_those_of_the_documentation() -> None:
    spec = RNNSpec("gru", 3, 5)
    assert (spec.cell, spec.input_size, spec.hidden_size) == ("gru", 3, 5)
    assert {name: getattr(spec, name) for name in DEFAULTS} == DEFAULTS


def test_every_field_keeps_what_was_given() -> None:
    spec = full()
    assert {name: getattr(spec, name) for name in OTHERS} == OTHERS
    fields = {field.name for field in dataclasses.fields(RNNSpec)}
    assert fields == {"cell", "input_size", "hidden_size", *OTHERS}


def test_everything_behind_the_sizes_goes_by_name() -> None:
    with pytest.raises(TypeError):
        RNNSpec("lstm", 3, 4, 2)  # type: ignore[misc]


@pytest.mark.parametrize("cell", ["relu", "tanh", "lstm", "gru"])
@pytest.mark.parametrize("bias", ["double", "none", "input", "recurrent"])
@pytest.mark.parametrize("input_mode", ["linear", "skip"])
def test_every_cell_goes_with_every_bias_and_input_mode(
    cell: str, bias: str, input_mode: str
) -> None:
    spec = RNNSpec(cell, 4, 4, bias=bias, input_mode=input_mode)
    assert (spec.bias, spec.input_mode) == (bias, input_mode)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float16", "float16"),
        ("bfloat16", "bfloat16"),
        ("float32", "float32"),
        ("float64", "float64"),
        (np.float16, "float16"),
        (np.float32, "float32"),
        (np.dtype("float64"), "float64"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.dtype(ml_dtypes.bfloat16), "bfloat16"),
        ("f4", "float32"),
    ],
)
def test_a_dtype_may_be_a_name_or_a_numpy_dtype_and_is_kept_as_a_name(
    dtype: Any, name: str
) -> None:
    spec = RNNSpec("tanh", 3, 4, dtype=dtype)
    assert spec.dtype == name
    assert type(spec.dtype) is str


def test_sizes_may_be_integers_of_any_kind_and_become_python_integers() -> None:
    spec = RNNSpec("lstm", np.int64(3), np.array(4), num_layers=np.uint8(2), proj_size=np.int16(2))  # type: ignore[arg-type]
    assert spec == RNNSpec("lstm", 3, 4, num_layers=2, proj_size=2)
    for name in ("input_size", "hidden_size", "num_layers", "proj_size"):
        assert type(getattr(spec, name)) is int


def test_flags_and_numbers_of_numpy_become_python_ones() -> None:
    spec = make(bidirectional=np.True_, dropout=np.float32(0.5), clip=[np.float32(-1), np.int64(1)])
    assert (type(spec.bidirectional), type(spec.dropout)) == (bool, float)
    assert spec.clip == (-1.0, 1.0)
    assert all(type(bound) is float for bound in spec.clip)
    assert spec == make(bidirectional=True, dropout=0.5, clip=(-1, 1))


def test_bounds_of_a_clip_may_be_equal_or_infinite() -> None:
    assert make(clip=(0, 0)).clip == (0.0, 0.0)
    assert make(clip=(float("-inf"), 2)).clip == (float("-inf"), 2.0)


@pytest.mark.parametrize("dropout", [0, 1, 0.0, 1.0])
def test_dropout_goes_from_zero_to_one_inclusive(dropout: float) -> None:
    assert make(dropout=dropout).dropout == dropout


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(RNNSpec)])
def test_a_spec_cannot_be_changed(name: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(make(), name, 2)


def test_equal_descriptions_are_equal_and_have_one_hash() -> None:
    again = RNNSpec("lstm", 4, 4, **(OTHERS | {"dtype": np.float16, "clip": [-1, 2]}))  # type: ignore[arg-type]
    assert again == full()
    assert hash(again) == hash(full())
    assert len({again, full()}) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_specs_that_differ_in_one_field_are_not_equal(name: str) -> None:
    one = make(num_layers=2)
    other = one.replace(**{name: OTHERS[name]})
    assert one != other
    assert len({one, other}) == 2


def test_a_spec_equals_nothing_but_a_spec() -> None:
    assert make() != "lstm"
    assert make() != dataclasses.astuple(make())


def test_replace_changes_what_is_named_and_nothing_else() -> None:
    spec = full()
    changed = spec.replace(hidden_size=6, input_size=6, bias="none")
    assert (changed.hidden_size, changed.bias) == (6, "none")
    assert changed.replace(hidden_size=4, input_size=4, bias="recurrent") == spec
    assert spec == full()


def test_replace_checks_like_the_constructor() -> None:
    with pytest.raises(ArgumentError, match="skip"):
        full().replace(input_size=3)
    with pytest.raises(ArgumentError, match="num_layers"):
        full().replace(num_layers=0)


def test_replace_derives_everything_anew() -> None:
    spec = RNNSpec("lstm", 3, 4)
    assert (hash(spec), spec.num_directions, spec.state_size, spec.output_size) is not None
    changed = spec.replace(bidirectional=True, proj_size=2)
    assert changed.num_directions == 2
    assert changed.output_size == 4
    assert hash(changed) == hash(RNNSpec("lstm", 3, 4, bidirectional=True, proj_size=2))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_spec_comes_back_equal(protocol: int) -> None:
    spec = full()
    again = pickle.loads(pickle.dumps(spec, protocol))
    assert again == spec
    assert hash(again) == hash(spec)
    assert v2.weight_size(again) == v2.weight_size(spec)


def test_copies_of_a_spec_are_equal_to_it() -> None:
    assert copy.copy(full()) == full() == copy.deepcopy(full())


def test_the_hash_of_a_pickled_spec_is_that_of_the_process_that_reads_it() -> None:
    spec = full()
    assert hash(spec) is not None  # cached before it is pickled
    program = (
        "import pickle, sys; spec = pickle.load(sys.stdin.buffer);"
        "from cudnn_compat.v2 import RNNSpec;"
        f"print(hash(spec) == hash(RNNSpec('lstm', 4, 4, **{OTHERS!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(spec), cwd=ROOT, capture_output=True
    )
    assert done.stdout.strip() == b"True", done.stderr.decode()


def test_a_pickle_that_lacks_newer_fields_gets_their_defaults() -> None:
    old = RNNSpec.__new__(RNNSpec)
    old.__setstate__({"cell": "gru", "input_size": 3, "hidden_size": 5})
    assert old == RNNSpec("gru", 3, 5)
    assert hash(old) == hash(RNNSpec("gru", 3, 5))


@pytest.mark.parametrize("missing", ["cell", "input_size", "hidden_size"])
def test_a_pickle_that_lacks_a_field_without_default_says_which(missing: str) -> None:
    state = {"cell": "gru", "input_size": 3, "hidden_size": 5}
    del state[missing]
    with pytest.raises(ArgumentError, match=missing):
        RNNSpec.__new__(RNNSpec).__setstate__(state)


GATES = {"relu": 1, "tanh": 1, "gru": 3, "lstm": 4}


@pytest.mark.parametrize("cell", GATES)
def test_the_number_of_gates_and_the_cell_state_follow_from_the_cell(cell: str) -> None:
    spec = RNNSpec(cell, 3, 4)
    assert spec.num_gates == GATES[cell]
    assert spec.has_cell == (cell == "lstm")


def test_what_is_derived_counts_layers_directions_and_projections() -> None:
    spec = RNNSpec("lstm", 3, 7, num_layers=2, bidirectional=True, proj_size=5)
    assert (spec.num_directions, spec.num_pseudo_layers) == (2, 4)
    assert (spec.state_size, spec.output_size) == (5, 10)
    assert [spec.layer_input_size(layer) for layer in range(2)] == [3, 10]
    assert spec.state_shape(6) == (4, 6, 5)
    assert spec.cell_shape(6) == (4, 6, 7)


def test_without_projection_h_and_c_have_the_same_shape() -> None:
    spec = RNNSpec("lstm", 3, 7, num_layers=3)
    assert (spec.num_directions, spec.state_size, spec.output_size) == (1, 7, 7)
    assert [spec.layer_input_size(layer) for layer in range(3)] == [3, 7, 7]
    assert spec.state_shape(2) == spec.cell_shape(2) == (3, 2, 7)


def test_the_text_of_a_spec_makes_it_again() -> None:
    assert eval(repr(full()), {"RNNSpec": RNNSpec}) == full()
