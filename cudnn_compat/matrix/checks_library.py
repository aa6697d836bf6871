"""How the C library itself is compared with what the package expects of it; needs no GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.descriptors import (
    Descriptor,
    rnn_data_descriptor,
    rnn_descriptor,
    tensor_descriptor,
)
from cudnn_compat.cudnn.library import load
from cudnn_compat.engines.cudnn.settings import check_version
from cudnn_compat.errors import LibraryBadParameter, LibraryError
from cudnn_compat.matrix.comparing import Case, Comparison, Found, same
from cudnn_compat.matrix.old_step import MODES
from cudnn_compat.matrix.shapes import HIDDEN, INPUT
from cudnn_compat.spec import RNNSpec

__all__ = ["CHECKS", "TYPES"]

TYPES: Final = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}
"""``cudnnDataType_t``."""


def loaded(case: Case) -> Found:
    """The library is of a version that is served, with all its parts."""
    library = load()
    yield same("major", library.major in (8, 9), True)
    number = library.cudnnGetVersion()
    unit = 10_000 if number >= 90_000 else 1_000
    release = (number // unit, number % unit // 100, number % 100)
    yield same("version", library.version.release, release)


def symbol(case: Case) -> Found:
    """A function that the package calls on one of the majors; refused where this one has none."""
    assert case.row.shape is not None
    name, library = case.row.shape.label, load()
    function = getattr(library, name)  # else UnsupportedError, which says what there is instead
    yield same("whether it is there", library.has(name) and callable(function), True)


def read(function: Any, made: Descriptor, *types: type) -> list[Any]:
    """What a getter writes to the host."""
    out = [kind() for kind in types]
    function(made, *map(ctypes.byref, out))
    return [each.value for each in out]


def tensors(case: Case) -> Found:
    """Dtype, dimensions, strides and bytes come out as they went in."""
    library, number = load(), TYPES[case.dtype]
    made = tensor_descriptor(library, number, (2, 3, 4, 5))
    told = read(library.cudnnGetTensor4dDescriptor, made, *[ctypes.c_int] * 9)
    yield Comparison("descriptor", told, [number, 2, 3, 4, 5, 60, 20, 5, 1], "exact")
    (size,) = read(library.cudnnGetTensorSizeInBytes, made, ctypes.c_size_t)
    yield Comparison("bytes", size, 120 * {"float32": 4, "float64": 8}.get(case.dtype, 2), "exact")


def networks(case: Case) -> Found:
    """All that is set comes out again, with and without a projection and a clip."""
    library, cell = load(), case.cell
    check_version(library, RNNSpec(cell, INPUT, HIDDEN, dtype=case.dtype))
    number = TYPES[case.dtype]
    given = {
        "algo": c.CUDNN_RNN_ALGO_STANDARD,
        "cell": MODES[cell],
        "bias": c.CUDNN_RNN_SINGLE_INP_BIAS,
        "direction": c.CUDNN_BIDIRECTIONAL,
        "input_mode": c.CUDNN_LINEAR_INPUT,
        "dtype": number,
        "math_precision": number if case.dtype == "float64" else c.CUDNN_DATA_FLOAT,
        "math_type": c.CUDNN_DEFAULT_MATH,
        "input_size": INPUT,
        "hidden_size": HIDDEN,
        "proj_size": HIDDEN - 2 * (cell == "lstm"),
        "num_layers": 2,
    }
    clip = (-0.5, 2.0) if cell == "lstm" else None
    made = rnn_descriptor(library, **given, dropout=None, flags=1, clip=clip)
    kinds = (*[ctypes.c_int] * 12, ctypes.c_void_p, ctypes.c_uint32)
    *told, dropout, flags = read(library.cudnnGetRNNDescriptor_v8, made, *kinds)
    for (name, wanted), got in zip(given.items(), told, strict=True):
        yield Comparison(name, got, wanted, "exact")
    yield same("dropout and flags", (dropout, flags), (None, 1))
    if clip is not None:
        newer = library.major >= 9
        getter = library.cudnnRNNGetClip_v9 if newer else library.cudnnRNNGetClip_v8
        kinds = (*[ctypes.c_int] * (1 if newer else 2), ctypes.c_double, ctypes.c_double)
        low, high = read(getter, made, *kinds)[-2:]
        yield Comparison("clip", [low, high], list(clip), "exact")


def data(case: Case) -> Found:
    """A batch of sequences in each layout; more steps than the library counts are refused by it."""
    library, lengths = load(), (5, 4, 3, 1)
    check_version(library, RNNSpec("tanh", INPUT, HIDDEN, dtype=case.dtype))
    number = TYPES[case.dtype]
    for layout in (0, 1, 2):
        made = rnn_data_descriptor(
            library, dtype=number, layout=layout, steps=5, features=3, lengths=lengths
        )
        told = [ctypes.c_int() for _ in range(5)]
        out = (ctypes.c_int * 4)()
        places = map(ctypes.byref, told)
        library.cudnnGetRNNDataDescriptor(made, *places, 4, out, ctypes.byref(ctypes.c_double()))
        numbers = [each.value for each in told]
        yield same(f"of layout {layout}", numbers, [number, layout, 5, 4, 3])
        yield same(f"lengths of layout {layout}", tuple(out), lengths)


def status_names(case: Case) -> Found:
    """The library's words for each code of its header."""
    library = load()
    codes = c.STATUS_9 if library.major >= 9 else c.STATUS_8
    for code in sorted(set(codes.values())):
        told = (library.cudnnGetErrorString(code) or b"").decode()
        names = [name for name, number in codes.items() if number == code]
        # Codes that came with later versions of a major are not known to earlier ones.
        yield same(f"name of {code}", told in (*names, "CUDNN_UNKNOWN_STATUS"), True)


def refusals(case: Case) -> Found:
    """A wrong number is a bad parameter, by the class and the words of this major."""
    library = load()
    wrong: dict[str, Callable[[], Any]] = {
        "cudnnSetTensorNdDescriptor": lambda: tensor_descriptor(library, 0, (2, -3, 4)),
        "cudnnSetRNNDataDescriptor": lambda: rnn_data_descriptor(
            library, dtype=0, layout=0, steps=2, features=-1, lengths=(2, 1)
        ),
    }
    for name, call in wrong.items():
        try:
            call()
            found: Any = None
        except LibraryError as error:
            found = error
        yield same(f"class of {name}", type(found), LibraryBadParameter)
        yield same(f"call of {name}", found.call, name)
        group = found.status // 1000 if library.major >= 9 else found.status
        yield same(f"status of {name}", group, 2 if library.major >= 9 else 3)


def long_sequences(case: Case) -> Found:
    """How many steps one call takes, which the engine must know."""
    library = load()

    def steps(count: int) -> Any:
        return rnn_data_descriptor(
            library, dtype=0, layout=0, steps=count, features=3, lengths=(count,)
        )

    yield same("whether 65535 steps are taken", isinstance(steps(65535), Descriptor), True)
    try:
        steps(65536)
        refused = False
    except LibraryError:
        refused = True
    yield same("whether 65536 steps are refused", refused, True)


CHECKS: Final[dict[str, Callable[[Case], Found]]] = {
    function.__name__: function
    for function in (
        loaded,
        symbol,
        tensors,
        networks,
        data,
        status_names,
        refusals,
        long_sequences,
    )
}
