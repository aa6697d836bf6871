"""What is installed here, what can be used, and why not.

A GPU, a CuPy that can use it and a cuDNN are separate facts, each with a reason of its own.
Gathering them never fails: whatever a half-installed CUDA does becomes the reason. Importing this
module loads nothing; :func:`collect` imports NumPy and, where it is installed, CuPy, and loads the
GPU driver and cuDNN. Of every other package only the version is looked up.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudnn_compat._version import __version__

if TYPE_CHECKING:
    from cudnn_compat.cudnn.library import Library

__all__ = ["collect"]

Facts = dict[str, Any]
"""JSON-able facts. What can be missing has ``available`` and, where it is False, ``reason``."""

PACKAGES = ("numpy", "packaging", "ml_dtypes", "click", "rich", "torch", "onnx")
"""Distributions whose versions matter to somebody's result."""

CUPY_DISTRIBUTIONS = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


def collect() -> Facts:
    """All facts, in the order in which a reader asks for them. The keys are stable.

    Returns:
        ``cudnn_compat``, ``python``, ``platform``, ``packages`` (name to version or None),
        ``numpy`` (with its BLAS), ``gpu``, ``cupy``, ``cudnn`` (with every place where it was
        sought, and the functions that it lacks) and ``engines``.
    """
    cupy, gpu, cudnn = _cupy(), _gpu(), _cudnn()
    return {
        "cudnn_compat": {"version": __version__, "path": str(Path(__file__).parent)},
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
        },
        "platform": {
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "cpus": _cpus(),
        },
        "packages": {name: _version(name) for name in PACKAGES},
        "numpy": _numpy(),
        "gpu": gpu,
        "cupy": cupy,
        "cudnn": cudnn,
        "engines": _engines(_no_gpu_arrays(gpu, cupy, cudnn)),
    }


def _missing(reason: str, **more: Any) -> Facts:
    return {"available": False, "reason": reason, **more}


def _found(**more: Any) -> Facts:
    return {"available": True, "reason": None, **more}


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _numpy() -> Facts:
    try:
        import numpy
    except Exception as error:  # a broken install can raise anything
        return _missing(_in_words(error), version=None, blas=None)
    blas = None
    try:
        built: Any = numpy.show_config(mode="dicts")
        described = built["Build Dependencies"]["blas"]
        blas = f"{described['name']} {described.get('version', '')}".strip()
    except Exception:  # what a build tells about itself differs; not knowing it is no fault
        pass
    return _found(version=numpy.__version__, blas=blas)


def _cupy() -> Facts:
    """CuPy: can it be imported, and does it compute?"""
    version = next(filter(None, map(_version, CUPY_DISTRIBUTIONS)), None)
    try:
        # By name, because nothing is computed with it here: arrays.py alone may use CuPy.
        cupy: Any = importlib.import_module("cupy")
    except Exception as error:
        if version is None:
            return _missing("not installed (extras cuda12, cuda13)", version=None)
        return _missing(f"cannot be imported: {_in_words(error)}", version=version)
    version = getattr(cupy, "__version__", version)
    try:
        devices = cupy.cuda.runtime.getDeviceCount()
        # A driver that is too old, or no compiler, shows only when something is computed.
        right = devices > 0 and int((cupy.arange(3) + 1).sum()) == 6
    except Exception as error:
        return _missing(f"cannot compute: {_in_words(error)}", version=version)
    if not right:
        return _missing(f"sees {devices} GPUs, none computes", version=version)
    return _found(version=version)


def _gpu() -> Facts:
    """The driver and its devices, asked without CuPy."""
    driver = _driver_version()
    nothing: Facts = {"driver": driver, "cuda": None, "devices": []}
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        cuda = ctypes.CDLL(library)
    except OSError as error:
        return _missing(f"no NVIDIA driver: {error}", **nothing)
    try:
        return _devices(cuda, nothing)
    except Exception as error:  # a stub library lacks functions
        return _missing(f"the driver {library} does not answer: {_in_words(error)}", **nothing)


def _devices(cuda: ctypes.CDLL, nothing: Facts) -> Facts:
    number, memory, name = ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(256)
    status = cuda.cuInit(0)
    if status:
        text = ctypes.c_char_p()
        cuda.cuGetErrorName(status, ctypes.byref(text))
        return _missing(f"cuInit: {(text.value or b'error').decode()} ({status})", **nothing)
    cuda.cuDriverGetVersion(ctypes.byref(number))
    facts = nothing | {"cuda": f"{number.value // 1000}.{number.value % 1000 // 10}"}
    cuda.cuDeviceGetCount(ctypes.byref(number))
    devices = []
    for index in range(number.value):
        cuda.cuDeviceGetName(name, len(name), index)
        cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), index)
        capability = []
        for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
            cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, index)
            capability.append(str(number.value))
        devices.append(
            {
                "name": name.value.decode(),
                "compute_capability": ".".join(capability),
                "memory_bytes": memory.value,
            }
        )
    facts["devices"] = devices
    return _found(**facts) if devices else _missing("the driver sees no GPU", **facts)


