"""How what ``cupy.cuda.cudnn`` has beside its calculations is compared: numbers, in and out."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Final

from cudnn_compat.cudnn.library import load
from cudnn_compat.errors import LibraryNotFound
from cudnn_compat.legacy.cupy import CuDNNError, libcudnn
from cudnn_compat.matrix.addresses import call
from cudnn_compat.matrix.checks_descriptors import gone
from cudnn_compat.matrix.comparing import Case, Comparison, Found, same

__all__ = ["CHECKS"]


def version(case: Case) -> Found:
    """The number of the library, or that of the last one of old where there is none."""
    try:
        wanted = load().cudnnGetVersion()
    except LibraryNotFound:
        wanted = 8907
    yield Comparison("version", libcudnn.getVersion(), wanted, "exact")
    yield same("available", libcudnn.available, True)


def handles(case: Case) -> Found:
    """Different numbers, each with its stream; nothing is left of a destroyed one."""
    one, two = libcudnn.create(), libcudnn.create()
    yield same("whether two handles differ", one != two and one * two != 0, True)
    libcudnn.setStream(one, 0)
    yield Comparison("stream", libcudnn.getStream(one), 0, "exact")
    libcudnn.setStream(two, 8)
    yield Comparison("another stream", libcudnn.getStream(two), 8, "exact")
    for handle in (one, two):
        libcudnn.destroy(handle)
    yield from gone(lambda: libcudnn.getStream(one))


def networks(case: Case) -> Found:
    """A network's padding mode, a plan that is only held, and nothing left of what is destroyed."""
    known = {
        "rnnDesc": libcudnn.createRNNDescriptor(),
        "hiddenSize": 4,
        "numLayers": 1,
        "dropoutDesc": 0,
        "inputMode": 0,
        "direction": 0,
        "mode": 2,
        "dataType": 0,
    }
    rnn = known["rnnDesc"]
    call("setRNNDescriptor_v5", known)
    yield Comparison("padding mode at first", libcudnn.getRNNPaddingMode(rnn), 0, "exact")
    libcudnn.setRNNPaddingMode(rnn, libcudnn.CUDNN_RNN_PADDED_IO_ENABLED)
    yield Comparison("padding mode", libcudnn.getRNNPaddingMode(rnn), 1, "exact")
    libcudnn.destroyRNNDescriptor(rnn)
    yield from gone(lambda: libcudnn.getRNNPaddingMode(rnn))


def persistent_plan(case: Case) -> Found:
    """It is made, set and destroyed."""
    rnn = libcudnn.createRNNDescriptor()
    plan = libcudnn.createPersistentRNNPlan(rnn, 3, libcudnn.CUDNN_DATA_FLOAT)
    yield same("whether a plan has a number", plan != 0, True)
    libcudnn.setPersistentRNNPlan(rnn, plan)
    libcudnn.destroyPersistentRNNPlan(plan)
    yield from gone(lambda: libcudnn.setPersistentRNNPlan(rnn, plan))
    libcudnn.destroyRNNDescriptor(rnn)


def error(case: Case) -> Found:
    """``CuDNNError``: the number of 8.x, that of 9.x, what is added; and it can be pickled."""
    yield same("whether the names are one class", libcudnn.CuDNNError is CuDNNError, True)
    try:
        libcudnn.destroy(0)
    except CuDNNError as found:
        made = found
        yield same("status", made.status, libcudnn.CUDNN_STATUS_BAD_PARAM)
        yield same("new_status", made.new_status, 2000)
        begins = str(made).startswith("cuDNN Error: CUDNN_STATUS_BAD_PARAM")
        yield same("how the message begins", begins, True)
        made.add_info("one")
        made.add_infos(["two", "three"])
        copied = pickle.loads(pickle.dumps(made))
        yield same(
            "lines of the message", str(copied).splitlines()[1:], ["  one", "  two", "  three"]
        )
    else:
        yield same("whether handle 0 is refused", False, True)


CHECKS: Final[dict[str, Callable[[Case], Found]]] = {
    function.__name__: function for function in (version, handles, networks, persistent_plan, error)
}
