"""``cudnn-compat migrate``: move programs from the old API to v2."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cudnn_compat.cli.console import make_console

if TYPE_CHECKING:
    from cudnn_compat.migrate import Migrated

__all__ = ["migrate"]

WOULD_CHANGE = 1
NOT_READ = 3

_NOTEBOOK = "notebooks are not moved; jupyter nbconvert --to script makes a Python file of one"


@click.command(short_help="Move a program from the old API to v2: show, check or write.")
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH...",
    type=click.Path(exists=True, path_type=Path),
)
@click.option("--diff", "mode", flag_value="diff", help="Show what would change (the default).")
@click.option("--check", "mode", flag_value="check", help="List the files that would change.")
@click.option("--write", "mode", flag_value="write", help="Change the files.")
@click.option("--quiet", is_flag=True, help="Do not list the places that were moved.")
@click.pass_context
def migrate(context: click.Context, paths: tuple[Path, ...], mode: str | None, quiet: bool) -> None:
    """Move programs from the old API to v2.

    PATH is a Python file, or a folder whose Python files are all meant (hidden folders, virtual
    environments and caches are not). Give all files of a program at once: objects pass between
    them, so some things move in all of them or in none.

    What cannot be proved is left as it is, gets a comment that begins with "# cudnn-compat: left",
    and is reported on stderr with its line and the reason. A second run changes nothing more.

    \b
    Exit status:
      0  done; with --check: nothing would change
      1  with --check: something would change
      2  wrong usage, or libcst is missing
      3  a file could not be read as Python (notebooks never are), or not be written; the others
         were treated
    """  # noqa: D301 (\b is a character, which keeps click from filling the lines)
    try:
        import libcst  # noqa: F401
    except ImportError as error:
        raise click.UsageError(
            f"this needs libcst ({error}): pip install 'cudnn-compat[migrate]'"
        ) from error
    from cudnn_compat.cli.files import echo_bytes, find_sources, print_diff, write_over
    from cudnn_compat.migrate import migrate_program

    errors = make_console(stderr=True)
    sources: dict[str, bytes] = {}
    failed = 0
    for file in find_sources(paths):
        if file.suffix == ".ipynb":
            failed += 1
            errors.print(f"{file}: not read: {_NOTEBOOK}", markup=False, soft_wrap=True)
            continue
        try:
            sources[os.fspath(file)] = file.read_bytes()
        except OSError as error:
            failed += 1
            errors.print(f"{file}: not read: {error}", markup=False, soft_wrap=True)
    if not sources and not failed:
        raise click.UsageError("there is no Python file in what was given")
    results = migrate_program(sources)
    changed = [path for path, each in results.items() if each.changed]
    for path in changed:
        if mode == "write":
            try:
                write_over(Path(path), results[path].after)
            except OSError as error:
                failed += 1
                errors.print(f"{path}: not written: {error}", markup=False, soft_wrap=True)
        elif mode == "check":
            echo_bytes(b"would change " + os.fsencode(path) + b"\n")
        else:
            print_diff(path, results[path].before, results[path].after)
    failed += _report(results, quiet=quiet, written=mode == "write")
    if failed:
        context.exit(NOT_READ)
    context.exit(WOULD_CHANGE if mode == "check" and changed else 0)


def _report(results: Mapping[str, Migrated], *, quiet: bool, written: bool) -> int:
    """List on stderr what was found; how many files could not be read as Python."""
    from cudnn_compat.migrate import migrate_program

    console = make_console(stderr=True)
    if written:
        # Places have moved with the lines: say where what is left stands now.
        again = migrate_program({path: each.after for path, each in results.items()})
        left = [f for each in again.values() for f in each.findings]
    else:
        left = [f for each in results.values() for f in each.findings if f.what == "left"]
    moved = [f for each in results.values() for f in each.findings if f.what == "moved"]
    unread = [(path, each.error) for path, each in results.items() if each.error]
    for line in (*(() if quiet else moved), *left):
        console.print(str(line), markup=False, soft_wrap=True)
    for path, error in unread:
        console.print(f"{path}: not Python: {error}", markup=False, soft_wrap=True)
    files = sum(each.changed for each in results.values())
    would = "" if written else "would be "
    console.print(
        f"{len(results)} files read, {files} {would}changed; "
        f"places: {len(moved)} {would}moved, {len(left)} left",
        style="bold",
        soft_wrap=True,
    )
    return len(unread)
