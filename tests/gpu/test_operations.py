"""Dropout as a plain operation of the cuDNN engine: masks, scale, gradients, blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cudnn import operations
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.spec import DTYPES
from tests.engine import Engine

pytestmark = pytest.mark.gpu

SIZE = 40_000
SMALL = 1024
"""Elements of a block, where blocks are made small."""
SIZES = (1, 7, 999, SMALL, SMALL + 1, 5 * SMALL - 3)
ROUNDING = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 2**-53}
GUARD = 256
"""Bytes behind what may be written."""

each_dtype = pytest.mark.parametrize("dtype", DTYPES)


@pytest.fixture
def gpu(cupy: Any) -> Engine:
    return Engine("cudnn", cupy)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than so many elements take several calls of the library."""
    monkeypatch.setattr(operations, "_BLOCK", SMALL)


def some_values(size: int, dtype: str, seed: int = 0) -> Any:
    """Whole numbers up to 15 and their negatives: they and their multiples are exact everywhere."""
    rng = np.random.default_rng(seed)
    return (rng.integers(1, 16, size) * rng.choice([-1, 1], size)).astype(numpy_dtype(dtype))


def guarded(gpu: Engine, size: int, dtype: Any) -> tuple[Any, Any]:
    """An array, and the bytes behind it, which nobody may write."""
    itemsize = np.dtype(dtype).itemsize
    whole = gpu.xp.full(size * itemsize + GUARD, 0xA5, "uint8")
    return whole[: size * itemsize].view(dtype), whole[size * itemsize :]


def run(
    gpu: Engine, dtype: str, ratio: float, x: Any, dy: Any = None, *, state: Any = None
) -> tuple[Any, Any]:
    """y and, with dy, dx, as float64 on the host. Nothing is written beyond them or the mask."""
    gpu.needs(dtype)
    x_there, kind = gpu.put(x), numpy_dtype(dtype)
    (y, behind_y), (dx, behind_dx) = (guarded(gpu, x.size, kind) for _ in range(2))
    with Session(0) as session:
        bytes_of_mask = operations.dropout_reserve_bytes(session, dtype, x.size)
        mask, behind_mask = guarded(gpu, bytes_of_mask, "uint8")
        state = DropoutState(5) if state is None else state
        operations.dropout_forward(session, state, ratio, dtype, x_there, y, mask)
        if dy is not None:
            operations.dropout_backward(session, ratio, dtype, gpu.put(dy), dx, mask)
    assert np.array_equal(gpu.get(x_there), x)
    for guard in (behind_y, behind_dx, behind_mask):
        assert (gpu.get(guard) == 0xA5).all()
    return gpu.get(y).astype("float64"), None if dy is None else gpu.get(dx).astype("float64")


@pytest.mark.parametrize("ratio", [0.5, 0.75])
@each_dtype
def test_what_is_kept_is_scaled_exactly_and_all_else_is_zero(
    dtype: str, ratio: float, gpu: Engine
) -> None:
    x = some_values(SIZE, dtype)
    y, _ = run(gpu, dtype, ratio, x)
    kept = y != 0
    assert np.array_equal(y[kept], x[kept].astype("float64") / (1 - ratio))
    # 40,000 draws: six standard deviations of a binomial are 0.015.
    assert abs(kept.mean() - (1 - ratio)) < 0.015


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.9])
@each_dtype
def test_what_is_kept_is_scaled_up_as_far_as_the_dtype_can_say(
    dtype: str, ratio: float, gpu: Engine
) -> None:
    x = some_values(SIZE, dtype)
    y, _ = run(gpu, dtype, ratio, x)
    kept, exact = y != 0, x.astype("float64") / (1 - ratio)
    # The library takes the ratio as float32, whatever the dtype; scale and product are rounded.
    error = np.abs(y - exact)[kept] / np.abs(exact)[kept]
    assert error.max() <= 1e-6 + 2 * ROUNDING[dtype]
    assert abs(kept.mean() - (1 - ratio)) < 0.015


@each_dtype
def test_the_gradient_passes_where_the_value_passed_and_nowhere_else(
    dtype: str, gpu: Engine
) -> None:
    x, dy = some_values(SIZE, dtype), some_values(SIZE, dtype, seed=1)
    y, dx = run(gpu, dtype, 0.5, x, dy)
    assert np.array_equal(dx, np.where(y != 0, 2 * dy.astype("float64"), 0))


@each_dtype
def test_a_ratio_of_one_drops_everything(dtype: str, gpu: Engine) -> None:
    x, dy = some_values(999, dtype), some_values(999, dtype, seed=1)
    y, dx = run(gpu, dtype, 1.0, x, dy)
    assert np.array_equal(y, np.zeros(999))
    assert np.array_equal(dx, np.zeros(999))


@each_dtype
def test_a_seed_gives_the_same_mask_and_a_state_another_one_each_time(
    dtype: str, gpu: Engine
) -> None:
    x, state, again = some_values(999, dtype), DropoutState(5), DropoutState(5)
    first, second, third = (run(gpu, dtype, 0.5, x, state=state)[0] for _ in range(3))
    for right in (first, second, third):
        assert np.array_equal(run(gpu, dtype, 0.5, x, state=again)[0], right)
    other = run(gpu, dtype, 0.5, x, state=DropoutState(6))[0]
    masks = {(y != 0).tobytes() for y in (first, second, third, other)}
    assert len(masks) == 4


@pytest.mark.parametrize("size", SIZES)
@each_dtype
@pytest.mark.usefixtures("small_blocks")
def test_sizes_of_several_blocks_are_dropped_and_passed_back_like_one(
    dtype: str, size: int, gpu: Engine
) -> None:
    x, dy = some_values(size, dtype), some_values(size, dtype, seed=1)
    y, dx = run(gpu, dtype, 0.5, x, dy)
    kept = y != 0
    assert np.array_equal(y[kept], 2 * x[kept].astype("float64"))
    assert np.array_equal(dx, np.where(kept, 2 * dy.astype("float64"), 0))


@each_dtype
@pytest.mark.usefixtures("small_blocks")
def test_every_block_has_a_mask_of_its_own(dtype: str, gpu: Engine) -> None:
    x = some_values(40 * SMALL, dtype)
    y, _ = run(gpu, dtype, 0.5, x)
    blocks = (y != 0).reshape(40, SMALL)
    assert len({block.tobytes() for block in blocks}) == 40
    assert abs(blocks.mean() - 0.5) < 0.015
    again, _ = run(gpu, dtype, 0.5, x)
    assert np.array_equal(again, y)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_the_ratio_may_change_from_call_to_call_of_one_state(dtype: str, gpu: Engine) -> None:
    x, dy, state = some_values(SIZE, dtype), some_values(SIZE, dtype, seed=1), DropoutState(5)
    for ratio in (0.5, 0.75, 0.5):
        y, dx = run(gpu, dtype, ratio, x, dy, state=state)
        kept = y != 0
        assert abs(kept.mean() - (1 - ratio)) < 0.015
        assert np.array_equal(y[kept], x[kept].astype("float64") / (1 - ratio))
        assert np.array_equal(dx, np.where(kept, dy.astype("float64") / (1 - ratio), 0))
