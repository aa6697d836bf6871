"""Every element of every result is written, and nothing is read that nobody wrote.

All memory that is handed out is filled with NaN first (every bit set, in each of the dtypes). What
is read before it was written, by this package or by the library, then shows in the results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.spec import CELLS, DTYPES
from tests.engine import Engine
from tests.engines.networks import NETWORKS
from tests.gpu.work import as_bytes, assert_same_bytes, on_device, problem, train

pytestmark = pytest.mark.gpu

EQUAL, RAGGED = (6, 6, 6), (2, 6, 0)
LAYOUTS = ("time_major", "batch_major", "packed")


def filled_with(cupy: Any, byte: int) -> Any:
    """A context in which all fresh memory holds that byte."""
    pool = cupy.get_default_memory_pool()

    def allocate(size: int) -> Any:
        memory = pool.malloc(size)
        if size:
            memory.memset_async(byte, size)
        return memory

    return cupy.cuda.using_allocator(allocate)


def trained(cupy: Any, byte: int, made: Any, seed: int | None) -> dict[str, bytes]:
    spec, data, how = made
    v2.clear_plans()  # whose workspace, if they keep any, would not be fresh
    with filled_with(cupy, byte):
        return as_bytes(train(spec, on_device(data), how, seed=seed))


def check(cupy: Any, made: Any, *, seed: int | None = None) -> None:
    results = trained(cupy, 0xFF, made, seed)
    assert_same_bytes(results, trained(cupy, 0, made, seed))
    spec = made[0]
    for name, raw in results.items():
        values = np.frombuffer(raw, made[1].w.dtype).astype("float64")
        assert np.isfinite(values).all(), (name, spec)


@pytest.mark.parametrize("lengths", [EQUAL, RAGGED], ids=["equal", "ragged"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_depends_on_what_memory_held(
    cupy: Any, name: str, layout: str, lengths: Any
) -> None:
    spec = NETWORKS[name].replace(algo="standard")
    check(cupy, problem(spec, lengths, layout=layout))


WAYS = [
    (algo, dtype) for algo in ("standard", "persist_static", "persist_small_h") for dtype in DTYPES
] + [("persist_dynamic", "float32")]
"""Algorithms and dtypes; the last algorithm is compiled anew for each network, which takes long."""


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("algo", "dtype"), WAYS)
def test_nothing_depends_on_what_memory_held_with_any_algorithm(
    cupy: Any, algo: str, cell: str, dtype: str
) -> None:
    Engine("cudnn", cupy).needs(dtype)
    spec = v2.RNNSpec(cell, 64, 64, num_layers=2, bidirectional=True, dtype=dtype, algo=algo)
    spec, data, how = problem(spec, EQUAL)
    data = data.replace(w=v2.init_weights(spec, seed=0))  # under which float16 does not overflow
    try:
        check(cupy, (spec, data, how))
    except v2.UnsupportedError as error:
        pytest.skip(f"{algo} in {dtype} is refused by the library: {str(error)[:80]}")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("cell", CELLS)
def test_unequal_lengths_do_not_bring_in_what_memory_held_in_any_dtype(
    cupy: Any, cell: str, dtype: str, layout: str
) -> None:
    Engine("cudnn", cupy).needs(dtype)
    spec = v2.RNNSpec(cell, 16, 16, dtype=dtype, algo="standard")
    spec, data, how = problem(spec, RAGGED, layout=layout)
    data = data.replace(w=v2.init_weights(spec, seed=0))
    check(cupy, (spec, data, how))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("cell", CELLS)
def test_inference_does_not_depend_on_what_memory_held(
    cupy: Any, cell: str, dtype: str, layout: str
) -> None:
    Engine("cudnn", cupy).needs(dtype)
    spec = v2.RNNSpec(cell, 16, 16, num_layers=2, bidirectional=True, dtype=dtype)
    spec, data, how = problem(spec, RAGGED, layout=layout)
    data = on_device(data.replace(w=v2.init_weights(spec, seed=0)))
    found = []
    for byte in (0xFF, 0):
        v2.clear_plans()
        with filled_with(cupy, byte):
            out = v2.rnn_forward(spec, data.w, data.x, data.hx, data.cx, **how)
            found.append([None if a is None else a.get().tobytes() for a in out])
    assert found[0] == found[1]


@pytest.mark.parametrize("lengths", [EQUAL, RAGGED], ids=["equal", "ragged"])
def test_dropout_does_not_depend_on_what_memory_held(cupy: Any, lengths: Any) -> None:
    spec = v2.RNNSpec("lstm", 5, 6, num_layers=3, dropout=0.5, dtype="float64", algo="standard")
    check(cupy, problem(spec, lengths), seed=11)


def test_the_poison_would_show(cupy: Any) -> None:
    with filled_with(cupy, 0xFF):
        assert np.isnan(cupy.empty(1000, "float32").get()).all()
