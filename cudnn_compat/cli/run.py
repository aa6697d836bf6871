"""``cudnn-compat run``: a legacy program, unchanged, and then what it called."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import click

from cudnn_compat.cli.program import NothingToRun, run_program
from cudnn_compat.cli.report import old_calls, print_report, report_as_json
from cudnn_compat.legacy.cupy.hook import installed, state
from cudnn_compat.legacy.deprecations import (
    ENVIRONMENT_VARIABLE,
    CallRecorder,
    LegacyAPIWarning,
    record_calls,
)

__all__ = ["run"]


@click.command(
    # What follows PROGRAM belongs to it, whatever it looks like.
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Run a legacy program unchanged, then list the old calls it made.",
)
@click.option("-m", "module", is_flag=True, help="PROGRAM is a module, as in 'python -m PROGRAM'.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, writable=True, resolve_path=True, path_type=Path),
    metavar="FILE",
    help="Write the old calls to FILE as JSON.",
)
@click.option(
    "--install/--no-install",
    default=True,
    show_default=True,
    help="Let PROGRAM import cupy.cudnn and cupy.cuda.cudnn, which CuPy 14 no longer has.",
)
@click.option(
    "--prepare-chainer",
    is_flag=True,
    help="Put back what 'import chainer' needs and NumPy, Python and setuptools no longer have.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing beside what the program prints.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@click.pass_context
def run(
    context: click.Context,
    module: bool,
    report: Path | None,
    install: bool,
    prepare_chainer: bool,
    quiet: bool,
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Run PROGRAM with ARGS as Python would, then list the old calls it made.

    The list goes to stderr: which calls, how often, from which lines, and what replaces each.

    PROGRAM is a file (or a folder or zip file with a __main__.py). Options in front of it are for
    cudnn-compat, everything behind it is for the program; a '--' directly behind it is dropped.
    The exit status is the program's.

    The warnings of the old calls are not shown as well, unless CUDNN_COMPAT_DEPRECATIONS,
    PYTHONWARNINGS or -W of Python ask for them. Processes that the program starts are not watched,
    and find no cupy.cudnn unless they install it themselves.

    A CuPy whose own cuDNN modules work keeps them.
    """
    if arguments[:1] == ("--",):
        arguments = arguments[1:]
    if not module and not Path(program).exists():
        raise click.BadParameter(
            f"there is no file {program!r}; use -m for a module",
            context,
            param_hint="PROGRAM",
        )
    if report is not None and not report.parent.is_dir():
        raise click.BadParameter(
            f"the folder {str(report.parent)!r} does not exist", context, param_hint="--report"
        )
    if prepare_chainer:
        from cudnn_compat.legacy.cupy.chainer import prepare_chainer as prepare

        for said in prepare():
            if not quiet:
                click.echo(f"cudnn-compat: {said}", err=True)
    with _counting() as recorder, _dialect(install):
        try:
            status = run_program(program, arguments, module=module)
        except NothingToRun as error:
            raise click.ClickException(str(error)) from None
        cupy_s_own = state() == "cupy has its own"
    found = old_calls(recorder.calls)
    if not quiet and sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # the program may have closed it
            print_report(found, program)
            if cupy_s_own:
                said = "cudnn-compat: this CuPy has a cupy.cudnn of its own: it was used"
                click.echo(said, err=True)
    if report is not None:
        content = report_as_json(found, program, arguments, status)
        try:
            report.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            click.echo(f"cudnn-compat: the report was not written: {error}", err=True)
            status = status or 1
    context.exit(status)


@contextlib.contextmanager
def _counting() -> Iterator[CallRecorder]:
    """Count old calls; their warnings are not shown unless the user asked for warnings.

    Loads neither NumPy nor anything else that a program may want to prepare for.
    """
    if not os.environ.get(ENVIRONMENT_VARIABLE) and not sys.warnoptions:
        # In front of what is there already: filters that the program sets itself still win.
        warnings.filterwarnings("ignore", category=LegacyAPIWarning)
    with record_calls() as recorder:
        yield recorder


def _dialect(install: bool) -> contextlib.AbstractContextManager[None]:
    """The names of CuPy 13, importable while the program runs."""
    return installed(at_first_use=True) if install else contextlib.nullcontext()
