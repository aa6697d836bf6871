"""The compatibility matrix: is it complete, does it pass here, and how does it judge?

Whether each of its checks can fail: ``test_planted_errors.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import legacy, v2
from cudnn_compat.environment import collect
from cudnn_compat.errors import UnsupportedError
from cudnn_compat.legacy.cupy import CuDNNError
from cudnn_compat.legacy.table import TABLE
from cudnn_compat.matrix import problems
from cudnn_compat.matrix.comparing import Case, Comparison, NotOffered, NotTestedHere, same
from cudnn_compat.matrix.problems import AWAY_FROM_KINKS, problem
from cudnn_compat.matrix.reference import distance_to_kink
from cudnn_compat.matrix.rows import FEATURES, Row, all_rows
from cudnn_compat.matrix.run import CHECKS, Result, run_row, why_not_here
from cudnn_compat.matrix.shapes import SequenceShape
from cudnn_compat.spec import ALGOS, BIAS_MODES, CELLS, DTYPES, INPUT_MODES, MATHS, RNNSpec
from tests.engine import Engine

ROWS = list(all_rows(["numpy", "library", None]))
COMPUTED = list(all_rows(["numpy"]))


def row_of(api: str, name: str, **wanted: str) -> Row:
    """The first row of a feature, in float64 where it has that."""
    rows = [row for row in ROWS if (row.feature.api, row.feature.name) == (api, name)]
    rows = [row for row in rows if all(getattr(row, key) == wanted[key] for key in wanted)]
    return next((row for row in rows if row.dtype == "float64"), rows[0])


@pytest.fixture(scope="module")
def results() -> list[Result]:
    """All rows, run once."""
    missing = why_not_here(collect())
    return [run_row(row, missing) for row in ROWS]


def test_every_row_has_an_id_of_its_own() -> None:
    ids = [row.id for row in ROWS]
    assert len(set(ids)) == len(ids)
    assert "v2/forward/lstm/float32/5x3/numpy" in ids
    assert "v2/packed_lengths/gru/float64/5x4,lengths=0-4-0-2/numpy" in ids
    assert "legacy/pullback/lstm/float32/x(3,5),h(4,1)/numpy" in ids
    assert "legacy.cupy.cudnn/softmax_forward/-/float16/x(4,6),axis=1/numpy" in ids
    assert "legacy.cupy.libcudnn/constants/-/-/CUDNN_LSTM/-" in ids
    assert "cudnn/symbols/-/-/cudnnRNNForward/library" in ids
    assert not any(" " in id_ for id_ in ids)


def test_every_check_exists_and_is_used() -> None:
    used = {(feature.api, feature.check) for feature in FEATURES}
    for api, check in used:
        assert check in CHECKS[api]
    names = {check for _, check in used}
    assert {check for checks in CHECKS.values() for check in checks} == names


def test_every_old_name_has_rows_for_each_cell_and_dtype() -> None:
    old = [row.name for row in TABLE if row.module == "cudnn_compat.legacy"]
    assert len(old) >= 16
    by_name = {feature.name: feature for feature in FEATURES if feature.api == "legacy"}
    for name in old:
        feature = by_name[name]
        assert set(feature.cells) == set(CELLS) or feature.check == "constant"
        assert set(feature.dtypes) >= {"float32", "float64"}
    constants = [feature.cells for feature in by_name.values() if feature.check == "constant"]
    assert sorted(str(cell) for cells in constants for cell in cells) == sorted(CELLS)


def test_every_option_of_a_spec_has_rows() -> None:
    specs = [Case(row).spec for row in COMPUTED if row.feature.api == "v2"]
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


def test_nothing_fails_here(results: list[Result]) -> None:
    assert [(r.row.id, r.reason) for r in results if r.status == "failed"] == []


def test_what_works_is_within_its_tolerance_and_everything_else_says_why(
    results: list[Result],
) -> None:
    for result in results:
        if result.status.startswith("works"):
            assert result.error is not None
            assert result.tolerance is not None
            assert result.error <= result.tolerance
        assert (result.reason is None) == (result.status == "works")


def test_only_what_was_said_to_be_refused_is_refused(results: list[Result]) -> None:
    refused = {(r.row.feature.api, r.row.feature.name) for r in results if r.status == "refused"}
    of_the_library = {name for api, name in refused if api == "cudnn"}
    assert refused - {("cudnn", name) for name in of_the_library} <= {
        ("v2", "math_half"),
        ("legacy.cupy", "install"),  # a CuPy with working modules of its own
        ("legacy.cupy.cudnn", "activation_identity"),
        ("legacy.cupy.libcudnn", "factors_of_results"),
        ("legacy.cupy.libcudnn", "padding_that_is_not_zero"),
    }
    # What another major had; bfloat16 before 9.13.
    assert of_the_library <= {"symbols", "RNN_descriptors", "RNN_data_descriptors"}


def test_what_is_not_tested_lacks_cupy_or_the_library(results: list[Result]) -> None:
    missing = {r.row.feature.api for r in results if r.status == "not tested here"}
    assert missing <= {"legacy.cupy", "cudnn"}


@pytest.fixture(scope="module")
def gpu_results() -> list[Result]:
    """All rows of the cuDNN engine, run once."""
    return [run_row(row) for row in all_rows(["cudnn"])]


@pytest.mark.gpu
def test_everything_passes_on_cudnn_but_algorithms_that_the_library_has_not(
    gpu_results: list[Result],
) -> None:
    failed = [(r.row.id, r.reason) for r in gpu_results if r.status == "failed"]
    assert failed == []
    import cupy

    holds = Engine("cudnn", cupy).holds("bfloat16")  # CuPy before 14 does not
    refused = {
        r.row.feature.name
        for r in gpu_results
        if r.status == "refused" and (holds or r.row.dtype != "bfloat16")
    }
    assert refused <= {
        "algo_persist_static",
        "algo_persist_dynamic",
        "algo_persist_small_h",
        "algo_fused",
        "activation_identity",
        "factors_of_results",
    }
    assert all(r.reason for r in gpu_results if r.status == "refused")


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
        if feature.check == "dropout_statistics":
            continue
        for cell in feature.cells:
            for shape in feature.shapes:
                if cell is not None and isinstance(shape, SequenceShape):
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
        (same("stream", 8, 0), "stream: 8; wanted 0"),
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
    assert (result.status, result.error, result.tolerance) == ("works", 0.04, 0.05)


def test_an_exception_is_a_failure_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(monkeypatch, only(FINE, raises=KeyError("lost")))
    assert (result.status, result.reason) == ("failed", "KeyError: 'lost'")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UnsupportedError("not on this one"), "refused"),
        (CuDNNError(9, reason="not on this one"), "refused"),
        (NotOffered("not on this one"), "not offered"),
        (NotTestedHere("not on this one"), "not tested here"),
        (CuDNNError(3, reason="not on this one"), "failed"),
    ],
)
def test_what_is_raised_decides_the_status_and_is_told(
    monkeypatch: pytest.MonkeyPatch, error: Exception, status: str
) -> None:
    result = result_of(monkeypatch, only(FINE, raises=error))
    assert result.status == status
    assert str(result.reason).endswith("not on this one")


def test_what_works_differently_says_what_differs() -> None:
    result = run_row(row_of("v2", "algo_persist_static", cell="tanh"))
    assert result.status == "works differently"
    assert str(result.reason).startswith("any algorithm is accepted")


def test_rows_of_an_engine_that_is_not_here_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHECKS["v2"], "forward", only(raises=KeyError("it ran")))
    result = run_row(row_of("v2", "forward"), {"numpy": "no NumPy"})
    assert (result.status, result.reason) == ("not tested here", "no NumPy")


def test_a_check_that_compares_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result_of(monkeypatch, only()).status == "failed"


def test_old_calls_that_the_user_made_errors_are_not_tested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(desc: Any) -> int:
        raise legacy.RemovedIn3Warning("[CC020] ngates is deprecated")

    monkeypatch.setattr(legacy, "ngates", refused)
    result = run_row(row_of("legacy", "ngates"))
    assert result.status == "not tested here"
    assert result.reason == "warnings are errors here: [CC020] ngates is deprecated"


def test_more_engines_give_the_same_rows_once_more() -> None:
    both = list(all_rows(["numpy", "cudnn"]))
    assert len(both) == 2 * len(COMPUTED)
    assert [row.id.replace("/numpy", "/cudnn") for row in COMPUTED] == [
        row.id for row in both[len(COMPUTED) :]
    ]
