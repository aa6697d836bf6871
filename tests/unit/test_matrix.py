"""The compatibility matrix: is it complete, does it pass here, and can each of its checks fail?"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudnn_compat import legacy, v2
from cudnn_compat.errors import UnsupportedError
from cudnn_compat.legacy.table import TABLE
from cudnn_compat.matrix import problems
from cudnn_compat.matrix.comparing import Case, Comparison
from cudnn_compat.matrix.problems import AWAY_FROM_KINKS, problem
from cudnn_compat.matrix.reference import distance_to_kink
from cudnn_compat.matrix.rows import FEATURES, Row, all_rows
from cudnn_compat.matrix.run import CHECKS, Result, as_json, run_row
from cudnn_compat.matrix.shapes import SequenceShape
from cudnn_compat.spec import ALGOS, BIAS_MODES, CELLS, DTYPES, INPUT_MODES, MATHS, RNNSpec

ROWS = list(all_rows(["numpy"]))


def row_of(api: str, name: str, **wanted: str) -> Row:
    """The first row of a feature, in float64 where it has that."""
    rows = [row for row in ROWS if (row.feature.api, row.feature.name) == (api, name)]
    rows = [row for row in rows if all(getattr(row, key) == wanted[key] for key in wanted)]
    return next((row for row in rows if row.dtype == "float64"), rows[0])


@pytest.fixture(scope="module")
def results() -> list[Result]:
    """All rows, run once."""
    return [run_row(row) for row in ROWS]


def test_every_row_has_an_id_of_its_own() -> None:
    ids = [row.id for row in ROWS]
    assert len(set(ids)) == len(ids)
    assert "v2/forward/lstm/float32/5x3/numpy" in ids
    assert "v2/packed_lengths/gru/float64/5x4,lengths=0-4-0-2/numpy" in ids
    assert "legacy/pullback/lstm/float32/x(3,5),h(4,1)/numpy" in ids
    assert not any(" " in id_ for id_ in ids)


def test_every_check_exists_and_is_used() -> None:
    for api, checks in CHECKS.items():
        assert {feature.check for feature in FEATURES if feature.api == api} == set(checks)


def test_every_old_name_has_rows_for_each_cell_and_dtype() -> None:
    old = [row.name for row in TABLE if row.old == f"cudnn_compat.legacy.{row.name}"]
    assert len(old) >= 16
    by_name = {feature.name: feature for feature in FEATURES if feature.api == "legacy"}
    for name in old:
        feature = by_name[name]
        assert set(feature.cells) == set(CELLS) or feature.check == "constant"
        assert set(feature.dtypes) >= {"float32", "float64"}
    constants = [feature.cells for feature in FEATURES if feature.check == "constant"]
    assert sorted(cell for cells in constants for cell in cells) == sorted(CELLS)


def test_every_option_of_a_spec_has_rows() -> None:
    specs = [Case(row).spec for row in ROWS if row.feature.api == "v2"]
    assert {spec.cell for spec in specs} == set(CELLS)
    assert {spec.dtype for spec in specs} == set(DTYPES)
    assert {spec.bias for spec in specs} == set(BIAS_MODES)
    assert {spec.input_mode for spec in specs} == set(INPUT_MODES)
    assert {spec.math for spec in specs} == set(MATHS)
    assert {spec.algo for spec in specs} == set(ALGOS)
    assert {spec.num_layers for spec in specs} >= {1, 2, 3}
    assert {spec.bidirectional for spec in specs} == {False, True}
    for option in ("proj_size", "dropout", "clip"):
        assert len({getattr(spec, option) for spec in specs}) > 1


def test_everything_passes_on_numpy_but_what_it_cannot_do(results: list[Result]) -> None:
    assert [result for result in results if result.status == "failed"] == []
    refused = {r.row.feature.name for r in results if r.status == "not supported"}
    assert refused == {"math_half"}
    for result in results:
        if result.status == "ok":
            assert result.error is not None
            assert result.tolerance is not None
            assert result.error <= result.tolerance
            assert result.reason is None
        else:
            assert result.reason


def test_float64_is_computed_in_float64(results: list[Result]) -> None:
    """Errors that are rounding are far below float32's, and are not all zero."""
    names = {"forward", "backward", "layers_3", "pullback"}
    errors = [r.error for r in results if r.row.dtype == "float64" and r.row.feature.name in names]
    assert 0 < max(filter(None, errors)) < 1e-13


def test_the_data_of_a_row_is_exact_in_every_dtype() -> None:
    posed = problem(RNNSpec("lstm", 3, 4, num_layers=2), SequenceShape(5, 3))
    for values in (posed.w, *posed.xs, posed.hx, posed.cx, *posed.dys, posed.dhy, posed.dcy):
        for dtype in ("float16", "float32", pytest.importorskip("ml_dtypes").bfloat16):
            assert np.array_equal(values, values.astype(dtype).astype(np.float64))


