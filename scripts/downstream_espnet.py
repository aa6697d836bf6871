"""Train each encoder of ESPnet's Chainer backend a little, on made-up sound.

    python scripts/downstream_espnet.py [--device @cupy:0]

The encoders are ESPnet's, this driver is not: ESPnet's tests of them need a PyTorch of their time.
Prints how much of its first loss each encoder still has at the end.
"""

from __future__ import annotations

import argparse
import importlib
import sys

import numpy as np

STEPS = 40
LENGTHS = (9, 7, 4)
KINDS = ("lstm", "lstmp", "gru", "grup", "blstm", "blstmp", "bgru", "bgrup")
"""p: a projection and subsampling behind each layer; b: both directions."""


def main() -> int:
    """Train all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="@numpy", help="as Chainer names it")
    name = parser.parse_args().device
    chainer = importlib.import_module("chainer")
    encoders = importlib.import_module("espnet.nets.chainer_backend.rnn.encoders")
    device = chainer.get_device(name)
    device.use()
    rng = np.random.default_rng(0)
    np.random.seed(0)  # noqa: NPY002 - what Chainer's initializers draw from
    parts = []
    for kind in KINDS:
        encoder = encoders.Encoder(kind, 5, 2, 6, 7, np.array([1, 2, 1]), 0.1)
        encoder.to_device(device)
        optimizer = chainer.optimizers.Adam(0.01)
        optimizer.setup(encoder)
        frames = [rng.standard_normal((n, 5), dtype=np.float32) for n in LENGTHS]
        losses = []
        for _ in range(STEPS):
            ys, _ = encoder([chainer.Variable(device.send(x)) for x in frames], np.array(LENGTHS))
            loss = sum(chainer.functions.mean((y - 0.5) ** 2) for y in ys)
            encoder.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(float(loss.array))
        print(f"{kind}: {losses[0]:.4f} → {losses[-1]:.4f}")
        parts.append(losses[-1] / losses[0])
    print(f"largest part of the first loss: {max(parts):.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
