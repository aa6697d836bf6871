"""Write docs/cupy-names.md: what of cupy.cudnn is offered, and what is not.

    python scripts/cupy_names.py [--check]

It is made from the table of old names and from the list of what is not offered; with ``--check``
nothing is written, and the exit status says whether the page is current.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cudnn_compat.legacy.cupy.absent import ABSENT, Absent  # noqa: E402 - found by the line above
from cudnn_compat.legacy.names import MODULES, LegacyName  # noqa: E402
from cudnn_compat.legacy.table import TABLE  # noqa: E402

PAGE = ROOT / "docs" / "cupy-names.md"

HIGH, LOW = (f"cudnn_compat.legacy.cupy.{half}" for half in ("cudnn", "libcudnn"))

BEGIN = """\
# What of cupy.cudnn is offered

<!-- Written by scripts/cupy_names.py from the table of old names: change that, not this page. -->

`cudnn_compat.legacy.cupy` has the RNNs, dropout, softmax and activations of CuPy 13's cuDNN
modules, and what belongs to them. Each name below says what replaces it; `cudnn-compat explain
CODE` shows both side by side. How a program finds the modules: [Your Chainer model on a new
GPU](guides/chainer.md).
"""

NOT_OFFERED = """\

## Not offered

Asking for one of these raises an `AttributeError` that says what it was and what to use. Constants
that belong to them have their values all the same, because programs read them while they are
imported.

| what | use | names |
| --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    parts = [BEGIN]
    for module in (HIGH, LOW):
        names = MODULES[module]
        rows = [row for row in TABLE if row.module == module and row.kind != "constant"]
        parts.append(f"\n## `{names[0]}` (`{names[1]}`)\n\n")
        parts.append("| name | code | use | what changes |\n| --- | --- | --- | --- |\n")
        parts.extend(_row(row) for row in rows)
    constants = [row for row in TABLE if row.module == LOW and row.kind == "constant"]
    parts.append(f"\n## Constants of `{MODULES[LOW][0]}` that have a counterpart\n\n")
    parts.append("| name | code | use | what changes |\n| --- | --- | --- | --- |\n")
    parts.extend(_row(row) for row in constants)
    parts.append(NOT_OFFERED)
    parts.extend(_absent(ABSENT))
    return "".join(parts)


def _row(row: LegacyName) -> str:
    renamed = ", ".join(f"`{old}` → `{new}`" for old, new in row.renamed)
    words = f"{row.summary} {renamed}".strip().replace("|", "\\|")
    new = row.new.removeprefix("cudnn_compat.")
    return f"| `{row.name}` | {row.code} | `{new}` | {words} |\n"


def _absent(groups: Iterable[Absent]) -> Iterator[str]:
    for group in groups:
        names = ", ".join(f"`{name}`" for name in (*group.high, *group.low))
        yield f"| {group.what} | {group.instead} | {names} |\n"


def main() -> int:
    """Write the page, or compare it."""
    text = page()
    if sys.argv[1:] == ["--check"]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print(f"{PAGE.name} is {'current' if current else 'not current: run this script'}")
        return 0 if current else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
