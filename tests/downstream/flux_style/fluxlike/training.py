"""Losses, gradients through time, optimisers."""

import numpy as np


def mse(y, target):
    """Mean squared error, and its gradient."""
    d = y - target
    return float((d * d).mean()), 2 * d / d.size


def logitcrossentropy(y, target):
    """Mean over the batch of -log softmax(y) at the target, in nats, and its gradient.

    ``target`` holds the distribution to be met, one column (or the vector) per sequence: one-hot
    columns as a rule.
    """
    e = np.exp(y - y.max(axis=0))
    p = e / e.sum(axis=0)
    batch = y.size // len(y)
    return -float((target * np.log(p)).sum()) / batch, (p - target) / batch


class Grads:
    """Sums of gradients, looked up by the parameter itself (not by its values)."""

    def __init__(self):
        self._sums = {}

    def add(self, param, delta):
        key = id(param)
        if key in self._sums:
            delta = self._sums[key][1] + delta
        self._sums[key] = (param, delta)  # holding param keeps its id its own

    def __contains__(self, param):
        return id(param) in self._sums

    def __getitem__(self, param):
        return self._sums[id(param)][1]


def gradient(model, loss, xs, targets):
    """Mean loss over the steps of one sequence, and the gradients of the model's parameters.

    The model goes on from the state it is in. That state counts as given, except the cells' own
    initial state, right after a reset.
    """
    total, grads, tape = 0.0, Grads(), []
    for x, target in zip(xs, targets, strict=True):
        y, back = model.pullback(x)
        value, dy = loss(y, target)
        total += value
        tape.append((back, dy / len(xs)))
    model.begin_backward()
    for back, dy in reversed(tape):
        back(dy, grads)
    return total / len(xs), grads


class Descent:
    """Plain gradient descent."""

    def __init__(self, eta=0.1):
        self.eta = eta

    def update(self, params, grads):
        for p in params:
            if p in grads:
                p -= self.eta * grads[p]


class ADAM:
    def __init__(self, eta=0.001, beta=(0.9, 0.999)):
        self.eta = eta
        self.beta = beta
        self._moments = {}

    def update(self, params, grads):
        b1, b2 = self.beta
        for p in params:
            if p not in grads:
                continue
            g = grads[p]
            _, m, v, t = self._moments.get(id(p), (p, 0 * g, 0 * g, 0))
            m, v, t = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g, t + 1
            self._moments[id(p)] = (p, m, v, t)
            p -= self.eta * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + 1e-8)


def train(model, loss, data, opt):
    """One pass over ``data``, pairs (xs, targets), each a sequence of its own: the losses."""
    losses = []
    for xs, targets in data:
        model.reset()
        value, grads = gradient(model, loss, xs, targets)
        opt.update(model.params(), grads)
        losses.append(value)
    return losses
