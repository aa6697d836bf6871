"""The command ``cudnn-compat``; also ``python -m cudnn_compat``.

It needs click and rich (extra ``cli``), which nothing else in the package does.
"""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Sequence

__all__ = ["main"]

_NOTHING_CAN_BE_PRINTED = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EPIPE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit.

    Args:
        arguments: what stands behind ``cudnn-compat``; None takes them from ``sys.argv``.

    Raises:
        SystemExit: always. 2 for wrong usage, or where click or rich are missing; 1 where nothing
            can be printed, as on a full disk.
    """
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        print(
            f"cudnn-compat: the command needs click and rich ({error}).\n"
            "Install them: pip install 'cudnn-compat[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    from cudnn_compat.cli.app import app

    try:
        app.main(args=arguments, prog_name="cudnn-compat")
    except OSError as error:
        if error.errno not in _NOTHING_CAN_BE_PRINTED:
            raise
        with contextlib.suppress(OSError):
            print(f"cudnn-compat: {error}", file=sys.stderr)
        raise SystemExit(1) from None
