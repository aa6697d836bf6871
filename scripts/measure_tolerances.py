"""How far each engine is from the slow float64 reference: what `tolerances.py` is set from.

    python scripts/measure_tolerances.py [--draws 200] [--seed 0] [--engine numpy] [--json FILE]

Draws networks of every kind with data of unit scale, as the tests do, and prints for each engine,
dtype and math the largest error of outputs and gradients over all draws, with the bound that the
table has now and the network that was worst. An error is the largest absolute difference of an
array, divided by its largest value where that is above 1: the table is for values of unit scale.
Networks with a clip are told apart, because cuDNN rounds its bounds. Gradients are left out where
a value is too near to a kink.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the package need not be installed

from cudnn_compat import v2  # noqa: E402
from cudnn_compat.arrays import numpy_dtype  # noqa: E402
from cudnn_compat.environment import collect  # noqa: E402
from cudnn_compat.matrix import reference  # noqa: E402
from cudnn_compat.matrix.tolerances import kink_distance, tolerance  # noqa: E402
from cudnn_compat.spec import DTYPES, MATHS  # noqa: E402

OUTPUTS = ("y", "hy", "cy")
GRADIENTS = ("dx", "dhx", "dcx", "dw")


@dataclasses.dataclass
class Worst:
    """The largest error so far of one kind."""

    error: float = 0.0
    of: float = 0.0
    """The largest value of the array that it was found in."""
    array: str = ""
    spec: str = ""
    draws: int = 0

    def see(self, difference: float, array: str, right: Any, spec: v2.RNNSpec) -> None:
        """Look at an array, and keep it if it is the worst."""
        of = float(np.abs(right).max())
        error = difference / max(1.0, of)
        if not error <= self.error:  # also NaN
            self.error, self.of, self.array, self.spec = error, of, array, repr(spec)


Key = tuple[str, str, str, bool, str]
"""engine, dtype, math, whether there is a clip, "output" or "gradient"."""


def draw_spec(rng: np.random.Generator, dtype: str, math: str) -> v2.RNNSpec:
    """Any network of up to three layers, mostly with fewer than 40 features."""

    def one_of(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    hidden = int(rng.integers(1, one_of(6, 41)))
    cell, mode = one_of("relu", "tanh", "lstm", "gru"), one_of("linear", "linear", "skip")
    more: dict[str, Any] = {}
    if cell == "lstm" and hidden > 1 and rng.random() < 0.3:
        more["proj_size"] = int(rng.integers(1, hidden))
    if cell == "lstm" and rng.random() < 0.3:
        more["clip"] = one_of((-0.3, 0.2), (-1.0, 1.0))
    return v2.RNNSpec(
        cell,
        hidden if mode == "skip" else int(rng.integers(1, 41)),
        hidden,
        num_layers=one_of(1, 2, 3),
        bidirectional=one_of(False, True),
        bias=one_of("double", "none", "input", "recurrent"),
        input_mode=mode,
        dtype=dtype,
        math=math,
        algo=one_of("auto", "standard"),
        **more,
    )


def draw_arrays(rng: np.random.Generator, spec: v2.RNNSpec, lengths: list[int]) -> dict[str, Any]:
    """Arguments of a time-major call, in the dtype: normal, or uniform and smaller."""
    steps, batch, dtype = max(lengths), len(lengths), numpy_dtype(spec.dtype)
    state, cell = spec.state_shape(batch), spec.cell_shape(batch)
    shapes = {
        "x": (steps, batch, spec.input_size),
        "hx": state,
        "cx": cell,
        "dy": (steps, batch, spec.output_size),
        "dhy": state,
        "dcy": cell,
    }
    if spec.hidden_size <= 5 and rng.random() < 0.5:
        arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        arrays["w"] = 0.5 * rng.normal(size=v2.weight_size(spec))
    else:
        arrays = {name: rng.uniform(-1, 1, shape) for name, shape in shapes.items()}
        bound = spec.hidden_size**-0.5
        arrays["w"] = rng.uniform(-bound, bound, v2.weight_size(spec))
    if not spec.has_cell:
        del arrays["cx"], arrays["dcy"]
    return {name: array.astype(dtype) for name, array in arrays.items()}


def right_answers(
    spec: v2.RNNSpec, arrays: dict[str, Any], lengths: list[int]
) -> tuple[dict[str, Any], float]:
    """What the reference says, and how near a value came to a kink."""
    xs, dys = (reference.split_rows(arrays[name], lengths) for name in ("x", "dy"))
    out = reference.reference_forward(spec, arrays["w"], xs, arrays["hx"], arrays.get("cx"))
    dxs, *rest = reference.reference_backward(out, dys, arrays["dhy"], arrays.get("dcy"))
    y, dx = reference.join_rows(out.ys), reference.join_rows(dxs)
    values = (y, out.hy, out.cy, dx, *rest)
    found = dict(zip(OUTPUTS + GRADIENTS, values, strict=True))
    return found, reference.distance_to_kink(out)


def results(
    engine: str, spec: v2.RNNSpec, arrays: dict[str, Any], lengths: list[int]
) -> dict[str, Any]:
    """What an engine says, as NumPy arrays."""
    xp = importlib.import_module("cupy" if engine == "cudnn" else "numpy")
    given = {name: xp.asarray(array) for name, array in arrays.items()}
    w, x, hx, cx = (given.get(name) for name in ("w", "x", "hx", "cx"))
    out = v2.rnn_forward(spec, w, x, hx, cx, lengths=lengths, training=True, engine=engine)
    gradients = v2.rnn_backward(out, *(given.get(name) for name in ("dy", "dhy", "dcy")))
    values = [a.get() if hasattr(a, "get") else a for a in (*out, *gradients)]
    return dict(zip(OUTPUTS + GRADIENTS, values, strict=True))


def measure(engines: list[str], draws: int, seed: int) -> dict[Key, Worst]:
    """The worst of every kind."""
    found: dict[Key, Worst] = {}
    for dtype, math in combinations():
        rng = np.random.default_rng((seed, DTYPES.index(dtype), MATHS.index(math)))
        for _ in range(draws):
            spec = draw_spec(rng, dtype, math)
            batch = int(rng.integers(1, 7))
            lengths = [int(n) for n in rng.integers(1, 13, batch)]
            arrays = draw_arrays(rng, spec, lengths)
            right, distance = right_answers(spec, arrays, lengths)
            for engine in engines:
                try:
                    got = results(engine, spec, arrays, lengths)
                except v2.UnsupportedError:  # NumPy has no half math; an old cuDNN no bfloat16
                    continue
                compare(found, engine, spec, got, right, distance)
    return found


def combinations() -> Iterator[tuple[str, str]]:
    """Each dtype with each math that it has."""
    for dtype in DTYPES:
        for math in MATHS:
            if math != "half" or dtype in ("float16", "float32"):
                yield dtype, math


def compare(
    found: dict[Key, Worst],
    engine: str,
    spec: v2.RNNSpec,
    got: dict[str, Any],
    right: dict[str, Any],
    distance: float,
) -> None:
    """Note the errors of one draw."""
    clips = spec.clip is not None
    near = kink_distance(spec.dtype, spec.math, engine=engine, clip=clips)
    for what, names in (("output", OUTPUTS), ("gradient", GRADIENTS)):
        if what == "gradient" and distance <= near:
            continue
        worst = found.setdefault((engine, spec.dtype, spec.math, clips, what), Worst())
        worst.draws += 1
        for name in names:
            if right[name] is not None and right[name].size:
                error = np.abs(got[name].astype(np.float64) - right[name]).max()
                worst.see(float(error), name, right[name], spec)


def as_rows(found: dict[Key, Worst]) -> list[dict[str, Any]]:
    """One dictionary for each kind."""
    rows = []
    for (engine, dtype, math, clips, what), worst in sorted(found.items()):
        allowed = tolerance(dtype, math, engine=engine, clip=clips, what=what)
        kind = {"engine": engine, "dtype": dtype, "math": math, "clip": clips, "what": what}
        rows.append(kind | {"allowed": allowed} | dataclasses.asdict(worst))
    return rows


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=200, help="networks for each dtype and math")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", action="append", choices=("numpy", "cudnn"))
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    engines = collect()["engines"]
    chosen = options.engine or [name for name, facts in engines.items() if facts["available"]]
    rows = as_rows(measure(chosen, options.draws, options.seed))
    print(
        f"{'engine':6} {'dtype':8} {'math':7} {'clip':4} {'what':8} {'draws':>5} {'error':>8}",
        end="",
    )
    print(f" {'allowed':>8}  where")
    for row in rows:
        print(
            f"{row['engine']:6} {row['dtype']:8} {row['math']:7} {'yes' if row['clip'] else '':4} "
            f"{row['what']:8} {row['draws']:5} {row['error']:8.1e} {row['allowed']:8.1e}"
            f"{'!' if not row['error'] <= row['allowed'] else ' '} {row['array']} "
            f"(up to {row['of']:.2g}) of {row['spec']}"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return int(any(not row["error"] <= row["allowed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
