"""Against PyTorch on the same GPU with the same weights: outputs and all gradients.

Both call the same cuDNN, PyTorch in its own way: the differences left are those of algorithms,
which round in another order. With ``math="full"`` PyTorch's TF32 is off, with the default it is on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.matrix.tolerances import tolerance
from tests.engine import Engine

torch = pytest.importorskip(
    "torch",
    reason="compares with PyTorch, which is not installed: extra 'peers'",
)

from tests.peers.torch_runs import Problem, torch_module, torch_results  # noqa: E402 - needs torch

pytestmark = [pytest.mark.gpu, pytest.mark.peers]

CELLS = ("tanh", "relu", "lstm", "gru")
DTYPES = ("float16", "bfloat16", "float32", "float64")
SIZES = (24, 40)
"""Input and hidden size: large enough for tensor cores."""
UNSORTED = (3, 9, 1, 5)


@pytest.fixture(scope="module")
def cupy() -> Any:
    """CuPy, in a process where PyTorch finds a GPU too."""
    import cupy

    if not torch.cuda.is_available():
        pytest.skip("PyTorch here is built without CUDA, or finds no GPU")
    return cupy


@pytest.fixture
def tf32(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets whether PyTorch's cuDNN calls may use TF32, until the test is over."""
    return lambda allowed: monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", allowed)


def our_results(cupy: Any, problem: Problem, w: np.ndarray) -> dict[str, Any]:
    """What this package computes on the GPU, by the names of ``torch_results``."""
    spec, lengths, form = problem.spec, problem.lengths, problem.form
    arrays: dict[str, Any] = {n: cupy.asarray(a) for n, a in problem.arrays().items()}
    how: dict[str, Any] = {"layout": "batch_major"} if form == "batch_major" else {}
    if form == "padded":
        how["lengths"] = lengths
    elif form == "packed":
        arrays.update({n: v2.pack(arrays[n], lengths) for n in ("x", "dy") if n in arrays})
    x, hx, cx, dy, dhy, dcy = (arrays.get(n) for n in ("x", "hx", "cx", "dy", "dhy", "dcy"))
    out = v2.rnn_forward(spec, cupy.asarray(w), x, hx, cx, training=True, **how)
    assert out.engine == "cudnn"
    gradients = v2.rnn_backward(out, dy, dhy, dcy)
    found = {
        **{n: getattr(out, n) for n in ("y", "hy", "cy")},
        **{n: getattr(gradients, n) for n in ("dx", "dhx", "dcx")},
    }
    padded = {
        n: v2.unpack(a, steps=problem.steps) if isinstance(a, v2.Packed) else a
        for n, a in found.items()
    }
    named = v2.named_weights(spec, gradients.dw.get())
    return {
        **{n: None if a is None else a.get() for n, a in padded.items()},
        **{f"d{n}": view for n, view in named.items()},
    }


def assert_equal_results(cupy: Any, problem: Problem) -> None:
    """Both within their tolerances of an exact result, so within the sum of them of each other.

    PyTorch runs small hidden sizes on a persistent kernel, which approximates tanh, unless the
    input is packed or the network projects. The gradients of relu are left out where numbers are
    coarse: two right answers then fall on different sides of its kink.
    """
    spec = problem.spec
    Engine("cudnn", cupy).needs(spec.dtype)
    standard = problem.form in ("padded", "packed") or spec.proj_size is not None
    their_algo = "standard" if standard else "persist_small_h"
    kinks = spec.cell == "relu" and tolerance(spec.dtype, spec.math, engine="cudnn") > 1e-3
    w = v2.init_weights(spec, seed=problem.seed)
    theirs = torch_results(problem, w, device="cuda")
    ours = our_results(cupy, problem, w)
    weights = {f"d{name}" for name in v2.named_weights(spec, w)}
    assert theirs.keys() >= {"y", "hy", "dx"} | weights
    for name, expected in theirs.items():
        what = "output" if name in ("y", "hy", "cy") else "gradient"
        if kinks and what == "gradient":
            continue
        bound = sum(
            tolerance(spec.dtype, spec.math, engine="cudnn", algo=algo, what=what)
            for algo in (spec.algo, their_algo)
        )
        assert ours[name].dtype == expected.dtype, name
        difference = np.abs(ours[name].astype("float64") - expected.astype("float64"))
        assert float(difference.max(initial=0.0)) <= bound, name