def test_the_data_of_a_row_is_the_same_in_every_run() -> None:
    posed = problem(RNNSpec("gru", 3, 4), SequenceShape(2, 2))
    problems._problem.cache_clear()
    again = problem(RNNSpec("gru", 3, 4), SequenceShape(2, 2))
    assert again is not posed
    assert np.array_equal(posed.w, again.w)
    other = problem(RNNSpec("gru", 3, 4), SequenceShape(2, 3))
    assert not np.array_equal(posed.w, other.w)


def test_no_row_stands_where_a_gradient_may_go_either_way() -> None:
    for feature in FEATURES:
        if feature.api == "v2" and feature.check != "dropout_statistics":
            for cell in feature.cells:
                for shape in feature.shapes:
                    posed = Case(Row(feature, cell, feature.dtypes[-1], shape, "numpy")).problem
                    assert distance_to_kink(posed.output) > AWAY_FROM_KINKS


def test_arguments_are_read_only_so_that_a_call_that_writes_to_one_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = v2.rnn_forward

    def writes(spec: Any, w: Any, x: Any, *rest: Any, **named: Any) -> Any:
        x[...] = 0
        return right(spec, w, x, *rest, **named)

    monkeypatch.setattr(v2, "rnn_forward", writes)
    result = run_row(row_of("v2", "forward", cell="gru"))
    assert result.status == "failed"
    assert result.reason == "ValueError: assignment destination is read-only"


# Can each check fail? A plant replaces one function of the package by one that is a little wrong.

Plant = Callable[[pytest.MonkeyPatch], None]


def off(part: str, module: Any = v2, name: str = "rnn_forward") -> Plant:
    """An attribute of what a function returns is off by 1e-3."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(module, name)

        def wrong(*arguments: Any, **named: Any) -> Any:
            out = right(*arguments, **named)
            value = getattr(out, part)
            if isinstance(value, v2.Packed):
                changed: Any = v2.Packed(value.data + 1e-3, value.lengths)
            else:
                changed = None if value is None else value + 1e-3
            setattr(out, part, changed)
            return out

        patch.setattr(module, name, wrong)

    return plant


def changed(module: Any, name: str, change: Callable[..., Any]) -> Plant:
    """``change(result, *arguments)`` is returned in place of the result of a function."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(module, name)

        def wrong(*arguments: Any, **named: Any) -> Any:
            return change(right(*arguments, **named), *arguments)

        patch.setattr(module, name, wrong)

    return plant


