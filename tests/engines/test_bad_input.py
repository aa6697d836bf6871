"""Every wrong argument of ``rnn_forward`` gives one of the package's exceptions, in words.

Each row says what is wrong and which words the message must hold: the argument's name, what came,
and what was wanted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import ArgumentError, DTypeError
from tests.engine import Engine

SPECS = {
    "lstm": v2.RNNSpec("lstm", 3, 4),
    "gru": v2.RNNSpec("gru", 3, 4),
    "stack": v2.RNNSpec("lstm", 3, 4, num_layers=2, bidirectional=True, proj_size=2),
}
SIZE = v2.weight_size(SPECS["lstm"])


def f(*shape: int, dtype: Any = "float32") -> Any:
    return np.ones(shape, dtype)


HOST = Engine("numpy", np)


def call(spec: Any = "lstm", on: Engine = HOST, **changes: Any) -> v2.RNNOutput:
    """A good call (5 steps, batch 2) with some arguments replaced; its arrays decide the engine."""
    spec = SPECS.get(spec, spec) if isinstance(spec, str) else spec
    good = {
        "x": f(5, 2, 3),
        "w": v2.init_weights(spec, 0) if isinstance(spec, v2.RNNSpec) else f(9),
    }
    given = good | changes
    for name in ("w", "x", "hx", "cx"):
        if type(given.get(name)) is np.ndarray:
            given[name] = on.put(given[name])
    return v2.rnn_forward(spec, **given)


SHAPES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    # x: wrong features or axes; the message counts the caller's own axes
    ("lstm", {"x": f(5, 2, 4)}, ("x has shape (5, 2, 4)", "(steps, batch, 3)", "input_size=3")),
    ("lstm", {"x": f(3, 5, 2), "hx": f(1, 5, 4)}, ("x has shape (3, 5, 2)", "input_size=3")),
    ("lstm", {"x": f(3, 5, 2)}, ("x has shape (3, 5, 2)", "input_size=3")),
    ("lstm", {"x": f(2, 5, 2, 3)}, ("x has shape (2, 5, 2, 3)", "(steps, batch, 3)")),
    ("lstm", {"x": f(1, 1, 1, 1, 3)}, ("x has shape (1, 1, 1, 1, 3)",)),
    ("lstm", {"x": f()}, ("x has shape ()", "(3,)")),
    ("lstm", {"x": f(4)}, ("x has shape (4,)", "(3,)")),
    ("lstm", {"x": f(0)}, ("x has shape (0,)",)),
    ("lstm", {"x": f(5, 4)}, ("x has shape (5, 4)", "(steps, 3)")),
    ("lstm", {"x": f(5, 2, 0)}, ("x has shape (5, 2, 0)",)),
    ("lstm", {"x": f(5, 2, 4), "layout": "batch_major"}, ("(5, 2, 4)", "(batch, steps, 3)")),
    ("lstm", {"x": f(5, 2, 3), "layout": "packed", "lengths": [5]}, ("(5, 2, 3)", "(sum, 3)")),
    ("lstm", {"x": f(3), "layout": "packed", "lengths": [1]}, ("x has shape (3,)", "(sum, 3)")),
    ("lstm", {"x": f(5, 4), "layout": "packed", "lengths": [5]}, ("(5, 4)", "(sum, 3)")),
    # w
    ("lstm", {"w": f(SIZE + 1)}, (f"w has shape ({SIZE + 1},)", f"({SIZE},)")),
    ("lstm", {"w": f(SIZE, 1, 1)}, ("w has shape", f"({SIZE},)")),
    ("lstm", {"w": f(1, SIZE)}, ("w has shape", f"({SIZE},)")),
    ("lstm", {"w": f(0)}, ("w has shape (0,)",)),
    ("lstm", {"w": f()}, ("w has shape ()",)),
    # hx
    ("lstm", {"hx": f(1, 3, 4)}, ("hx has a batch of 3", "x (5, 2, 3) has 2")),
    ("lstm", {"hx": f(2, 2, 4)}, ("hx has shape (2, 2, 4)", "(1, 2, 4)")),
    ("lstm", {"hx": f(1, 2, 5)}, ("hx has shape (1, 2, 5)", "(1, 2, 4)")),
    ("lstm", {"hx": f(2, 4)}, ("hx has shape (2, 4)", "(1, 2, 4)")),
    ("lstm", {"hx": f(1, 4)}, ("hx has shape (1, 4)", "(1, 2, 4)")),
    ("lstm", {"hx": f(4)}, ("hx has shape (4,)", "(1, 2, 4)")),
    ("lstm", {"hx": f()}, ("hx has shape ()",)),
    ("lstm", {"hx": f(1, 1, 4)}, ("hx has a batch of 1", "has 2")),
    ("lstm", {"hx": f(1, 2, 4, 1)}, ("hx has shape (1, 2, 4, 1)",)),
    ("lstm", {"hx": f(2, 1, 4), "layout": "batch_major"}, ("hx has shape (2, 1, 4)", "(1, 5, 4)")),
    ("lstm", {"x": f(33, 33, 3), "hx": f(1, 32, 4)}, ("hx has a batch of 32", "has 33")),
    # cx
    ("lstm", {"cx": f(1, 3, 4)}, ("cx has a batch of 3", "has 2")),
    ("lstm", {"hx": f(1, 2, 4), "cx": f(1, 2, 3)}, ("cx has shape (1, 2, 3)", "(1, 2, 4)")),
    ("lstm", {"hx": f(1, 2, 4), "cx": f(2, 2, 4)}, ("cx has shape (2, 2, 4)", "(1, 2, 4)")),
    ("gru", {"cx": f(1, 2, 4)}, ("cx was given", "gru has no cell state")),
    ("gru", {"hx": f(1, 2, 4), "cx": f(9)}, ("cx was given", "gru has no cell state")),
    # layers, directions, projection
    ("stack", {"hx": f(2, 2, 2)}, ("hx has shape (2, 2, 2)", "(4, 2, 2)")),
    ("stack", {"hx": f(4, 2, 4)}, ("hx has shape (4, 2, 4)", "(4, 2, 2)")),
    ("stack", {"cx": f(4, 2, 2)}, ("cx has shape (4, 2, 2)", "(4, 2, 4)")),
    ("stack", {"hx": f(2, 2, 2, 2)}, ("hx has shape (2, 2, 2, 2)",)),
    # unbatched x: states have no batch axis
    ("lstm", {"x": f(5, 3), "hx": f(1, 1, 4)}, ("hx has shape (1, 1, 4)", "(1, 4)", "unbatched")),
    ("lstm", {"x": f(3), "hx": f(4)}, ("hx has shape (4,)", "(1, 4)", "unbatched")),
    ("lstm", {"x": f(5, 3), "cx": f(1, 5)}, ("cx has shape (1, 5)", "(1, 4)", "unbatched")),
    # packed
    ("lstm", {"x": f(5, 3), "layout": "packed"}, ("exactly one of lengths and batch_sizes",)),
    (
        "lstm",
        {"x": f(5, 3), "layout": "packed", "lengths": [5], "batch_sizes": [1] * 5},
        ("exactly one of lengths and batch_sizes",),
    ),
    ("lstm", {"x": f(5, 3), "layout": "packed", "lengths": [3]}, ("5 rows", "lengths", "3")),
    (
        "lstm",
        {"x": f(5, 3), "layout": "packed", "lengths": [3, 2], "hx": f(1, 3, 4)},
        ("lengths has 2 entries", "3"),
    ),
    (
        "lstm",
        {"x": f(5, 3), "layout": "packed", "lengths": [3, 2], "hx": f(2, 4)},
        ("hx has shape (2, 4)", "(1, 2, 4)"),
    ),
    (
        "lstm",
        {"x": f(5, 3), "layout": "packed", "batch_sizes": [2, 1, 2]},
        ("batch_sizes[2] is 2",),
    ),
    # lengths
    ("lstm", {"lengths": [5, 6]}, ("lengths[1] is 6", "T=5")),
    ("lstm", {"lengths": [-1, 5]}, ("lengths[0] is -1", "T=5")),
    ("lstm", {"lengths": [5]}, ("lengths has 1 entries", "2 sequences")),
    ("lstm", {"lengths": []}, ("lengths has 0 entries", "2 sequences")),
    ("lstm", {"lengths": np.array([[5], [3]])}, ("lengths has shape (2, 1)",)),
    ("lstm", {"batch_sizes": [2, 2, 2, 2, 2]}, ("batch_sizes", "packed", "time_major")),
    ("lstm", {"x": f(5, 3), "lengths": [5, 5]}, ("lengths has 2 entries", "1 sequence")),
    ("lstm", {"x": f(5, 3), "lengths": [6]}, ("lengths[0] is 6", "T=5")),
    ("lstm", {"x": f(3), "lengths": [2]}, ("lengths[0] is 2", "T=1")),
    ("lstm", {"x": f(5, 3), "batch_sizes": [1] * 5}, ("batch_sizes", "packed")),
    # options
    ("lstm", {"layout": "TNC"}, ("layout is 'TNC'", "'time_major'", "'batch_major'", "'packed'")),
    ("lstm", {"layout": None}, ("layout is None", "'time_major'")),
    ("lstm", {"layout": ["packed"]}, ("layout is ['packed']",)),
    ("lstm", {"layout": np.array([1, 2])}, ("layout is ",)),
    ("lstm", {"engine": "cuda"}, ("engine is 'cuda'", "'numpy'", "'cudnn'")),
    ("lstm", {"engine": 0}, ("engine is 0",)),
    ("lstm", {"engine": np.array([1, 2])}, ("engine is ",)),
    ("lstm", {"seed": -1}, ("seed is -1", "0")),
    ("lstm", {"seed": 2**64}, (f"seed is {2**64}",)),
]

KINDS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("lstm", {"lengths": [5.0, 3]}, ("lengths[0] is 5.0", "integer")),
    ("lstm", {"lengths": f(2)}, ("lengths has dtype float32", "integers")),
    ("lstm", {"lengths": "52"}, ("lengths is '52'",)),
    ("lstm", {"lengths": 5}, ("lengths is 5",)),
    ("lstm", {"lengths": [True, True]}, ("lengths[0] is True",)),
    ("lstm", {"lengths": {5, 3}}, ("lengths",)),
    ("lstm", {"seed": "7"}, ("seed is '7'",)),
    ("lstm", {"seed": 1.5}, ("seed is 1.5",)),
    ("lstm", {"seed": True}, ("seed is True",)),
    ("lstm", {"training": "no"}, ("training is 'no'", "True or False")),
    ("lstm", {"training": 1}, ("training is 1", "True or False")),
    ("lstm", {"training": None}, ("training is None", "True or False")),
    ("lstm", {"training": np.array([1, 2])}, ("training is",)),
]


def name_of(row: Any) -> str:
    return " ".join(f"{k}={getattr(v, 'shape', v)}" for k, v in row[1].items())


@pytest.mark.parametrize(("spec", "changes", "words"), SHAPES, ids=map(name_of, SHAPES))
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_a_wrong_shape_length_or_option_is_refused_in_words(
    spec: str, changes: dict[str, Any], words: tuple[str, ...], training: bool, engine: Engine
) -> None:
    with pytest.raises(ArgumentError) as refusal:
        call(spec, engine, training=training, **changes)
    for word in words:
        assert word in str(refusal.value)


@pytest.mark.parametrize(("spec", "changes", "words"), KINDS, ids=map(name_of, KINDS))
def test_an_option_of_a_wrong_type_is_refused_in_words(
    spec: str, changes: dict[str, Any], words: tuple[str, ...], engine: Engine
) -> None:
    with pytest.raises(DTypeError) as refusal:
        call(spec, engine, **changes)
    for word in words:
        assert word in str(refusal.value)


@pytest.mark.parametrize("spec", [None, "lstm!", 3, [], {}, v2.RNNSpec, np.zeros(3)], ids=repr)
def test_what_is_no_spec_is_refused(spec: Any, engine: Engine) -> None:
    with pytest.raises(DTypeError, match=r"spec is .*; wanted .*RNNSpec"):
        call(spec, engine)


def test_a_layer_is_no_spec() -> None:
    with pytest.raises(DTypeError, match=r"spec is .*LSTM"):
        call(v2.LSTM(3, 4))


class Lookalike:
    """Has what an array has, and is none."""

    shape, ndim, dtype, size = (5, 2, 3), 3, np.dtype("float32"), 30


NO_ARRAYS: dict[str, Any] = {
    "list": [[1.0]],
    "tuple": (1.0,),
    "str": "x",
    "bytes": b"x",
    "int": 0,
    "float": 1.5,
    "bool": True,
    "NumPy scalar": np.float32(1),
    "dtype": np.dtype("float32"),
    "class": np.ndarray,
    "dict": {"x": 1},
    "generator": iter([1.0]),
    "memoryview": memoryview(f(5, 2, 3)),
    "masked array": np.ma.masked_array(f(5, 2, 3), mask=f(5, 2, 3) > 2),
    "lookalike": Lookalike(),
    "RNNOutput": call(),
}


@pytest.mark.parametrize("value", NO_ARRAYS.values(), ids=NO_ARRAYS)
@pytest.mark.parametrize("name", ["w", "x", "hx", "cx"])
def test_what_is_no_array_is_refused_with_its_type_and_what_to_pass(
    name: str, value: Any, engine: Engine
) -> None:
    with pytest.raises(DTypeError, match=rf"{name} is a .*pass") as refusal:
        call(on=engine, **{name: value})
    kind = "masked" if isinstance(value, np.ma.MaskedArray) else type(value).__name__
    assert kind in str(refusal.value)


@pytest.mark.parametrize("name", ["w", "x"])
def test_none_is_no_array_where_one_is_needed(name: str, engine: Engine) -> None:
    with pytest.raises(DTypeError, match=rf"{name} is .*None.*wanted a NumPy or CuPy array"):
        call(on=engine, **{name: None})


@pytest.mark.peers
@pytest.mark.parametrize("name", ["w", "x", "hx", "cx"])
def test_a_tensor_is_refused_with_the_way_to_share_its_memory(name: str, engine: Engine) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(DTypeError, match=rf"{name} is a torch.Tensor.*from_dlpack\({name}\)"):
        call(on=engine, **{name: torch.zeros(5, 2, 3)})


ODD_DTYPES = {
    **{name: name for name in ("float16", "float64", "int64", "bool", "complex64", "object")},
    "string": "U3",
    "bytes": "V4",
    "time": "m8[s]",
    "structured": [("a", "float32")],
}


@pytest.mark.parametrize("dtype", ODD_DTYPES.values(), ids=ODD_DTYPES)
@pytest.mark.parametrize("name", ["w", "x", "hx", "cx"])
def test_an_array_of_another_dtype_is_refused_by_name(
    name: str, dtype: Any, engine: Engine
) -> None:
    if np.dtype(dtype).kind in "OUVmM" and not engine.on_host:
        pytest.skip("CuPy has arrays of numbers only")
    shapes = {"w": (SIZE,), "x": (5, 2, 3), "hx": (1, 2, 4), "cx": (1, 2, 4)}
    with pytest.raises(DTypeError, match=rf"dtype='float32'.*{name} (?!float32)\S"):
        call(on=engine, **{name: np.zeros(shapes[name], dtype)})


def test_two_wrong_arguments_give_one_error_and_not_another(engine: Engine) -> None:
    with pytest.raises(v2.CompatError):
        call(on=engine, x=f(4, 4, 4, 4), hx="h", cx=7, lengths="1")


def test_subclasses_of_arrays_are_arrays() -> None:
    class Subclass(np.ndarray):
        pass

    plain, out = call(x=f(5, 2, 3)), call(x=f(5, 2, 3).view(Subclass))
    assert type(out.y) is np.ndarray
    assert np.array_equal(out.y, plain.y)


def test_asking_for_the_cudnn_engine_with_numpy_arrays_never_gives_the_other_one() -> None:
    with pytest.raises(v2.CompatError, match=r"[Cc][Uu][Dd][Nn][Nn]"):
        call(engine="cudnn")


@pytest.mark.gpu
def test_asking_for_the_numpy_engine_with_cupy_arrays_never_gives_the_other_one() -> None:
    import cupy

    with pytest.raises(v2.CompatError, match="numpy"):
        call(on=Engine("cudnn", cupy), engine="numpy")
