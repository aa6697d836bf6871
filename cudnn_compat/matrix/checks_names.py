"""How names are compared: constants, what is not offered, exceptions, and being found in CuPy."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
from packaging.version import Version

from cudnn_compat import v2
from cudnn_compat.cudnn.library import check_version, load
from cudnn_compat.cudnn.status import library_error
from cudnn_compat.errors import UnsupportedError
from cudnn_compat.legacy.cupy import libcudnn
from cudnn_compat.matrix.comparing import Case, Comparison, Found, NotOffered, NotTestedHere, same
from cudnn_compat.matrix.operations import softmax

__all__ = ["CHECKS", "OLD_CONSTANTS", "RAISES"]


@functools.cache
def old_constants() -> dict[str, float]:
    """What CuPy 13 and cuDNN 8.9.7 had, as recorded from them."""
    recorded = json.loads(resources.files(__package__).joinpath("old_constants.json").read_text())
    return {**recorded["cupy"], **recorded["header"]}


OLD_CONSTANTS: Final = tuple(old_constants())
"""Their names."""


def item(case: Case) -> str:
    """Which of several things the row is about."""
    assert case.row.shape is not None
    return case.row.shape.label


def constant(case: Case) -> Found:
    """The value that CuPy 13 had."""
    name = item(case)
    yield Comparison(name, getattr(libcudnn, name), old_constants()[name], "exact")


def absent(case: Case) -> Found:
    """A name that the old module had and this one has not: the error says what to use."""
    module = importlib.import_module(f"cudnn_compat.{case.row.feature.api}")
    try:
        getattr(module, item(case))
    except AttributeError as error:
        if "does not offer" in str(error):
            raise NotOffered(str(error)) from error
        yield same("whether the error says what to use", str(error), "… does not offer …")
    else:
        yield same(f"whether {item(case)} is absent", False, True)


def _inference() -> v2.RNNOutput:
    spec = v2.RNNSpec("tanh", 3, 4)
    return v2.rnn_forward(spec, v2.init_weights(spec, seed=0), np.zeros((2, 1, 3), "float32"))


def _status(name: str) -> Callable[[], Any]:
    def provoke() -> None:
        raise library_error("cudnnRNNForward", 9, codes[name])

    codes = {
        "LibraryNotInitialized": 1001,
        "LibraryOutOfMemory": 4003,
        "LibraryBadParameter": 2000,
        "LibraryNotSupported": 3000,
        "LibraryInternalError": 4000,
        "LibraryExecutionFailed": 5000,
        "LibraryMismatch": 1002,
        "LibraryError": 7000,
    }
    return provoke


RAISES: Final[dict[str, tuple[tuple[type[Exception], ...], Callable[[], Any]]]] = {
    "ArgumentError": ((ValueError,), lambda: v2.RNNSpec("elman", 3, 4)),
    "DTypeError": ((TypeError,), lambda: v2.RNNSpec("tanh", "3", 4)),  # type: ignore[arg-type]
    "UnsupportedError": (
        (NotImplementedError,),
        lambda: v2.convert.from_onnx("GRU", np.zeros((1, 6, 3)), np.zeros((1, 6, 2))),
    ),
    "TapeError": ((RuntimeError,), lambda: v2.rnn_backward(_inference(), np.zeros((2, 1, 4)))),
    "LibraryNotFound": ((ImportError,), lambda: load("/nowhere/libcudnn.so.9")),
    "LibraryVersionError": (
        (ImportError, NotImplementedError),
        lambda: check_version(Version("7.6.5")),
    ),
    "LibraryError": ((RuntimeError,), _status("LibraryError")),
    "LibraryNotInitialized": ((RuntimeError,), _status("LibraryNotInitialized")),
    "LibraryOutOfMemory": ((MemoryError,), _status("LibraryOutOfMemory")),
    "LibraryBadParameter": ((ValueError,), _status("LibraryBadParameter")),
    "LibraryNotSupported": ((NotImplementedError,), _status("LibraryNotSupported")),
    "LibraryInternalError": ((RuntimeError,), _status("LibraryInternalError")),
    "LibraryExecutionFailed": ((RuntimeError,), _status("LibraryExecutionFailed")),
    "LibraryMismatch": ((RuntimeError,), _status("LibraryMismatch")),
}
"""Exceptions of v2: the classes of Python that they are, and what raises them."""


def exception(case: Case) -> Found:
    """It is raised, by its own class, as what Python has for it; and it can be pickled."""
    bases, provoke = RAISES[item(case)]
    try:
        provoke()
    except v2.CompatError as found:
        yield same("class", type(found), getattr(v2, item(case)))
        yield same("whether Python's own classes catch it", isinstance(found, bases), True)
        copied = pickle.loads(pickle.dumps(found))
        yield same("message after pickling", str(copied), str(found))
    else:
        yield same("whether it is raised", False, True)


PROGRAM: Final = """
import importlib, importlib.util, json
import numpy as np
from cudnn_compat import v2
from cudnn_compat.legacy.cupy import hook, install, installed, prepare_chainer, state, uninstall

