"""Layers without a memory. Every layer has params(), reset(), convert() and pullback()."""

import numpy as np


def glorot_uniform(rng, *shape):
    """Uniform numbers whose variance suits the sizes of the layers at both ends."""
    return (rng.uniform(size=shape) - 0.5) * np.sqrt(24.0 / sum(shape))


class Layer:
    names = ()  # the attributes that are trained

    def params(self):
        return [getattr(self, name) for name in self.names]

    def convert(self, f):
        """Replace every trained array by f(array): to another type, or to the GPU."""
        for name in self.names:
            setattr(self, name, f(getattr(self, name)))

    def reset(self):
        """Forget the sequence so far."""

    def begin_backward(self):
        """Forget gradients of an earlier backward pass."""


class Dense(Layer):
    """y = W x + b."""

    names = ("W", "b")

    def __init__(self, n_in, n_out, rng, dtype="float32"):
        self.W = glorot_uniform(rng, n_out, n_in).astype(dtype)
        self.b = np.zeros(n_out, dtype)

    def __call__(self, x):
        return self.W @ x + (self.b if x.ndim == 1 else self.b[:, None])

    def pullback(self, x):
        def back(dy, grads):
            columns, deltas = (a.reshape(len(a), -1) for a in (x, dy))
            grads.add(self.W, deltas @ columns.T)
            grads.add(self.b, deltas.sum(axis=1))
            return self.W.T @ dy

        return self(x), back


class Chain(Layer):
    """One layer after the other."""

    def __init__(self, *layers):
        self.layers = layers

    def params(self):
        return [p for layer in self.layers for p in layer.params()]

    def convert(self, f):
        for layer in self.layers:
            layer.convert(f)

    def reset(self):
        for layer in self.layers:
            layer.reset()

    def begin_backward(self):
        for layer in self.layers:
            layer.begin_backward()

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def pullback(self, x):
        backs = []
        for layer in self.layers:
            x, back = layer.pullback(x)
            backs.append(back)

        def chain_back(dy, grads):
            for back in reversed(backs):
                dy = back(dy, grads)
            return dy

        return x, chain_back
