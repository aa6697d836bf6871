"""Run a program as Python itself would run it."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import importlib.machinery
import io
import os
import pkgutil
import runpy
import sys
import threading
import types
import zipfile
from collections.abc import Sequence
from types import TracebackType

__all__ = ["INTERRUPTED", "NothingToRun", "run_program"]

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 + SIGINT, what a shell reports."""

_OURS = (__file__, "<frozen runpy>", runpy.__file__)
"""Frames of these files stand between Python and the program, not in it."""


class NothingToRun(Exception):
    """There is no such module, or a folder or zip file without a __main__.py."""


def run_program(program: str, arguments: Sequence[str], *, module: bool) -> int:
    """Run a file, or a module, as ``__main__``.

    ``sys.argv`` and ``sys.path[0]`` are set as for ``python PROGRAM`` or ``python -m PROGRAM``, and
    stay so: what the program left behind (threads, exit handlers) may still use them. It finds the
    ``__main__`` of a file, too. An exception that ends the program is shown as Python shows it,
    without the frames above the program's.

    Args:
        program: path of a file, folder or zip file; with ``module`` the name of a module.
        arguments: what follows it in ``sys.argv``.
        module: whether ``program`` is the name of a module.

    Returns:
        The exit status that Python would give: that of a SystemExit, 1 after any other exception,
        :data:`INTERRUPTED` after a KeyboardInterrupt.

    Raises:
        NothingToRun: in the words of Python.
    """
    sys.argv = [program, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd() if module else _folder(program)
    status, ours = 0, sys.modules["__main__"]
    others = set(threading.enumerate())
    try:
        if module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        elif _folder(program) == os.path.realpath(program):
            runpy.run_path(os.path.abspath(program), run_name="__main__")
        else:
            _run_file(os.path.abspath(program))
    except SystemExit as stop:
        status = _status(stop)
    except BaseException as error:
        _show(error)
        status = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    _wait_for_threads(others)
    theirs = sys.modules.get("__main__")
    if theirs is not ours:
        sys.modules["__main__"] = ours
        if theirs is not None:
            # Registered last, it runs before the program's own exit handlers.
            atexit.register(sys.modules.__setitem__, "__main__", theirs)
    for stream in (sys.stdout, sys.stderr):
        # Either may be closed, or a pipe that nobody reads any more.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    return status


def _run_file(path: str) -> None:
    """Run a file of source or byte code in a new ``__main__``, which stays until it is taken away.

    :func:`runpy.run_path` takes it away when the file has ended, though not all threads have.
    """
    main = types.ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    vars(main).update(
        __file__=path, __builtins__=builtins, __cached__=None, __loader__=loader, __spec__=None
    )
    with io.open_code(path) as file:
        code = pkgutil.read_code(file)
    if code is None:
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    sys.modules["__main__"] = main
    exec(code, vars(main))


def _folder(program: str) -> str:
    path = os.path.realpath(program)
    if os.path.isdir(path) or zipfile.is_zipfile(path):
        return path
    return os.path.dirname(path)


def _status(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code
    print(stop.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """Show an exception from the program's first frame on, by whatever hook the program set."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OURS):
        trace = trace.tb_next
    if trace is None and isinstance(error, ImportError):
        # runpy's own: the program has not begun.
        raise NothingToRun(str(error)) from None
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def _wait_for_threads(others: set[threading.Thread]) -> None:
    """Python ends when the threads that are not daemons have ended; so does the counting.

    ``others`` are not the program's: where it is run by a caller's process, that goes on.
    """
    for thread in threading.enumerate():
        if thread not in others and not thread.daemon:
            try:
                thread.join()
            except KeyboardInterrupt:
                return