def spec_of(cell: str, dtype: str, **options: Any) -> v2.RNNSpec:
    return v2.RNNSpec(cell, *SIZES, dtype=dtype, **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bidirectional", [False, True], ids=["uni", "bi"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("cell", CELLS)
def test_outputs_and_all_gradients_agree(
    cupy: Any, tf32: Any, cell: str, layers: int, bidirectional: bool, dtype: str
) -> None:
    tf32(False)
    options = {"num_layers": layers, "bidirectional": bidirectional, "math": "full"}
    assert_equal_results(cupy, Problem(spec_of(cell, dtype, **options)))


@pytest.mark.parametrize("math", ["full", "default"])
@pytest.mark.parametrize("bias", ["double", "none"])
@pytest.mark.parametrize("cell", CELLS)
def test_float32_agrees_with_and_without_tf32(
    cupy: Any, tf32: Any, cell: str, bias: str, math: str
) -> None:
    tf32(math == "default")
    spec = spec_of(cell, "float32", num_layers=2, bidirectional=True, bias=bias, math=math)
    assert_equal_results(cupy, Problem(spec))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bidirectional", [False, True], ids=["uni", "bi"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_projected_lstms_agree(
    cupy: Any, tf32: Any, layers: int, bidirectional: bool, dtype: str
) -> None:
    tf32(False)
    options = {"num_layers": layers, "bidirectional": bidirectional, "proj_size": 16}
    assert_equal_results(cupy, Problem(spec_of("lstm", dtype, math="full", **options)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lengths", [(9, 4, 4, 1), UNSORTED], ids=str)
@pytest.mark.parametrize("form", ["padded", "packed"])
@pytest.mark.parametrize("cell", CELLS)
def test_packed_sequences_sorted_and_unsorted_agree(
    cupy: Any, tf32: Any, cell: str, form: str, lengths: tuple[int, ...], dtype: str
) -> None:
    tf32(False)
    spec = spec_of(cell, dtype, num_layers=2, bidirectional=True, math="full")
    assert_equal_results(cupy, Problem(spec, steps=9, form=form, lengths=lengths))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("states", [True, False], ids=["given", "zero"])
@pytest.mark.parametrize("form", ["batch_major", "unbatched"])
@pytest.mark.parametrize("cell", CELLS)
def test_batch_first_and_unbatched_input_agree(
    cupy: Any, tf32: Any, cell: str, form: str, states: bool, dtype: str
) -> None:
    tf32(False)
    spec = spec_of(cell, dtype, num_layers=2, bidirectional=True, math="full")
    assert_equal_results(cupy, Problem(spec, form=form, states=states))


@pytest.mark.parametrize("algo", ["standard", "persist_static", "persist_small_h"])
@pytest.mark.parametrize("cell", CELLS)
def test_every_algorithm_agrees(cupy: Any, tf32: Any, cell: str, algo: str) -> None:
    tf32(False)
    spec = v2.RNNSpec(cell, 64, 64, num_layers=2, bidirectional=True, math="full", algo=algo)
    try:
        assert_equal_results(cupy, Problem(spec, batch=8))
    except v2.UnsupportedError as error:
        pytest.skip(f"{algo} with a hidden size of 64 is refused here: {str(error)[:80]}")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_arrays_go_to_pytorch_and_back_without_a_copy(cupy: Any, tf32: Any, dtype: str) -> None:
    tf32(False)
    spec = spec_of("lstm", dtype, math="full")
    w = v2.init_weights(spec, seed=0)
    x = torch.randn(5, 3, SIZES[0], dtype=getattr(torch, dtype), device="cuda")
    taken = cupy.from_dlpack(x)
    assert taken.data.ptr == x.data_ptr()
    out = v2.rnn_forward(spec, cupy.asarray(w), taken)
    y = torch.from_dlpack(out.y)
    assert y.data_ptr() == out.y.data.ptr
    expected, _ = torch_module(spec, w, device="cuda")(x)
    difference = (y.double() - expected.double()).abs().max().item()
    assert difference <= 2 * tolerance(dtype, "full", engine="cudnn", algo="persist_small_h")
