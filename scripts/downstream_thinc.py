"""thinc's ``_lstm_notes.py`` on NumPy arrays: its own functions, unchanged, without a GPU.

    python scripts/downstream_thinc.py CHECKOUT

What is not as on a GPU: ``import cupy`` finds the stand-in of ``tests/downstream``, whose arrays
are NumPy's, and the one function that sends a Chainer model to a GPU does nothing. Beside
``main()``, whose arrays are all zero, the weights that its ``cudnn_lstm_weight_concat`` puts in
place serve one forward pass, which is compared with the equations of an LSTM. Prints the largest
difference.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np

STAND_IN = Path(__file__).resolve().parents[1] / "tests" / "downstream" / "stand_in"
STEPS, BATCH, INPUT, HIDDEN = 5, 3, 4, 6


def load(checkout: Path) -> Any:
    """The module, with Chainer imported before there is anything like CuPy."""
    importlib.import_module("chainer.links")
    for name in [each for each in sys.modules if each.partition(".")[0].startswith("cupy")]:
        del sys.modules[name]
    sys.path.insert(0, str(STAND_IN))
    path = checkout / "thinc" / "backends" / "_cudnn" / "_lstm_notes.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def equations(ws: list[Any], bs: list[Any], x: Any, h: Any, c: Any) -> list[Any]:
    """The outputs of an LSTM in float64; gates in cuDNN's order i, f, g, o."""
    ys = []
    for step in x.astype(np.float64):
        gates = [
            step @ ws[n].T.astype(np.float64) + bs[n] + h @ ws[n + 4].T.astype(np.float64)
            + bs[n + 4]
            for n in range(4)
        ]  # fmt: skip
        i, f, o = (1 / (1 + np.exp(-gates[n])) for n in (0, 1, 3))
        c = f * c + i * np.tanh(gates[2])
        h = o * np.tanh(c)
        ys.append(h)
    return ys


def main() -> int:
    """Run the notes, then compare."""
    notes = load(Path(sys.argv[1]))
    notes.use_chainer_lstm = lambda *arguments: print("left out: the part that needs a GPU")
    notes.main()
    cudnn, libcudnn = (importlib.import_module(f"cupy.{name}") for name in ("cudnn", "cuda.cudnn"))
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return rng.uniform(-1, 1, shape).astype(np.float32)

    ws = [draw(HIDDEN, INPUT if n < 4 else HIDDEN) for n in range(8)]
    bs = [draw(HIDDEN) for _ in range(8)]
    x, h, c = draw(STEPS, BATCH, INPUT), draw(1, BATCH, HIDDEN), draw(1, BATCH, HIDDEN)
    states = cudnn.DropoutStates(None, 0)
    w = notes.cudnn_lstm_weight_concat(1, states, ws, bs)
    mode = (libcudnn.CUDNN_UNIDIRECTIONAL, libcudnn.CUDNN_LSTM)
    xs = x.reshape(STEPS * BATCH, INPUT)
    _, _, ys = cudnn.rnn_forward_inference(states, *mode, h, c, w, xs, [BATCH] * STEPS)
    wanted = np.concatenate(equations(ws, bs, x, h[0], c[0]))
    print(f"largest difference: {np.abs(ys - wanted).max():.2e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