def replaced(module: Any, name: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(module, name, value)


def forgets_the_seed(patch: pytest.MonkeyPatch) -> None:
    right = v2.rnn_forward

    def wrong(*arguments: Any, **named: Any) -> Any:
        return right(*arguments, **named | {"seed": None})

    patch.setattr(v2, "rnn_forward", wrong)


def always_the_same_seed(patch: pytest.MonkeyPatch) -> None:
    right = v2.rnn_forward

    def wrong(*arguments: Any, **named: Any) -> Any:
        return right(*arguments, **named | {"seed": 1})

    patch.setattr(v2, "rnn_forward", wrong)


def overwrites(patch: pytest.MonkeyPatch) -> None:
    right = v2.rnn_backward_weights
    patch.setattr(v2, "rnn_backward_weights", lambda out, dw, accumulate=False: right(out, dw=dw))


def adds(patch: pytest.MonkeyPatch) -> None:
    right = v2.rnn_backward_weights
    patch.setattr(v2, "rnn_backward_weights", lambda out, dw: right(out, dw=dw, accumulate=True))


def shuffled_names(named: Any, spec: Any, w: Any) -> Any:
    """Views of another order: biases first."""
    return v2.NamedWeights(spec, np.roll(w, 1))


def nudge(result: tuple[Any, ...], *_: Any) -> tuple[Any, ...]:
    return (result[0] + 1e-3, *result[1:])


def nudge_nested(result: tuple[Any, ...], *_: Any) -> tuple[Any, ...]:
    (first, *rest), *others = result
    return ((first + 1e-3, *rest), *others)


def set_like_the_old_code(desc: Any, Wi: Any, Wh: Any, b: Any) -> None:
    """Writes to the weights that a forward in flight still reads."""
    desc.weights[0][...], desc.weights[1][...], desc.bias[...] = Wi.T, Wh.T, b


def set_without_a_bias(desc: Any, Wi: Any, Wh: Any, b: Any) -> None:
    desc.weights[0][...], desc.weights[1][...] = Wi.T, Wh.T


def with_wrong_bias_gradient(result: Any, *_: Any) -> Any:
    outputs, back = result

    def wrong(*gradients: Any) -> Any:
        found = back(*gradients)
        return found._replace(b=found.b + 1e-3)

    return outputs, wrong


LAYER = v2.LSTM.__mro__[1]
"""What the three layers share."""

PLANTS: dict[tuple[str, str], list[Plant]] = {
    ("v2", "forward"): [off("y"), off("hy"), off("cy")],
    ("v2", "backward"): [off(part, v2, "rnn_backward") for part in ("dx", "dhx", "dcx", "dw")],
    ("v2", "network"): [off("y"), off("cy"), off("dw", v2, "rnn_backward")],
    ("v2", "backward_in_two"): [off("dx", v2, "rnn_backward_data"), adds],
    ("v2", "accumulate"): [overwrites],
    ("v2", "strided"): [off("y"), off("dhx", v2, "rnn_backward")],
    ("v2", "padding"): [off("y"), off("dx", v2, "rnn_backward")],
    ("v2", "dropout"): [off("y"), off("dw", v2, "rnn_backward"), forgets_the_seed],
    ("v2", "dropout_statistics"): [off("y")],
    ("v2", "dropout_from_a_seed"): [forgets_the_seed, always_the_same_seed],
    ("v2", "weight_order"): [
        changed(v2, "named_weights", shuffled_names),
        changed(v2, "weight_size", lambda size, spec: size + 1),
    ],
    ("v2", "init_weights"): [
        changed(v2, "init_weights", lambda w, spec: 2 * w),
        changed(v2, "init_weights", lambda w, spec: abs(w)),
        changed(v2, "init_weights", lambda w, spec: w.astype("float32")),
        off("y"),
    ],
    ("v2", "pack_and_unpack"): [
        changed(v2, "pack", lambda p, *_: v2.Packed(p.data[::-1], p.lengths)),
        changed(v2, "unpack", lambda x, *_: x + 1),
    ],
    ("v2", "layer"): [off("y", LAYER, "forward"), off("hy", LAYER, "forward")],
    ("v2", "layer_copied"): [off("y", LAYER, "forward"), off("dw", v2, "rnn_backward")],
    ("legacy", "constant"): [replaced(legacy, "CUDNN_LSTM", 3)],
    ("legacy", "descriptor"): [
        changed(legacy, "forward", nudge),
        replaced(legacy.RNNDesc, "bias", property(lambda desc: desc.params[:4])),
    ],
    ("legacy", "descriptor_of_layers"): [changed(legacy, "forward", nudge)],
    ("legacy", "setweights"): [
        replaced(legacy, "setweights", set_without_a_bias),
        changed(legacy, "forward", nudge),
    ],
    ("legacy", "setweights_before_back"): [replaced(legacy, "setweights", set_like_the_old_code)],
    ("legacy", "forward"): [changed(legacy, "forward", nudge)],
    ("legacy", "forward_without_c"): [
        changed(legacy, "forward", nudge),
        changed(legacy, "forward", lambda result, *_: (*result, None)),
    ],
    ("legacy", "forward_train"): [
        changed(legacy, "forwardTrain", lambda r, *_: (r[0], nudge(r[1]))),
        changed(legacy, "backwardData", nudge),
    ],
    ("legacy", "backward_data"): [changed(legacy, "backwardData", nudge)],
    ("legacy", "backward_weights"): [
        changed(legacy, "backwardWeights", nudge_nested),
        changed(legacy, "backwardWeights", lambda r, *_: (r[0], r[1] + 1e-3)),
    ],
    ("legacy", "pullback"): [
        changed(legacy, "pullback", nudge_nested),
        changed(legacy, "pullback", with_wrong_bias_gradient),
    ],
    ("legacy", "ngates"): [changed(legacy, "ngates", lambda gates, desc: gates + 1)],
    ("legacy", "params"): [
        changed(legacy, "params", nudge_nested),
        changed(legacy, "params", lambda r, *_: ((r[0][0].copy(), r[0][1]), r[1])),
    ],
    ("legacy", "h_batch"): [changed(legacy, "hBatch", lambda h, *_: h + 1)],
    ("legacy", "h_desc"): [
        changed(legacy, "hDesc", lambda r, *_: (r[0], None if r[1] is None else r[1] + 0)),
        changed(legacy, "hDesc", lambda r, *_: (r[0] and r[0]._replace(dims=(1, 1, 1)), r[1])),
    ],
    ("legacy", "x_desc"): [changed(legacy, "xDesc", lambda found, *_: 2 * found)],
}


def test_there_is_a_planted_error_for_every_check() -> None:
    assert set(PLANTS) == {(api, name) for api, checks in CHECKS.items() for name in checks}


@pytest.mark.parametrize(
    ("api", "check", "plant"),
    [
        pytest.param(*key, plant, id=f"{key[0]}-{key[1]}-{index}")
        for key, plants in PLANTS.items()
        for index, plant in enumerate(plants)
    ],
)
def test_a_planted_error_makes_a_row_fail(
    api: str, check: str, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [r for r in ROWS if (r.feature.api, r.feature.check, r.dtype) == (api, check, "float64")]
    row = next((row for row in rows if row.cell == "lstm"), rows[0])
    assert run_row(row).status == "ok"
    plant(monkeypatch)
    result = run_row(row)
    assert result.status == "failed"
    assert result.reason


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_error_of_a_thousandth_in_y_fails_every_row_that_has_a_y(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    off("y")(monkeypatch)
    rows = [
        row
        for row in ROWS
        if row.feature.check in ("forward", "network", "strided", "padding")
        and row.feature.api == "v2"
        and (row.dtype, row.cell) == (dtype, "gru")
        and row.feature.name != "math_half"
        and isinstance(row.shape, SequenceShape)
        and row.shape.steps * row.shape.batch > 0
    ]
    assert len(rows) > 50
    assert [row.id for row in rows if run_row(row).status != "failed"] == []


def only(*comparisons: Comparison, raises: Exception | None = None) -> Any:
    """A check that yields these, and may then raise."""

    def check(case: Case) -> Any:
        yield from comparisons
        if raises is not None:
            raise raises

    return check


def result_of(monkeypatch: pytest.MonkeyPatch, check: Any) -> Result:
    """What a row becomes whose check this is."""
    monkeypatch.setitem(CHECKS["v2"], "forward", check)
    return run_row(row_of("v2", "forward"))


FINE = Comparison("y", np.zeros(3), np.zeros(3))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (Comparison("y", np.full(3, np.nan), np.zeros(3)), "y has values that are not numbers"),
        (Comparison("y", np.full(3, np.inf), np.zeros(3)), "y is off by inf"),
        (Comparison("y", np.zeros((3, 1)), np.zeros(3)), "y has shape (3, 1); wanted (3,)"),
        (Comparison("cy", None, np.zeros(3)), "cy is None"),
        (Comparison("cy", 0.0, None), "cy is 0.0"),
        (Comparison("w", 1 + 2**-52, 1.0, "exact"), "w is off by 2.2e-16"),
        (Comparison("share", 0.3, 0.2, allowed=0.05), "share is off by 0.1"),
    ],
)
def test_what_differs_fails_in_words_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, wrong: Comparison, reason: str
) -> None:
    for order in ((FINE, wrong), (wrong, FINE)):
        result = result_of(monkeypatch, only(*order))
        assert (result.status, result.reason) == ("failed", reason)


