"""What Chainer 7.8.1 needs before it imports on today's NumPy, Python and setuptools.

Chainer is not edited: three things that it looks for while it is imported, and that have gone
since, are put where it looks. Nothing here is done unless :func:`prepare_chainer` is called.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.metadata
import sys
import warnings
from types import ModuleType
from typing import Any

__all__ = ["prepare_chainer"]


def prepare_chainer() -> tuple[str, ...]:
    """Put back what ``import chainer`` needs and this environment lacks.

    ======================================  =====================================================
    ``numpy.sctypes``                       went with NumPy 2.0; Chainer reads the integer and
                                            floating types of each size from it
    ``numpy.distutils.system_info``         went with Python 3.12; Chainer asks it about macOS's
                                            Accelerate only. The stand-in knows of no library
    ``pkg_resources``                       went with setuptools 82; Chainer looks up versions
                                            with it. The stand-in asks ``importlib.metadata``
    ======================================  =====================================================

    Call it before ``import chainer``. What is there already is left as it is, so a second call does
    nothing. Other code of the process sees the three things as well.

    Returns:
        One sentence for each thing that was put back by this call; empty if nothing was missing.
    """
    done = []
    for repair in (_sctypes, _distutils, _pkg_resources):
        said = repair()
        if said:
            done.append(said)
    return tuple(done)


def _sctypes() -> str | None:
    import numpy as np

    # In the module's own names: asking NumPy 2 for it raises an error with advice.
    if "sctypes" in vars(np):
        return None
    groups: dict[str, list[Any]] = {"int": [], "uint": [], "float": [], "complex": []}
    kinds = {"int": "bhilq", "uint": "BHILQ", "float": "efdg", "complex": "FDG"}
    for group, characters in kinds.items():
        # One type of each size, as it was: long and long long are the same on most machines.
        sizes: dict[int, Any] = {}
        for character in characters:
            dtype = np.dtype(character)
            sizes.setdefault(dtype.itemsize, dtype.type)
        groups[group] = list(sizes.values())
    groups["others"] = [bool, object, bytes, str, np.void]
    vars(np)["sctypes"] = groups
    return f"numpy.sctypes: made anew, because NumPy {np.__version__} has none."


def _distutils() -> str | None:
    name = "numpy.distutils.system_info"
    # NumPy announces with every import of it that it goes; Chainer's users can do nothing about it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(name)
            return None
        except Exception as error:  # NumPy 1.26 on Python 3.12: half of it is there
            why = f"{type(error).__name__}: {error}"
    import numpy as np

    for loaded in [each for each in sys.modules if f"{each}.".startswith("numpy.distutils.")]:
        del sys.modules[loaded]
    system_info = _module(name, "Stands in for NumPy's, which has gone.", get_info=_no_library)
    distutils = _module(
        "numpy.distutils",
        "Stands in for NumPy's, which has gone.",
        system_info=system_info,
        __path__=[],
    )
    sys.modules["numpy.distutils"] = np.distutils = distutils
    sys.modules[name] = system_info
    return f"{name}: a stand-in that knows of no library, because there is none ({why})."


def _no_library(name: str, notfound_action: int = 0) -> dict[str, Any]:
    """What ``numpy.distutils.system_info.get_info`` says of a library that is not there."""
    return {}


def _pkg_resources() -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated where it still exists
        try:
            importlib.import_module("pkg_resources")
            return None
        except Exception as error:  # an old one on a new Python fails in many ways
            why = f"{type(error).__name__}: {error}"
    for loaded in [each for each in sys.modules if f"{each}.".startswith("pkg_resources.")]:
        del sys.modules[loaded]
    sys.modules["pkg_resources"] = _module(
        "pkg_resources",
        "Stands in for setuptools' as far as Chainer uses it.",
        DistributionNotFound=_DistributionNotFound,
        ResolutionError=_ResolutionError,
        VersionConflict=_VersionConflict,
        WorkingSet=_WorkingSet,
        get_distribution=_Distribution,
        require=_require,
    )
    return f"pkg_resources: a stand-in over importlib.metadata, because there is none ({why})."


def _module(name: str, about: str, **names: Any) -> ModuleType:
    made = ModuleType(name, f"{about} Made by cudnn_compat.legacy.cupy.prepare_chainer().")
    made.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package="__path__" in names)
    for each, value in names.items():
        setattr(made, each, value)
    return made


class _ResolutionError(Exception):
    """A requirement is not met by what is installed."""


class _DistributionNotFound(_ResolutionError):
    """The package is not installed."""


class _VersionConflict(_ResolutionError):
    """The package is installed in another version."""


class _Distribution:
    """An installed package, by name: as much of it as Chainer reads."""

    def __init__(self, name: str) -> None:
        self.project_name = name
        try:
            self.version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            raise _DistributionNotFound(f"the package {name!r} is not installed") from None


def _require(*requirements: str) -> list[_Distribution]:
    """The installed packages that meet ``requirements`` (``"numpy>=1.9"``).

    Raises:
        _DistributionNotFound: one is not installed.
        _VersionConflict: one is, in another version.
    """
    from packaging.requirements import Requirement

    found = []
    for text in requirements:
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate():
            continue
        distribution = _Distribution(wanted.name)
        if not wanted.specifier.contains(distribution.version, prereleases=True):
            raise _VersionConflict(f"{wanted.name} {distribution.version} is installed, not {text}")
        found.append(distribution)
    return found


class _WorkingSet:
    """Everything that is installed."""

    def require(self, *requirements: str) -> list[_Distribution]:
        return _require(*requirements)
