"""cupy.cudnn's calls over the dialect, against the real old stack, for every shape measured there.

    python benchmarks/cupy_dialect.py [--rounds 15] [--json FILE] [--numpy]

The old figures: CuPy 13.6 with cuDNN 8.9.7 on one NVIDIA H200, float32, medians in µs. A training
step is rnn_forward_training, rnn_backward_data and rnn_backward_weights. A round is as many calls
as fit into some milliseconds, one behind the other, with a wait at its end; the figure is the
median of the rounds. The exit status is 1 where one is slower than it was there. ``--numpy`` tries
the program itself with NumPy arrays, small and without a verdict.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("CUDNN_COMPAT_DEPRECATIONS", "ignore")

from cudnn_compat.legacy.cupy import cudnn, libcudnn  # noqa: E402 - found by the line above

MODES = {"tanh": 1, "lstm": 2, "gru": 3}
WARM_UP = 16
"""Calls that are not timed: a shape that comes back is recorded as a graph in one of the first."""
ROUND_SECONDS = 0.02


@dataclasses.dataclass(frozen=True)
class Shape:
    """One row of the old figures: µs of an inference call and of a training step."""

    cell: str
    steps: int
    batch: int
    input: int
    hidden: int
    old_inference: float
    old_training: float
    layers: int = 1
    directions: int = 1

    @property
    def name(self) -> str:
        """As the table of old figures has it."""
        more = f", {self.layers} layers bi" if self.directions == 2 else ""
        return f"{self.cell} {self.steps}×{self.batch}×{self.hidden}{more}"


SHAPES = (
    Shape("lstm", 1, 64, 256, 256, 61, 225),
    Shape("lstm", 1, 1, 16, 32, 56, 186),
    Shape("gru", 1, 32, 256, 256, 71, 295),
    Shape("tanh", 1, 64, 256, 256, 68, 224),
    Shape("lstm", 100, 64, 512, 512, 2145, 4020),
    Shape("lstm", 512, 16, 256, 256, 5275, 15628),
    Shape("lstm", 512, 16, 256, 256, 22587, 49974, layers=2, directions=2),
    Shape("gru", 100, 32, 256, 256, 1157, 2638),
    Shape("lstm", 20, 8, 64, 64, 384, 789),
    Shape("lstm", 1000, 1, 128, 128, 10972, 25358),
)


def prepared(shape: Shape, xp: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """An inference call and a training step."""
    rng = np.random.default_rng(0)

    def draw(*size: int) -> Any:
        return xp.asarray(rng.uniform(-0.1, 0.1, size).astype("float32"))

    mode, rows = MODES[shape.cell], shape.steps * shape.batch
    states = cudnn.DropoutStates(None, 0)
    described = cudnn.create_rnn_descriptor(
        hidden_size=shape.hidden,
        num_layers=shape.layers,
        dropout_desc=states._desc,
        input_mode=libcudnn.CUDNN_LINEAR_INPUT,
        direction=shape.directions - 1,
        mode=mode,
        data_type=cudnn.get_data_type(np.dtype("float32")),
    )
    x_desc = cudnn.create_tensor_nd_descriptor(xp.empty((1, shape.input, 1), "float32"))
    size = libcudnn.getRNNParamsSize(
        cudnn.get_handle(), described.value, x_desc.value, libcudnn.CUDNN_DATA_FLOAT
    )
    w = draw(size // 4, 1, 1)
    xs = draw(rows, shape.input)
    hx = draw(shape.layers * shape.directions, shape.batch, shape.hidden)
    cx = draw(*hx.shape) if shape.cell == "lstm" else None
    lengths = [shape.batch] * shape.steps  # of the batch, step by step
    dys, dhy = draw(rows, shape.hidden * shape.directions), draw(*hx.shape)
    dcy = draw(*hx.shape) if cx is not None else None
    given = (states, shape.directions - 1, mode)

    def infer() -> Any:
        return cudnn.rnn_forward_inference(*given, hx, cx, w, xs, lengths)

    def train() -> Any:
        reserve, _, _, ys = cudnn.rnn_forward_training(*given, hx, cx, w, xs, lengths)
        gradients = cudnn.rnn_backward_data(
            *given, hx, cx, w, xs, ys, reserve, dhy, dcy, dys, lengths
        )
        return gradients, cudnn.rnn_backward_weights(*given, xs, hx, ys, w, reserve, lengths)

    return infer, train


def microseconds(call: Callable[[], Any], rounds: int, wait: Callable[[], Any]) -> float:
    """Median over the rounds of the time of one call."""

    def timed(calls: int) -> float:
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        return (time.perf_counter() - start) / calls

    for _ in range(WARM_UP):
        once = timed(1)
    calls = max(1, round(ROUND_SECONDS / once))
    return 1e6 * statistics.median(timed(calls) for _ in range(rounds))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--numpy", action="store_true")
    options = parser.parse_args()
    if options.numpy:
        for shape in SHAPES[:4]:
            infer, train = prepared(shape, np)
            times = [microseconds(call, 3, lambda: None) for call in (infer, train)]
            print(f"{shape.name:<32}", *(f"{each:>10.0f}" for each in times))
        return 0
    import cupy

    def wait() -> None:
        cupy.cuda.get_current_stream().synchronize()

    rows = []
    print(f"{'µs':<32}{'inference':>10}{'old':>10}{'training':>10}{'old':>10}")
    for shape in SHAPES:
        infer, train = prepared(shape, cupy)
        times = [microseconds(call, options.rounds, wait) for call in (infer, train)]
        row = {
            **dataclasses.asdict(shape),
            "name": shape.name,
            "inference": times[0],
            "training": times[1],
            "inference_speed_up": shape.old_inference / times[0],
            "training_speed_up": shape.old_training / times[1],
        }
        rows.append(row)
        print(
            f"{shape.name:<32}{times[0]:>10.0f}{shape.old_inference:>10.0f}"
            f"{times[1]:>10.0f}{shape.old_training:>10.0f}",
            flush=True,
        )
    ratios = [row[f"{mode}_speed_up"] for row in rows for mode in ("inference", "training")]
    slower = [
        row["name"] for row in rows if min(row["inference_speed_up"], row["training_speed_up"]) < 1
    ]
    result = {
        "gpu": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "cudnn": libcudnn.getVersion(),
        "cupy": cupy.__version__,
        "rounds": options.rounds,
        "geometric_mean_speed_up": statistics.geometric_mean(ratios),
        "slower_than_the_old_stack": slower,
        "rows": rows,
    }
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"geometric mean of the speed-ups {result['geometric_mean_speed_up']:.2f}")
    print(f"slower than there: {', '.join(slower) or 'none'}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
