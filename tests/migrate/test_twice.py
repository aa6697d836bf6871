"""A second run changes nothing, wherever imports, marks and comments stand."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

pytest.importorskip("libcst", reason="needs libcst (extra migrate)")

from cudnn_compat.migrate import migrate_source
from tests.migrate.conftest import RunPython

HEADS = ("", "# a comment\n", '"""Doc."""\n', "# cudnn-compat: left, CC020 ngates: of before\n")
ABOVE = ("", "import os\n", "import numpy as np\n", "q = 1\n", "import numpy as np\n# q\nq = 1\n")
OLD = (
    "from cudnn_compat.legacy import RNNDesc, ngates\n",
    "# why\nfrom cudnn_compat.legacy import RNNDesc, hDesc  # which\n",
    "from cudnn_compat.legacy import RNNDesc; from cudnn_compat.legacy import ngates\n",
    "if True:\n    from cudnn_compat.legacy import RNNDesc, ngates\n",
)
BELOW = ("", "from cudnn_compat import v2\n", "import weakref\n")
USES = (
    "d = RNNDesc(2, 3, 4)\n",
    "\n\n# on it\nd = RNNDesc(2, 3, 4, layers=2)\n",
    "def f():\n    # cudnn-compat: left, CC010 RNNDesc: of before\n    return RNNDesc(2, 3, 4)\n",
)
SOURCES = ["".join(parts) for parts in itertools.product(HEADS, ABOVE, OLD, BELOW, USES)]


@pytest.mark.parametrize("start", ["import numpy as np\nq = 1\n", "q = 1\n"])
def test_a_mark_stays_with_its_import(start: str) -> None:
    """What a mark is about is in the line below it, and new imports come above both."""
    imports = "from cudnn_compat.legacy import RNNDesc, ngates\nfrom cudnn_compat import v2\n"
    once = migrate_source(f"{start}{imports}d = RNNDesc(2, 3, 4)\n")
    lines = once.splitlines()
    (mark,) = (number for number, line in enumerate(lines) if line.startswith("# cudnn-compat"))
    assert lines[mark + 1] == "from cudnn_compat.legacy import ngates"
    assert migrate_source(once) == once


def test_programs_put_together_of_pieces() -> None:
    for source in random.Random(0).sample(SOURCES, 60):
        once = migrate_source(source)
        compile(once, "program.py", "exec", dont_inherit=True)
        assert migrate_source(once) == once, source


@pytest.mark.parametrize("option", ["--check", "--write"])
def test_after_writing_nothing_would_change(option: str, python: RunPython, tmp_path: Path) -> None:
    source = "import numpy as np\nq = 1\n" + OLD[0] + "from cudnn_compat import v2\n" + USES[0]
    path = tmp_path / "old.py"
    path.write_text(source, encoding="utf-8")

    def migrate(option: str) -> int:
        return python("-m", "cudnn_compat", "migrate", "old.py", option, cwd=tmp_path).returncode

    assert migrate("--check") == 1
    assert path.read_text(encoding="utf-8") == source
    assert migrate("--write") == 0
    written = path.read_bytes()
    assert migrate(option) == 0
    assert path.read_bytes() == written
