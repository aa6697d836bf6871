"""`RNNDesc`: its arguments, its views, and what downstream code does with the class."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import weakref
from types import ModuleType

import numpy as np
import pytest

from cudnn_compat import legacy, v2
from cudnn_compat.errors import ArgumentError, CompatError, DTypeError
from cudnn_compat.legacy import CUDNN_GRU, CUDNN_LSTM, CUDNN_RNN_RELU, CUDNN_RNN_TANH, RNNDesc
from tests.engine import Engine
from tests.legacy.steps import GATES, HIDDEN, INPUT, MODES, Step, assert_same, on_host


class Named(RNNDesc):
    """A descriptor with something of its own, as downstream code makes them."""

    def __init__(self, mode: int, name: str, xp: ModuleType = np) -> None:
        super().__init__(mode, INPUT, HIDDEN, xp=xp)
        self.name = name


class Doubles(RNNDesc["float64"]):
    """A subclass of a class with a dtype."""


def test_the_modes_have_the_numbers_that_cudnn_gave_them() -> None:
    assert (CUDNN_RNN_RELU, CUDNN_RNN_TANH, CUDNN_LSTM, CUDNN_GRU) == (0, 1, 2, 3)
    assert {type(mode) for mode in MODES.values()} == {int}


@pytest.mark.parametrize("cell", GATES)
def test_a_new_descriptor_has_zeroed_weights_with_two_biases(cell: str, engine: Engine) -> None:
    desc = RNNDesc(MODES[cell], INPUT, HIDDEN, xp=engine.xp)
    rows = GATES[cell] * HIDDEN
    assert type(desc.params) is engine.xp.ndarray
    assert (desc.mode, desc.input, desc.hidden) == (MODES[cell], INPUT, HIDDEN)
    assert desc.params.shape == (rows * (INPUT + HIDDEN + 2),)
    assert desc.params.dtype == "float32"
    assert not desc.params.any()
    Wi, Wh = desc.weights
    assert (Wi.shape, Wh.shape, desc.bias.shape) == ((INPUT, rows), (HIDDEN, rows), (rows,))


@pytest.mark.parametrize("cell", GATES)
def test_weights_and_bias_are_views_at_the_places_that_cudnn_gives_them(
    cell: str, engine: Engine
) -> None:
    desc = RNNDesc(MODES[cell], INPUT, HIDDEN, xp=engine.xp)
    rows = GATES[cell] * HIDDEN
    desc.params[:] = engine.xp.arange(len(desc.params))
    Wi, Wh = desc.weights
    start, end = rows * INPUT, rows * (INPUT + HIDDEN)
    # Column-major, as Julia's reshape of the same memory.
    in_columns = [
        np.arange(start).reshape(INPUT, rows, order="F"),
        np.arange(start, end).reshape(HIDDEN, rows, order="F"),
        np.arange(end, end + rows),
    ]
    for view, wanted in zip((Wi, Wh, desc.bias), in_columns, strict=True):
        np.testing.assert_array_equal(on_host(view), wanted)
    for view in (Wi, Wh, desc.bias):
        view[...] = -1
    params = on_host(desc.params)
    np.testing.assert_array_equal(params[: end + rows], -1)
    np.testing.assert_array_equal(params[end + rows :], np.arange(end + rows, end + 2 * rows))


def test_the_spec_is_full_precision_with_two_biases() -> None:
    spec = RNNDesc(CUDNN_GRU, INPUT, HIDDEN).spec
    assert (spec.math, spec.bias, spec.dtype, spec.num_layers) == ("full", "double", "float32", 1)
    assert not spec.bidirectional


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float32", "float32"),
        (np.float64, "float64"),
        (np.dtype("float64"), "float64"),
        (float, "float64"),
        ("f2", "float16"),
    ],
)
def test_a_dtype_is_a_name_or_a_type_and_may_be_a_type_parameter(dtype, name: str) -> None:
    by_argument = RNNDesc(CUDNN_LSTM, INPUT, HIDDEN, dtype=dtype)
    by_parameter = RNNDesc[dtype](CUDNN_LSTM, INPUT, HIDDEN)
    for desc in (by_argument, by_parameter):
        assert desc.dtype == name
        assert desc.params.dtype == name
        assert isinstance(desc, RNNDesc)


def test_the_class_of_a_dtype_is_made_once() -> None:
    assert RNNDesc["float32"] is RNNDesc[np.float32]
    assert RNNDesc["float32"] is not RNNDesc["float64"]
    assert issubclass(RNNDesc["float32"], RNNDesc)
    assert RNNDesc["float32"].__name__ == "RNNDesc[float32]"
    assert Named["float64"] is Named["float64"]
    assert issubclass(Named["float64"], Named)
    assert Named["float64"] is not RNNDesc["float64"]


def test_two_dtypes_are_refused_and_the_same_one_twice_is_not() -> None:
    assert RNNDesc["float64"](CUDNN_GRU, 3, 4, dtype="float64").dtype == "float64"
    with pytest.raises(ArgumentError, match=r"dtype is float32, but RNNDesc\[float64\]"):
        RNNDesc["float64"](CUDNN_GRU, 3, 4, dtype="float32")
    with pytest.raises(ArgumentError, match="has a dtype already"):
        RNNDesc["float64"]["float32"]


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "complex64", "no such", object, 7])
def test_a_dtype_that_the_old_library_had_not_is_refused(dtype: object) -> None:
    for make in (lambda: RNNDesc(CUDNN_GRU, 3, 4, dtype=dtype), lambda: RNNDesc[dtype]):
        with pytest.raises(DTypeError, match="wanted one of float32, float64, float16"):
            make()


@pytest.mark.parametrize("mode", [-1, 4, 2.0, "lstm", None, True, [2]])
def test_a_mode_that_does_not_exist_is_refused_with_the_list(mode: object) -> None:
    with pytest.raises(CompatError, match="mode is .*CUDNN_RNN_RELU 0.*CUDNN_GRU 3"):
        RNNDesc(mode, 3, 4)


@pytest.mark.parametrize("name", ["input", "hidden", "layers"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "3", None, True])
def test_a_size_that_is_no_size_is_refused_under_the_callers_own_name(name: str, value) -> None:
    sizes = {"input": 3, "hidden": 4, "layers": 1, name: value}
    with pytest.raises(CompatError, match=f"^{name} is {value!r}; wanted"):
        RNNDesc(CUDNN_GRU, **sizes)


@pytest.mark.parametrize("xp", [None, "numpy", math])
def test_an_xp_that_makes_no_arrays_is_refused(xp: object) -> None:
    with pytest.raises(DTypeError, match="xp is .*numpy or cupy"):
        RNNDesc(CUDNN_GRU, 3, 4, xp=xp)


@pytest.mark.parametrize("name", ["params", "weights", "bias", "mode", "input", "hidden"])
def test_what_belongs_together_cannot_be_replaced_one_by_one(name: str) -> None:
    desc = RNNDesc(CUDNN_GRU, 3, 4)
    with pytest.raises(AttributeError):
        setattr(desc, name, 0)


def test_a_constructor_can_be_added_to_the_class() -> None:
    """What Flux did while it was imported."""
    RNNDesc.of_matrix = classmethod(lambda cls, Wi: cls[Wi.dtype](CUDNN_RNN_TANH, *Wi.shape[::-1]))
    try:
        desc = RNNDesc.of_matrix(np.zeros((HIDDEN, INPUT)))
    finally:
        del RNNDesc.of_matrix
    assert (desc.input, desc.hidden, desc.dtype) == (INPUT, HIDDEN, "float64")


@pytest.mark.parametrize(
    "make", [lambda: RNNDesc(0, 3, 4), lambda: RNNDesc["float64"](0, 3, 4), lambda: Named(0, "n")]
)
def test_a_descriptor_is_a_key_of_a_weak_dictionary_and_equal_only_to_itself(make) -> None:
    desc, other = make(), make()
    assert desc != other
    as_key, as_value = weakref.WeakKeyDictionary({desc: 1}), weakref.WeakValueDictionary({1: desc})
    assert as_key[desc] == 1
    assert other not in as_key
    del desc
    gc.collect()
    assert not as_key
    assert not as_value


def test_a_descriptor_is_not_kept_alive_by_what_it_computed(engine: Engine) -> None:
    step = Step("lstm", 5, engine=engine)
    result = step.run_forward()
    desc = weakref.ref(step.desc)
    del step
    gc.collect()
    assert desc() is None
    assert result[0].shape == (HIDDEN, 5)


@pytest.mark.parametrize(
    "make",
    [
        lambda xp: RNNDesc(CUDNN_LSTM, INPUT, HIDDEN, dtype="float64", xp=xp),
        lambda xp: RNNDesc["float32"](CUDNN_GRU, INPUT, HIDDEN, xp=xp),
        lambda xp: RNNDesc(CUDNN_GRU, INPUT, HIDDEN, layers=2, xp=xp),
        lambda xp: Named(CUDNN_RNN_RELU, "mine", xp),
        lambda xp: Doubles(CUDNN_RNN_TANH, INPUT, HIDDEN, xp=xp),
    ],
)
@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, *(lambda d, p=p: pickle.loads(pickle.dumps(d, p)) for p in range(6))],
)
def test_deep_copies_and_pickles_have_weights_of_their_own_and_views_of_those(
    make, duplicate, engine: Engine
) -> None:
    desc = make(engine.xp)
    desc.params[:] = engine.xp.arange(len(desc.params))
    twin = duplicate(desc)
    assert type(twin) is type(desc)
    assert getattr(twin, "name", None) == getattr(desc, "name", None)
    assert twin.spec == desc.spec
    np.testing.assert_array_equal(on_host(twin.params), on_host(desc.params))
    assert type(twin.params) is engine.xp.ndarray
    assert not engine.shares(twin.params, desc.params)
    for view in (*twin.weights, twin.bias):
        assert engine.shares(view, twin.params)
        view[...] = -1
    np.testing.assert_array_equal(on_host(desc.params), np.arange(len(desc.params)))


def test_a_shallow_copy_shares_the_weights(engine: Engine) -> None:
    desc = Named(CUDNN_GRU, "mine", engine.xp)
    twin = copy.copy(desc)
    assert type(twin) is Named
    assert twin is not desc
    assert twin.name == "mine"
    assert twin.params is desc.params
    for view in (*twin.weights, twin.bias):
        assert engine.shares(view, desc.params)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))]
)
def test_duplicates_compute_what_the_original_computes(duplicate, engine: Engine) -> None:
    step = Step("gru", 5, engine=engine)
    twin = duplicate(step.desc)
    for one, other in zip(legacy.forward(twin, step.x, step.h), step.run_forward(), strict=True):
        assert_same(one, other)


def test_the_pickle_of_something_else_is_refused() -> None:
    with pytest.raises(DTypeError, match="not the pickle of a RNNDesc"):
        RNNDesc(CUDNN_GRU, 3, 4).__setstate__({"params": np.zeros(3)})


def test_a_descriptor_says_what_it_describes() -> None:
    assert repr(RNNDesc(CUDNN_LSTM, 3, 4)) == "RNNDesc[float32](2, 3, 4)"
    assert (
        repr(RNNDesc["float64"](CUDNN_GRU, 3, 4, layers=2)) == "RNNDesc[float64](3, 3, 4, layers=2)"
    )


def test_several_layers_work_once_all_weights_are_set_and_say_how_until_then(
    engine: Engine,
) -> None:
    desc = RNNDesc(CUDNN_LSTM, INPUT, HIDDEN, layers=2, dtype="float64", xp=engine.xp)
    rng = np.random.default_rng(1)
    x, h = (engine.put(rng.normal(size=size)) for size in ((INPUT, 5), (HIDDEN, 5, 2)))
    assert desc.params.shape == (v2.weight_size(desc.spec),)
    named = v2.named_weights(desc.spec, desc.params)
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0"):
        named[name][...] = engine.put(rng.normal(size=named[name].shape))
    # What the old library computed in silence: a second layer of zeros.
    with pytest.raises(ArgumentError, match=r"layer 1 \(of 2\) are all zero.*v2\.named_weights"):
        legacy.forward(desc, x, h, h)
    for name in ("weight_ih_l1", "weight_hh_l1", "bias_ih_l1"):
        named[name][...] = engine.put(rng.normal(size=named[name].shape))
    y, ho, co = legacy.forward(desc, x, h, h)
    right = v2.rnn_forward(desc.spec, desc.params, x.T[None], h.T, h.T)
    for found, wanted in ((y, right.y[0].T), (ho, right.hy.T), (co, right.cy.T)):
        assert_same(found, wanted)
    assert ho.shape == co.shape == (HIDDEN, 5, 2)


@pytest.mark.parametrize("shape", [(HIDDEN,), (HIDDEN, 1), (HIDDEN, 5)])
def test_a_state_without_layers_is_each_layers(shape: tuple[int, ...], engine: Engine) -> None:
    desc, rng = (
        RNNDesc(CUDNN_GRU, INPUT, HIDDEN, layers=3, dtype="float64", xp=engine.xp),
        np.random.default_rng(2),
    )
    desc.params[:] = engine.put(rng.normal(size=desc.params.shape))
    x, h = engine.put(rng.normal(size=(INPUT, 5))), engine.put(rng.normal(size=shape))
    full = engine.xp.empty((HIDDEN, 5, 3))
    full[...] = h.reshape(*shape, *[1] * (3 - len(shape)))
    (y, ho), back = legacy.pullback(desc, x, h)
    (y_full, ho_full), back_full = legacy.pullback(desc, x, full)
    assert_same(y, y_full)
    assert_same(ho, ho_full)
    one, other = back(y, ho), back_full(y, ho)
    assert one.h.shape == (HIDDEN, 5, 3)
    for found, right in zip(one, other, strict=True):
        assert_same(found, right)


def test_gradients_of_upper_layers_are_in_the_flat_gradient(engine: Engine) -> None:
    desc, rng = (
        RNNDesc(CUDNN_GRU, INPUT, HIDDEN, layers=2, dtype="float64", xp=engine.xp),
        np.random.default_rng(3),
    )
    desc.params[:] = engine.put(rng.normal(size=desc.params.shape))
    x, h = (engine.put(rng.normal(size=size)) for size in ((INPUT, 5), (HIDDEN, 5, 2)))
    (y, ho), back = legacy.pullback(desc, x, h)
    gradients = back(y, ho)
    out = v2.rnn_forward(desc.spec, desc.params, x.T[None], h.T, training=True)
    right = v2.rnn_backward(out, y.T[None], ho.T)
    assert_same(gradients.dw, right.dw)
    reserve, _ = legacy.forwardTrain(desc, x, h)
    legacy.backwardData(desc, y, y, ho, h, reserve)
    found = legacy.backwardWeights(desc, x, h, y, reserve)
    assert_same(found.dw, right.dw)
    (dWi, dWh), db = found
    for value in (dWi, dWh, db):
        assert engine.shares(value, found.dw)