def try_cupy():
    import cupy
    said["cupy"] = cupy.__version__
    said["at first"] = state()
    try:
        install()
    except v2.UnsupportedError as error:
        said["refused"] = str(error)
        return
    said["then"] = state()
    said["modules"] = {
        name: importlib.import_module(name) is importlib.import_module(target)
        for name, target in hook.MODULES.items()
    }
    import cupy.cudnn
    said["y"] = cupy.cudnn.softmax_forward(np.array([[0.0, 1.0, 2.0]]), 1, 1).tolist()
    uninstall()
    with installed():
        said["inside"] = state()
    said["at last"] = state()

said = {"cupy": None, "refused": None}
if importlib.util.find_spec("cupy"):
    try_cupy()
out = v2.rnn_forward(v2.RNNSpec("tanh", 1, 1), np.zeros(4, "f"), np.zeros((1, 1, 1), "f"))
said["engine"] = out.engine
prepare_chainer()
import numpy.distutils.system_info, pkg_resources
said["chainer"] = "sctypes" in vars(np) and prepare_chainer() == ()
print(json.dumps(said))
"""


@functools.cache
def fresh_process() -> dict[str, Any]:
    """What happens in a process of its own, where nothing is imported yet."""
    paths = [str(Path(v2.__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return {"cupy": None, "error": (done.stderr.strip() or "no word").splitlines()[-1]}
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def with_cupy() -> dict[str, Any]:
    """The same, where there is a CuPy.

    Raises:
        NotTestedHere: there is none.
    """
    if importlib.util.find_spec("cupy") is None:
        raise NotTestedHere("CuPy is not installed (extras cuda12, cuda13)")
    return fresh_process()


def installing(case: Case) -> Found:
    """CuPy's old names lead to the dialect, compute, and are gone afterwards."""
    said = with_cupy()
    if "error" in said:
        yield same("what the program said", said["error"], "no error")
        return
    if said["refused"]:
        raise UnsupportedError(said["refused"])
    wanted = softmax(np.array([[0.0, 1.0, 2.0]]), "accurate", 1)
    yield {
        "install": lambda: same("modules", set(said["modules"].values()), {True}),
        "compute": lambda: Comparison("y", np.array(said["y"]), wanted, allowed=1e-12),
        "uninstall": lambda: same("state at last", said["at last"], "not installed"),
        "installed": lambda: same("state inside", said["inside"], "installed"),
        "state": lambda: same(
            "states", (said["at first"], said["then"]), ("not installed", "installed")
        ),
    }[item(case)]()


def beside_cupy(case: Case) -> Found:
    """CuPy can be imported, here without using a GPU; NumPy arrays stay NumPy's."""
    said = with_cupy()
    yield same("what the program said", said.get("error"), None)
    yield same("engine", said["engine"], "numpy")


def chainer(case: Case) -> Found:
    """What Chainer looks for while it is imported is there, and a second call does nothing."""
    said = fresh_process()
    yield same("what the program said", said.get("error"), None)
    yield same("whether all is there", said["chainer"], True)


CHECKS: Final[dict[str, Callable[[Case], Found]]] = {
    function.__name__: function
    for function in (constant, absent, exception, installing, beside_cupy, chainer)
}
