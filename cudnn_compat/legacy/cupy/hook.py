"""The import hook: makes the dialect importable under the names it had in CuPy.

::

    from cudnn_compat.legacy.cupy import install
    install()
    import cupy.cudnn                  # and cupyx.cudnn: the high level
    import cupy.cuda.cudnn             # and cupy_backends.cuda.libs.cudnn: the low level

It is never installed by itself: some programs take the presence of these modules as a sign that
convolutions are there too. A CuPy whose own modules work keeps them.

Loads neither NumPy nor CuPy before one of the names is imported.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, Literal

from cudnn_compat.errors import LibraryNotFound, UnsupportedError

__all__ = ["MODULES", "State", "install", "installed", "state", "uninstall"]

_HIGH: Final = "cudnn_compat.legacy.cupy.cudnn"
_LOW: Final = "cudnn_compat.legacy.cupy.libcudnn"

MODULES: Final = {
    "cupy_backends.cuda.libs.cudnn": _LOW,
    "cupy.cuda.cudnn": _LOW,
    "cupyx.cudnn": _HIGH,
    "cupy.cudnn": _HIGH,
}
"""Old name of each module, and the module that answers to it."""

State = Literal["not installed", "waiting", "installed", "cupy has its own"]


def install(*, at_first_use: bool = False) -> None:
    """Make ``cupy.cudnn`` and its three other names importable, for the whole process.

    Where CuPy is imported already, the attributes of its packages are there at once; else from the
    first import of one of the names on. Installing twice is the same as once.

    Args:
        at_first_use: look at CuPy only when one of the names is first imported. Then nothing is
            loaded before that, no CuPy is no error here, and a CuPy with working modules of its
            own keeps them without a word (:func:`state` tells).

    Raises:
        LibraryNotFound: there is no CuPy, whose names these are.
        UnsupportedError: this CuPy has working modules of its own (13 and older, with its cuDNN 8).
    """
    with _lock:
        if _finder not in sys.meta_path:
            if not at_first_use and importlib.util.find_spec("cupy") is None:
                raise LibraryNotFound(
                    "cupy.cudnn can be installed only into a CuPy, and there is none here: "
                    "pip install 'cudnn-compat[cuda13]' (or [cuda12], as the driver allows). "
                    "Without CuPy, call cudnn_compat.legacy.cupy.cudnn itself: it takes NumPy "
                    "arrays"
                )
            _finder.reset()
            # In front, so that the empty shell that CuPy 13 leaves is never found.
            sys.meta_path.insert(0, _finder)
        if at_first_use and sys.modules.get("cupy") is None:
            return
        if _finder.cupy_has_its_own():
            if at_first_use:
                return
            uninstall()
            raise UnsupportedError(
                f"CuPy {_cupy_version()} has a cupy.cudnn of its own that works, and it is not "
                "covered: use it as it is. With CuPy 14, or without its libcudnn.so.8, "
                "cudnn_compat takes its place"
            )
        if sys.modules.get("cupy") is not None:
            _set_attributes()


def uninstall() -> None:
    """Undo :func:`install`: the names are again what CuPy has under them, or nothing.

    Modules that a program holds already go on working. Not installed: nothing is done.
    """
    with _lock:
        if _finder in sys.meta_path:
            sys.meta_path.remove(_finder)
        for name, target in MODULES.items():
            ours, shell = sys.modules.get(target), _finder.covered.get(name)
            _put_back(sys.modules, name, ours, shell)
            package, _, attribute = name.rpartition(".")
            if sys.modules.get(package) is not None:
                _put_back(vars(sys.modules[package]), attribute, ours, shell)
        _finder.reset()


@contextmanager
def installed(*, at_first_use: bool = False) -> Iterator[None]:
    """:func:`install` while the block runs; what was installed before it stays so after it.

    Blocks may overlap, as those of several threads do: the names go with the last of them, and an
    inner block brings them back where :func:`uninstall` took them away.
    """
    with _lock:
        was_there = _finder in sys.meta_path
        install(at_first_use=at_first_use)
        if not _blocks.open:
            _blocks.were_there = was_there
        _blocks.open += 1
    try:
        yield
    finally:
        with _lock:
            _blocks.open -= 1
            if not (_blocks.open or _blocks.were_there):
                uninstall()


def state() -> State:
    """Whose modules the names are: ours, CuPy's own, nobody's, or not yet known ("waiting")."""
    if _finder not in sys.meta_path:
        return "not installed"
    if _finder.own is None:
        return "waiting"
    return "cupy has its own" if _finder.own else "installed"


class _Finder(importlib.abc.MetaPathFinder):
    """Answers for the four names.

    Attributes:
        own: whether CuPy has working modules of its own; None: nobody asked yet.
        covered: the empty shells that ours stand in front of, by name.
    """

    def __init__(self) -> None:
        self._asking = threading.local()
        self.reset()

    def reset(self) -> None:
        self.own: bool | None = None
        self.covered: dict[str, ModuleType] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in MODULES or getattr(self._asking, "now", False):
            return None
        if self.cupy_has_its_own(fullname):
            # Asking has imported it, and an extension module cannot be imported twice. Left in
            # sys.modules, its own spec would be taken instead, and it would be.
            loaded = sys.modules.pop(fullname, None)
            return None if loaded is None else ModuleSpec(fullname, _Loader(loaded))
        module = _set_attributes()[fullname]
        return ModuleSpec(fullname, _Loader(module), origin=module.__file__)

    def cupy_has_its_own(self, wanted: str | None = None) -> bool:
        """Whether CuPy's own modules work; asked once, then remembered.

        Args:
            wanted: the name that is being imported by this thread.
        """
        if self.own is None:
            self._asking.now = True
            try:
                works = _works(wanted)
            finally:
                self._asking.now = False
            if not works:
                self._cover_shells()
            self.own = works
        return self.own

    def _cover_shells(self) -> None:
        """Take away what is under the names, so that the next import comes to this finder."""
        for name, target in MODULES.items():
            shell = sys.modules.get(name)
            if shell is None or shell is sys.modules.get(target):
                continue
            self.covered[name] = shell
            del sys.modules[name]
            package, _, attribute = name.rpartition(".")
            if sys.modules.get(package) is not None:
                _put_back(vars(sys.modules[package]), attribute, shell, None)


def _works(wanted: str | None) -> bool:
    """Whether ``import cupy_backends.cuda.libs.cudnn`` succeeds without this hook.

    The thread holds the import lock of ``wanted``. So the names are imported in the order in which
    CuPy's own modules import each other, or two threads could wait for each other.
    """
    library = "cupy_backends.cuda.libs.cudnn"
    try:
        if importlib.util.find_spec(library) is None:
            return False
    except (ImportError, ValueError):  # no such package; a module without a __spec__
        return False
    with warnings.catch_warnings():
        # "cudnn library could not be loaded": it is about to be replaced.
        warnings.simplefilter("ignore")
        try:
            if wanted != library:
                # It looks for libcudnn.so.8 in more places than the library's own module does.
                importlib.import_module("cupy.cuda.cudnn")
            found = importlib.import_module(library)
        except Exception:  # a half-installed CUDA raises all kinds
            return False
    # Another thread may have put ours there meanwhile.
    return found is not sys.modules.get(_LOW)


class _Loader(importlib.abc.Loader):
    """Gives out a module that is loaded already, and leaves it as it is."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just set it to the spec of the name that was asked for.
        module.__spec__ = self._spec