def test_the_comparison_nearest_to_its_tolerance_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    near = Comparison("frequency", 0.04, 0.0, allowed=0.05)
    far = Comparison("other", 0.5, 0.0, allowed=1.0)
    result = result_of(monkeypatch, only(far, near, FINE))
    assert (result.status, result.error, result.tolerance) == ("ok", 0.04, 0.05)


def test_an_exception_is_a_failure_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(monkeypatch, only(FINE, raises=KeyError("lost")))
    assert (result.status, result.reason) == ("failed", "KeyError: 'lost'")


def test_what_an_engine_refuses_in_words_is_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(monkeypatch, only(FINE, raises=UnsupportedError("not on this one")))
    assert (result.status, result.reason) == ("not supported", "not on this one")


def test_a_check_that_compares_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result_of(monkeypatch, only()).status == "failed"


def test_old_calls_that_the_user_made_errors_are_not_supported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(desc: Any) -> int:
        raise legacy.RemovedIn3Warning("[CC020] ngates is deprecated")

    monkeypatch.setattr(legacy, "ngates", refused)
    result = run_row(row_of("legacy", "ngates"))
    assert result.status == "not supported"
    assert result.reason == "warnings are errors here: [CC020] ngates is deprecated"


def test_the_json_of_any_result_can_be_read_by_any_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = Comparison("y", np.nan, 0.0)
    results = [
        result_of(monkeypatch, only(FINE)),
        result_of(monkeypatch, only(wrong)),
        result_of(monkeypatch, only(raises=UnsupportedError("no"))),
    ]
    content = json.loads(json.dumps(as_json(results, {"engines": {}}), allow_nan=False))
    assert content["summary"] == {"rows": 3, "ok": 1, "failed": 1, "not supported": 1}
    assert [row["error"] for row in content["rows"]] == [0.0, None, None]
    assert [row["status"] for row in content["rows"]] == ["ok", "failed", "not supported"]


def test_more_engines_give_the_same_rows_once_more() -> None:
    both = list(all_rows(["numpy", "cudnn"]))
    assert len(both) == 2 * len(ROWS)
    assert [row.id.replace("/numpy", "/cudnn") for row in ROWS] == [
        row.id for row in both[len(ROWS) :]
    ]
