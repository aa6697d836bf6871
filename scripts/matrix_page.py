"""Make `docs/matrix.md` from the newest records in `docs/records/matrix`, a folder for each date.

    python scripts/matrix_page.py [--html FILE]

With `--html` also the page with every cell, as `cudnn-compat matrix --merge … --html FILE` does.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the package need not be installed

from cudnn_compat.errors import ArgumentError  # noqa: E402
from cudnn_compat.matrix.page import write_html, write_markdown  # noqa: E402

RECORDS = ROOT / "docs" / "records" / "matrix"
PAGE = ROOT / "docs" / "matrix.md"


def newest_records() -> list[Path]:
    """The files of the last date."""
    folders = sorted(folder for folder in RECORDS.iterdir() if folder.is_dir())
    return sorted(folders[-1].glob("*.json")) if folders else []


def main() -> int:
    """Write; the exit status."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the page in HTML too")
    given = parser.parse_args()
    records = newest_records()
    try:
        write_markdown(records, PAGE)
        if given.html:
            write_html(records, given.html)
    except ArgumentError as error:
        parser.exit(1, f"{error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
