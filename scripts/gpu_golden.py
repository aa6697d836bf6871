"""Count how many recorded cases the cuDNN engine gives bit for bit: part of `make gpu`.

    python scripts/gpu_golden.py [--engine cudnn] [--json FILE]

Every case of ``tests/data`` is run with ``algo="standard"`` and ``math="full"``, forward (training
and inference) and backward, the dropout case with the seed it was recorded with. float16 is run
with each ``math``, to find which one the recordings were made with. A case is *exact* where every
array has the recorded bits, *close* where every array is within the tolerance of the dtype. Exit
status 1 where a case is off, or one of float32 or float64 is not exact.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

SEED = 1234
"""Of the recorded dropout case."""

TO_BE_EXACT = ("float32", "float64")
"""Of these every case is expected bit for bit."""


def arrays_of(engine: str, case: Any, math: str) -> Iterator[tuple[str, Any, Any]]:
    """Name, computed and recorded array of everything that was recorded of a case."""
    golden = importlib.import_module("tests.golden")
    v2 = importlib.import_module("cudnn_compat.v2")
    xp = importlib.import_module("cupy" if engine == "cudnn" else "numpy")

    def put(name: str) -> Any:
        array = case.get(name)
        return None if array is None else xp.asarray(array)

    spec = case.spec.replace(algo="standard", math=math)
    w, x, hx, cx = (put(name) for name in ("w", "x", "hx", "cx"))
    seed = SEED if spec.dropout else None
    out = v2.rnn_forward(spec, w, x, hx, cx, training=True, seed=seed, **case.how_long)
    assert out.engine == engine
    gradients = v2.rnn_backward(out, put("dy"), put("dhy"), put("dcy"))
    names = golden.OUTPUTS + golden.GRADIENTS
    results = dict(zip(names, (*out, *gradients), strict=True))
    if not spec.dropout:
        inferred = v2.rnn_forward(spec, w, x, hx, cx, **case.how_long)
        recorded = [f"inf_{name}" for name in golden.OUTPUTS]
        results.update(zip(recorded, inferred, strict=True))
    for name, value in results.items():
        if value is not None and name in case.arrays:
            yield name, value.get() if hasattr(value, "get") else value, case.get(name)


def run(engine: str, case: Any, math: str) -> dict[str, Any]:
    """What became of a case: exact, close, and how far the other arrays are."""
    golden = importlib.import_module("tests.golden")
    row = {"case": case.name, "dtype": case.spec.dtype, "math": math}
    differences: dict[str, float] = {}
    close = True
    try:
        for name, computed, recorded in arrays_of(engine, case, math):
            if computed.dtype == recorded.dtype and computed.tobytes() == recorded.tobytes():
                continue
            differences[name] = difference = golden.largest(computed, recorded)
            close &= difference <= case.tolerance(name.removeprefix("inf_"))
    except Exception as error:  # a case that fails is counted, and the others are run
        words = f"{type(error).__name__}: {error}"
        return {**row, "exact": False, "close": False, "error": words, "differences": {}}
    forward = any(name.removeprefix("inf_") in golden.OUTPUTS for name in differences)
    return {
        **row,
        "exact": not differences,
        "forward_exact": not forward,
        "close": close,
        "differences": differences,
    }


def count(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cases by file, dtype and math: how many are exact, close, and neither."""
    groups: dict[tuple[str, str, str], collections.Counter[str]] = {}
    worst: dict[tuple[str, str, str], float] = {}
    for row in rows:
        key = (row["case"].partition(":")[0], row["dtype"], row["math"])
        kind = "exact" if row["exact"] else "close" if row["close"] else "off"
        counts = groups.setdefault(key, collections.Counter())
        counts[kind] += 1
        counts["forward"] += row.get("forward_exact", False)
        worst[key] = max(worst.get(key, 0.0), *row["differences"].values(), 0.0)
    return [
        {
            "file": key[0],
            "dtype": key[1],
            "math": key[2],
            "cases": counts["exact"] + counts["close"] + counts["off"],
            "exact": counts["exact"],
            "forward_exact": counts["forward"],
            "close": counts["close"],
            "off": counts["off"],
            "largest_difference": worst[key],
        }
        for key, counts in sorted(groups.items())
    ]


def all_rows(engine: str) -> list[dict[str, Any]]:
    """Every case; float16 with each math that the engine has."""
    golden = importlib.import_module("tests.golden")
    rows = []
    for case in [*golden.cases(), golden.dropout_case()]:
        maths = ["full"]
        if case.spec.dtype == "float16":
            maths += ["default", "half"] if engine == "cudnn" else ["default"]
        rows += [run(engine, case, math) for math in maths]
    return rows


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", default="cudnn", choices=("cudnn", "numpy"))
    parser.add_argument("--json", type=Path, help="where to write the result")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))  # the package need not be installed
    rows = all_rows(options.engine)
    counts = count(rows)
    unexpected = [r for r in rows if not r["exact"] and r["dtype"] in TO_BE_EXACT]
    result = {
        "engine": options.engine,
        "counts": counts,
        "dropout_case_exact": any(r["exact"] for r in rows if "dropout" in r["case"]),
        "not_exact": [r for r in rows if not r["exact"]],
    }
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{'':26}{'cases':>6}{'exact':>7}{'close':>7}{'off':>5}{'forward exact':>15}  largest")
    for row in counts:
        print(
            f"{row['file']:8}{row['dtype']:9}{row['math']:9}{row['cases']:6}{row['exact']:7}"
            f"{row['close']:7}{row['off']:5}{row['forward_exact']:15}"
            f"  {row['largest_difference']:.1e}"
        )
    for row in (unexpected if options.engine == "cudnn" else [])[:12]:
        far = ", ".join(f"{name} {by:.0e}" for name, by in row["differences"].items())
        print(f"not exact: {row['case']}: {row.get('error') or far}")
    off = [row for row in rows if not row["close"] and row["math"] == "full"]
    must_be_exact = unexpected if options.engine == "cudnn" else []
    return int(bool(off or must_be_exact))


if __name__ == "__main__":
    sys.exit(main())
