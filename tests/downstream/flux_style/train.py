"""Teach small networks to say what they heard one step ago.

    python train.py [float32|float64] [EPOCHS]

prints, for each network and each shape of its input, the mean loss of each epoch, then the loss of
the trained network (computed without gradients).
"""

import sys

import numpy as np
from fluxlike import ADAM, GRU, LSTM, RNN, Chain, Dense, Descent, mse, steps_run, train

N_IN, N_HIDDEN, N_OUT = 3, 4, 2
STEPS, SEQUENCES = 6, 4

SHAPES = {"vector": (N_IN,), "batch1": (N_IN, 1), "batch5": (N_IN, 5)}  # of x in one step


def make_model(name, dtype="float32"):
    rng = np.random.RandomState(2020)
    layers = {
        "relu": lambda: [RNN(N_IN, N_HIDDEN, rng, "relu", dtype)],
        "tanh": lambda: [RNN(N_IN, N_HIDDEN, rng, "tanh", dtype)],
        "gru": lambda: [GRU(N_IN, N_HIDDEN, rng, dtype)],
        "lstm": lambda: [LSTM(N_IN, N_HIDDEN, rng, dtype)],
        "stacked": lambda: [GRU(N_IN, N_HIDDEN, rng, dtype), LSTM(N_HIDDEN, N_HIDDEN, rng, dtype)],
    }
    return Chain(*layers[name](), Dense(N_HIDDEN, N_OUT, rng, dtype))


MODELS = ("relu", "tanh", "gru", "lstm", "stacked")


def make_data(shape, dtype="float32"):
    """Pairs (xs, targets): the target of a step is the beginning of the previous step's x."""
    rng = np.random.RandomState(1999)
    data = []
    for _ in range(SEQUENCES):
        xs = [rng.uniform(-1, 1, size=shape).astype(dtype) for _ in range(STEPS)]
        data.append((xs, [np.zeros_like(xs[0][:N_OUT])] + [x[:N_OUT] for x in xs[:-1]]))
    return data


def make_optimiser(name):
    return Descent(0.2) if name in ("relu", "tanh") else ADAM(0.03)


def evaluate(model, data):
    """Mean loss over the data, by calling the model only."""
    values = []
    for xs, targets in data:
        model.reset()
        values += [mse(model(x), target)[0] for x, target in zip(xs, targets, strict=True)]
    return sum(values) / len(values)


def run(name, shape_name, dtype="float32", epochs=6, asarray=np.asarray):
    """Train one network: (loss of each epoch, loss afterwards, steps its first cell has run).

    ``asarray=cupy.asarray`` does it on the GPU.
    """
    model = make_model(name, dtype)
    model.convert(asarray)
    data = [
        ([asarray(x) for x in xs], [asarray(target) for target in targets])
        for xs, targets in make_data(SHAPES[shape_name], dtype)
    ]
    opt = make_optimiser(name)
    losses = [sum(train(model, mse, data, opt)) / SEQUENCES for _ in range(epochs)]
    return losses, evaluate(model, data), steps_run(model.layers[0].cell)


def main(argv):
    dtype = argv[1] if len(argv) > 1 else "float32"
    epochs = int(argv[2]) if len(argv) > 2 else 6
    for name in MODELS:
        for shape_name in SHAPES:
            losses, after, steps = run(name, shape_name, dtype, epochs)
            numbers = " ".join(repr(value) for value in losses)
            print(f"{name} {shape_name}: {numbers} after: {after!r} steps: {steps}")


if __name__ == "__main__":
    main(sys.argv)