def _set_attributes() -> dict[str, ModuleType]:
    """Give our modules to every package that is loaded, as its attribute; returns all four.

    All at once, because old code imports one name and uses another one by its attribute. Importing
    the names would take locks that another thread may hold.
    """
    modules = {name: importlib.import_module(target) for name, target in MODULES.items()}
    for name, module in modules.items():
        package, _, attribute = name.rpartition(".")
        if sys.modules.get(package) is not None:
            setattr(sys.modules[package], attribute, module)
    return modules


def _put_back(
    names: dict[str, Any], name: str, ours: ModuleType | None, shell: ModuleType | None
) -> None:
    """Put the shell where ours is, or nothing where there was none."""
    if names.get(name) is not ours:  # never loaded, or replaced by somebody since
        return
    if shell is not None:
        names[name] = shell
    else:
        names.pop(name, None)


def _cupy_version() -> str:
    return str(getattr(sys.modules.get("cupy"), "__version__", "(unknown version)"))


class _Blocks:
    """Of :func:`installed`, in all threads.

    Attributes:
        open: how many have begun and not ended.
        were_there: whether the names were installed before the first of them.
    """

    open = 0
    were_there = False


_finder: Final = _Finder()
_blocks: Final = _Blocks()
# Reentrant, because a refused installation is undone.
_lock: Final = threading.RLock()
