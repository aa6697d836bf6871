"""Chainer's own callers of cupy.cudnn, on NumPy arrays: a program for a Python that has Chainer.

Chainer is told that CUDA is there, and its functions are told to take NumPy arrays for the GPU's.
So its real code calls the dialect, which computes with the NumPy engine; the same networks with
``use_cudnn='never'`` are Chainer's own plain operations. Prints the largest difference of each
network over outputs and all gradients, as JSON.
"""

from __future__ import annotations

import importlib.machinery
import json
import sys
import types
from typing import Any

import numpy as np

from cudnn_compat.legacy.cupy import install, prepare_chainer
from cudnn_compat.legacy.deprecations import record_calls
from cudnn_compat.legacy.table import find

LENGTHS = (4, 3, 3, 1)
N_IN, UNITS, LAYERS = 3, 5, 2


def module(name: str, **names: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__path__ = []
    made.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    vars(made).update(names)
    sys.modules[name] = made
    package, _, last = name.rpartition(".")
    if package:
        setattr(sys.modules[package], last, made)
    return made


class Nothing:
    """Whatever Chainer makes of CUDA while it is imported."""

    id = 0

    def __init__(self, *arguments: Any, **names: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **names: None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def anything(name: str) -> Any:
    """``__getattr__`` of the modules: all but what the hook is to bring."""
    if name.startswith("__") or name == "cudnn":
        raise AttributeError(name)
    return Nothing


def stand_in() -> None:
    """A CuPy as far as Chainer looks while it is imported; it has no arrays."""
    module(
        "cupy",
        __version__="14.0.0",
        __getattr__=anything,
        ndarray=type("ndarray", (), {}),
        memoize=lambda for_each_device=False: lambda function: function,
        fuse=lambda: lambda function: function,
    )
    module(
        "cupy.cuda",
        __getattr__=anything,
        is_available=lambda: False,
        runtime=types.SimpleNamespace(getDeviceCount=lambda: 0, getDevice=lambda: 0),
    )
    module("cupy.cuda.cublas")
    module("cupy._util", PerformanceWarning=type("PerformanceWarning", (Warning,), {}))
    module("cupyx")
    module("cupyx.scipy")
    module("cupyx.scipy.linalg")
    module("cupyx.scipy.special")


def run(network: Any, chainer: Any, use: str, dtype: str) -> list[Any]:
    """Outputs, and gradients of everything, of a network that has its weights already."""
    functions = chainer.functions
    rng = np.random.default_rng(2)

    def draw(*shape: int) -> Any:
        return chainer.Variable(rng.uniform(-1, 1, shape).astype(dtype))

    directions = 2 if network.use_bi_direction else 1
    states = [draw(LAYERS * directions, len(LENGTHS), UNITS) for _ in range(network.n_cells)]
    xs = [draw(length, N_IN) for length in LENGTHS]
    network.cleargrads()
    with chainer.using_config("use_cudnn", use), chainer.using_config("train", True):
        *after, ys = network(*states, xs)
        outputs = [*after, *ys]
        loss = sum(functions.sum(y * y * (number + 1)) for number, y in enumerate(outputs))
        loss.backward()
    grads = [each.grad for each in (*states, *xs)]
    grads += [parameter.grad for _, parameter in sorted(network.namedparams())]
    return [y.array for y in outputs] + grads


def main() -> dict[str, float]:
    prepare_chainer()
    stand_in()
    install()
    import chainer
    from chainer.functions.noise import dropout
    from chainer.functions.rnn import n_step_rnn

    cuda = chainer.backends.cuda
    assert cuda.cudnn_enabled, getattr(cuda, "_resolution_error", None)
    vars(np)["get_array_module"] = lambda *arrays: np
    cuda.cupy = np  # what Chainer compares array modules with, and makes arrays of
    states = cuda.cudnn.DropoutStates(None, np.uint64(2**64 - 1))  # as large as Chainer draws them
    cuda.get_cudnn_dropout_states = lambda: states
    for function in (n_step_rnn.CudnnRNNWeightConcat, n_step_rnn.BaseNStepRNN):
        function.forward_cpu = function.forward_gpu
    found = {}
    kinds = ["NStepLSTM", "NStepBiLSTM", "NStepGRU", "NStepBiGRU"]
    kinds += ["NStepRNNTanh", "NStepBiRNNTanh", "NStepRNNReLU", "NStepBiRNNReLU"]
    for dtype in ("float32", "float64"):
        for kind in kinds:
            with chainer.using_config("dtype", np.dtype(dtype)):
                network = getattr(chainer.links, kind)(LAYERS, N_IN, UNITS, 0.0)
            rng = np.random.default_rng(1)
            for _, parameter in sorted(network.namedparams()):
                parameter.array[...] = rng.uniform(-0.5, 0.5, parameter.shape)
            ours, plain = (run(network, chainer, use, dtype) for use in ("always", "never"))
            found[f"{kind} {dtype}"] = max(
                float(abs(a - b).max()) for a, b in zip(ours, plain, strict=True)
            )
    dropout.Dropout.forward_cpu = dropout.Dropout.forward_gpu
    x = chainer.Variable(np.ones((4000, 5), "float32"))
    with chainer.using_config("use_cudnn", "always"):
        y = chainer.functions.dropout(x, 0.25)
        chainer.functions.sum(y).backward()
    found["dropout"] = float(abs(x.grad - y.array).max())
    found["dropout kept"] = float((y.array != 0).mean())
    return found


if __name__ == "__main__":
    with record_calls() as recorder:
        differences = main()
    calls: dict[str, int] = {}
    for (code, file, _), count in recorder.calls.items():
        row = find(code)
        if row is not None and "chainer" in file:
            calls[row.name] = calls.get(row.name, 0) + count
    print(json.dumps({"differences": differences, "calls": calls}))
