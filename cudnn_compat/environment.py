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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cudnn_compat._version import __version__

__all__ = ["collect"]

Facts = dict[str, Any]
"""JSON-able facts. What can be missing has ``available`` and, where it is False, ``reason``."""

PACKAGES = ("numpy", "packaging", "ml_dtypes", "click", "rich", "torch", "onnx")
"""Distributions whose versions matter to somebody's result."""

CUPY_DISTRIBUTIONS = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
CUDNN_DISTRIBUTIONS = ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12")
CUDNN_NAMES = ("libcudnn.so.9", "libcudnn.so.8")
CUDNN_VARIABLES = ("CUDNN_PATH", "CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX")


def collect() -> Facts:
    """All facts, in the order in which a reader asks for them. The keys are stable.

    Returns:
        ``cudnn_compat``, ``python``, ``platform``, ``packages`` (name to version or None),
        ``numpy`` (with its BLAS), ``gpu``, ``cupy``, ``cudnn`` (with every place where it was
        sought) and ``engines``.
    """
    cupy = _cupy()
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
        "gpu": _gpu(),
        "cupy": cupy,
        "cudnn": _cudnn(),
        "engines": _engines(cupy["available"]),
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
    """The first cuDNN that loads, and what was found in each place up to it."""
    sought = []
    for candidate in _cudnn_candidates():
        try:
            library = ctypes.CDLL(candidate)
            library.cudnnGetVersion.restype = ctypes.c_size_t
            version = _cudnn_version(library.cudnnGetVersion())
        except (OSError, AttributeError) as error:
            sought.append({"place": candidate, "result": str(error)})
            continue
        sought.append({"place": candidate, "result": f"loaded, version {version}"})
        return _found(version=version, path=_mapped("libcudnn.so") or candidate, sought=sought)
    places = "in any of the places sought"
    return _missing(f"no cuDNN that loads {places}", version=None, path=None, sought=sought)


def _cudnn_candidates() -> Iterator[str]:
    """What is handed to the loader: wheels first, then named folders, then the loader's own."""
    for distribution in CUDNN_DISTRIBUTIONS:
        try:
            folder = importlib.metadata.distribution(distribution).locate_file("nvidia/cudnn/lib")
        except importlib.metadata.PackageNotFoundError:
            continue
        yield from (str(path) for path in _libraries(Path(str(folder))))
    for variable in CUDNN_VARIABLES:
        if root := os.environ.get(variable):
            for folder_name in ("lib64", "lib"):
                yield from (str(path) for path in _libraries(Path(root) / folder_name))
    yield from CUDNN_NAMES


def _libraries(folder: Path) -> Iterator[Path]:
    return (folder / name for name in CUDNN_NAMES if (folder / name).exists())


def _cudnn_version(number: int) -> str:
    """8907 is 8.9.7, 91900 is 9.19.0: from 9 on the major number counts ten thousands."""
    unit = 10_000 if number >= 90_000 else 1_000
    return f"{number // unit}.{number % unit // 100}.{number % 100}"


def _mapped(name: str) -> str | None:
    """Path of the loaded library whose file name starts with ``name`` (Linux)."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return None
    paths = (line.split(maxsplit=5)[-1] for line in lines if f"/{name}" in line)
    return next(paths, None)


def _engines(cupy_computes: bool) -> Facts:
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
    engines = {}
    for name in ENGINES:
        module = "cupy" if name == "cudnn" and cupy_computes else "numpy"
        try:
            choose_engine(name, importlib.import_module(module).zeros(1))
            engines[name] = _found(dtypes=dtypes)
        except Exception as error:
            reason = str(error) if isinstance(error, CompatError) else _in_words(error)
            engines[name] = _missing(reason)
    return engines