def _driver_version() -> str | None:
    for path in ("/proc/driver/nvidia/version", "/sys/module/nvidia/version"):
        try:
            found = re.search(r"\d+\.\d+(\.\d+)?", Path(path).read_text())
        except OSError:
            continue
        if found:
            return found.group()
    return None


def _cudnn() -> Facts:
    """The cuDNN that this process uses, and what was found in each place up to it."""
    from cudnn_compat.cudnn.library import load
    from cudnn_compat.errors import CompatError

    nothing: Facts = {"version": None, "path": None, "found_by": None, "cuda": None, "lacks": {}}
    try:
        library = load()
    except CompatError as error:
        # The places are facts of their own, so the first line is enough.
        reason = str(error).splitlines()[0].removesuffix(" Sought, in this order:")
        return _missing(reason, **nothing, sought=getattr(error, "sought", []))
    except Exception as error:  # a library that is half installed can do anything
        return _missing(_in_words(error), **nothing, sought=[])
    return _found(
        version=str(library.version),
        path=library.path,
        found_by=library.found_by,
        cuda=str(library.cuda_version),
        lacks=_lacks(library),
        sought=library.sought,
    )


def _lacks(library: Library) -> dict[str, str]:
    """Functions that this package calls on another version, and which versions have them."""
    from cudnn_compat.cudnn.prototypes import PROTOTYPES
    from cudnn_compat.cudnn.symbols import read_manifest

    manifest = read_manifest()
    names = sorted({name for functions in PROTOTYPES.values() for name in functions})
    return {name: manifest.history(name) for name in names if not library.has(name)}


def _no_gpu_arrays(gpu: Facts, cupy: Facts, cudnn: Facts) -> str | None:
    """Which of GPU, CuPy and cuDNN is missing for arrays on a GPU; None if none is."""
    if cupy["available"] and cudnn["available"]:
        return None
    if cupy["available"]:
        return f"CuPy computes on the GPU, but there is no cuDNN: {cudnn['reason']}"
    if gpu["available"]:
        lacking = f"no CuPy that computes on it: {cupy['reason']}"
        if cudnn["available"]:
            return f"a GPU and cuDNN are here, but {lacking}"
        return f"a GPU is here, but neither cuDNN nor CuPy: {lacking}"
    if cudnn["available"]:
        return f"cuDNN {cudnn['version']} is here, but no GPU: {gpu['reason']}"
    return f"neither a GPU nor cuDNN is here: {gpu['reason']}; {cudnn['reason']}"


def _engines(no_gpu_arrays: str | None) -> Facts:
    """Each engine, asked with an array of the kind that it serves."""
    from cudnn_compat.arrays import numpy_dtype
    from cudnn_compat.engines.choose import ENGINES, choose_engine
    from cudnn_compat.errors import CompatError
    from cudnn_compat.spec import DTYPES

    dtypes = {}
    for dtype in DTYPES:
        try:
            numpy_dtype(dtype)
            dtypes[dtype] = _found()
        except CompatError as error:
            dtypes[dtype] = _missing(str(error))
    engines: Facts = {}
    for name in ENGINES:
        if name == "cudnn":
            reason = no_gpu_arrays or _why_no_handle()
            engines[name] = _missing(reason) if reason else _found(dtypes=dtypes | _cudnn_dtypes())
            continue
        try:
            choose_engine(name, importlib.import_module("numpy").zeros(1))
            engines[name] = _found(dtypes=dtypes)
        except Exception as error:
            engines[name] = _missing(_said(error))
    return engines


def _why_no_handle() -> str | None:
    """What cuDNN says when it is to use the GPU; None where it does."""
    from cudnn_compat.engines.cudnn.device import Session

    try:
        with Session(0):
            return None
    except Exception as error:
        return _said(error)


def _cudnn_dtypes() -> Facts:
    """bfloat16 where cuDNN, CuPy and NumPy all have it."""
    from cudnn_compat.cudnn.library import load
    from cudnn_compat.engines.cudnn.settings import check_version
    from cudnn_compat.spec import RNNSpec
    from cudnn_compat.weights import init_weights

    spec = RNNSpec("tanh", 1, 1, dtype="bfloat16")
    try:
        check_version(load(), spec)
        init_weights(spec, seed=0, xp=importlib.import_module("cupy"))
    except Exception as error:
        return {"bfloat16": _missing(_said(error))}
    return {"bfloat16": _found()}


def _said(error: Exception) -> str:
    from cudnn_compat.errors import CompatError

    return str(error) if isinstance(error, CompatError) else _in_words(error)
