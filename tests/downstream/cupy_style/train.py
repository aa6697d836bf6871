"""Two recurrent networks straight on cuDNN.

    python train.py OUT.npz [f|d]

teaches a stacked LSTM to say what it heard one step ago, prints the loss of each step, and runs a
BiGRU once forward and backward; everything that went in and came out is saved in OUT.npz.
"""

import sys

import cupy
import numpy
from bigru import BiGRU
from stacked_lstm import StackedLSTM

BATCH_SIZES = [3, 3, 2, 2, 1]  # of each time step: sequences of 5, 4 and 2 steps
N_IN, N_UNITS, N_LAYERS = 2, 3, 2
STEPS, RATE = 8, 0.5


def to_host(array):
    return array.get() if hasattr(array, "get") else numpy.array(array)


def draw(rng, shape, dtype):
    return cupy.asarray(rng.uniform(-1, 1, shape).astype(dtype))


def lstm(dtype, saved):
    rng = numpy.random.RandomState(0)
    net = StackedLSTM(N_IN, N_UNITS, N_LAYERS, dtype)
    for layer in range(N_LAYERS):
        for gate in range(8):
            matrix = net.matrix(layer, gate)
            matrix[...] = draw(rng, matrix.shape, dtype)
    xs = draw(rng, (sum(BATCH_SIZES), N_IN), dtype)
    hx, cx = (draw(rng, (N_LAYERS, BATCH_SIZES[0], N_UNITS), dtype) for _ in range(2))
    target = draw(rng, (sum(BATCH_SIZES), N_UNITS), dtype)

    def loss(ys):
        difference = ys - target
        return float((difference**2).mean()), 2 * difference / difference.size

    saved.update(lstm_w=net.w.copy(), lstm_xs=xs, lstm_hx=hx, lstm_cx=cx, lstm_target=target)
    for step in range(STEPS):
        value, grads = net.gradient(loss, xs, BATCH_SIZES, hx, cx)
        if step == 0:
            saved.update({"lstm_d" + name: grad for name, grad in grads.items()})
        print("lstm", step, repr(value))
        net.w -= RATE * grads["w"]
    ys, hy, cy = net(xs, BATCH_SIZES, hx, cx)
    print("lstm after", repr(loss(ys)[0]))
    saved.update(lstm_w_after=net.w, lstm_ys=ys, lstm_hy=hy, lstm_cy=cy)


def bigru(dtype, saved):
    rng = numpy.random.RandomState(1)
    net = BiGRU(N_IN, N_UNITS, dtype)
    for direction in range(2):
        for lin in range(6):
            for kind in "Wb":
                view = net.param(kind, direction, lin)
                view[...] = draw(rng, view.shape, dtype)
                saved["bigru_%s%d%d" % (kind, direction, lin)] = view
    xs = draw(rng, (sum(BATCH_SIZES), N_IN), dtype)
    hx, dhy = (draw(rng, (2, BATCH_SIZES[0], N_UNITS), dtype) for _ in range(2))
    dys = draw(rng, (sum(BATCH_SIZES), 2 * N_UNITS), dtype)
    ys, hy = net.forward(xs, BATCH_SIZES, hx)
    saved.update(bigru_xs=xs, bigru_hx=hx, bigru_dys=dys, bigru_dhy=dhy, bigru_ys=ys, bigru_hy=hy)
    dxs, dhx, dw = net.backward(dys, dhy)
    for direction in range(2):
        for lin in range(6):
            for kind in "Wb":
                saved["bigru_d%s%d%d" % (kind, direction, lin)] = net.param(
                    kind, direction, lin, of=dw)
    saved.update(bigru_dxs=dxs, bigru_dhx=dhx)
    print("bigru", repr(float((dys * ys).sum() + (dhy * hy).sum())))


def main(argv):
    dtype = argv[2] if len(argv) > 2 else "f"
    saved = {}
    lstm(dtype, saved)
    bigru(dtype, saved)
    numpy.savez(argv[1], **{name: to_host(array) for name, array in saved.items()})


if __name__ == "__main__":
    main(sys.argv)
