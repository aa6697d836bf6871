"""The group of commands. Each imports what it needs when it runs."""

from __future__ import annotations

import click

from cudnn_compat._version import __version__
from cudnn_compat.cli.bench import bench
from cudnn_compat.cli.explain import explain
from cudnn_compat.cli.info import info
from cudnn_compat.cli.matrix import matrix
from cudnn_compat.cli.migrate import migrate
from cudnn_compat.cli.run import run
from cudnn_compat.cli.tuning import tuning

__all__ = ["app"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="cudnn-compat %(version)s")
def app() -> None:
    """RNN code written for any cuDNN runs on the cuDNN you have today, or on none.

    \b
    cudnn-compat run old_program.py   run it unchanged, see which old calls it makes
    cudnn-compat explain CC012        what replaces an old call
    cudnn-compat migrate old.py       move it to v2: shows a diff
    cudnn-compat info                 what can be used here, and why not
    cudnn-compat matrix               what works here, measured
    cudnn-compat bench                how fast it is here, against PyTorch
    cudnn-compat tuning               what algo="auto" has learnt on this machine
    """  # noqa: D301 (\b is a character, which keeps click from filling the lines)


for command in (run, explain, migrate, info, matrix, bench, tuning):
    app.add_command(command)
