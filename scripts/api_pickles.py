"""Pickles of public objects: each release keeps some, and every later one reads them.

    python scripts/api_pickles.py FILE    writes those of the package that Python finds

A file is a pickled dictionary of name to pickle. The objects are made anew to be compared with:
a recipe is never changed or dropped, because old files have its name; new ones may be added.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from cudnn_compat import errors, v2

__all__ = ["RECIPES", "load", "same"]

PROTOCOL: Final = 4
"""That of every Python that can read it."""


def _drawn() -> v2.DropoutState:
    """A generator that has dropped once already."""
    state = v2.DropoutState(5)
    spec = v2.RNNSpec("tanh", 2, 3, num_layers=2, dropout=0.5)
    x = np.ones((4, 1, 2), "float32")
    v2.rnn_forward(spec, v2.init_weights(spec, seed=0), x, training=True, seed=state)
    return state


def _descriptor() -> Any:
    """A descriptor of the old API, some of whose weights are set."""
    from cudnn_compat import legacy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", legacy.LegacyAPIWarning)
        described = legacy.RNNDesc.__class_getitem__("float64")(legacy.CUDNN_LSTM, 2, 3)
    described.params[:5] = range(5)
    return described


def _old_error() -> Exception:
    from cudnn_compat.legacy.cupy import CuDNNError

    error = CuDNNError(3, 2000, "hidden_size is 0")
    error.add_info("rnn_forward_training")
    return error


def _error(name: str) -> Callable[[], Exception]:
    kind = getattr(errors, name)
    if issubclass(kind, errors.LibraryError):
        return lambda: kind("refused", 2000, "CUDNN_STATUS_BAD_PARAM", "cudnnRNNForward")
    if issubclass(kind, errors.LibraryNotFound):
        place = {"place": "/lib", "found_by": "CUDNN_PATH", "result": "no libcudnn.so.9"}
        return lambda: kind("no cuDNN", [place])
    return lambda: kind("x has shape (3,); wanted (T, B, 3)")


RECIPES: Final[dict[str, Callable[[], Any]]] = {
    "spec": lambda: v2.RNNSpec("gru", 3, 4),
    "spec with everything": lambda: v2.RNNSpec(
        *("lstm", 8, 8),
        num_layers=2,
        bidirectional=True,
        bias="input",
        input_mode="skip",
        proj_size=4,
        dropout=0.25,
        dtype="float16",
        math="half",
        algo="persist_static",
        clip=(-1.0, 2.0),
    ),
    "dropout state": lambda: v2.DropoutState(7),
    "dropout state that has drawn": _drawn,
    "packed": lambda: v2.pack(np.arange(12.0).reshape(3, 2, 2), [3, 1]),
    "layer": lambda: v2.LSTM(2, 3, seed=1, keep_state=True),
    "RNNDesc": _descriptor,
    "CuDNNError": _old_error,
} | {name: _error(name) for name in errors.__all__}


def load(file: Path) -> dict[str, Any]:
    """The objects of a file, by the names of their recipes."""
    with file.open("rb") as stream:
        stored: dict[str, bytes] = pickle.load(stream)
    return {name: pickle.loads(content) for name, content in stored.items()}


def same(one: Any, other: Any) -> bool:
    """Whether two objects are of one class and have the same content."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, v2.DropoutState):
        return one.seed == other.seed and np.array_equal(_draw(one), _draw(other))
    if isinstance(one, v2.RNNSpec):
        return one == other and hash(one) == hash(other)
    if isinstance(one, BaseException):
        return str(one) == str(other) and one.args == other.args and vars(one) == vars(other)
    if type(one).__name__.startswith("RNNDesc"):
        return bool(one.spec == other.spec and same(one.params, other.params))
    if isinstance(one, (v2.Packed, v2.LSTM)):
        names = {name for name in (*vars(one), *vars(other)) if not name.startswith("_")}
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


def _draw(state: v2.DropoutState) -> Any:
    """What the next call drops."""
    spec = v2.RNNSpec("tanh", 2, 3, num_layers=2, dropout=0.5)
    x = np.ones((4, 1, 2), "float32")
    return v2.rnn_forward(spec, v2.init_weights(spec, seed=0), x, training=True, seed=state).y


def main(file: str) -> None:
    """Write the file."""
    content = {name: pickle.dumps(make(), PROTOCOL) for name, make in RECIPES.items()}
    Path(file).write_bytes(pickle.dumps(content, PROTOCOL))


if __name__ == "__main__":
    main(sys.argv[1])
