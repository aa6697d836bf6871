"""Make one small file of Chainer's package and tests, for a machine without a network.

    CHAINER_SRC=../chainer-src python scripts/chainer_bundle.py chainer-7.8.1.tar.xz

The other ``chainer_*.py`` scripts take the file where they take a checkout:
``CHAINER_SRC=chainer-7.8.1.tar.xz``. For programs, unpack it into a folder and put that on
PYTHONPATH: the one file that Chainer's setup.py would write is in it. ``chainer_setup.py`` says how
to get a checkout.
"""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

from chainer_setup import BUILD_INFO, sources
from chainer_setup import __doc__ as about

KEPT = ("LICENSE", "setup.cfg", "chainer", "chainerx", "tests/conftest.py", "tests/chainer_tests")
LEFT_OUT = {
    "tests/chainer_tests/dataset_tests",
    "tests/chainer_tests/training_tests",
    "tests/chainer_tests/links_tests/model_tests",
}


def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Python files, without what no test that is run here needs; owners are nobody's business."""
    if entry.name in {*LEFT_OUT, *BUILD_INFO} or entry.name.endswith("__pycache__"):
        return None
    if entry.isfile() and not entry.name.endswith((".py", "LICENSE", "setup.cfg")):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> int:
    """Write the file that the command line names."""
    folder = sources()
    if folder is None or len(sys.argv) != 2:
        sys.exit(f"{__doc__}\n{about}")
    target = Path(sys.argv[1])
    with tarfile.open(target, "w:xz") as archive:
        for name in KEPT:
            archive.add(folder / name, name, filter=wanted)
        for name, text in BUILD_INFO.items():
            written = tarfile.TarInfo(name)
            written.size = len(text)
            archive.addfile(written, io.BytesIO(text.encode()))
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
