"""Learn to find the words in a text without spaces: a tagger on Chainer's NStepBiLSTM.

    python train.py [--gpu 0] [--epoch 10] [--unit 32] [--layer 2]

Each letter gets a tag: does a word begin here? The text is the Declaration of Independence
(1776), in lower case, letters only, a clause at a time. Every sixth clause is held out.
"""

from __future__ import print_function

import argparse
import os
import re

import chainer
import chainer.functions as F
import chainer.links as L
import numpy

TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "declaration.txt")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def read_clauses():
    """Pairs (letters, tags) of int32 arrays of the same length."""
    with open(TEXT) as f:
        text = f.read().lower()
    clauses = []
    for clause in re.split(r"[^a-z' \n]+|\n\n", text):
        words = re.findall("[a-z]+", clause.replace("'", ""))
        if len(words) < 2:
            continue
        letters = [LETTERS.index(letter) for word in words for letter in word]
        tags = [int(k == 0) for word in words for k in range(len(word))]
        clauses.append((numpy.array(letters, "i"), numpy.array(tags, "i")))
    return clauses


class Tagger(chainer.Chain):
    def __init__(self, n_layers, n_units):
        super(Tagger, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(len(LETTERS), n_units)
            self.lstm = L.NStepBiLSTM(n_layers, n_units, n_units, 0.1)
            self.hidden = L.Linear(2 * n_units, n_units)
            self.out = L.Linear(n_units, 2)

    def predict(self, xs):
        sections = numpy.cumsum([len(x) for x in xs])[:-1]
        embedded = F.split_axis(self.embed(F.concat(xs, axis=0)), sections, 0)
        _, _, ys = self.lstm(None, None, embedded)
        h = F.relu(self.hidden(F.dropout(F.concat(ys, axis=0), 0.1)))
        return self.out(h)

    def __call__(self, xs, ts):
        y, t = self.predict(xs), F.concat(ts, axis=0)
        loss = F.softmax_cross_entropy(y, t)
        chainer.report({"loss": loss, "accuracy": F.accuracy(y, t)}, self)
        return loss


def convert(batch, device):
    xs, ts = zip(*batch)
    return {"xs": [device.send(x) for x in xs], "ts": [device.send(t) for t in ts]}


def evaluate(model, clauses, device):
    """Part of the letters that get their right tag."""
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        y = model.predict([device.send(x) for x, _ in clauses])
        t = device.send(numpy.concatenate([t for _, t in clauses]))
        return float(F.accuracy(y, t).array)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", "-g", type=int, default=-1)
    parser.add_argument("--epoch", "-e", type=int, default=10)
    parser.add_argument("--unit", "-u", type=int, default=32)
    parser.add_argument("--layer", "-l", type=int, default=2)
    parser.add_argument("--batch", "-b", type=int, default=10)
    args = parser.parse_args()

    numpy.random.seed(0)
    clauses = read_clauses()
    held_out = clauses[5::6]
    learnt = [clause for k, clause in enumerate(clauses) if k % 6 != 5]
    device = chainer.get_device(args.gpu if args.gpu >= 0 else "@numpy")
    device.use()
    model = Tagger(args.layer, args.unit)
    model.to_device(device)
    optimizer = chainer.optimizers.Adam(alpha=0.01)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(5.0))

    tags = numpy.concatenate([t for _, t in held_out])
    print("cudnn:", chainer.backends.cuda.cudnn_enabled and args.gpu >= 0)
    print("clauses: %d, held out: %d" % (len(learnt), len(held_out)))
    print("always inside a word: %.4f" % (1 - tags.mean()))
    train_iter = chainer.iterators.SerialIterator(learnt, args.batch)
    total, count = 0.0, 0
    while train_iter.epoch < args.epoch:
        batch = convert(train_iter.next(), device)
        loss = model(**batch)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        total, count = total + float(loss.array), count + 1
        if train_iter.is_new_epoch:
            print("epoch %d loss %.4f" % (train_iter.epoch, total / count))
            total, count = 0.0, 0
    print("accuracy: %.4f" % evaluate(model, held_out, device))


if __name__ == "__main__":
    main()
