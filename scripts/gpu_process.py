"""Processes with a limit of time, which take their children with them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

__all__ = ["run_limited"]


def run_limited(
    command: list[str], *, output: Path, limit: float, env: Mapping[str, str], cwd: Path
) -> int | None:
    """Run a command with its output in a file.

    Returns:
        Its exit status; None where it ran past the limit, and was ended with all its children.
    """
    with output.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Also after a good end: nothing of a part may go on while the next one is measured.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
