"""Random arguments: a call gives right shapes or one of the package's exceptions, nothing else."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cudnn_compat import v2
from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.v2 import CompatError
from tests.engine import Engine

DTYPES = (
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int32",
    "complex64",
    "bool",
    "object",
    ">f4",
)


def dtype_of(name: str) -> Any:
    return numpy_dtype(name) if name == "bfloat16" else np.dtype(name)


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.integers(-2, 6), max_size=4),
    st.lists(st.floats(0, 5), max_size=3),
    st.sampled_from(["time_major", "packed", "numpy", np.float32, v2.RNNSpec, object(), {}, set()]),
)

small_shapes = st.lists(st.integers(0, 6), max_size=4).map(tuple)


@st.composite
def good_arrays(draw: Any, shape: Any, dtype: str) -> Any:
    """What is asked for, in one of the forms that are as good as any other."""
    array = np.full(shape, 0.5).astype(dtype_of(dtype))
    how = draw(st.sampled_from(["plain", "transposed", "read-only", "subclass"]))
    if how == "subclass":
        return array.view(type("Subclass", (np.ndarray,), {}))
    if how == "transposed":
        return np.ascontiguousarray(array.T).T
    array.flags.writeable = how != "read-only"
    return array


@st.composite
def odd_arrays(draw: Any, shape: Any = (4, 2, 3), dtype: str = "float32") -> Any:
    """An array of another shape or dtype (perhaps), or a masked one."""
    other_shape, other_dtype = draw(small_shapes), draw(st.sampled_from(DTYPES))
    what = draw(st.sampled_from(["shape", "dtype", "both", "masked"]))
    if what in ("shape", "both"):
        shape = other_shape
    if what in ("dtype", "both"):
        dtype = other_dtype
    array = draw(good_arrays(shape, dtype))
    return np.ma.masked_array(array) if what == "masked" else array


@st.composite
def specs(draw: Any) -> v2.RNNSpec:
    cell = draw(st.sampled_from(["relu", "tanh", "lstm", "gru"]))
    hidden = draw(st.integers(1, 4))
    mode = draw(st.sampled_from(["linear", "linear", "skip"]))
    options: dict[str, Any] = {}
    if cell == "lstm" and hidden > 1 and draw(st.booleans()):
        options["proj_size"] = draw(st.integers(1, hidden - 1))
    if cell == "lstm" and draw(st.booleans()):
        options["clip"] = (-0.5, 0.5)
    dtype = draw(st.sampled_from(["float16", "bfloat16", "float32", "float64"]))
    if dtype in ("float16", "float32") and draw(st.integers(0, 9)) == 0:
        options["math"] = "half"
    layers = draw(st.integers(1, 3))
    return v2.RNNSpec(
        cell,
        hidden if mode == "skip" else draw(st.integers(1, 4)),
        hidden,
        num_layers=layers,
        bidirectional=draw(st.booleans()),
        bias=draw(st.sampled_from(["double", "none", "input", "recurrent"])),
        input_mode=mode,
        dropout=draw(st.sampled_from([0.0, 0.5, 1.0])) if layers > 1 else 0.0,
        dtype=dtype,
        **options,
    )


@st.composite
def calls(draw: Any) -> tuple[v2.RNNSpec, dict[str, Any]]:
    """Arguments of ``rnn_forward``: what a caller would pass, with some of it replaced."""
    spec = draw(specs())
    form = draw(
        st.sampled_from(["time_major", "batch_major", "packed", "Packed", "(T, I)", "(I,)"])
    )
    lengths = draw(st.lists(st.integers(0, 5), max_size=4))
    batch, steps = len(lengths), max(lengths, default=0) + draw(st.integers(0, 1))
    arguments: dict[str, Any] = {}
    shape: Any = {
        "time_major": (steps, batch),
        "batch_major": (batch, steps),
        "packed": (sum(lengths),),
        "Packed": (sum(lengths),),
        "(T, I)": (steps,),
        "(I,)": (),
    }[form]
    middle = () if form.startswith("(") else (batch,)
    state = (spec.num_pseudo_layers, *middle)
    shapes: dict[str, Any] = {
        "w": (v2.weight_size(spec),),
        "x": (*shape, spec.input_size),
        "hx": (*state, spec.state_size),
        "cx": (*state, spec.hidden_size),
    }
    names = ["w", "x"] + [n for n in ("hx", "cx")[: 1 + spec.has_cell] if draw(st.booleans())]
    for name in names:
        arguments[name] = draw(good_arrays(shapes[name], spec.dtype))
    if form == "Packed":
        arguments["x"] = v2.Packed(arguments["x"], lengths)
    elif not form.startswith("("):
        arguments["layout"] = form
        if form == "packed" and draw(st.booleans()):
            longest = max(lengths, default=0)
            arguments["batch_sizes"] = [sum(n > t for n in lengths) for t in range(longest)]
        elif form == "packed" or draw(st.booleans()):
            arguments["lengths"] = draw(st.sampled_from([list, tuple, as_int32, as_uint8]))(lengths)
    arguments["training"] = draw(st.booleans())
    arguments["seed"] = draw(st.sampled_from([None, 0, 7, v2.DropoutState(3)]))
    for name in draw(st.lists(st.sampled_from(OPTIONS), max_size=2)):
        usual = shapes.get(name, (3,))
        arguments[name] = draw(st.one_of(junk, odd_arrays(usual, spec.dtype)))
    return spec, arguments


def as_int32(lengths: list[int]) -> Any:
    return np.array(lengths, "int32")


def as_uint8(lengths: list[int]) -> Any:
    return np.array(lengths, "uint8")


OPTIONS = ("w", "x", "hx", "cx", "lengths", "batch_sizes", "layout", "seed", "engine", "training")


def in_words(error: CompatError) -> None:
    assert len(str(error).split()) > 3


def put(engine: Engine, value: Any) -> Any:
    """A drawn array where the engine computes, and what is no such array as it is.

    On the GPU, arrays that CuPy cannot have stay on the host, as a caller may leave them there.
    """
    if isinstance(value, v2.Packed):
        return v2.Packed(put(engine, value.data), value.lengths)
    if engine.on_host or not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        return value
    held = value.dtype.isnative and engine.holds(value.dtype.name)
    return engine.put(value.view(np.ndarray)) if held else value


def put_all(engine: Engine, arguments: dict[str, Any]) -> dict[str, Any]:
    names = ("w", "x", "hx", "cx", "dy", "dhy", "dcy")
    return {n: put(engine, value) if n in names else value for n, value in arguments.items()}


def finite(engine: Engine, array: Any) -> bool:
    return array is None or bool(np.isfinite(engine.get(array).astype("float64")).all())


@dataclasses.dataclass
class Served:
    """How many of the drawn calls got through."""

    forward: int = 0
    backward: int = 0


def check_call(engine: Engine, spec: v2.RNNSpec, arguments: Any, data: Any, served: Served) -> None:
    arguments = put_all(engine, arguments)
    try:
        out = v2.rnn_forward(spec, **arguments)
    except CompatError as error:
        in_words(error)
        return
    served.forward += 1
    x = arguments["x"]
    rows = x.data if isinstance(x, v2.Packed) else x
    y = out.y.data if isinstance(out.y, v2.Packed) else out.y
    assert isinstance(out.y, v2.Packed) == isinstance(x, v2.Packed)
    assert y.shape == (*rows.shape[:-1], spec.output_size)
    batch = out.hy.shape[1:-1]
    assert out.hy.shape == (spec.num_pseudo_layers, *batch, spec.state_size)
    assert (out.cy is not None) == spec.has_cell
    if out.cy is not None:
        assert out.cy.shape == (spec.num_pseudo_layers, *batch, spec.hidden_size)
    # relu has no bound: with constant weights a few steps grow beyond what float16 can say.
    bounded = spec.cell != "relu" or spec.dtype != "float16"
    for array in (y, out.hy, out.cy):
        assert array is None or array.dtype == numpy_dtype(spec.dtype)
        assert not bounded or finite(engine, array)
    if not out.training:
        return
    given_gradients: dict[str, Any] = {}
    for name, like in (("dy", y), ("dhy", out.hy), ("dcy", out.cy)):
        if like is not None and data.draw(st.booleans()):
            given_gradients[name] = data.draw(good_arrays(like.shape, spec.dtype))
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from(["dy", "dhy", "dcy"]))
        given_gradients[name] = data.draw(st.one_of(junk, odd_arrays(out.hy.shape, spec.dtype)))
    try:
        gradients = v2.rnn_backward(out, **put_all(engine, given_gradients))
    except CompatError as error:
        in_words(error)
        return
    served.backward += 1
    dx = gradients.dx.data if isinstance(gradients.dx, v2.Packed) else gradients.dx
    assert dx.shape == rows.shape
    assert gradients.dhx.shape == out.hy.shape
    assert (gradients.dcx is None) == (out.cy is None)
    assert gradients.dw.shape == (v2.weight_size(spec),)
    for array in gradients:
        assert not bounded or finite(engine, array)


def test_random_arguments_give_right_shapes_or_an_exception_of_the_package(engine: Engine) -> None:
    served = Served()

    @given(calls(), st.data())
    @settings(
        max_examples=500, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
    )
    def drawn_calls_are_served_or_refused(drawn: Any, data: Any) -> None:
        check_call(engine, *drawn, data, served)

    drawn_calls_are_served_or_refused()
    # The draw is worth something only if calls got through as well.
    assert served.forward > 100
    assert served.backward > 15


@given(
    st.lists(junk, min_size=3, max_size=3),
    st.dictionaries(
        st.sampled_from(
            [
                "num_layers",
                "bidirectional",
                "bias",
                "input_mode",
                "proj_size",
                "dropout",
                "dtype",
                "math",
                "algo",
                "clip",
            ]
        ),
        junk,
        max_size=3,
    ),
)
@settings(max_examples=300)
def test_random_descriptions_are_understood_or_refused(sizes: list[Any], options: Any) -> None:
    try:
        spec = v2.RNNSpec(*sizes, **options)
    except CompatError as error:
        in_words(error)
    else:
        assert v2.weight_size(spec) > 0


@given(
    st.sampled_from(["lstm", "gru", "tanh"]),
    st.integers(1, 4),
    st.one_of(junk, odd_arrays()),
    junk,
)
@settings(max_examples=200)
def test_random_states_and_sequences_of_a_layer_are_served_or_refused(
    engine: Engine, cell: str, hidden: int, state: Any, lengths: Any
) -> None:
    make: Any = {"lstm": v2.LSTM, "gru": v2.GRU, "tanh": v2.RNN}[cell]
    x, state = engine.xp.zeros((4, 2, 3), "float32"), put(engine, state)
    for keep in (False, True):
        layer = make(3, hidden, keep_state=keep, xp=engine.xp)
        for given_state in (state, (state, state)):
            try:
                y, _ = layer(x, given_state, lengths=lengths)
            except CompatError as error:
                in_words(error)
            else:
                assert y.shape == (4, 2, hidden)


@given(odd_arrays((4, 2, 3), "float32"), st.one_of(junk, st.just([4, 2])), junk, junk)
@settings(max_examples=300)
def test_random_arguments_of_pack_and_unpack_are_served_or_refused(
    engine: Engine, x: Any, lengths: Any, layout: Any, steps: Any
) -> None:
    x = put(engine, x)
    for options in ({}, {"layout": layout}):
        try:
            packed = v2.pack(x, lengths, **options)
        except CompatError as error:
            in_words(error)
            continue
        try:
            padded = v2.unpack(packed, steps=steps, **options)
        except CompatError as error:
            in_words(error)
        else:
            assert padded.shape[2:] == x.shape[2:]
